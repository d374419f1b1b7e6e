//! A tool as its server describes it.

use crate::JsonText;

/// One tool of one server, before admission and configured overrides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDescriptor {
    /// The name that the server gives it.
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    /// The JSON Schema of the arguments.
    pub input_schema: JsonText,
    /// The schema that `tools/list` shows in place of `input_schema`, where strict clients would reject that one.
    pub listed_schema: Option<JsonText>,
    pub output_schema: Option<JsonText>,
    /// The server's annotations; no decision relies on them.
    pub annotations: Option<JsonText>,
    /// An object with all further members of the definition (`icons`, `_meta`, ...).
    pub extra: Option<JsonText>,
    /// Descriptions of what was changed or left out so that strict clients accept the definition.
    pub repairs: Vec<String>,
}

impl ToolDescriptor {
    /// A tool whose schema accepts any object.
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

    /// A tool that takes no arguments.
    pub fn without_arguments(name: impl Into<String>) -> Self {
        let schema = serde_json::json!({
            "type": "object",
            "properties": {},
            "additionalProperties": false,
        });
        Self { input_schema: JsonText::from(&schema), ..Self::named(name) }
    }

    /// The input schema that `tools/list` shows.
    pub fn shown_schema(&self) -> &JsonText {
        self.listed_schema.as_ref().unwrap_or(&self.input_schema)
    }
}

/// A tool that is not registered because its definition is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QuarantinedTool {
    /// The name that the server gives it, if that is valid.
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

/// The result of listing a server's tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpstreamToolList {
    pub tools: Vec<ToolDescriptor>,
    /// How long the server declares this list to be fresh (`ttlMs`), if it does.
    pub ttl: Option<std::time::Duration>,
    /// Tools whose definitions are invalid.
    pub quarantined: Vec<QuarantinedTool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarantined_tool_is_named_if_it_has_a_name() {
        let quarantined = |tool: Option<&str>| {
            QuarantinedTool { tool: tool.map(str::to_owned), reason: "no schema".into() }
                .to_string()
        };
        assert_eq!(quarantined(Some("find")), "'find': no schema");
        assert_eq!(quarantined(None), "no schema");
    }
}
