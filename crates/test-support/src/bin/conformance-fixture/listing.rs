//! The tools, prompts, resources and templates of the fixture.

use rmcp::ErrorData;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A PNG image of one red pixel.
pub(crate) const IMAGE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
/// A WAV file of one silent sample.
pub(crate) const AUDIO: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==";

pub(crate) const WATCHED: &str = "test://watched-resource";
const TEMPLATE: (&str, &str) = ("test://template/", "/data");

/// Tools without arguments, with their descriptions.
const PLAIN_TOOLS: &[(&str, &str)] = &[
    ("test_simple_text", "Answers with a text"),
    ("test_image_content", "Answers with an image"),
    ("test_audio_content", "Answers with a sound"),
    ("test_embedded_resource", "Answers with an embedded resource"),
    ("test_multiple_content_types", "Answers with a text, an image and a resource"),
    ("test_tool_with_logging", "Logs three messages"),
    ("test_logging_tool", "Logs three messages"),
    ("test_tool_with_progress", "Reports progress three times"),
    ("test_error_handling", "Always fails"),
    ("test_reconnection", "Answers after a while"),
    ("test_missing_capability", "Needs sampling"),
    ("test_streaming_elicitation", "Asks for a name"),
    ("test_url_elicitation", "Sends the user to a page"),
    ("test_withdrawn_question", "Asks, and withdraws one question"),
    ("test_impatient_question", "Asks, and answers without waiting for what is said"),
    ("test_elicitation_sep1034_defaults", "Asks with defaults"),
    ("test_elicitation_sep1330_enums", "Asks with choices"),
    ("test_trigger_tool_change", "Adds a tool, or takes it away again"),
    ("test_trigger_prompt_change", "Adds a prompt, or takes it away again"),
    ("test_trigger_resource_update", "Says that the watched resource was updated"),
    ("test_input_required_result_elicitation", "Asks for a name"),
    ("test_input_required_result_sampling", "Asks the client's model"),
    ("test_input_required_result_list_roots", "Asks for the client's roots"),
    ("test_input_required_result_request_state", "Asks, and leaves a state"),
    ("test_input_required_result_multiple_inputs", "Asks for three things at once"),
    ("test_input_required_result_multi_round", "Asks twice"),
    ("test_input_required_result_tampered_state", "Asks, and checks its state"),
    ("test_input_required_result_capabilities", "Asks for what the client can do"),
    ("failing_job", "Fails, in its own time"),
    ("protocol_error_job", "Breaks down, in its own time"),
    ("multi_input", "Asks for two things, in its own time"),
    ("test_tool_with_task", "Asks for a name, and then takes its time"),
];

/// `with_dynamic` adds a tool that appears and disappears.
pub(crate) fn tools(with_dynamic: bool) -> Vec<Value> {
    let nothing = json!({"type": "object", "properties": {}});
    let mut tools: Vec<Value> =
        PLAIN_TOOLS.iter().map(|(name, description)| tool(name, description, &nothing)).collect();
    tools.push(tool("test_sampling", "Asks the client's model", &one_string("prompt")));
    tools.push(tool("test_elicitation", "Asks the user", &one_string("message")));
    tools.push(tool("greet", "Greets", &one_string("name")));
    tools.push(tool("confirm_delete", "Asks first, in its own time", &one_string("filename")));
    let slow = json!({"seconds": {"type": "number"}, "label": {"type": "string"}});
    let slow = json!({"type": "object", "properties": slow});
    tools.push(tool("slow_compute", "Takes some seconds", &slow));
    let mut header = one_string("value");
    header["properties"]["value"]["x-mcp-header"] = json!("Value");
    tools.push(tool("test_custom_header", "Has an argument that is also a header", &header));
    tools.push(tool("json_schema_2020_12_tool", "Has a rich schema", &rich_schema()));
    if with_dynamic {
        tools.push(tool("test_dynamic_tool", "Was not there before", &nothing));
    }
    tools
}

fn tool(name: &str, description: &str, schema: &Value) -> Value {
    json!({"name": name, "description": description, "inputSchema": schema})
}

