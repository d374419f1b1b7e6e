use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_chat::{Block, FaultKind, ModelEvent, Stop, Usage};
use switchboard_model::ProviderKind;

use super::GeminiWire;
use crate::samples::{check_cuts, events, last, source};
use crate::{Limits, Parser};

fn parser(limits: Limits) -> Parser {
    let source = source(ProviderKind::Gemini, "gemini-3-pro-preview");
    Parser::over(Box::new(GeminiWire::new(&source, limits)), limits)
}

fn read(stream: &str) -> Vec<ModelEvent> {
    events(parser(Limits::default()), &[stream.as_bytes()])
}

fn stream(all: &[Value]) -> String {
    all.iter().map(|data| format!("data: {data}\n\n")).collect::<Vec<_>>().concat()
}

fn chunk(parts: &Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}], "modelVersion": "m"})
}

fn finish(reason: &str) -> Value {
    json!({"candidates": [{"content": {"role": "model"}, "finishReason": reason, "index": 0}]})
}

fn usage(candidates: u64) -> Value {
    json!({"usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": candidates,
        "thoughtsTokenCount": 30, "toolUsePromptTokenCount": 5, "totalTokenCount": 999}})
}

/// Thinking, text with a signature, calls in two chunks, and usage in the last chunk.
fn chunks() -> Vec<Value> {
    vec![
        usage(1),
        chunk(&json!([{"text": "let me ", "thought": true}])),
        chunk(&json!([{"text": "see", "thought": true, "thoughtSignature": "dGhvdWdodA=="}])),
        chunk(&json!([{"text": "Grü"}])),
        chunk(&json!([{"text": "ße \"\u{1f600}\""}, {"text": "."}])),
        chunk(&json!([{"text": "", "thoughtSignature": "dGV4dA=="}])),
        chunk(&json!([{"text": "More."}])),
        chunk(
            &json!([{"functionCall": {"name": "find", "args": {"a": [1, {"b": null}]}}, "thoughtSignature": "Y2FsbA=="}]),
        ),
        chunk(
            &json!([{"functionCall": {"id": "g2", "name": "drop"}}, {"executableCode": {"code": "1"}}]),
        ),
        finish("STOP"),
        usage(12),
    ]
}

#[test]
fn a_whole_answer_becomes_events_and_a_reply() {
    let events = read(&stream(&chunks()));
    insta::assert_debug_snapshot!("whole", events);
    let reply = last(&events).unwrap();
    let usage = Usage {
        input_tokens: 105,
        output_tokens: 42,
        cached_tokens: 60,
        cache_write_tokens: 0,
        reasoning_tokens: 30,
    };
    assert_eq!((reply.stop, reply.usage), (Stop::ToolCalls, Some(usage)));
    assert_eq!(reply.content[1], Block::text("Grüße \"\u{1f600}\"."));
    let ids: Vec<_> = reply.calls().map(|call| call.origin.clone().unwrap().id).collect();
    assert_eq!(ids, [None, Some("g2".into())]);
}

#[test]
fn the_envelope_of_code_assist_changes_nothing() {
    let wrapped: Vec<_> =
        chunks().into_iter().map(|chunk| json!({"response": chunk, "traceId": "t"})).collect();
    assert_eq!(read(&stream(&wrapped)), read(&stream(&chunks())));
}

#[test]
fn every_cut_ends_in_one_event_and_no_half_answer() {
    let whole = stream(&chunks());
    let at = whole.find("\"STOP\"").unwrap();
    check_cuts(
        || parser(Limits::default()),
        &whole,
        |cut, result| match result {
            Ok(reply) => assert!(cut > at && reply.calls().count() == 2),
            Err(fault) => assert_eq!(fault.kind, FaultKind::Interrupted),
        },
    );
}

