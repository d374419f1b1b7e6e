//! Sessions and toolsets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::merge_patch::said;

/// The settings of a new session. All except the id can be changed later.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// The id of the session. If absent, a random one that cannot be guessed. Ids that begin with `mcp-` are reserved for
    /// the sessions of connected clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", max_length = 64, example = "work")]
    pub id: Option<String>,
    /// The title, for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 512, example = "Quarterly report")]
    pub title: Option<String>,
    /// The model provider of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 512, example = "anthropic")]
    pub provider: Option<String>,
    /// The model of that provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 512)]
    pub model: Option<String>,
    /// The credential of that provider, by name. If absent, its default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 512, example = "work")]
    pub credential: Option<String>,
    /// How the model uses tools: `native` or `react`. If absent, as the provider says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(native|react)$")]
    pub strategy: Option<String>,
    /// The servers that the session is bound to: it sees the tools of these only. If absent, of all servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    /// Toolsets to enable or disable.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub toolsets: BTreeMap<String, bool>,
    /// Single tools to enable or disable; this takes precedence over toolsets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, bool>,
    /// For each provider, the only tools that it gets: names, or patterns with `*` and `?`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allow: BTreeMap<String, Vec<String>>,
    /// MCP servers that are attached to this session only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own_servers: BTreeMap<String, OwnServerBody>,
}

/// A change of a session. Fields that are absent do not change; the whole change is one step of the revision.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionChange {
    /// The revision that the caller expects. If the session has another one, nothing is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    pub tools_revision: Option<u64>,
    /// `null` removes it.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, max_length = 512)]
    pub title: Option<Option<String>>,
    /// `null` removes it.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, max_length = 512)]
    pub provider: Option<Option<String>>,
    /// `null` removes it.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, max_length = 512)]
    pub model: Option<Option<String>>,
    /// The name of a credential of the provider; `null` for its default one. A change of the provider without this field
    /// removes it.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, max_length = 512)]
    pub credential: Option<Option<String>>,
    /// `native` or `react`; `null` removes it, and the provider decides.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, pattern = "^(native|react)$")]
    pub strategy: Option<Option<String>>,
    /// The servers that the session is bound to; `null` for all.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub servers: Option<Option<Vec<String>>>,
    /// Toolsets to enable or disable.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub toolsets: BTreeMap<String, bool>,
    /// Single tools to enable or disable; `null` removes the setting of a tool.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Option<bool>>,
    /// For each provider, the only tools that it gets; `null` removes the restriction.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allow: BTreeMap<String, Option<Vec<String>>>,
    /// MCP servers that are attached to this session only; `null` detaches one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    // The document cannot express `null` here; `DELETE` of the server does the same.
    #[schema(value_type = BTreeMap<String, OwnServerBody>)]
    pub own_servers: BTreeMap<String, Option<OwnServerBody>>,
}

/// An MCP server that is attached to a session. `security.egress` limits the permitted URLs.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnServerBody {
    #[schema(max_length = 4096, example = "https://mcp.example.com/mcp")]
    pub url: String,
    /// `streamable_http` by default.
    #[serde(default)]
    pub transport: OwnTransport,
    /// Headers of every request to the server. Their values are never shown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// The transport of an attached server. Commands are not possible: only the configuration file can run those.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OwnTransport {
    #[default]
    StreamableHttp,
    Sse,
}

/// An attached server of a session, without its secrets.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct OwnServerView {
    /// The URL without credentials and query values.
    pub url: String,
    pub transport: OwnTransport,
    /// The names of the headers that are sent to it.
    pub headers: Vec<String>,
    /// `connecting`, `ready` or `unavailable`; `null` while the session is not loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Why it is unavailable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The servers that a session is bound to.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Bindings {
    /// The servers that the session is bound to; `null` for all.
    pub servers: Option<Vec<String>>,
    /// The revision that the caller expects. If the session has another one, nothing is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    pub tools_revision: Option<u64>,
}

