//! Tests of whole renderings: golden files, hostile schemas, properties, and the providers' own libraries.
#![expect(clippy::unwrap_used, reason = "tests, and what they are made of")]

mod cases;
mod golden;
mod horrors;
mod lists;
mod official;
mod properties;
mod random_schema;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use switchboard_model::{JsonText, ToolDescriptor};
use switchboard_render::{NamedTool, Provider, Rendering};

fn tool(name: &str, description: &str, schema: &Value) -> ToolDescriptor {
    ToolDescriptor {
        description: Some(description.to_owned()),
        input_schema: JsonText::from(schema),
        ..ToolDescriptor::named(name)
    }
}

fn render(provider: Provider, tools: &[ToolDescriptor]) -> Rendering {
    Rendering::new(
        provider,
        tools.iter().map(|descriptor| NamedTool { name: &descriptor.name, descriptor }),
    )
}

/// The entries of a rendering, without the provider's frame.
fn entries(rendering: &Rendering) -> Vec<Value> {
    let whole: Value = serde_json::from_slice(&rendering.json()).unwrap();
    let list = match rendering.provider {
        Provider::Gemini | Provider::GeminiParameters => &whole[0]["functionDeclarations"],
        _ => &whole,
    };
    list.as_array().cloned().unwrap_or_default()
}

/// The schema of an entry. Those of Semantic Kernel and ReACT are assembled from their parameters.
fn schema_of(provider: Provider, entry: &Value) -> Value {
    let key = match provider {
        Provider::Mcp => "inputSchema",
        Provider::OpenAi | Provider::GeminiParameters => "parameters",
        Provider::OpenAiChat => return entry["function"]["parameters"].clone(),
        Provider::Anthropic => "input_schema",
        Provider::Gemini => "parametersJsonSchema",
        Provider::LangChain => "args_schema",
        Provider::SemanticKernel => return kernel_schema(entry),
        Provider::React => return react_schema(entry),
    };
    entry.get(key).cloned().unwrap_or_else(|| json!({"type": "OBJECT"}))
}

fn kernel_schema(entry: &Value) -> Value {
    let parameters = entry["parameters"].as_array().unwrap();
    let name = |parameter: &Value| parameter["name"].as_str().unwrap().to_owned();
    let properties: serde_json::Map<String, Value> = parameters
        .iter()
        .map(|parameter| (name(parameter), parameter["schema_data"].clone()))
        .collect();
    let required: Vec<String> =
        parameters.iter().filter(|parameter| parameter["is_required"] == true).map(name).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// The arguments of a ReACT entry, whose types are words.
fn react_schema(entry: &Value) -> Value {
    let arguments = entry["arguments"].as_array().unwrap();
    let name = |argument: &Value| argument["name"].as_str().unwrap().to_owned();
    let properties: serde_json::Map<String, Value> =
        arguments.iter().map(|argument| (name(argument), json!({}))).collect();
    let is_required = |argument: &&Value| argument["required"].as_bool().unwrap();
    let required: Vec<String> = arguments.iter().filter(is_required).map(name).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn crate_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// An optional file beside the repository.
fn beside(name: &str) -> Option<PathBuf> {
    let root = crate_root().join("../..");
    let places = ["../shared", "../../shared"].map(|place| root.join(place).join(name));
    places.into_iter().find(|place| place.exists())
}
