//! Why an account at a server cannot be changed.

use switchboard_model::{ConnectError, ServerName};

/// Why an account at a server cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    #[error("there is no MCP server '{0}'")]
    UnknownServer(ServerName),
    /// The account is the board's, and the caller is no administrator.
    #[error("all callers share one account at '{0}'")]
    Shared(ServerName),
    /// The caller asked for the account of the board.
    #[error("the account of the board needs the role admin")]
    NeedsAdmin,
    /// The server has no such account, or its sign-in cannot begin or end.
    #[error("{0}")]
    Refused(#[from] ConnectError),
}

impl AccountError {
    /// What can be done about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownServer(_) => Some("`switchboard server list` shows all servers".into()),
            Self::Shared(_) | Self::NeedsAdmin => {
                Some("somebody with the role admin can sign in there for all callers".into())
            }
            Self::Refused(error) => error.hint(),
        }
    }
}