/// Enables or disables a toolset or a tool.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// For a tool, `null` removes the setting. A toolset needs `true` or `false`.
    pub enabled: Option<bool>,
    /// The revision that the caller expects. If the session has another one, nothing is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    pub tools_revision: Option<u64>,
}

/// A session of a chat or of a connected MCP client.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionView {
    pub id: String,
    /// `endpoint` for a session that was created through the API, `client` for that of a connected MCP client,
    /// `principal` for one that all stateless clients with one credential share.
    pub kind: String,
    /// The path of the session's MCP endpoint on this server.
    pub path: String,
    /// The owner: the name of a key, the subject of a token, or `local`.
    pub owner: String,
    pub title: Option<String>,
    pub provider: Option<String>,
    pub model: Option<String>,
    /// The credential of the provider, if the session chose one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// How the model uses tools: `native` or `react`; `null` if the provider decides.
    pub strategy: Option<String>,
    /// The servers that the session is bound to; `null` for all.
    pub servers: Option<Vec<String>>,
    /// The toolsets that were enabled.
    pub enabled_toolsets: Vec<String>,
    /// The toolsets that were disabled.
    pub disabled_toolsets: Vec<String>,
    /// Single tools that were enabled or disabled, by canonical name.
    pub tools: BTreeMap<String, bool>,
    /// For each provider, the only tools that it gets.
    pub allow: BTreeMap<String, Vec<String>>,
    /// MCP servers that are attached to this session only.
    pub own_servers: BTreeMap<String, OwnServerView>,
    /// Increases with every change of the session's tools.
    pub tools_revision: u64,
    /// The id of the turn that runs; `null` if none does.
    #[serde(default)]
    #[schema(required)]
    pub running_turn: Option<String>,
    /// The MCP clients of the session. Absent in the response to a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Vec<SessionClientView>>,
    /// When the session was created, in milliseconds since 1970.
    pub created_at_ms: i64,
    /// When the session last changed, in milliseconds since 1970.
    pub updated_at_ms: i64,
}

/// An MCP client of a session, as it describes itself.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionClientView {
    #[schema(required)]
    pub name: Option<String>,
    #[schema(required)]
    pub version: Option<String>,
    /// The negotiated MCP version.
    pub protocol_version: String,
}

/// All sessions that the caller may see.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionList {
    pub sessions: Vec<SessionView>,
}

/// The tools that a session sees, in the order in which models and clients get them.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionTools {
    pub tools_revision: u64,
    pub tools: Vec<SessionTool>,
}

/// A tool as a session sees it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionTool {
    /// The exposed name, for models and MCP clients.
    pub name: String,
    /// The canonical name, `server.tool`.
    pub canonical_name: String,
    pub server: String,
    /// The server's name of the tool.
    pub tool: String,
    pub description: Option<String>,
    /// Whether its server is connected. A tool stays declared while it is not.
    pub available: bool,
    /// The JSON Schema of its arguments.
    pub input_schema: serde_json::Value,
    /// With `all`: whether models and clients get the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub enabled: Option<bool>,
    /// With `all`: what decided that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub because: Option<ToolStandingView>,
}

/// What decided whether a session gets a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ToolStandingView {
    /// `tool`: the setting of the tool in the session. `toolset`: its toolsets, which `toolsets` names. `default`: the exposure of
    /// the board. `binding`: the session is bound to other servers. `policy`: hidden from clients by the configuration.
    pub reason: String,
    /// The toolsets that decided: those that were enabled, or those that are disabled.
    pub toolsets: Vec<String>,
    /// Providers that do not get the tool, because the session has a list of tools for them.
    pub not_for: Vec<String>,
}