fn one_string(name: &str) -> Value {
    json!({"type": "object", "properties": { name: {"type": "string"} }, "required": [name]})
}

/// A schema with keywords that an incorrect server or proxy loses.
fn rich_schema() -> Value {
    let text = json!({"type": "string"});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": text, "city": text},
        }},
        "properties": {
            "name": text,
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": text,
            "email": text,
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

pub(crate) fn prompts(with_dynamic: bool) -> Vec<Value> {
    let argument =
        |name: &str| json!({"name": name, "description": "For testing", "required": true});
    let prompt = |name: &str, arguments: Vec<Value>| json!({"name": name, "description": "A prompt for testing", "arguments": arguments});
    let mut prompts = vec![
        prompt("test_simple_prompt", vec![]),
        prompt("test_prompt_with_arguments", vec![argument("arg1"), argument("arg2")]),
        prompt("test_prompt_with_embedded_resource", vec![argument("resourceUri")]),
        prompt("test_prompt_with_image", vec![]),
        prompt("test_input_required_result_prompt", vec![]),
    ];
    if with_dynamic {
        prompts.push(prompt("test_dynamic_prompt", vec![]));
    }
    prompts
}

/// The messages of a prompt that needs no input.
pub(crate) fn messages(name: &str, arguments: &Value) -> Option<Value> {
    let text = |text: &str| json!({"role": "user", "content": {"type": "text", "text": text}});
    let argument = |key: &str| arguments[key].as_str().unwrap_or_default();
    let messages = match name {
        "test_simple_prompt" => json!([text("This is a simple prompt for testing.")]),
        "test_dynamic_prompt" => json!([text("I come and go.")]),
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1"), argument("arg2"));
            json!([text(&format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))])
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({
                "uri": argument("resourceUri"),
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            });
            let content = json!({"type": "resource", "resource": resource});
            let request = text("Please process the embedded resource above.");
            json!([{"role": "user", "content": content}, request])
        }
        "test_prompt_with_image" => {
            let content = json!({"type": "image", "data": IMAGE, "mimeType": "image/png"});
            let request = text("Please analyze the image above.");
            json!([{"role": "user", "content": content}, request])
        }
        _ => return None,
    };
    Some(json!({ "messages": messages }))
}

pub(crate) fn resources() -> Vec<Value> {
    let resource = |uri: &str, name: &str, mime_type: &str| json!({"uri": uri, "name": name, "description": "For testing", "mimeType": mime_type});
    vec![
        resource("test://static-text", "Static text", "text/plain"),
        resource("test://static-binary", "Static image", "image/png"),
        resource(WATCHED, "Watched", "text/plain"),
    ]
}

pub(crate) fn templates() -> Vec<Value> {
    let (before, after) = TEMPLATE;
    vec![json!({
        "uriTemplate": format!("{before}{{id}}{after}"),
        "name": "Template",
        "description": "For testing",
        "mimeType": "application/json",
    })]
}

pub(crate) fn contents(uri: &str) -> Option<Value> {
    let text = |mime_type: &str, text: &str| json!({"contents": [{"uri": uri, "mimeType": mime_type, "text": text}]});
    let (before, after) = TEMPLATE;
    match uri {
        "test://static-text" => {
            Some(text("text/plain", "This is the content of the static text resource."))
        }
        "test://static-binary" => {
            Some(json!({"contents": [{"uri": uri, "mimeType": "image/png", "blob": IMAGE}]}))
        }
        WATCHED => Some(text("text/plain", "Somebody watches this.")),
        _ => {
            let id = uri.strip_prefix(before)?.strip_suffix(after)?;
            let data =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            Some(text("application/json", &data.to_string()))
        }
    }
}

/// A complete result as a type of the library, which omits `resultType` for session-era clients.
pub(crate) fn complete<T: DeserializeOwned>(mut value: Value) -> Result<T, ErrorData> {
    value["resultType"] = json!("complete");
    typed(value)
}

/// The value as a type of the library.
pub(crate) fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(format!("the fixture is wrong: {error}"), None))
}
