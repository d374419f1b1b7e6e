use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_chat::{Block, FaultKind, ModelEvent, Reply, Stop, Usage};
use switchboard_model::ProviderKind;

use super::MessagesWire;
use crate::samples::{check_cuts, events, last, source};
use crate::{Limits, Parser};

fn parser(limits: Limits) -> Parser {
    let source = source(ProviderKind::Anthropic, "claude-opus-5-5");
    Parser::over(Box::new(MessagesWire::new(&source, limits)), limits)
}

fn read(stream: &str) -> Vec<ModelEvent> {
    events(parser(Limits::default()), &[stream.as_bytes()])
}

/// Serialises events with their names.
fn stream(all: &[Value]) -> String {
    let named =
        |data: &Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    all.iter().map(named).collect::<Vec<_>>().concat()
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "usage":
        {"input_tokens": 10, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 1}}})
}

fn block(index: usize, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: usize, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn text(index: usize, text: &str) -> Value {
    delta(index, &json!({"type": "text_delta", "text": text}))
}

fn input(index: usize, text: &str) -> Value {
    delta(index, &json!({"type": "input_json_delta", "partial_json": text}))
}

fn stop(index: usize) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn tool(index: usize, id: &str) -> Value {
    block(index, &json!({"type": "tool_use", "id": id, "name": "find", "input": {}}))
}

fn end(reason: &str) -> [Value; 2] {
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    let usage = json!({"output_tokens": 42, "output_tokens_details": {"thinking_tokens": 7}});
    [
        json!({"type": "message_delta", "delta": delta, "usage": usage}),
        json!({"type": "message_stop"}),
    ]
}

/// Thinking, text with all kinds of characters, and two calls, one without arguments.
fn whole() -> String {
    let mut all = vec![
        start(),
        json!({"type": "ping"}),
        block(0, &json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, &json!({"type": "thinking_delta", "thinking": "let me\n"})),
        delta(0, &json!({"type": "thinking_delta", "thinking": "see"})),
        delta(0, &json!({"type": "signature_delta", "signature": "c2ln"})),
        stop(0),
        block(1, &json!({"type": "redacted_thinking", "data": "ZGF0YQ=="})),
        stop(1),
        block(2, &json!({"type": "text", "text": ""})),
        text(2, "Grüße "),
        delta(2, &json!({"type": "citations_delta", "citation": {}})),
        text(2, "\"\u{1f600}\""),
        stop(2),
        tool(3, "toolu_1"),
        input(3, ""),
        input(3, "{\"a\": \"x"),
        input(3, "y\"}"),
        stop(3),
        tool(4, "toolu_2"),
        stop(4),
    ];
    all.extend(end("tool_use"));
    stream(&all)
}

#[test]
fn a_whole_answer_becomes_events_and_a_reply() {
    let events = read(&whole());
    insta::assert_debug_snapshot!("whole", events);
    let reply = last(&events).unwrap();
    let usage = Usage {
        input_tokens: 115,
        output_tokens: 42,
        cached_tokens: 100,
        cache_write_tokens: 5,
        reasoning_tokens: 7,
    };
    assert_eq!((reply.stop, reply.usage), (Stop::ToolCalls, Some(usage)));
    let calls: Vec<_> = reply.calls().map(|call| &call.arguments).collect();
    assert_eq!(calls, [&json!({"a": "xy"}), &json!({})]);
}

#[test]
fn every_cut_ends_in_one_event_and_no_half_call() {
    let whole = whole();
    let at = whole.find("event: message_stop").unwrap();
    check_cuts(
        || parser(Limits::default()),
        &whole,
        |cut, result| match result {
            // The last event has all of its data.
            Ok(reply) => assert!(cut > at && reply.calls().count() == 2),
            Err(fault) => assert_eq!(fault.kind, FaultKind::Interrupted),
        },
    );
}

/// Parses an answer with one call, cut in every way that the provider cuts it.
#[test]
fn calls_that_may_be_cut_are_dropped() {
    let check = |arguments: &[&str],
                 is_stopped: bool,
                 reason: &str,
                 calls: usize,
                 stop_as: Stop| {
        let mut all = vec![start(), tool(0, "toolu_1")];
        all.extend(arguments.iter().map(|part| input(0, part)));
        all.extend(is_stopped.then(|| stop(0)));
        all.extend(end(reason));
        let events = read(&stream(&all));
        let reply = last(&events).unwrap();
        assert_eq!((reply.calls().count(), reply.stop), (calls, stop_as), "{arguments:?} {reason}");
    };
    check(&["{\"a\":1}"], true, "tool_use", 1, Stop::ToolCalls);
    check(&["{\"a\":1}"], true, "end_turn", 1, Stop::ToolCalls);
    check(&["{\"a\":1}"], false, "tool_use", 0, Stop::End);
    check(&["{\"a\":1}"], true, "max_tokens", 1, Stop::Length);
    check(&["{\"a\":"], true, "max_tokens", 0, Stop::Length);
    check(&[], true, "max_tokens", 0, Stop::Length);
    check(&["{\"a\":"], true, "model_context_window_exceeded", 0, Stop::Length);
    check(&["{\"a\":1}"], true, "refusal", 0, Stop::Refused);
    check(&[], true, "tool_use", 1, Stop::ToolCalls);
}

#[test]
fn arguments_that_are_no_object_are_kept_as_they_are_and_never_taken_for_one() {
    for text in ["[1]", "{\"a\":", "nonsense"] {
        let mut all = vec![start(), tool(0, "toolu_1"), input(0, text), stop(0)];
        all.extend(end("tool_use"));
        let reply = last(&read(&stream(&all))).unwrap();
        let call = reply.calls().next().unwrap().clone();
        assert_eq!((call.arguments, call.unreadable.as_deref()), (json!({}), Some(text)));
        assert_eq!(call.origin.unwrap().id.as_deref(), Some("toolu_1"));
        assert_eq!(call.id, "", "who keeps it gives the id");
    }
}

#[test]
fn reasons_to_stop_are_told_apart() {
    let cases = [
        ("end_turn", Stop::End),
        ("stop_sequence", Stop::End),
        ("max_tokens", Stop::Length),
        ("model_context_window_exceeded", Stop::Length),
        ("pause_turn", Stop::Paused),
        ("refusal", Stop::Refused),
        ("something_new", Stop::End),
    ];
    for (reason, expected) in cases {
        let mut all =
            vec![start(), block(0, &json!({"type": "text", "text": ""})), text(0, "a"), stop(0)];
        all.extend(end(reason));
        let reply = last(&read(&stream(&all))).unwrap();
        assert_eq!((reply.stop, reply.text().as_str()), (expected, "a"), "{reason}");
    }
}

#[test]
fn an_error_after_a_good_beginning_ends_the_answer() {
    let error = |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "M"}, "request_id": "req_1"});
    for (word, kind) in [
        ("overloaded_error", FaultKind::Overloaded),
        ("api_error", FaultKind::Provider),
        ("rate_limit_error", FaultKind::RateLimited),
        ("something_new", FaultKind::Provider),
    ] {
        let fault = last(&read(&stream(&[start(), error(word), json!({"type": "message_stop"})])))
            .unwrap_err();
        assert_eq!(
            (fault.kind, fault.code.as_deref(), fault.message.as_str()),
            (kind, Some(word), "M")
        );
        assert_eq!(fault.request_id.as_deref(), Some("req_1"));
    }
    let fault = last(&read("event: error\ndata: {}\n\n")).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Provider);
}

