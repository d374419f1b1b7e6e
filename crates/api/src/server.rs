//! Servers and how they are doing.

use serde::{Deserialize, Serialize};

/// One configured server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerView {
    pub name: String,
    /// `ready`, `connecting` or `unavailable`.
    pub state: String,
    pub transport: String,
    /// Its URL or command, without credentials.
    pub place: String,
    /// `strict` or `dynamic`.
    pub mode: String,
    pub required: bool,
    /// `legacy` or `modern`, once it is known.
    pub era: Option<String>,
    /// The protocol version that was agreed on.
    pub protocol: Option<String>,
    /// What the server calls itself. For display only.
    pub reported_name: Option<String>,
    pub reported_version: Option<String>,
    /// Tools that it lists.
    pub offered_tools: usize,
    /// Tools that policy admits.
    pub tools: usize,
    /// How long connecting and listing took.
    pub connect_ms: Option<u64>,
    pub error: Option<String>,
    pub hint: Option<String>,
    /// The last of its error output, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
}

/// All servers, in the order of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerList {
    pub servers: Vec<ServerView>,
}

/// What `/readyz` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Readiness {
    /// `ready`, or `degraded` while a server is away.
    pub status: String,
    pub revision: u64,
    pub tools: usize,
    /// Servers that cannot be reached just now.
    pub unavailable: Vec<String>,
}
