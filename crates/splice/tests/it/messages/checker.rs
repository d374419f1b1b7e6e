//! Accumulates a stream as Anthropic's SDKs do, and refuses what one of them refuses or reads wrongly.

use serde_json::{Value, json};

use crate::scripted::frames;

/// Block types that every known client reads.
const BLOCKS: [&str; 8] = [
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "server_tool_use",
    "web_search_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
];

/// How a stream ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    Message(Value),
    Error(Value),
}

#[derive(Default)]
struct Accumulator {
    message: Option<Value>,
    open: Option<usize>,
    input: String,
    has_delta: bool,
    has_stopped: bool,
}

/// The message of a stream.
pub(crate) fn accumulate(stream: &str) -> Result<End, String> {
    let mut accumulator = Accumulator::default();
    for (name, event) in frames(stream) {
        if name.as_deref() != event["type"].as_str() {
            return Err(format!("the event {name:?} has the type {}", event["type"]));
        }
        if accumulator.has_stopped {
            return Err(format!("{event} after the end"));
        }
        if event["type"] == "error" {
            return Ok(End::Error(event["error"].clone()));
        }
        accumulator.take(&event).map_err(|error| format!("{error}: {event}"))?;
    }
    let message = accumulator.message.ok_or("no message_start")?;
    if !accumulator.has_stopped {
        return Err("the stream was cut".into());
    }
    check_message(&message)?;
    Ok(End::Message(message))
}

impl Accumulator {
    fn take(&mut self, event: &Value) -> Result<(), String> {
        let kind = event["type"].as_str().unwrap_or_default();
        if kind == "ping" {
            return Ok(());
        }
        if kind == "message_start" {
            if self.message.is_some() {
                return Err("a second message_start".into());
            }
            self.message = Some(event["message"].clone());
            return Ok(());
        }
        let message = self.message.as_mut().ok_or("an event before message_start")?;
        let index = event["index"].as_u64().and_then(|index| usize::try_from(index).ok());
        let content = message["content"].as_array_mut().ok_or("content is no list")?;
        if self.has_delta && kind != "message_stop" {
            return Err("an event after message_delta".into());
        }
        match kind {
            "content_block_start" => {
                if self.open.is_some() || index != Some(content.len()) {
                    return Err(format!("{} blocks, open: {:?}", content.len(), self.open));
                }
                content.push(event["content_block"].clone());
                self.open = index;
                self.input.clear();
            }
            "content_block_delta" | "content_block_stop" if self.open != index => {
                return Err(format!("the open block is {:?}", self.open));
            }
            "content_block_delta" => {
                let block = content.last_mut().ok_or("no block")?;
                delta(block, &event["delta"], &mut self.input)?;
            }
            "content_block_stop" => {
                self.open = None;
                if !self.input.is_empty() {
                    let block = content.last_mut().ok_or("no block")?;
                    block["input"] =
                        serde_json::from_str(&self.input).map_err(|error| error.to_string())?;
                }
            }
            "message_delta" => {
                if self.open.is_some() {
                    return Err("a block is open".into());
                }
                for (name, value) in event["delta"].as_object().ok_or("no delta")? {
                    message[name] = value.clone();
                }
                for (name, value) in event["usage"].as_object().ok_or("no usage")? {
                    message["usage"][name] = value.clone();
                }
                self.has_delta = true;
            }
            "message_stop" => {
                if !self.has_delta {
                    return Err("no message_delta".into());
                }
                self.has_stopped = true;
            }
            _ => return Err("an unknown event".into()),
        }
        Ok(())
    }
}

fn delta(block: &mut Value, delta: &Value, input: &mut String) -> Result<(), String> {
    let (kind, block_kind) = (delta["type"].as_str().unwrap_or_default(), block["type"].clone());
    let mut append = |name: &str| {
        let old = block[name].as_str().unwrap_or_default().to_owned();
        block[name] = (old + delta[name].as_str().unwrap_or_default()).into();
    };
    match (kind, block_kind.as_str().unwrap_or_default()) {
        ("text_delta", "text") => append("text"),
        ("thinking_delta", "thinking") => append("thinking"),
        ("signature_delta", "thinking") => block["signature"] = delta["signature"].clone(),
        // Some clients do not collect the input of other blocks.
        ("input_json_delta", "tool_use" | "server_tool_use") => {
            input.push_str(delta["partial_json"].as_str().ok_or("no partial_json")?);
        }
        (kind, block) => return Err(format!("{kind} for a block of type {block}")),
    }
    Ok(())
}

/// Checks a whole message.
pub(crate) fn check_message(message: &Value) -> Result<(), String> {
    let content = message["content"].as_array().ok_or("content is no list")?;
    let mut open: Vec<&Value> = Vec::new();
    for block in content {
        let kind = block["type"].as_str().unwrap_or_default();
        if !BLOCKS.contains(&kind) {
            return Err(format!("clients do not know a block of type {kind}"));
        }
        match kind {
            "mcp_tool_use" => open.push(&block["id"]),
            "mcp_tool_result" => {
                let at = open.iter().position(|id| **id == block["tool_use_id"]);
                open.remove(at.ok_or_else(|| format!("a result without its call: {block}"))?);
            }
            _ => {}
        }
    }
    if !open.is_empty() {
        return Err(format!("calls without a result: {open:?}"));
    }
    let calls = content.iter().filter(|block| block["type"] == "tool_use").count();
    if (message["stop_reason"] == "tool_use") != (calls > 0)
        && message["stop_reason"] != "max_tokens"
    {
        return Err(format!("{calls} calls and stop_reason {}", message["stop_reason"]));
    }
    if message["stop_reason"].is_null() {
        return Err("no stop_reason".into());
    }
    Ok(())
}

/// Checks a conversation as the API does: each call has one result, in the next message, before anything else.
pub(crate) fn check_conversation(body: &Value) -> Result<(), String> {
    let messages = body["messages"].as_array().ok_or("no messages")?;
    let blocks = |message: &Value| match &message["content"] {
        Value::Array(blocks) => blocks.clone(),
        text => vec![json!({"type": "text", "text": text})],
    };
    for (index, message) in messages.iter().enumerate() {
        let calls: Vec<_> =
            blocks(message).into_iter().filter(|block| block["type"] == "tool_use").collect();
        let own = blocks(message);
        let texts = own.iter().filter(|block| block["type"] == "text");
        if own.is_empty()
            || texts.filter_map(|block| block["text"].as_str()).any(|text| text.trim().is_empty())
        {
            return Err(format!("empty content: {message}"));
        }
        if own
            .iter()
            .any(|block| block["type"].as_str().is_some_and(|kind| kind.starts_with("mcp_")))
        {
            return Err(format!("a shown call went to the provider: {message}"));
        }
        if calls.is_empty() {
            continue;
        }
        let next = messages.get(index + 1).ok_or("calls without results")?;
        let results: Vec<_> = blocks(next)
            .into_iter()
            .take_while(|block| block["type"] == "tool_result")
            .map(|block| block["tool_use_id"].clone())
            .collect();
        let mut expected: Vec<_> = calls.iter().map(|call| call["id"].clone()).collect();
        let mut found = results.clone();
        expected.sort_by_key(Value::to_string);
        found.sort_by_key(Value::to_string);
        if expected != found || message["role"] != "assistant" || next["role"] != "user" {
            return Err(format!("calls {expected:?}, results {found:?}"));
        }
    }
    Ok(())
}
