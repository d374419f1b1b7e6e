//! What the supervisors of all servers share.

use std::sync::Arc;

use switchboard_mcp_client::ConnectOptions;
use switchboard_store::Store;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::activity::ActivityFeed;
use crate::known_owners::KnownOwners;
use crate::memory::Memory;
use crate::offers::Outgoing;

/// The callers that may know of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Everybody,
    /// Only the session that attached it, and only its tools: it has no metrics, its tools are not stored, and its
    /// notifications are dropped.
    Owner,
}

/// Shared by all supervisors.
#[derive(Debug, Clone)]
pub(crate) struct ServerContext {
    pub(crate) store: Store,
    pub(crate) memory: Memory,
    pub(crate) options: ConnectOptions,
    pub(crate) dirty: Arc<Notify>,
    pub(crate) tasks: TaskTracker,
    /// Stops every supervisor.
    pub(crate) stop: CancellationToken,
    pub(crate) outgoing: Outgoing,
    pub(crate) audience: Audience,
    pub(crate) owners: KnownOwners,
    pub(crate) activity: ActivityFeed,
}
