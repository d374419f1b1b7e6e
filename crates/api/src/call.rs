//! Tool calls and their records.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The body of a request that calls a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallBody {
    /// The arguments of the tool, by the schema in `GET /api/v1/tools/{name}`. If absent, an empty object.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub arguments: Value,
    /// Whether the caller answers what the server asks during the call, which needs a stream of events. Otherwise such requests
    /// of the server are refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answers_questions: bool,
}

/// The body of a request that calls a tool of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionCallBody {
    /// The arguments of the tool. If absent, an empty object.
    #[serde(default)]
    #[schema(value_type = Option<Object>, example = json!({"text": "hello"}))]
    pub arguments: Value,
    /// The provider whose model wrote the arguments, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}

/// A completed call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallView {
    /// The id of the call's record.
    pub id: String,
    /// The canonical name of the tool.
    pub tool: String,
    /// The revision of the catalog that had the tool.
    pub revision: u64,
    /// `ok`, or `tool_error` if the tool reports an error.
    pub outcome: String,
    /// The MCP result of the tool.
    #[schema(value_type = Object)]
    pub result: Value,
    /// How long the call waited for its slots.
    pub wait_ms: u64,
    /// How long the call ran.
    pub run_ms: u64,
    /// The handle of the whole result, if `result` has only its beginning.
    #[schema(required)]
    pub result_handle: Option<String>,
}

/// The record of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordView {
    /// The id of the record. For the next page, use the last one of this page as `before`.
    pub id: String,
    /// When the call started, an RFC 3339 timestamp.
    #[schema(format = DateTime)]
    pub started_at: String,
    /// The session in which the call was made.
    #[serde(default)]
    #[schema(required)]
    pub session: Option<String>,
    /// The interface that the call came through: `cli`, `http`, `mcp` or `turn`.
    pub face: String,
    /// The tool name that the caller used.
    pub requested: String,
    /// The canonical name of the tool, if it exists.
    #[schema(required)]
    pub tool: Option<String>,
    /// The server of the tool, if it exists.
    #[serde(default)]
    #[schema(required)]
    pub server: Option<String>,
    /// The revision of the catalog in which the name was looked up.
    pub revision: u64,
    /// What admitted the tool.
    #[serde(default)]
    #[schema(required)]
    pub policy: Option<RecordedPolicyView>,
    /// A digest of the arguments. Equal arguments have equal digests.
    pub argument_digest: String,
    /// `ok`, `tool_error`, or the kind of the problem with which the call failed.
    pub outcome: String,
    /// The error message, of the call or of the tool.
    #[schema(required)]
    pub message: Option<String>,
    pub wait_ms: f64,
    pub run_ms: f64,
    pub result_bytes: u64,
    /// The handle of the stored result, if it was too large for the response.
    #[schema(required)]
    pub result_handle: Option<String>,
    /// The principal that made the call: `local`, `key:` and the id of a key, or `jwt:` and the subject of a token.
    #[serde(default)]
    #[schema(required)]
    pub principal: Option<String>,
    /// The person behind the principal, whichever program they use: `local`, `user:` and the label of a key, `key:` and the
    /// id of a key without one, or `jwt:` and the issuer and subject of a token.
    #[serde(default)]
    #[schema(required)]
    pub person: Option<String>,
    /// The owner of the session: the principal, unless it acted in the session of another one.
    #[serde(default)]
    #[schema(required)]
    pub owner: Option<String>,
    /// The name of the API key.
    #[serde(default)]
    #[schema(required)]
    pub key: Option<String>,
    /// The name that the MCP client reported.
    #[serde(default)]
    #[schema(required)]
    pub client: Option<String>,
    /// The version that the MCP client reported.
    #[serde(default)]
    #[schema(required)]
    pub client_version: Option<String>,
    /// The agent profile under which the call was made.
    #[serde(default)]
    #[schema(required)]
    pub agent: Option<String>,
    /// The arguments, if `record.arguments` of the tool is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub arguments: Option<RecordedContentView>,
    /// The result, if `record.results` of the tool is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub result: Option<RecordedContentView>,
}

/// What admitted the tool of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordedPolicyView {
    /// Which part of the configuration set the limits of the tool: `explicit`, `merged` or `default`.
    #[schema(required)]
    pub configured: Option<String>,
    /// The admission mode of the tool: `strict` or `dynamic`.
    #[schema(required)]
    pub mode: Option<String>,
    /// A digest of the configuration that decided. It changes when the meaning of the configuration changes.
    pub digest: String,
}

/// Arguments or a result as a record keeps them: without secrets, and no longer than a limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordedContentView {
    /// The JSON text, or its beginning.
    pub text: String,
    /// The length of the whole text in bytes.
    pub bytes: u64,
    /// Whether `text` is only the beginning.
    pub cut: bool,
}

/// Records of calls, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordList {
    pub calls: Vec<RecordView>,
}

/// Whether arguments and results of calls are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordDeclaration {
    /// Whether the arguments are recorded, as the caller gave them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub arguments: Option<bool>,
    /// Whether the results are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub results: Option<bool>,
}
