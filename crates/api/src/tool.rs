//! Tools of the catalog.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// One tool of the catalog.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolView {
    /// The canonical name, `server.tool`.
    pub name: String,
    pub server: String,
    /// The name that the server uses.
    pub tool: String,
    #[schema(required)]
    pub title: Option<String>,
    #[schema(required)]
    pub description: Option<String>,
    /// Whether its server can be reached just now.
    pub available: bool,
    /// `strict` or `dynamic`.
    pub mode: String,
    /// Where its limits come from: `explicit`, `merged` or `default`.
    pub configured: String,
    pub limits: LimitsView,
    /// The set that it is switched with; null where its server has `toolset: none`.
    #[schema(required)]
    pub toolset: Option<String>,
    /// The name that MCP clients see instead of the usual one.
    #[schema(required)]
    pub expose_as: Option<String>,
    /// The JSON Schema of its arguments.
    #[schema(value_type = Object)]
    pub input_schema: Value,
    /// The JSON Schema of its structured results, where it has one.
    #[schema(required, value_type = Option<Object>)]
    pub output_schema: Option<Value>,
    /// What its server says about it: whether it only reads, and the like.
    #[schema(required, value_type = Option<Object>)]
    pub annotations: Option<Value>,
    /// What lists of the gateway show otherwise than its server wrote it, because strict clients would refuse it.
    #[serde(default)]
    #[schema(required)]
    pub repairs: Vec<String>,
}

/// A tool that its server lists and that is not in the catalog, because its definition cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuarantinedToolView {
    pub server: String,
    /// The name that the server uses, where it has a usable one.
    #[schema(required)]
    pub tool: Option<String>,
    pub reason: String,
}

/// The limits under which a tool runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LimitsView {
    /// How many calls of it may run at the same time.
    pub max_instances: u32,
    /// A duration as a person writes it, such as `30s`.
    pub timeout: String,
    /// How long a call may run that reports progress.
    pub max_timeout: String,
    /// How long a call may wait for its slots.
    pub queue_timeout: String,
    /// How long a running call may stay silent.
    #[schema(required)]
    pub inactivity_timeout: Option<String>,
    /// Larger results are kept, and answered with their beginning.
    pub max_result_bytes: u64,
}

/// The catalog at one revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolList {
    /// Changes when the tools or their limits do.
    pub revision: u64,
    pub tools: Vec<ToolView>,
    /// Tools that cannot be used, with the reason. Only operators see them.
    #[serde(default)]
    #[schema(required)]
    pub quarantined: Vec<QuarantinedToolView>,
}