/// What a change of a session would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionPreview {
    /// The present revision.
    pub tools_revision: u64,
    /// The exposed names of new tools. The tools of servers that would be attached are not known before.
    pub added: Vec<String>,
    pub removed: Vec<String>,
    /// Tools whose definition would change.
    pub changed: Vec<String>,
    /// The cost of all tools, by provider.
    pub tokens: BTreeMap<String, TokenChange>,
}

/// A cost in tokens before and after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenChange {
    pub before: usize,
    pub after: usize,
}

/// The settings of a copy of a session.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionCopy {
    /// The id of the new session. If absent, a random one that cannot be guessed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", max_length = 64, example = "work-2")]
    pub id: Option<String>,
    /// The title. If absent, that of the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 512)]
    pub title: Option<String>,
}

/// The toolsets of a session.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionToolsets {
    pub tools_revision: u64,
    /// `legacy`, `static` or `dynamic`: how tools are exposed as long as no toolset is enabled or disabled.
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
    /// The number of its tools in this session.
    pub tools: usize,
}

/// One step of a session's revision.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RevisionEvent {
    pub tools_revision: u64,
    /// `session` for a change of the session, `catalog` for a change of servers or configuration, `access` for a change of
    /// what its owner may use.
    pub cause: String,
    /// The exposed names of new tools.
    pub added: Vec<String>,
    pub removed: Vec<String>,
    /// Tools whose definition has changed.
    pub changed: Vec<String>,
    /// The time in milliseconds since 1970.
    pub at_ms: i64,
}

/// One server-sent event of the stream of revisions.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionEvent {
    /// `current` at the beginning, `revision` for a step, `reset` if steps are missing: then read the tools again.
    pub event: String,
    /// The revision.
    pub id: String,
    /// JSON. Its `type` is the name of the event.
    #[schema(
        content_media_type = "application/json",
        example = "{\"type\":\"current\",\"tools_revision\":8}"
    )]
    pub data: String,
}

/// The JSON of an event in the stream of revisions.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionEventData {
    /// The revision at the beginning of the stream.
    Current(CurrentRevision),
    /// A step of the revision.
    Revision(RevisionEvent),
    /// Steps are missing: read the tools again.
    Reset(CurrentRevision),
}

/// The revision of a session's tools.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
pub struct CurrentRevision {
    pub tools_revision: u64,
}

/// The tools that a session saw last, as they are stored.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RegistrySnapshot {
    pub revision: u64,
    /// Objects with `canonical_name`, `provider_exposed_name`, `connector_id`, `mcp_tool_name`, `server`, `description`,
    /// `parameters` and `last_seen_at`: when the server last listed the tool (RFC 3339), `null` if it has not done so since
    /// the board started.
    #[schema(value_type = Vec<Object>)]
    pub tools: serde_json::Value,
    /// When the session last changed, an RFC 3339 timestamp.
    pub updated_at: String,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(body: &Value, title: &str, tools: &[(&str, Option<bool>)]) {
        let read: SessionChange = serde_json::from_value(body.clone()).unwrap();
        assert_eq!(format!("{:?}", read.title), title, "{body}");
        let named = |(name, is_on): &(&str, Option<bool>)| ((*name).to_owned(), *is_on);
        assert_eq!(read.tools, tools.iter().map(named).collect(), "{body}");
        // A client that sends it on says the same.
        assert_eq!(serde_json::to_value(&read).unwrap(), *body);
    }

    #[test]
    fn null_removes_a_setting_and_an_absent_member_keeps_it() {
        check(&json!({}), "None", &[]);
        check(&json!({"title": null}), "Some(None)", &[]);
        check(&json!({"title": "Work"}), r#"Some(Some("Work"))"#, &[]);
        let tools = json!({"tools": {"a": true, "b": false, "c": null}});
        check(&tools, "None", &[("a", Some(true)), ("b", Some(false)), ("c", None)]);
        let unknown = serde_json::from_value::<SessionChange>(json!({"titel": "x"})).unwrap_err();
        assert!(unknown.to_string().contains("unknown field `titel`"), "{unknown}");
    }
}
