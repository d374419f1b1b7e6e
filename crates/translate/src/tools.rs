//! The declared tools, as another provider takes them.

use serde_json::{Value, json};
use switchboard_chat::Source;
use switchboard_model::{JsonText, ToolDescriptor};
use switchboard_render::{NamedTool, Provider, Rendering};
use switchboard_splice::Refusal;

use crate::members::not_carried;

/// Renders functions: objects with `name`, `description` and `parameters`.
pub(crate) fn render<'a>(
    functions: impl IntoIterator<Item = &'a Value>,
    provider: Provider,
) -> Result<Rendering, Refusal> {
    let descriptors = functions.into_iter().map(|function| {
        let parameters = match &function["parameters"] {
            Value::Null => json!({"type": "object", "properties": {}}),
            parameters => parameters.clone(),
        };
        ToolDescriptor {
            description: function["description"].as_str().map(str::to_owned),
            input_schema: JsonText::from(&parameters),
            ..ToolDescriptor::named(function["name"].as_str().unwrap_or_default())
        }
    });
    let descriptors: Vec<_> = descriptors.collect();
    let named = descriptors.iter().map(|it| NamedTool { name: &it.name, descriptor: it });
    let rendering = Rendering::new(provider, named);
    match rendering.quarantined.iter().chain(&rendering.left_out).next() {
        Some(tool) => {
            let text = format!("the tool `{}` cannot be declared: {}", tool.name, tool.reason);
            Err(Refusal::of_member("tools", text))
        }
        None => Ok(rendering),
    }
}

/// Whether tools are declared at all. A choice that forces a call is refused.
pub(crate) fn are_allowed(choice: &Value, api: &str, source: &Source) -> Result<bool, Refusal> {
    match choice {
        Value::Null => Ok(true),
        Value::String(word) if word == "auto" => Ok(true),
        Value::String(word) if word == "none" => Ok(false),
        _ => {
            let what = "a `tool_choice` other than `auto` and `none`";
            Err(Refusal::of_member("tool_choice", not_carried(what, api, source)))
        }
    }
}
