//! The prompt that teaches a model to use tools.

use serde::Serialize;
use serde_json::{Value, json};
use switchboard_template::{Template, TemplateFault};

/// The template that is used unless the configuration has another one.
const DEFAULT: &str = include_str!("prompt.jinja");

/// A compiled template of the prompt. It sees `tools`, a list of `{name, description, arguments}`, where each argument
/// is `{name, type, required, description}`, and `tool_names`, the list of their names.
#[derive(Debug)]
pub struct PromptTemplate(Template);

/// The variables of the template.
#[derive(Serialize)]
struct PromptVariables<'a> {
    tools: &'a Value,
    tool_names: Vec<&'a str>,
}

impl PromptTemplate {
    /// The built-in template.
    pub fn built_in() -> Result<Self, TemplateFault> {
        Self::compile(DEFAULT)
    }

    /// The text of the built-in template.
    pub fn built_in_text() -> &'static str {
        DEFAULT
    }

    /// Compiles a template. An unknown variable, filter or function is an error when it is rendered: see
    /// [`PromptTemplate::check`].
    pub fn compile(text: &str) -> Result<Self, TemplateFault> {
        Template::compile(text).map(Self)
    }

    /// Compiles a template and renders it with example tools, so that its mistakes are found before a turn needs it.
    pub fn check(text: &str) -> Result<Self, TemplateFault> {
        let template = Self::compile(text)?;
        let argument = |name: &str, required: bool| {
            json!({
                "name": name, "type": "string", "required": required, "description": "An example",
            })
        };
        let tool = json!({
            "name": "example",
            "description": "An example",
            "arguments": [argument("text", true), argument("more", false)],
        });
        let bare = json!({"name": "bare", "description": "", "arguments": []});
        for tools in [json!([]), json!([tool, bare])] {
            template.render(&tools)?;
        }
        Ok(template)
    }

    /// Renders the prompt. `tools` is the list of tools in the format `react` of `switchboard-render`. Equal tools give
    /// equal bytes.
    pub fn render(&self, tools: &Value) -> Result<String, TemplateFault> {
        let entries = tools.as_array().map(Vec::as_slice).unwrap_or_default();
        let tool_names = entries.iter().filter_map(|tool| tool["name"].as_str()).collect();
        self.0.render(&PromptVariables { tools, tool_names })
    }
}
