//! What every source has in common: it is fetched, and answers with servers or with the reason why not.

use std::path::PathBuf;

use futures::future::BoxFuture;
use switchboard_agent365::ToolingError;
use switchboard_model::FoundServer;

/// Something that names servers.
pub trait ServerSource: std::fmt::Debug + Send + Sync {
    /// Asks for the servers. Nothing is kept between two fetches; dropping the future cancels the request.
    fn fetch(&self) -> BoxFuture<'_, Result<FetchedServers, SourceError>>;

    /// Where it looks, for display; without credentials.
    fn place(&self) -> String;

    /// The servers as they are kept for the next run: without the credentials that this source's settings give them.
    fn kept(&self, servers: &[FoundServer]) -> Vec<FoundServer> {
        servers.to_vec()
    }

    /// Kept servers of an earlier run, with the credentials that the settings give them now.
    fn restored(&self, kept: Vec<FoundServer>) -> Vec<FoundServer> {
        kept
    }
}

/// The answer of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FetchedServers {
    /// The servers that can be used, in the order of the source.
    pub servers: Vec<FoundServer>,
    /// The entries that cannot.
    pub unusable: Vec<UnusableEntry>,
    /// Warnings about the answer as a whole.
    pub warnings: Vec<String>,
    /// Where exactly the answer came from, if the source looks at several places.
    pub taken_from: Option<String>,
}

/// An entry of a source that cannot be used. It costs no other entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusableEntry {
    /// Its name, or its place in the list if it has none.
    pub name: String,
    pub reason: String,
}

/// Why a source gave no answer. Its last known servers stay.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// No manifest is at any of the places.
    #[error("ToolingManifest.json not found. Checked {} locations", .checked.len())]
    NoManifest { checked: Vec<PathBuf> },
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", .path.display())]
    Unreadable { path: PathBuf, reason: String },
    /// A manifest or a gateway failed in the words of Agent 365.
    #[error("{0}")]
    Tooling(ToolingError),
    /// The answer has none of the known shapes.
    #[error("{0}")]
    Shape(String),
    /// The documents of a registry cannot be fetched or parsed.
    #[error("cannot read the MCP registry {place}: {reason}")]
    Registry { place: String, reason: String },
    /// A setting is missing or wrong.
    #[error("{0}")]
    Setting(String),
    /// The source took too long.
    #[error("no answer within {seconds} s")]
    Late { seconds: u64 },
}

impl SourceError {
    /// The way out, if there is one that the message does not say.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoManifest { checked } => {
                let checked: Vec<_> = checked.iter().map(|it| it.display().to_string()).collect();
                Some(format!(
                    "put it at one of {}, or set `path` of the source",
                    checked.join(", ")
                ))
            }
            Self::Tooling(ToolingError::EmptyAgentId) => {
                Some("set `discovery.agent_id`, or SWITCHBOARD_AGENT_ID".into())
            }
            Self::Tooling(ToolingError::EmptyToken) => {
                Some("set `discovery.token`, or SWITCHBOARD_AGENT_TOKEN".into())
            }
            Self::Tooling(ToolingError::Status { status: 401 | 403, .. }) => {
                Some("the token is not accepted: renew it".into())
            }
            Self::Unreadable { .. }
            | Self::Tooling(_)
            | Self::Shape(_)
            | Self::Registry { .. }
            | Self::Setting(_)
            | Self::Late { .. } => None,
        }
    }
}
