//! Sessions and toolsets.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// What a new session is to be. All of it can be changed later.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// Its name; without one it gets one that cannot be guessed. Names that begin with `mcp-` are for the sessions of
    /// connected clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", max_length = 64, example = "work")]
    pub id: Option<String>,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 512, example = "Quarterly report")]
    pub title: Option<String>,
    /// The provider that it talks to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 512, example = "anthropic")]
    pub provider: Option<String>,
    /// The model there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 512)]
    pub model: Option<String>,
    /// The only servers whose tools it sees; without a list it sees those of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    /// Toolsets to switch on or off.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub toolsets: BTreeMap<String, bool>,
    /// Single tools to switch on or off, whatever their toolsets are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, bool>,
    /// For a provider the only tools that it is shown: names, or patterns with `*` and `?`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allow: BTreeMap<String, Vec<String>>,
    /// MCP servers that only this session has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own_servers: BTreeMap<String, OwnServerBody>,
}

/// What is to be different. What is left out stays as it is; all of it is one step of the revision.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionChange {
    /// The revision that the caller has seen. When there is a newer one, nothing is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    pub tools_revision: Option<u64>,
    /// `null` takes it away.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, max_length = 512)]
    pub title: Option<Option<String>>,
    /// `null` takes it away.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, max_length = 512)]
    pub provider: Option<Option<String>>,
    /// `null` takes it away.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, max_length = 512)]
    pub model: Option<Option<String>>,
    /// The only servers whose tools it sees; `null` for those of all.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub servers: Option<Option<Vec<String>>>,
    /// Toolsets to switch on or off.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub toolsets: BTreeMap<String, bool>,
    /// Single tools to switch on or off; `null` leaves a tool to its toolsets again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Option<bool>>,
    /// For a provider the only tools that it is shown; `null` shows it all again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allow: BTreeMap<String, Option<Vec<String>>>,
    /// MCP servers that only this session has; `null` takes one away.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    // The document cannot say `null` here; `DELETE` on the server does the same.
    #[schema(value_type = BTreeMap<String, OwnServerBody>)]
    pub own_servers: BTreeMap<String, Option<OwnServerBody>>,
}

/// Tells `null` from what was not said.
#[expect(
    clippy::option_option,
    reason = "a merge patch has three cases, and serde's defaults do the third"
)]
fn said<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

/// An MCP server that a session brings with it. Where it may be is for `security.egress` to say.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnServerBody {
    #[schema(max_length = 4096, example = "https://mcp.example.com/mcp")]
    pub url: String,
    /// `streamable_http` unless it is said.
    #[serde(default)]
    pub transport: OwnTransport,
    /// Sent with every request to it. Nobody can read the values back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// How a server of a session is spoken to. Commands are not among it: only the configuration file runs those.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OwnTransport {
    #[default]
    StreamableHttp,
    Sse,
}

/// A server of a session, without its secrets.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct OwnServerView {
    /// Without credentials and query values.
    pub url: String,
    pub transport: OwnTransport,
    /// The names of the headers that are sent to it.
    pub headers: Vec<String>,
    /// `connecting`, `ready` or `unavailable`; nothing while the session is not in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Why it cannot be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The servers that a session is bound to.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Bindings {
    /// The only servers whose tools it sees; `null` for those of all.
    pub servers: Option<Vec<String>>,
    /// The revision that the caller has seen. When there is a newer one, nothing is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    pub tools_revision: Option<u64>,
}

/// On, off, or as it would be without a switch.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// `null` leaves a tool to its toolsets again; a toolset is on or off.
    pub enabled: Option<bool>,
    /// The revision that the caller has seen. When there is a newer one, nothing is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    pub tools_revision: Option<u64>,
}

