//! Renders one tool for one provider.

use serde_json::{Map, Value, json};
use switchboard_model::ToolDescriptor;
use switchboard_protocol::{Members, is_too_deep, push_string};

use crate::arguments::{ArgumentMap, KeyRule};
use crate::convert::{Converted, KeysApply, Rules, Vocabulary, convert_schema, read_root};
use crate::react_entry::react_entry;
use crate::rewrite::{Journal, SchemaPath};
use crate::text::{Cleaned, clean};
use crate::{Provider, Rewrite, rules};

/// A tool and its exposed name.
#[derive(Debug, Clone, Copy)]
pub struct NamedTool<'a> {
    pub name: &'a str,
    pub descriptor: &'a ToolDescriptor,
}

/// A tool as declared to a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedTool {
    pub name: Box<str>,
    /// The entry of the tool in the list, as JSON.
    pub json: Box<str>,
    /// What was changed, and why.
    pub rewrites: Vec<Rewrite>,
    /// The mapping of arguments, if some were renamed.
    pub arguments: Option<ArgumentMap>,
}

/// Why a tool is not declared to a provider. One invalid declaration would make the provider reject all of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Quarantine {
    pub reason: String,
}

impl Quarantine {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

/// Maximum length of a name that every provider accepts.
const MAX_NAME: usize = 64;
/// The plugin name of the tools in Semantic Kernel, which shows `plugin-function` to a model.
const PLUGIN: &str = "mcp";

/// Renders one tool, or returns why it cannot be declared.
pub fn render_tool(provider: Provider, tool: &NamedTool<'_>) -> Result<RenderedTool, Quarantine> {
    check_name(tool.name)?;
    let (json, rewrites, arguments) = match rules_of(provider) {
        None => as_it_is(tool)?,
        Some(rules) => converted(provider, rules, tool)?,
    };
    Ok(RenderedTool { name: tool.name.into(), json: json.into(), rewrites, arguments })
}

/// The schema rules of a provider; `None` if schemas are passed on unchanged.
fn rules_of(provider: Provider) -> Option<Rules> {
    let (vocabulary, keys, keys_apply) = match provider {
        Provider::Mcp => return None,
        Provider::Anthropic => (Vocabulary::Full, KeyRule::Wide, KeysApply::ToParameters),
        Provider::OpenAi | Provider::OpenAiChat | Provider::LangChain | Provider::React => {
            (Vocabulary::Portable, KeyRule::Wide, KeysApply::Everywhere)
        }
        Provider::Gemini => (Vocabulary::Portable, KeyRule::Narrow, KeysApply::Everywhere),
        Provider::GeminiParameters => (Vocabulary::Subset, KeyRule::Narrow, KeysApply::Everywhere),
        Provider::SemanticKernel => {
            (Vocabulary::Portable, KeyRule::Narrow, KeysApply::ToParameters)
        }
    };
    Some(Rules { vocabulary, keys, keys_apply })
}

fn check_name(name: &str) -> Result<(), Quarantine> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if starts_well && name.len() <= MAX_NAME && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(Quarantine::new(format!(
        "not every provider accepts the name {name:?}: names have up to {MAX_NAME} letters, digits, `_` and `-`, and begin with a letter or `_`"
    )))
}

type RenderedParts = (String, Vec<Rewrite>, Option<ArgumentMap>);

/// The server's definition under its exposed name. MCP clients reject a whole list because of one schema that is not an
/// object's, so that is checked.
fn as_it_is(tool: &NamedTool<'_>) -> Result<RenderedParts, Quarantine> {
    let descriptor = tool.descriptor;
    let schema = descriptor.input_schema.as_str();
    if is_too_deep(schema.as_bytes()) {
        // Fails if the schema is nested too deep.
        read_root(schema)?;
    }
    let mut journal = Journal::default();
    let mut json = String::with_capacity(schema.len() + 256);
    json.push_str("{\"name\":");
    push_string(&mut json, tool.name);
    for (key, text) in [("title", &descriptor.title), ("description", &descriptor.description)] {
        if let Some(text) = text {
            push_key(&mut json, key);
            push_string(&mut json, text);
        }
    }
    push_key(&mut json, "inputSchema");
    match Members::read(schema) {
        Ok(members) if members.string("type").as_deref() == Some("object") => json.push_str(schema),
        _ => {
            let mut root = read_root(schema)?;
            crate::convert::check_root_type(&root)?;
            root.insert("type".into(), "object".into());
            let here = SchemaPath::Key(&SchemaPath::ROOT, "type");
            journal.note(&here, "set to `object`", "MCP clients refuse the whole list without it");
            json.push_str(&Value::Object(root).to_string());
        }
    }
    for (key, text) in
        [("outputSchema", &descriptor.output_schema), ("annotations", &descriptor.annotations)]
    {
        if let Some(text) = text {
            push_key(&mut json, key);
            json.push_str(text.as_str());
        }
    }
    if let Some(extra) = &descriptor.extra
        && let Ok(members) = Members::read(extra.as_str())
    {
        for (key, value) in members.iter() {
            json.push(',');
            push_string(&mut json, key);
            json.push(':');
            json.push_str(value);
        }
    }
    json.push('}');
    Ok((json, journal.into_rewrites(), None))
}