#[test]
fn other_line_ends_comments_missing_names_and_unknown_things_change_nothing() {
    let whole = whole();
    let expected = read(&whole);
    assert_eq!(read(&whole.replace('\n', "\r\n")), expected);
    assert_eq!(read(&whole.replace("\n\n", "\n: still here\n\n")), expected);
    let unnamed: Vec<_> = whole.lines().filter(|line| !line.starts_with("event:")).collect();
    assert_eq!(read(&(unnamed.join("\n") + "\n")), expected);
    let more = "event: brand_new\ndata: not even JSON\n\ndata: {\"type\":\"brand_new\"}\n\n";
    assert_eq!(read(&format!("{more}{whole}")), expected);
    let unknown = [
        block(9, &json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})),
        input(9, "{}"),
        delta(77, &json!({"type": "text_delta", "text": "for nobody"})),
        stop(9),
    ];
    assert_eq!(
        read(&whole.replacen(
            "event: message_delta",
            &format!("{}event: message_delta", stream(&unknown)),
            1
        )),
        expected
    );
}

#[test]
fn garbage_ends_the_answer_and_names_itself() {
    let fault = last(&read("event: message_start\ndata: <html>\n\n")).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unreadable);
    let fault = last(&read("")).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Interrupted);
}

#[test]
fn answers_that_are_too_large_end() {
    let limits = Limits { reply_bytes: 2000, calls: 3, ..Limits::default() };
    let mut all = vec![start(), block(0, &json!({"type": "text", "text": ""}))];
    all.extend((0..100).map(|_| text(0, "0123456789012345678901234567890123456789")));
    let fault = last(&events(parser(limits), &[stream(&all).as_bytes()])).unwrap_err();
    assert_eq!(
        (fault.kind, fault.message.as_str()),
        (FaultKind::TooLarge, "the answer exceeds the limit of 2000 bytes")
    );
    let all: Vec<_> = (0..4).map(|index| tool(index, "t")).collect();
    let fault = last(&events(parser(limits), &[stream(&all).as_bytes()])).unwrap_err();
    assert_eq!(
        (fault.kind, fault.message.as_str()),
        (FaultKind::TooLarge, "the answer exceeds the limit of 3 calls")
    );
    let all: Vec<_> = (0..100).map(|index| block(index, &json!({"type": "text"}))).collect();
    assert_eq!(
        last(&events(parser(limits), &[stream(&all).as_bytes()])).unwrap_err().kind,
        FaultKind::TooLarge
    );
}

#[test]
fn what_is_given_whole_at_the_beginning_of_a_block_counts() {
    let mut all = vec![
        block(0, &json!({"type": "text", "text": "a"})),
        text(0, "b"),
        block(1, &json!({"type": "tool_use", "id": "t", "name": "find", "input": {"n": 1}})),
        stop(1),
    ];
    all.extend(end("tool_use"));
    let reply: Reply = last(&read(&stream(&all))).unwrap();
    assert_eq!(reply.content[0], Block::text("ab"));
    assert_eq!(reply.calls().next().unwrap().arguments, json!({"n": 1}));
}

proptest! {
    #[test]
    fn any_cutting_gives_the_same_events(sizes in proptest::collection::vec(1_usize..90, 1..40)) {
        let whole = whole();
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