/// A session: a chat, or a connected MCP client.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionView {
    pub id: String,
    /// `endpoint` for one that somebody made, `client` for that of a connected MCP client, `principal` for what
    /// everybody with one credential shares.
    pub kind: String,
    /// Where MCP clients find it on this server.
    pub path: String,
    /// Whose it is: the name of a key, the subject of a token, or `local`.
    pub owner: String,
    pub title: Option<String>,
    pub provider: Option<String>,
    pub model: Option<String>,
    /// The only servers whose tools it sees; `null` for those of all.
    pub servers: Option<Vec<String>>,
    /// The toolsets that were switched on.
    pub enabled_toolsets: Vec<String>,
    /// The toolsets that were switched off.
    pub disabled_toolsets: Vec<String>,
    /// Tools that were switched on or off one by one, by canonical name.
    pub tools: BTreeMap<String, bool>,
    /// For a provider the only tools that it is shown.
    pub allow: BTreeMap<String, Vec<String>>,
    /// MCP servers that only this session has.
    pub own_servers: BTreeMap<String, OwnServerView>,
    /// Grows with every change of its tools.
    pub tools_revision: u64,
    /// Its MCP clients of the session era, connected or expected back. Not repeated in the answer to a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Vec<SessionClientView>>,
    /// When it was made, in milliseconds since 1970.
    pub created_at_ms: i64,
    /// When it last changed, in milliseconds since 1970.
    pub updated_at_ms: i64,
}

/// An MCP client of a session, as it describes itself.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionClientView {
    #[schema(required)]
    pub name: Option<String>,
    #[schema(required)]
    pub version: Option<String>,
    /// The version of MCP that was agreed on.
    pub protocol_version: String,
}

/// All sessions that the asker may see.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionList {
    pub sessions: Vec<SessionView>,
}

/// The tools that a session sees, in the order in which everybody is shown them.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionTools {
    pub tools_revision: u64,
    pub tools: Vec<SessionTool>,
}

/// A tool as a session sees it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionTool {
    /// The name under which models and MCP clients see it.
    pub name: String,
    /// `server.tool`.
    pub canonical_name: String,
    pub server: String,
    /// The name that the server gives it.
    pub tool: String,
    pub description: Option<String>,
    /// Whether its server can be reached. A tool stays declared while it cannot.
    pub available: bool,
    /// The JSON Schema of its arguments.
    pub input_schema: serde_json::Value,
}

/// The toolsets of a session.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionToolsets {
    pub tools_revision: u64,
    /// `legacy`, `static` or `dynamic`: what it sees where nothing is switched.
    pub exposure: String,
    pub toolsets: Vec<SessionToolset>,
}

/// A toolset as a session sees it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionToolset {
    pub name: String,
    pub description: String,
    pub when_to_use: Option<String>,
    pub enabled: bool,
    /// How many tools it has here.
    pub tools: usize,
}

/// One step of a session's revision.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RevisionEvent {
    pub tools_revision: u64,
    /// `session` when somebody changed the session, `catalog` when servers or configuration did.
    pub cause: String,
    /// Exposed names.
    pub added: Vec<String>,
    pub removed: Vec<String>,
    /// Tools that are described in another way than before.
    pub changed: Vec<String>,
    /// In milliseconds since 1970.
    pub at_ms: i64,
}

/// One event of the stream of revisions, field by field.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionEvent {
    /// `current` at the beginning, `revision` for a step, `reset` where steps are missing: then look again.
    pub event: String,
    /// The revision.
    pub id: String,
    /// JSON. It has `tools_revision`; of a step also `cause` (`session` or `catalog`), the names that were `added` and
    /// `removed`, those that are described differently now (`changed`), and `at_ms`.
    #[schema(example = "{\"tools_revision\":8}")]
    pub data: String,
}

/// The tools that a session saw last, as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RegistrySnapshot {
    pub revision: u64,
    /// Objects with `canonical_name`, `provider_exposed_name`, `connector_id`, `mcp_tool_name`, `server`, `description`,
    /// `parameters` and `last_seen_at`: when the server last listed the tool (RFC 3339), `null` where it has not done so
    /// since the board started.
    #[schema(value_type = Vec<Object>)]
    pub tools: serde_json::Value,
    /// RFC 3339.
    pub updated_at: String,
}

/// A named group of tools.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ToolsetView {
    pub name: String,
    pub description: String,
    /// How many tools it has.
    pub tools: usize,
    /// When a model should switch it on.
    #[serde(default)]
    #[schema(required)]
    pub when_to_use: Option<String>,
    /// The canonical names of its tools.
    #[serde(default)]
    #[schema(required)]
    pub members: Vec<String>,
}

/// All toolsets, and what MCP clients see at first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ToolsetList {
    /// `legacy`, `static` or `dynamic`.
    pub exposure: String,
    /// Who decided that.
    pub reason: String,
    pub toolsets: Vec<ToolsetView>,
}
