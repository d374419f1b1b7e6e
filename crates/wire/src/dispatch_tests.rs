//! Tests that apply to every wire format.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_chat::{Message, Part, Said, Source};
use switchboard_model::ProviderKind;
use switchboard_render::Provider;

use crate::samples::{Asking, events, last, media, rendering, source};
use crate::{Answer, Limits, Parser, Tools, fault, request};

const KINDS: [ProviderKind; 6] = [
    ProviderKind::OpenAi,
    ProviderKind::ChatGpt,
    ProviderKind::OpenAiChat,
    ProviderKind::Anthropic,
    ProviderKind::Gemini,
    ProviderKind::CodeAssist,
];

fn asked(kind: ProviderKind) -> Source {
    source(kind, "gemini-3-pro")
}

/// An error in each format, in a stream and in a response.
fn error(kind: ProviderKind, code: &str, message: &str) -> Value {
    match kind {
        ProviderKind::Anthropic => {
            json!({"type": "error", "error": {"type": code, "message": message}, "request_id": code})
        }
        ProviderKind::Gemini | ProviderKind::CodeAssist => {
            json!({"error": {"code": 500, "status": code, "message": message}})
        }
        _ => json!({"type": "error", "error": {"code": code, "message": message}}),
    }
}

#[test]
fn whatever_a_provider_says_of_an_error_is_short_and_has_no_key() {
    let long = "word ".repeat(10_000);
    let message = format!("bad key sk-proj-abcdefgh1234\n{long}");
    for kind in KINDS {
        let body = error(kind, &long, &message).to_string();
        let stream = format!("event: error\ndata: {body}\n\n");
        let parser = Parser::new(&asked(kind), Limits::default());
        let in_stream = last(&events(parser, &[stream.as_bytes()])).unwrap_err();
        let header = |name: &str| name.ends_with("request-id").then(|| long.clone());
        let answer = Answer { status: 500, header: &header, body: body.as_bytes() };
        for fault in [in_stream, fault(kind, &answer)] {
            assert!(fault.message.starts_with("bad key *** word word"), "{kind:?}: {fault}");
            assert_eq!(fault.message.chars().count(), 2003, "{kind:?}");
            assert_eq!(fault.code.unwrap().chars().count(), 203, "{kind:?}");
            assert!(fault.request_id.unwrap_or_default().len() <= 203, "{kind:?}");
        }
    }
}

/// The stream of an answer with one call.
fn call(kind: ProviderKind, arguments: &Value) -> String {
    let text = arguments.to_string();
    let (name, chunks) = match kind {
        ProviderKind::Anthropic => {
            let begin = json!({"type": "tool_use", "id": "c", "name": "t", "input": {}});
            let chunks = vec![
                json!({"type": "content_block_start", "index": 0, "content_block": begin}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
                json!({"type": "message_stop"}),
            ];
            ("type", chunks)
        }
        ProviderKind::Gemini | ProviderKind::CodeAssist => {
            let part = json!({"functionCall": {"name": "t", "args": arguments}});
            let candidate = json!({"content": {"parts": [part]}, "finishReason": "STOP"});
            ("", vec![json!({"candidates": [candidate]})])
        }
        ProviderKind::OpenAiChat => {
            let call = json!({"index": 0, "id": "c", "function": {"name": "t", "arguments": text}});
            let choice = json!({"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"});
            ("", vec![json!({"choices": [choice]})])
        }
        _ => {
            let item = json!({"type": "function_call", "call_id": "c", "name": "t", "arguments": text, "status": "completed"});
            let chunks = vec![
                json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
                json!({"type": "response.completed", "response": {}}),
            ];
            ("type", chunks)
        }
    };
    let events = chunks.iter().map(|chunk| match chunk.get(name) {
        Some(kind) => format!("event: {}\ndata: {chunk}\n\n", kind.as_str().unwrap()),
        None => format!("data: {chunk}\n\n"),
    });
    events.collect()
}

#[test]
fn arguments_that_are_too_deep_to_be_kept_are_unreadable() {
    let deep = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"a": inner}));
    for kind in KINDS {
        for (levels, is_read) in [(64, true), (65, false)] {
            let stream = call(kind, &deep(levels));
            let parser = Parser::new(&asked(kind), Limits::default());
            let reply = last(&events(parser, &[stream.as_bytes()])).unwrap();
            let call = reply.calls().next().unwrap();
            assert_eq!(call.unreadable.is_none(), is_read, "{kind:?} {levels}");
            assert_eq!(call.arguments, if is_read { deep(levels) } else { json!({}) });
        }
    }
}

#[test]
fn a_conversation_that_begins_with_a_picture_of_the_operator_is_the_same_everywhere() {
    let content = vec![Part::text("Look."), Part::Image(media("image/png", "iVBORw0="))];
    let messages = [Message::System(Said { content }), Message::user("hi")];
    for kind in KINDS {
        let tools = Tools::only(rendering(Provider::OpenAi, &[]));
        let (_, body) = Asking::new(asked(kind), tools, &messages).send(request);
        let told = match kind {
            ProviderKind::Anthropic => &body["system"][0]["text"],
            ProviderKind::Gemini => &body["systemInstruction"]["parts"][0]["text"],
            ProviderKind::CodeAssist => &body["request"]["systemInstruction"]["parts"][0]["text"],
            ProviderKind::OpenAiChat => &body["messages"][0]["content"],
            _ => &body["instructions"],
        };
        assert_eq!(told, "Look.\n\n[A file of type image/png is not shown]", "{kind:?}");
        assert!(!body.to_string().contains("iVBORw0="), "{kind:?}");
    }
}
