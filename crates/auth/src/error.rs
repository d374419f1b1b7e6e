//! Errors of the gatekeeper itself. A refused request is a [`crate::Refusal`] instead.

use std::io;
use std::path::PathBuf;

use switchboard_model::BadRate;
use switchboard_store::StoreError;

/// Why keys cannot be read or created, or why tokens cannot be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The store failed to read or write the keys.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file with the issuer's keys cannot be used.
    #[error("cannot use the JWKS file {}: {reason}", file.display())]
    JwksFile {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The HTTP client that fetches the issuer's keys cannot be created.
    #[error("cannot set up the client that fetches the JWKS")]
    HttpClient {
        /// The client's error.
        source: reqwest::Error,
    },
    /// The name of a key is invalid.
    #[error("{reason}")]
    BadName {
        /// What is wrong with the name.
        reason: &'static str,
    },
    /// The user label of a key is invalid.
    #[error("{reason}")]
    BadUser {
        /// What is wrong with the label.
        reason: &'static str,
    },
    /// What a key shall grant is invalid.
    #[error("{reason}")]
    BadAccess {
        /// What is wrong with it.
        reason: String,
    },
    /// The system has no random bytes.
    #[error("cannot get random bytes from the system")]
    NoRandomness {
        /// The system's error.
        source: io::Error,
    },
}

impl AuthError {
    /// How to repair the error, if that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Store(error) => error.hint(),
            Self::JwksFile { .. } => {
                Some("put the JSON of the issuer's `jwks_uri` there, or name the URL itself".into())
            }
            Self::BadName { .. } => {
                Some("use up to 64 letters, digits, `.`, `_` and `-`, such as `anas-laptop`".into())
            }
            Self::BadUser { .. } => Some(
                "use up to 128 letters, digits, `.`, `_`, `-`, `@` and `+`, such as `anna`".into(),
            ),
            Self::BadAccess { .. } => {
                Some(BadRate::HELP.to_owned()).filter(|_| self.to_string().contains("rate"))
            }
            Self::HttpClient { .. } | Self::NoRandomness { .. } => None,
        }
    }
}