fn converted(
    provider: Provider,
    rules: Rules,
    tool: &NamedTool<'_>,
) -> Result<RenderedParts, Quarantine> {
    let mut schema = convert_schema(tool.descriptor.input_schema.as_str(), rules)?;
    if let Some(broken) = rules::broken_rule(provider, &schema.schema) {
        return Err(Quarantine::new(format!("its schema cannot be declared: {broken}")));
    }
    let description = description(tool, &mut schema);
    let json = entry(provider, tool.name, description.as_deref(), &mut schema);
    Ok((json, schema.journal.into_rewrites(), ArgumentMap::new(schema.shape)))
}

/// The server's description, followed by the sentences about what the converted schema cannot express.
fn description(tool: &NamedTool<'_>, schema: &mut Converted) -> Option<String> {
    let given = [&tool.descriptor.description, &tool.descriptor.title];
    let given = given.into_iter().flatten().find(|text| !text.trim().is_empty());
    let mut text = given.map(|text| match clean(text) {
        Cleaned::AsItWas => text.clone(),
        Cleaned::Changed { text, what } => {
            let what = format!("description: {what}");
            let reason = "a person must be able to read what a model reads";
            schema.journal.note(&SchemaPath::ROOT, what, reason);
            text
        }
    });
    for note in &schema.notes {
        let text = text.get_or_insert_default();
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(note);
    }
    text
}

fn entry(provider: Provider, name: &str, text: Option<&str>, schema: &mut Converted) -> String {
    let mut json = String::with_capacity(schema.text.len() + 256);
    let declare = |json: &mut String, text: Option<&str>, key: &str| {
        json.push_str("\"name\":");
        push_string(json, name);
        if let Some(text) = text {
            push_key(json, "description");
            push_string(json, text);
        }
        push_key(json, key);
        json.push_str(&schema.text);
    };
    match provider {
        Provider::OpenAi => {
            json.push_str("{\"type\":\"function\",");
            declare(&mut json, text, "parameters");
            json.push_str(",\"strict\":false}");
        }
        Provider::OpenAiChat => {
            json.push_str("{\"type\":\"function\",\"function\":{");
            declare(&mut json, text, "parameters");
            json.push_str("}}");
        }
        Provider::Anthropic | Provider::Mcp => {
            json.push('{');
            declare(&mut json, text, "input_schema");
            json.push('}');
        }
        Provider::Gemini => {
            json.push('{');
            declare(&mut json, text.or(Some(name)), "parametersJsonSchema");
            json.push('}');
        }
        Provider::GeminiParameters if schema.schema.contains_key("properties") => {
            json.push('{');
            declare(&mut json, text.or(Some(name)), "parameters");
            json.push('}');
        }
        // A function without parameters has no `parameters`: Gemini rejects an object without properties.
        Provider::GeminiParameters => {
            json = json!({"name": name, "description": text.unwrap_or(name)}).to_string();
        }
        Provider::LangChain => {
            json.push('{');
            declare(&mut json, text.or(Some("")), "args_schema");
            json.push('}');
        }
        Provider::SemanticKernel => {
            json = kernel_function(name, text, std::mem::take(&mut schema.schema)).to_string();
        }
        Provider::React => json = react_entry(name, text, &schema.schema).to_string(),
    }
    json
}

/// The metadata of a function, in the form that Semantic Kernel builds from an MCP tool.
fn kernel_function(name: &str, text: Option<&str>, mut schema: Map<String, Value>) -> Value {
    let required = schema.shift_remove("required").unwrap_or_default();
    let is_required = |name: &str| {
        required.as_array().is_some_and(|names| names.iter().any(|known| known == name))
    };
    let properties = match schema.shift_remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let parameters = properties.into_iter().map(|(key, schema)| {
        let mut parameter = Map::new();
        let is_required = is_required(&key);
        parameter.insert("name".into(), key.into());
        parameter.insert("description".into(), schema["description"].clone());
        parameter.insert("is_required".into(), is_required.into());
        parameter.insert("type".into(), kernel_type(&schema).into());
        if let Some(default) = schema.get("default") {
            parameter.insert("default_value".into(), default.clone());
        }
        parameter.insert("schema_data".into(), schema);
        Value::Object(parameter)
    });
    let parameters: Vec<Value> = parameters.collect();
    // A model sees both parts as one name, which may have 64 characters.
    let plugin = (name.len() + PLUGIN.len() < MAX_NAME).then_some(PLUGIN);
    json!({
        "name": name,
        "plugin_name": plugin,
        "description": text,
        "parameters": parameters,
        "is_prompt": false,
        "is_asynchronous": true,
    })
}

fn kernel_type(schema: &Value) -> &str {
    match &schema["type"] {
        Value::String(name) => name,
        Value::Array(names) => {
            let mut names = names.iter().filter_map(Value::as_str);
            names.find(|name| *name != "null").unwrap_or("null")
        }
        _ => "object",
    }
}

fn push_key(json: &mut String, key: &str) {
    json.push_str(",\"");
    json.push_str(key);
    json.push_str("\":");
}
