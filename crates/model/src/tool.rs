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
    /// The schema that lists show in the place of `input_schema`, where strict clients would refuse that one.
    pub listed_schema: Option<JsonText>,
    pub output_schema: Option<JsonText>,
    /// The server's hints; never trusted for a decision.
    pub annotations: Option<JsonText>,
    /// An object of whatever else the server said about it (`icons`, `_meta`, ...).
    pub extra: Option<JsonText>,
    /// What was changed or left out so that strict clients take the definition, in words.
    pub repairs: Vec<String>,
}

impl ToolDescriptor {
    /// A tool that takes an object of anything.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema: JsonText::from(&serde_json::json!({"type": "object"})),
            listed_schema: None,
            output_schema: None,
            annotations: None,
            extra: None,
            repairs: Vec::new(),
        }
    }

    /// The schema of the arguments as lists show it.
    pub fn shown_schema(&self) -> &JsonText {
        self.listed_schema.as_ref().unwrap_or(&self.input_schema)
    }
}

/// A tool that is not registered because its definition cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QuarantinedTool {
    /// The name that the server uses, where it has a usable one.
    pub tool: Option<String>,
    pub reason: String,
}

impl std::fmt::Display for QuarantinedTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.tool {
            Some(tool) => write!(f, "'{tool}': {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

/// What a server answered when it was asked for its tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpstreamToolList {
    pub tools: Vec<ToolDescriptor>,
    /// How long the server calls this list fresh (`ttlMs`), when it says so.
    pub ttl: Option<std::time::Duration>,
    /// Tools whose definitions cannot be used.
    pub quarantined: Vec<QuarantinedTool>,
}
