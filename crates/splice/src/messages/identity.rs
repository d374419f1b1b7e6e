//! What identifies the messages of a conversation, and what an app claims of calls that it was shown.

use serde_json::Value;

use crate::raw_json::{Raw, RawObject, array, elements, to_raw};
use crate::request_format::{ConversationUnit, ShownReply, sorted};

/// The units of a conversation: a reply is all assistant messages in a row, anything else is one message.
pub(super) fn units(messages: &[Raw]) -> Vec<ConversationUnit> {
    let mut units: Vec<ConversationUnit> = Vec::new();
    let mut reply = ShownReply::default();
    for (index, message) in messages.iter().enumerate() {
        let Ok(message) = RawObject::read(message.get()) else {
            units.push(other(index, message.get().to_owned()));
            continue;
        };
        let role = message.parsed::<String>("role").unwrap_or_default();
        if role != "assistant" {
            let content = message.parsed::<Value>("content").unwrap_or_default();
            units.push(other(index, format!("{role}\n{}", content_identity(content))));
            continue;
        }
        if let Some(unit) = units.last_mut().filter(|unit| unit.is_reply) {
            unit.range.end = index + 1;
        } else {
            reply = ShownReply::default();
            let range = index..index + 1;
            units.push(ConversationUnit { range, is_reply: true, identity: String::new() });
        }
        read_reply(&message, &mut reply);
        if let Some(unit) = units.last_mut() {
            unit.identity = reply.identity();
        }
    }
    units
}

fn other(index: usize, identity: String) -> ConversationUnit {
    ConversationUnit { range: index..index + 1, is_reply: false, identity }
}

/// Adds what an assistant message shows: its text and the calls of the app's tools.
fn read_reply(message: &RawObject, reply: &mut ShownReply) {
    if let Some(text) = message.parsed::<String>("content") {
        reply.text.push_str(&text);
    }
    for block in blocks(message) {
        match block.parsed::<String>("type").as_deref() {
            Some("text") => {
                reply.text.push_str(&block.parsed::<String>("text").unwrap_or_default());
            }
            Some("tool_use") => {
                let input = block.get("input").map_or("{}", |input| input.get());
                let name = block.parsed("name").unwrap_or_default();
                reply.calls.push((name, input.to_owned()));
            }
            _ => {}
        }
    }
}

/// The ids of the calls that a message shows.
pub(super) fn call_ids(message: &Raw) -> Vec<String> {
    ids_of(message, &["tool_use", "mcp_tool_use"])
}

/// The ids of the calls of the app's tools. Calls that ran here are shown under ids of their own.
pub(super) fn app_call_ids(message: &Raw) -> Vec<String> {
    ids_of(message, &["tool_use"])
}

fn ids_of(message: &Raw, kinds: &[&str]) -> Vec<String> {
    let Ok(message) = RawObject::read(message.get()) else { return Vec::new() };
    let blocks = blocks(&message).into_iter();
    blocks.filter(|block| kinds.contains(&kind(block).as_str())).map(|block| id(&block)).collect()
}

fn blocks(message: &RawObject) -> Vec<RawObject> {
    let content = message.get("content").and_then(elements).unwrap_or_default();
    content.iter().filter_map(|block| RawObject::read(block.get()).ok()).collect()
}

/// The content of a message: a string and text blocks are the same, whatever their number, and marks for the cache do not
/// count.
fn content_identity(content: Value) -> String {
    match content {
        Value::String(text) => text,
        Value::Array(blocks) => {
            let mut identity = String::new();
            for mut block in blocks {
                if block["type"] == "text" {
                    identity.push_str(block["text"].as_str().unwrap_or_default());
                    continue;
                }
                let inner = block.get_mut("content").map(Value::take);
                if let Some(members) = block.as_object_mut() {
                    members.remove("cache_control");
                    members.remove("content");
                    members
                        .retain(|name, value| name != "is_error" || *value != Value::Bool(false));
                }
                identity.push('\n');
                identity.push_str(&sorted(&block));
                if let Some(inner) = inner {
                    identity.push('\n');
                    identity.push_str(&content_identity(inner));
                }
                identity.push('\n');
            }
            identity
        }
        other => sorted(&other),
    }
}

/// Turns calls that the app says ran elsewhere into text, and drops the thinking that came with them: its signature holds
/// for the real messages only. Calls of `own_servers`, MCP servers of the app that the provider itself calls, stay.
pub(super) fn without_claims(message: &Raw, own_servers: &[String]) -> Raw {
    let is_claim = |block: &RawObject| {
        let server = block.parsed::<String>("server_name").unwrap_or_default();
        kind(block) == "mcp_tool_use" && !own_servers.contains(&server)
    };
    let Ok(mut object) = RawObject::read(message.get()) else { return message.clone() };
    let all = blocks(&object);
    let claims: Vec<String> = all.iter().filter(|block| is_claim(block)).map(id).collect();
    let is_result = |block: &RawObject| {
        let call = block.parsed::<String>("tool_use_id").unwrap_or_default();
        let is_own = || all.iter().any(|block| kind(block) == "mcp_tool_use" && id(block) == call);
        kind(block) == "mcp_tool_result" && (claims.contains(&call) || !is_own())
    };
    if claims.is_empty() && !all.iter().any(is_result) {
        return message.clone();
    }
    let content = all.iter().filter_map(|block| match kind(block).as_str() {
        "mcp_tool_use" if is_claim(block) => Some(text_block(&format!(
            "[Call of the tool {} with {}]",
            block.parsed::<String>("name").unwrap_or_default(),
            block.get("input").map_or("{}", |input| input.get()),
        ))),
        "mcp_tool_result" if is_result(block) => Some(text_block(&format!(
            "[Result of the tool: {}]",
            block.parsed("content").map(content_identity).unwrap_or_default(),
        ))),
        "thinking" | "redacted_thinking" => None,
        _ => Some(block.to_raw()),
    });
    let content: Vec<Raw> = content.collect();
    object.set("content", array(content.iter().map(|block| block.get())));
    object.to_raw()
}

/// A message without its thinking; `None` if nothing is left of it.
pub(super) fn without_thinking(message: &Raw) -> Option<Raw> {
    let Ok(mut object) = RawObject::read(message.get()) else { return Some(message.clone()) };
    let all = blocks(&object);
    let is_thinking =
        |block: &RawObject| matches!(kind(block).as_str(), "thinking" | "redacted_thinking");
    if !all.iter().any(is_thinking) {
        return Some(message.clone());
    }
    let kept: Vec<Raw> =
        all.iter().filter(|block| !is_thinking(block)).map(RawObject::to_raw).collect();
    object.set("content", array(kept.iter().map(|block| block.get())));
    (!kept.is_empty()).then(|| object.to_raw())
}

fn kind(block: &RawObject) -> String {
    block.parsed("type").unwrap_or_default()
}

fn id(block: &RawObject) -> String {
    block.parsed("id").unwrap_or_default()
}

fn text_block(text: &str) -> Raw {
    to_raw(&serde_json::json!({"type": "text", "text": text}))
}
