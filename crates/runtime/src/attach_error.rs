//! Why a session cannot attach a server.

use switchboard_model::{EgressRefusal, ServerName};

/// Why a server cannot be attached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    #[error("'{name}' cannot be the name of a server")]
    Name { name: String },
    /// The URL is not repeated in the message: it may hold a key.
    #[error("the address of server '{name}' {why}")]
    Url { name: ServerName, why: &'static str },
    #[error("the header '{header}' of server '{name}' {why}")]
    Header { name: ServerName, header: String, why: &'static str },
    #[error("the egress check refuses the address of server '{name}', {host}: {refusal}")]
    Refused { name: ServerName, host: String, refusal: EgressRefusal },
    #[error("this session has {limit} servers of its own already, and may not have more")]
    TooManyOfOwner { limit: usize },
    #[error("all sessions together have {limit} servers of their own already")]
    TooMany { limit: u32 },
    #[error("the board is shutting down")]
    ShuttingDown,
}

impl AttachError {
    /// What the caller can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Name { .. } => Some(
                "use letters, digits, `_` and `-`, first a letter or digit, at most 64; `local` is taken",
            ),
            Self::Url { .. } => {
                Some("write an http or https address such as `https://example.com/mcp`")
            }
            Self::Refused { refusal, .. } => Some(refusal.hint()),
            Self::TooManyOfOwner { .. } => Some("remove one of them first"),
            Self::TooMany { .. } => Some("the operator can raise `gateway.max_session_servers`"),
            Self::Header { .. } | Self::ShuttingDown => None,
        }
    }

    /// Whether a limit on the number of servers is the reason, so that a later attempt may succeed.
    pub fn is_about_room(&self) -> bool {
        match self {
            Self::TooManyOfOwner { .. } | Self::TooMany { .. } => true,
            Self::Name { .. }
            | Self::Url { .. }
            | Self::Header { .. }
            | Self::Refused { .. }
            | Self::ShuttingDown => false,
        }
    }
}
