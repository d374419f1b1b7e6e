//! Servers and their state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::call::RecordDeclaration;
use crate::content_check::ContentCheckDeclaration;
use crate::declaration::LimitsDeclaration;
use crate::tool::QuarantinedToolView;

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
    /// The source that named the server; absent for a server of the configuration file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its name in that source, if it differs from `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_name: Option<String>,
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
    /// Since when the server is in this state, in milliseconds since 1970.
    #[serde(default)]
    #[schema(required)]
    pub since_ms: i64,
    /// When it could last not be reached, in this run of the board.
    #[serde(default)]
    #[schema(required)]
    pub last_error_at_ms: Option<i64>,
    /// When the next connection attempt begins, if it waits for one.
    #[serde(default)]
    #[schema(required)]
    pub retry_at_ms: Option<i64>,
    /// The number of calls of its tools that wait or run.
    #[serde(default)]
    #[schema(required)]
    pub in_flight: usize,
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

/// An entry of `toolbox.mcps` as the API takes it. A program, its arguments, its environment, OAuth settings and references
/// to variables and files can be written in the file only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerDeclaration {
    /// The address of the server. Required, unless the file says that the server is a program. A new address must pass the
    /// egress check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "https://example.com/mcp")]
    pub url: Option<String>,
    /// `streamable_http` or `sse`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub transport: Option<String>,
    /// HTTP headers of every request. Shown as `***`; `***` keeps the present value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub headers: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub auth: Option<ServerAuth>,
    /// `strict` or `dynamic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "dynamic")]
    pub mode: Option<String>,
    /// Limits of tools without an entry of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub default_tool_config: Option<LimitsDeclaration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tool_allowlist: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tool_denylist: Option<Vec<String>>,
    /// Whether the board does not start without the server. A change that adds a required server which cannot be reached
    /// is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub required: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub toolset: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub prompts: Option<Vec<String>>,
    /// `auto`, `legacy` or `modern`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub era: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "30s")]
    pub connect_timeout: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "1m")]
    pub poll_interval: Option<Value>,
    /// `shared` or `per_session`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub connection: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    pub max_connections: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "10m")]
    pub connection_idle_timeout: Option<Value>,
    /// Whether arguments are checked before calls are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub validate_arguments: Option<bool>,
    /// The checks of the calls of its tools by the threat-protection endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub content_check: Option<ContentCheckDeclaration>,
    /// Whether arguments and results of the calls of its tools are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub record: Option<RecordDeclaration>,
}

/// The credentials for a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerAuth {
    /// Sent as `Authorization: Bearer ...`. Shown as `***`; `***` keeps the present value.
    pub bearer: String,
}

/// One server: its state and its entry in the configuration file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServerDetail {
    #[serde(flatten)]
    pub server: ServerView,
    /// When its tools were last listed.
    #[schema(required)]
    pub listed_at_ms: Option<i64>,
    /// Tools that it lists and that cannot be used.
    pub refused: Vec<QuarantinedToolView>,
    /// Its entry in the file, secrets as `***`; `null` if the file has none.
    #[schema(required, value_type = Option<Object>)]
    pub declared: Option<Value>,
    /// Where each declared value is written, by its JSON pointer in `declared`: `FILE:LINE:COLUMN`.
    pub origins: BTreeMap<String, String>,
    /// The version of the entry, which is also the `ETag` of the response; `null` if there is no entry.
    #[schema(required)]
    pub etag: Option<String>,
}

/// The outcome of trying a server that is not configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerTrial {
    /// Whether the server was connected and listed its tools.
    pub ok: bool,
    /// What was tried, in this order; the last one failed if `ok` is false.
    pub steps: Vec<TrialStep>,
    /// `legacy` for the session era of MCP or `modern` for the stateless era.
    #[schema(required)]
    pub era: Option<String>,
    /// The negotiated protocol version.
    #[schema(required)]
    pub protocol: Option<String>,
    #[schema(required)]
    pub reported_name: Option<String>,
    #[schema(required)]
    pub reported_version: Option<String>,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// Tools that it lists and that cannot be used, with the reasons.
    pub quarantined: Vec<String>,
}

/// One step of trying a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrialStep {
    /// `address`: the egress check. `connection`: connecting and listing.
    pub name: String,
    pub ok: bool,
    /// How long it took.
    #[schema(required)]
    pub ms: Option<u64>,
    /// Why it failed.
    #[schema(required)]
    pub detail: Option<String>,
    /// How to repair that.
    #[schema(required)]
    pub hint: Option<String>,
}

/// The end of what a server has written to its standard error output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerLog {
    pub lines: Vec<LogLine>,
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    pub text: String,
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
    /// The certificate of the HTTP server; absent if it serves HTTP without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateView>,
}

/// The certificate of the HTTP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CertificateView {
    /// When its validity begins, in RFC 3339.
    pub valid_from: String,
    /// When its validity ends, in RFC 3339.
    pub valid_until: String,
    /// Whether it is valid now.
    pub is_valid: bool,
    /// Why the files as they are now were refused; the certificate of before is still in use. Absent if they were not, and
    /// for callers that do not see all of the board.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
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
