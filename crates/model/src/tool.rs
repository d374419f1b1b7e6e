//! A tool as its server describes it.

use crate::JsonText;

/// One tool of one server, before any policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDescriptor {
    /// The name that the server uses.
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    /// The JSON Schema of the arguments.
    pub input_schema: JsonText,
    pub output_schema: Option<JsonText>,
    /// The server's hints; never trusted for a decision.
    pub annotations: Option<JsonText>,
    /// An object of whatever else the server said about it (`icons`, `_meta`, ...).
    pub extra: Option<JsonText>,
}

impl ToolDescriptor {
    /// A tool that takes an object of anything.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema: JsonText::from(&serde_json::json!({"type": "object"})),
            output_schema: None,
            annotations: None,
            extra: None,
        }
    }
}

/// What a server answered when it was asked for its tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolList {
    pub tools: Vec<ToolDescriptor>,
    /// How long the server calls this list fresh (`ttlMs`), when it says so.
    pub ttl: Option<std::time::Duration>,
    /// Tools that were left out while reading, with the reason.
    pub dropped: Vec<String>,
}
