//! Calls and their records.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is posted to call a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallBody {
    #[serde(default)]
    pub arguments: Value,
}

/// A call that the tool answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallView {
    pub id: String,
    /// The canonical name of the tool.
    pub tool: String,
    pub revision: u64,
    /// `ok`, or `tool_error` when the tool says that it failed.
    pub outcome: String,
    /// The result as MCP writes it.
    pub result: Value,
    pub wait_ms: u64,
    pub run_ms: u64,
    /// Names the whole result when `result` only holds its beginning.
    pub result_handle: Option<String>,
}

/// What stays of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordView {
    pub id: String,
    /// When it came in, as an RFC 3339 timestamp.
    pub started_at: String,
    /// Through which face it came: `cli` or `http`.
    pub face: String,
    /// The name that the caller used.
    pub requested: String,
    /// The canonical name of the tool, when there was one.
    pub tool: Option<String>,
    pub revision: u64,
    pub argument_digest: String,
    pub outcome: String,
    pub message: Option<String>,
    pub wait_ms: f64,
    pub run_ms: f64,
    pub result_bytes: u64,
    pub result_handle: Option<String>,
}

/// The newest records, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordList {
    pub calls: Vec<RecordView>,
}
