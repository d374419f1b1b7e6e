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
    pub revision: u64,
    /// A digest of the arguments, which are not stored themselves. Equal arguments have equal digests.
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
    /// The name that the MCP client reported.
    #[serde(default)]
    #[schema(required)]
    pub client: Option<String>,
}

/// Records of calls, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordList {
    pub calls: Vec<RecordView>,
}
