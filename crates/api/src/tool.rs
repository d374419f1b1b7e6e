//! Tools of the catalog.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One tool of the catalog.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolView {
    /// The canonical name, `server.tool`.
    pub name: String,
    pub server: String,
    /// The name that the server uses.
    pub tool: String,
    pub title: Option<String>,
    pub description: Option<String>,
    /// Whether its server can be reached just now.
    pub available: bool,
    /// `strict` or `dynamic`.
    pub mode: String,
    /// Where its limits come from: `explicit`, `merged` or `default`.
    pub configured: String,
    pub limits: LimitsView,
    pub toolset: String,
    pub expose_as: Option<String>,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    pub output_schema: Option<Value>,
    pub annotations: Option<Value>,
}

/// The limits under which a tool runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitsView {
    pub max_instances: u32,
    /// A duration as a person writes it, such as `30s`.
    pub timeout: String,
    pub queue_timeout: String,
    pub inactivity_timeout: Option<String>,
    pub max_result_bytes: u64,
}

/// The catalog at one revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolList {
    pub revision: u64,
    pub tools: Vec<ToolView>,
}
