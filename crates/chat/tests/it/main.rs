//! Tests of conversations through the public API.

mod history;
mod overlay;
mod turn;

use serde_json::json;
use switchboard_chat::{Block, CallOrigin, Message, Part, Reply, Stop, ToolCall, ToolReturn};

pub(crate) fn call(id: &str) -> ToolCall {
    ToolCall {
        id: id.into(),
        name: "echo".into(),
        arguments: json!({"text": id}),
        unreadable: None,
        origin: None,
        opaque: None,
    }
}

/// A call as a stream parser returns it: without an assigned id.
pub(crate) fn wire_call(name: &str, arguments: serde_json::Value, id: &str) -> Block {
    let origin = CallOrigin { id: Some(id.into()), ..CallOrigin::default() };
    Block::ToolCall(Box::new(ToolCall {
        id: String::new(),
        name: name.into(),
        arguments,
        unreadable: None,
        origin: Some(origin),
        opaque: None,
    }))
}

pub(crate) fn asking(ids: &[&str]) -> Message {
    let calls = ids.iter().map(|id| Block::ToolCall(Box::new(call(id))));
    Message::Assistant(Reply {
        content: calls.collect(),
        stop: Stop::ToolCalls,
        ..Reply::default()
    })
}

pub(crate) fn said(text: &str) -> Message {
    Message::Assistant(Reply { content: vec![Block::text(text)], ..Reply::default() })
}

pub(crate) fn result(id: &str) -> Message {
    Message::Tool(ToolReturn {
        call: id.into(),
        name: "echo".into(),
        content: vec![Part::text(id)],
        structured: None,
        is_error: false,
        latency_ms: None,
    })
}
