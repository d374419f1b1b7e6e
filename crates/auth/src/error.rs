//! Why the gatekeeper cannot do its work. A request that is turned away is a [`crate::Refusal`] instead.

use std::io;
use std::path::PathBuf;

use switchboard_store::StoreError;

/// Why keys cannot be read or made, or tokens cannot be checked at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The keys cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file with the issuer's keys is of no use.
    #[error("cannot use the JWKS file {}: {reason}", file.display())]
    JwksFile {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no way to fetch the issuer's keys.
    #[error("cannot set up the client that fetches the JWKS")]
    HttpClient {
        /// What the client said.
        source: reqwest::Error,
    },
    /// A key cannot have this name.
    #[error("{reason}")]
    BadName {
        /// What is wrong with the name.
        reason: &'static str,
    },
    /// The system gave no random bytes.
    #[error("cannot get random bytes from the system")]
    NoRandomness {
        /// What the system said.
        source: io::Error,
    },
}

impl AuthError {
    /// The way out, when there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Store(error) => error.hint(),
            Self::JwksFile { .. } => {
                Some("put the JSON of the issuer's `jwks_uri` there, or name the URL itself".into())
            }
            Self::BadName { .. } => {
                Some("use up to 64 letters, digits, `.`, `_` and `-`, such as `anas-laptop`".into())
            }
            Self::HttpClient { .. } | Self::NoRandomness { .. } => None,
        }
    }
}
