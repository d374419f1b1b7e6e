//! Why a turn cannot begin, or a conversation cannot be read or changed.

use switchboard_chat::{HistoryError, ModelFault, OverlayError};
use switchboard_store::{StoreError, StoreFailure};

/// Errors of turns and conversations.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TurnError {
    #[error("the turn '{turn}' of this session runs; wait for its end, or cancel it")]
    Busy { turn: String },
    #[error("this session has no turn '{0}'; what was said is in its history")]
    Unknown(String),
    #[error("the turn '{0}' has run already; what was said in it is in the history")]
    HasRun(String),
    #[error("'{0}' is not a valid turn id: use 1 to 48 letters, digits, `_` and `-`")]
    BadName(String),
    #[error("a turn needs a message: `message` is empty")]
    NothingSaid,
    #[error("`{name}` must be {rule}")]
    OutOfBounds { name: &'static str, rule: &'static str },
    /// The provider cannot be used.
    #[error("{}", .0.message)]
    Provider(Box<ModelFault>),
    #[error(transparent)]
    Overlay(#[from] OverlayError),
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error("another request changed the conversation at the same time; read it again")]
    Raced,
    #[error("the stored conversation cannot be read: message {index}: {reason}")]
    Damaged { index: usize, reason: String },
    #[error("the board is about to stop")]
    Stopping,
    #[error("{0}")]
    Store(String),
    /// The store failed, and nothing was stored.
    #[error(transparent)]
    NotStored(StoreFailure),
}

impl TurnError {
    /// The `kind` of the error in problem documents.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Busy { .. } => "turn_running",
            Self::HasRun(_) => "turn_has_run",
            Self::Raced => "stale_history",
            Self::Unknown(_) => "unknown_turn",
            Self::BadName(_)
            | Self::NothingSaid
            | Self::OutOfBounds { .. }
            | Self::Provider(_)
            | Self::Overlay(_)
            | Self::History(_) => "bad_request",
            Self::Stopping => "stopping",
            Self::Damaged { .. } | Self::Store(_) | Self::NotStored(_) => "store",
        }
    }
}

impl From<StoreError> for TurnError {
    fn from(error: StoreError) -> Self {
        Self::NotStored(error.into())
    }
}
