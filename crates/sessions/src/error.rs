//! Errors of finding and changing sessions.

use switchboard_store::{StoreError, StoreFailure};

/// Why a session cannot be found, created or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionError {
    Unknown(String),
    Taken(String),
    BadName(String),
    TooMany,
    /// The session has another revision than the caller expects: its tools have changed.
    Stale {
        expected: u64,
        current: u64,
    },
    /// Other boards changed the session at the same time, again and again. Nothing was changed.
    Contended,
    /// The change is invalid, for example because it names a toolset that does not exist.
    Refused(String),
    /// One value of the change is invalid.
    Invalid {
        /// The JSON pointer of the value in the change.
        path: String,
        reason: String,
    },
    /// The store failed; nothing was changed.
    Store(StoreFailure),
}

impl std::fmt::Display for SessionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown(id) => write!(f, "there is no session '{id}'"),
            Self::Taken(id) => write!(f, "there is a session '{id}' already"),
            Self::BadName(id) => write!(
                f,
                "'{id}' cannot name a session: 1 to 64 letters, digits, `_` and `-`, the first a letter or digit, and not `mcp-` at the beginning"
            ),
            Self::TooMany => f.write_str("there are too many sessions; end some first"),
            Self::Stale { expected, current } => write!(
                f,
                "the tools of this session are at revision {current}, not {expected}: read them again, then repeat the change"
            ),
            Self::Contended => f.write_str(
                "other boards changed this session at the same time, and nothing was changed: repeat the change",
            ),
            Self::Refused(reason) | Self::Invalid { reason, .. } => f.write_str(reason),
            Self::Store(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for SessionError {}

impl SessionError {
    /// The same error, with the member of the change that it is about: `/key` or `/key/name`.
    pub(crate) fn at(self, key: &str, name: Option<&str>) -> Self {
        let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
        match self {
            Self::Refused(reason) => {
                let name = name.map(|name| format!("/{}", escaped(name))).unwrap_or_default();
                Self::Invalid { path: format!("/{key}{name}"), reason }
            }
            other => other,
        }
    }
}

impl From<StoreError> for SessionError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.into())
    }
}

impl From<StoreFailure> for SessionError {
    fn from(failure: StoreFailure) -> Self {
        Self::Store(failure)
    }
}
