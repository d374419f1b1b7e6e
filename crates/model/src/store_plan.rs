//! Where a board keeps its data.

use crate::Secret;

/// The default of `store.max_connections`.
pub const DEFAULT_STORE_CONNECTIONS: u32 = 10;

/// The `store` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorePlan {
    /// The address of a `PostgreSQL` database; without one, the data directory has a database of `SQLite`.
    pub url: Option<Secret>,
    /// The address for notifications, where `url` leads to a pooler that loses them.
    pub listen_url: Option<Secret>,
    /// The most connections of this board to that database.
    pub max_connections: u32,
}

impl Default for StorePlan {
    fn default() -> Self {
        Self { url: None, listen_url: None, max_connections: DEFAULT_STORE_CONNECTIONS }
    }
}