#[test]
fn reasons_to_stop_are_told_apart() {
    let call = chunk(&json!([{"text": "a"}, {"functionCall": {"name": "find", "args": {}}}]));
    let read = |reason: &str| last(&read(&stream(&[call.clone(), finish(reason)])));
    let refused = [
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "NO_IMAGE",
    ];
    for (reason, stop, calls) in
        [("STOP", Stop::ToolCalls, 1), ("MAX_TOKENS", Stop::Length, 1), ("NEW", Stop::ToolCalls, 1)]
            .into_iter()
            .chain(refused.map(|reason| (reason, Stop::Refused, 0)))
    {
        let reply = read(reason).unwrap();
        assert_eq!(
            (reply.stop, reply.calls().count(), reply.text().as_str()),
            (stop, calls, "a"),
            "{reason}"
        );
    }
    for (reason, kind) in [
        ("MALFORMED_FUNCTION_CALL", FaultKind::MalformedCall),
        ("UNEXPECTED_TOOL_CALL", FaultKind::UnexpectedCall),
        ("TOO_MANY_TOOL_CALLS", FaultKind::Provider),
        ("MALFORMED_RESPONSE", FaultKind::Provider),
        ("OTHER", FaultKind::Provider),
    ] {
        let fault = read(reason).unwrap_err();
        assert_eq!((fault.kind, fault.code.as_deref()), (kind, Some(reason)));
    }
}

#[test]
fn a_request_that_is_blocked_and_an_error_in_the_stream_end_it() {
    let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 3}});
    let fault = last(&read(&stream(&[blocked]))).unwrap_err();
    assert_eq!(
        (fault.kind, fault.message.as_str()),
        (FaultKind::Refused, "the provider stopped: PROHIBITED_CONTENT")
    );
    let error = json!({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}});
    let fault = last(&read(&stream(&[chunk(&json!([{"text": "a"}])), error]))).unwrap_err();
    assert_eq!((fault.kind, fault.status), (FaultKind::Overloaded, Some(503)));
    assert_eq!(fault.message, "The model is overloaded.");
}

#[test]
fn arguments_that_are_no_object_are_kept_as_they_are() {
    for (args, unreadable) in
        [(json!({}), None), (Value::Null, None), (json!([1]), Some("[1]")), (json!("x"), Some("x"))]
    {
        let call = chunk(&json!([{"functionCall": {"name": "find", "args": args}}]));
        let reply = last(&read(&stream(&[call, finish("STOP")]))).unwrap();
        let call = reply.calls().next().unwrap();
        assert_eq!(
            (&call.arguments, call.unreadable.as_deref()),
            (&json!({}), unreadable),
            "{args}"
        );
    }
}

#[test]
fn other_line_ends_comments_and_unknown_things_change_nothing() {
    let whole = stream(&chunks());
    let expected = read(&whole);
    assert_eq!(read(&whole.replace('\n', "\r\n")), expected);
    assert_eq!(read(&whole.replace("\n\n", "\n: still here\n\n")), expected);
    assert_eq!(read(&format!("data: {{\"brandNew\":1}}\n\n{whole}data: [DONE]\n\n")), expected);
    // A candidate without content, and no candidate.
    let empty = stream(&[json!({"candidates": [{}]}), json!({"candidates": []})]);
    assert_eq!(read(&format!("{empty}{whole}")), expected);
}

#[test]
fn garbage_and_silence_end_the_answer() {
    assert_eq!(last(&read("data: <html>\n\n")).unwrap_err().kind, FaultKind::Unreadable);
    assert_eq!(last(&read("<html>")).unwrap_err().kind, FaultKind::Interrupted);
    assert_eq!(last(&read(&stream(&[finish("STOP")]))).unwrap().content, []);
}

#[test]
fn answers_that_are_too_large_end() {
    let limits = Limits { reply_bytes: 2000, calls: 3, ..Limits::default() };
    let read =
        |all: &[Value]| last(&events(parser(limits), &[stream(all).as_bytes()])).unwrap_err();
    let text = chunk(&json!([{"text": "x".repeat(50)}]));
    assert_eq!(read(&vec![text; 60]).message, "the answer exceeds the limit of 2000 bytes");
    let call = chunk(&json!([{"functionCall": {"name": "find", "args": {}}}]));
    assert_eq!(read(&vec![call; 4]).message, "the answer exceeds the limit of 3 calls");
    let signed = chunk(&json!([{"thoughtSignature": "x"}]));
    assert_eq!(read(&vec![signed; 60]).kind, FaultKind::TooLarge);
}

proptest! {
    #[test]
    fn any_cutting_gives_the_same_events(sizes in proptest::collection::vec(1_usize..90, 1..40)) {
        let whole = stream(&chunks());
        let mut rest = whole.as_bytes();
        let mut pieces = Vec::new();
        for size in sizes.iter().cycle() {
            if rest.is_empty() { break; }
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        prop_assert_eq!(events(parser(Limits::default()), &pieces), read(&whole));
    }
}
