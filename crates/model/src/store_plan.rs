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
    pub slots: SlotPlan,
}

/// How boards share the slots of tools: `store.slots`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlotPlan {
    /// Without it, [`AfterLoss::Timeout`] for a tool with one slot, else [`AfterLoss::Lease`].
    pub after_loss: Option<AfterLoss>,
    pub on_store_loss: OnStoreLoss,
}

/// When the slots of a board that fell silent are given to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterLoss {
    /// When its lease is over. A call of a paused board may still run at the server.
    Lease,
    /// When its calls have timed out, too.
    Timeout,
}

/// What a board does that cannot reach the database for longer than its lease.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnStoreLoss {
    /// It cancels its calls and refuses new ones.
    #[default]
    Stop,
    /// It goes on with a share of the slots: those of the tool, divided by the number of boards.
    Share,
}

impl AfterLoss {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Timeout => "timeout",
        }
    }
}

impl OnStoreLoss {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Share => "share",
        }
    }
}

impl Default for StorePlan {
    fn default() -> Self {
        Self {
            url: None,
            listen_url: None,
            max_connections: DEFAULT_STORE_CONNECTIONS,
            slots: SlotPlan::default(),
        }
    }
}
