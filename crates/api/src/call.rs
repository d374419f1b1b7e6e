//! Calls and their records.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// What is posted to call a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallBody {
    /// What the tool is given; `GET /api/v1/tools/{name}` has its schema. None is the same as an empty object.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub arguments: Value,
}

/// What is posted to call a tool of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionCallBody {
    /// What the tool is given; none is the same as an empty object.
    #[serde(default)]
    #[schema(value_type = Option<Object>, example = json!({"text": "hello"}))]
    pub arguments: Value,
    /// The provider whose model gave the arguments, where they came from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}

/// A call that the tool answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallView {
    /// The id of its record.
    pub id: String,
    /// The canonical name of the tool.
    pub tool: String,
    /// The revision of the catalog that it was found in.
    pub revision: u64,
    /// `ok`, or `tool_error` when the tool says that it failed.
    pub outcome: String,
    /// The result as MCP writes it.
    #[schema(value_type = Object)]
    pub result: Value,
    /// How long it waited for its slots.
    pub wait_ms: u64,
    /// How long it ran.
    pub run_ms: u64,
    /// Names the whole result when `result` only holds its beginning.
    #[schema(required)]
    pub result_handle: Option<String>,
}

/// What stays of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordView {
    /// Names the record; the next page begins `before` the last one of this page.
    pub id: String,
    /// When it came in, as an RFC 3339 timestamp.
    #[schema(format = DateTime)]
    pub started_at: String,
    /// The session in which it was made.
    #[serde(default)]
    #[schema(required)]
    pub session: Option<String>,
    /// Through which face it came: `cli`, `http`, `mcp` or `turn`.
    pub face: String,
    /// The name that the caller used.
    pub requested: String,
    /// The canonical name of the tool, when there was one.
    #[schema(required)]
    pub tool: Option<String>,
    pub revision: u64,
    /// Tells equal arguments from others; they themselves are not kept.
    pub argument_digest: String,
    /// `ok`, `tool_error`, or the word of the problem that it ended with.
    pub outcome: String,
    /// Why it has no result, or what the tool says about its error.
    #[schema(required)]
    pub message: Option<String>,
    pub wait_ms: f64,
    pub run_ms: f64,
    pub result_bytes: u64,
    /// Names the whole result when it was too large to be answered.
    #[schema(required)]
    pub result_handle: Option<String>,
    /// Who made it: `local`, `key:` and the id of a key, or `jwt:` and the subject of a token.
    #[serde(default)]
    #[schema(required)]
    pub principal: Option<String>,
    /// The name that the MCP client gives itself.
    #[serde(default)]
    #[schema(required)]
    pub client: Option<String>,
}

/// The newest records, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordList {
    pub calls: Vec<RecordView>,
}
