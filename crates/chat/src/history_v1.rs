//! The older exported format, `"version": "v1"`: messages are `{role, content: [{type: "text"}], tool_calls?,
//! tool_call_id?}`.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Block, Message, Part, Reply, Said, Stop, ToolCall, ToolReturn};

#[derive(Deserialize)]
struct SeedMessage {
    role: String,
    #[serde(default)]
    content: Vec<SeedPart>,
    #[serde(default)]
    tool_calls: Vec<SeedCall>,
    tool_call_id: Option<String>,
    #[serde(default, rename = "_meta")]
    meta: Map<String, Value>,
}

#[derive(Deserialize)]
struct SeedPart {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

#[derive(Deserialize)]
struct SeedCall {
    id: String,
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// Converts one message of that format. The error says what is invalid.
pub(crate) fn message(value: Value) -> Result<Message, String> {
    let said: SeedMessage = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let texts = said.content.into_iter().map(|part| match part {
        SeedPart { kind, text: Some(text) } if kind == "text" => Ok(text),
        SeedPart { kind, .. } => Err(format!("unknown content type `{kind}`")),
    });
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let parts = |texts: Vec<String>| texts.into_iter().map(Part::text).collect();
    Ok(match said.role.as_str() {
        "system" => Message::System(Said { content: parts(texts) }),
        "user" => Message::User(Said { content: parts(texts) }),
        "tool" => {
            let name = said.meta.get("function_name").and_then(Value::as_str).unwrap_or_default();
            Message::Tool(ToolReturn {
                call: said.tool_call_id.ok_or("a tool message needs `tool_call_id`")?,
                name: name.to_owned(),
                content: parts(texts),
                structured: None,
                is_error: false,
                latency_ms: None,
            })
        }
        "assistant" => {
            let calls: Vec<_> = said.tool_calls.into_iter().map(call).collect();
            let stop = if calls.is_empty() { Stop::End } else { Stop::ToolCalls };
            let texts = texts.into_iter().map(Block::text);
            Message::Assistant(Reply {
                content: texts.chain(calls).collect(),
                stop,
                latency_ms: said.meta.get("latency_ms").and_then(Value::as_u64),
                ..Reply::default()
            })
        }
        other => return Err(format!("unknown role `{other}`")),
    })
}

fn call(call: SeedCall) -> Block {
    let (arguments, unreadable) = crate::read_arguments(call.arguments);
    Block::ToolCall(Box::new(ToolCall {
        id: call.id,
        name: call.name,
        arguments,
        unreadable,
        origin: None,
        opaque: None,
    }))
}
