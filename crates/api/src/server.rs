//! Servers and their state.

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
    /// The URL or command of the server, without credentials.
    pub place: String,
    /// `strict` or `dynamic`.
    pub mode: String,
    /// Whether the board does not start without the server.
    pub required: bool,
    /// `legacy` for the session era of MCP or `modern` for the stateless era, once it is known.
    #[schema(required)]
    pub era: Option<String>,
    /// The negotiated protocol version.
    #[schema(required)]
    pub protocol: Option<String>,
    /// The name that the server reports. For display only.
    #[schema(required)]
    pub reported_name: Option<String>,
    #[schema(required)]
    pub reported_version: Option<String>,
    /// The number of tools that the server lists.
    pub offered_tools: usize,
    /// The number of tools that policy admits.
    pub tools: usize,
    /// How long connecting and listing took.
    #[schema(required)]
    pub connect_ms: Option<u64>,
    /// Why the server is unavailable.
    #[schema(required)]
    pub error: Option<String>,
    /// How to repair the error, if that is known.
    #[schema(required)]
    pub hint: Option<String>,
    /// The end of the server's standard error output, if it was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// The connections of sessions, if each session has its own (`connection: per_session`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_processes: Option<SessionProcesses>,
}

/// The sessions' own connections to a server: processes of a stdio server, MCP sessions of others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SessionProcesses {
    /// The current number, without the connection that lists the tools.
    pub running: usize,
    /// The maximum number (`max_connections`).
    pub most: u32,
}

/// All servers, in the order of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServerList {
    pub servers: Vec<ServerView>,
}

/// The response of `/readyz`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// `ready`, or `degraded` while a server is unavailable or the store takes no writes.
    pub status: String,
    /// The revision of the catalog.
    pub revision: u64,
    /// The number of tools in the catalog.
    pub tools: usize,
    /// The unavailable servers that the caller may know of.
    pub unavailable: Vec<String>,
    /// Why the store takes no writes; absent if it does. Tools can still be listed and called; requests that would change
    /// something get 503.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreTrouble>,
}

/// A store that takes no writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StoreTrouble {
    /// The reason, such as `no space is left on the disk of its data directory`.
    pub reason: String,
    /// The duration of the outage in seconds.
    pub seconds: u64,
    /// The number of writes that failed.
    pub failed_writes: u64,
}
