//! Servers and how they are doing.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One configured server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServerView {
    pub name: String,
    /// `ready`, `connecting` or `unavailable`.
    pub state: String,
    /// `streamable_http`, `sse` or `stdio`.
    pub transport: String,
    /// Its URL or command, without credentials.
    pub place: String,
    /// `strict` or `dynamic`.
    pub mode: String,
    /// Whether the start fails without it.
    pub required: bool,
    /// `legacy` or `modern`, once it is known.
    #[schema(required)]
    pub era: Option<String>,
    /// The protocol version that was agreed on.
    #[schema(required)]
    pub protocol: Option<String>,
    /// What the server calls itself. For display only.
    #[schema(required)]
    pub reported_name: Option<String>,
    #[schema(required)]
    pub reported_version: Option<String>,
    /// Tools that it lists.
    pub offered_tools: usize,
    /// Tools that policy admits.
    pub tools: usize,
    /// How long connecting and listing took.
    #[schema(required)]
    pub connect_ms: Option<u64>,
    /// Why it is unavailable.
    #[schema(required)]
    pub error: Option<String>,
    /// The way out of the error, when there is one.
    #[schema(required)]
    pub hint: Option<String>,
    /// The last of its error output, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// Where each session has a connection of its own (`connection: per_session`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_processes: Option<SessionProcesses>,
}

/// The connections that sessions have to a server: processes of a stdio server, MCP sessions of others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SessionProcesses {
    /// How many there are now, without the one that lists the tools.
    pub running: usize,
    /// How many there may be (`max_connections`).
    pub most: u32,
}

/// All servers, in the order of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServerList {
    pub servers: Vec<ServerView>,
}

/// What `/readyz` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// `ready`, or `degraded` while a server is away or the store takes no writes.
    pub status: String,
    /// The revision of the catalog.
    pub revision: u64,
    /// How many tools it has.
    pub tools: usize,
    /// Servers that cannot be reached just now, as far as who asks may know of them.
    pub unavailable: Vec<String>,
    /// Why the store takes no writes; absent while it does. Tools can be listed and called meanwhile, and what would
    /// change something is answered with 503.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreTrouble>,
}

/// A store that takes no writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StoreTrouble {
    /// Why, such as `no space is left on the disk of its data directory`.
    pub reason: String,
    /// For how many seconds.
    pub seconds: u64,
    /// How many writes it did not take.
    pub failed_writes: u64,
}
