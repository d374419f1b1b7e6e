//! Streams of both formats: their events, cut at any position and in chunks of any size.

use std::time::Duration;

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_chat::{Block, FaultKind, ModelEvent, ModelFault, Reply, Source};
use switchboard_model::ProviderKind;

use super::{ChatWire, ResponsesWire};
use crate::parser::{Limits, Parser};

#[derive(Clone, Copy, Debug)]
enum Format {
    Responses,
    Chat,
}

fn parser(format: Format, limits: Limits) -> Parser {
    let (provider, model) = ("openai".to_owned(), "m".to_owned());
    let source = Source { kind: ProviderKind::OpenAi, provider, model, credential: None };
    match format {
        Format::Responses => Parser::over(Box::new(ResponsesWire::new(&source, limits)), limits),
        Format::Chat => Parser::over(Box::new(ChatWire::new(&source, limits)), limits),
    }
}

fn events<'a>(format: Format, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<ModelEvent> {
    let (mut parser, mut out) = (parser(format, Limits::default()), Vec::new());
    for piece in pieces {
        parser.feed(piece, &mut out);
    }
    parser.finish(&mut out);
    assert!(parser.is_done());
    out
}

/// A stream of Responses; the name of each event is its type.
fn responses(data: &[Value]) -> String {
    let event =
        |data: &Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    data.iter().map(event).collect()
}

fn chat(data: &[Value]) -> String {
    let events: Vec<String> = data.iter().map(|data| format!("data: {data}\n\n")).collect();
    events.concat() + "data: [DONE]\n\n"
}

/// Events in a short notation.
fn told(events: &[ModelEvent]) -> Vec<String> {
    let line = |event: &ModelEvent| match event {
        ModelEvent::Text(text) => format!("text {text}"),
        ModelEvent::Thinking(text) => format!("thinking {text}"),
        ModelEvent::CallBegun { index, name } => format!("begun {index} {name}"),
        ModelEvent::CallArguments { index, delta } => format!("arguments {index} {delta}"),
        ModelEvent::Step(step) => format!("step {step:?}"),
        ModelEvent::Usage(usage) => format!("usage {}", json!(usage)),
        ModelEvent::Finished(reply) => {
            format!("finished {:?} {}", reply.stop, json!(reply.content))
        }
        ModelEvent::Failed(fault) => format!("failed {fault}"),
    };
    events.iter().map(line).collect()
}

#[track_caller]
fn check(format: Format, text: &str, expected: &[&str]) {
    assert_eq!(told(&events(format, [text.as_bytes()])), expected, "{text}");
}

/// The last event.
#[track_caller]
fn check_last(format: Format, text: &str, expected: &str) {
    let events = events(format, [text.as_bytes()]);
    assert_eq!(told(&events).last().map(String::as_str), Some(expected), "{text}");
}

fn fault_of(format: Format, text: &str) -> ModelFault {
    match events(format, [text.as_bytes()]).pop() {
        Some(ModelEvent::Failed(fault)) => *fault,
        other => panic!("{text} gave {other:?}"),
    }
}

fn reply_of(format: Format, text: &str) -> Option<Reply> {
    match events(format, [text.as_bytes()]).pop() {
        Some(ModelEvent::Finished(reply)) => Some(*reply),
        _ => None,
    }
}

fn call_item(number: usize, name: &str, arguments: &str, status: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"), "name": name, "arguments": arguments, "status": status})
}

fn added(index: usize, item: &Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: usize, item: &Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn delta(kind: &str, index: usize, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "sequence_number": 1, "item_id": "i", "output_index": index, "content_index": 0, "delta": delta, "logprobs": [], "obfuscation": "x"})
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": [], "usage": {
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
        "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 17,
    }}})
}

fn incomplete(reason: &str) -> Value {
    json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": reason}, "output": [], "usage": null}})
}

fn message_item(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

/// Reasoning, text and two calls.
fn whole_responses() -> String {
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}, {"type": "summary_text", "text": "yes"}], "content": null, "encrypted_content": "SEAL", "status": null});
    responses(&[
        json!({"type": "response.created", "response": {"id": "resp_1", "tools": []}}),
        json!({"type": "response.in_progress", "response": {}}),
        added(
            0,
            &json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "SE"}),
        ),
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0, "part": {}}),
        delta("reasoning_summary_text", 0, "hm"),
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1, "part": {}}),
        delta("reasoning_summary_text", 0, "yes"),
        done(0, &thought),
        added(1, &json!({"type": "message", "id": "msg_1", "content": []})),
        delta("output_text", 1, "Grü"),
        delta("output_text", 1, "ße \"🦀\""),
        json!({"type": "codex.rate_limits", "delta": {"a": 1}}),
        json!({"type": "response.output_text.done", "output_index": 1, "text": "Grüße \"🦀\""}),
        done(1, &message_item("Grüße \"🦀\"")),
        added(2, &call_item(1, "a", "", "in_progress")),
        added(3, &call_item(2, "b", "", "in_progress")),
        delta("function_call_arguments", 3, "{\"y\":"),
        delta("function_call_arguments", 2, "{\"x\":1}"),
        delta("function_call_arguments", 3, "\"ü\"}"),
        done(3, &call_item(2, "b", "{\"y\":\"ü\"}", "completed")),
        done(2, &call_item(1, "a", "{\"x\":1}", "completed")),
        completed(),
    ])
}

fn whole_chat() -> String {
    let choice = |delta: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let call = |call: Value| choice(json!({"tool_calls": [call]}));
    chat(&[
        choice(json!({"role": "assistant", "content": null, "reasoning_content": "hm"})),
        choice(json!({"content": "Grüße "})),
        choice(json!({"content": "\"🦀\""})),
        call(
            json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": "a", "arguments": ""}}),
        ),
        call(json!({"index": 0, "function": {"arguments": "{\"x\":"}})),
        call(json!({"index": 0, "function": {"arguments": "1}"}})),
        call(
            json!({"index": 1, "id": "call_2", "type": "function", "function": {"name": "b", "arguments": "{\"y\":\"ü\"}"}}),
        ),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17, "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 3}}}),
    ])
}

#[test]
fn responses_tells_thoughts_text_and_calls() {
    check(
        Format::Responses,
        &whole_responses(),
        &[
            "thinking hm",
            "thinking \n\n",
            "thinking yes",
            "text Grü",
            "text ße \"🦀\"",
            "begun 0 a",
            "begun 1 b",
            "arguments 1 {\"y\":",
            "arguments 0 {\"x\":1}",
            "arguments 1 \"ü\"}",
            r#"usage {"input_tokens":10,"output_tokens":7,"cached_tokens":4,"cache_write_tokens":2,"reasoning_tokens":3}"#,
            r#"finished ToolCalls [{"type":"reasoning","text":"hm\n\nyes","opaque":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"},{"type":"summary_text","text":"yes"}],"encrypted_content":"SEAL"}},{"type":"text","text":"Grüße \"🦀\"","opaque":{"id":"msg_1"}},{"type":"tool_call","id":"","name":"a","arguments":{"x":1},"origin":{"id":"call_1","item":"fc_1"}},{"type":"tool_call","id":"","name":"b","arguments":{"y":"ü"},"origin":{"id":"call_2","item":"fc_2"}}]"#,
        ],
    );
}

#[test]
fn chat_tells_thoughts_text_and_calls() {
    check(
        Format::Chat,
        &whole_chat(),
        &[
            "thinking hm",
            "text Grüße ",
            "text \"🦀\"",
            "begun 0 a",
            "arguments 0 {\"x\":",
            "arguments 0 1}",
            "begun 1 b",
            "arguments 1 {\"y\":\"ü\"}",
            r#"usage {"input_tokens":10,"output_tokens":7,"cached_tokens":4,"reasoning_tokens":3}"#,
            r#"finished ToolCalls [{"type":"reasoning","text":"hm"},{"type":"text","text":"Grüße \"🦀\""},{"type":"tool_call","id":"","name":"a","arguments":{"x":1},"origin":{"id":"call_1"}},{"type":"tool_call","id":"","name":"b","arguments":{"y":"ü"},"origin":{"id":"call_2"}}]"#,
        ],
    );
}

#[test]
fn calls_without_arguments_have_none_and_what_is_no_object_is_kept_as_it_was() {
    for (written, expected) in [
        ("", r#""arguments":{}"#),
        (" ", r#""arguments":{}"#),
        ("{}", r#""arguments":{}"#),
        ("[1]", r#""arguments":{},"unreadable":"[1]""#),
        ("{\"a\":", r#""arguments":{},"unreadable":"{\"a\":""#),
        ("null", r#""arguments":{},"unreadable":"null""#),
    ] {
        let text = responses(&[done(0, &call_item(1, "t", written, "completed")), completed()]);
        let expected_here = format!(
            r#"finished ToolCalls [{{"type":"tool_call","id":"","name":"t",{expected},"origin":{{"id":"call_1","item":"fc_1"}}}}]"#
        );
        check_last(Format::Responses, &text, &expected_here);
        let call =
            json!({"index": 0, "id": "call_1", "function": {"name": "t", "arguments": written}});
        let chunk =
            json!({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "stop"}]});
        let expected_here = format!(
            r#"finished ToolCalls [{{"type":"tool_call","id":"","name":"t",{expected},"origin":{{"id":"call_1"}}}}]"#
        );
        check_last(Format::Chat, &chat(&[chunk]), &expected_here);
    }
}

#[test]
fn an_answer_that_was_cut_off_keeps_its_text_and_only_whole_calls() {
    let cases = [
        ("max_output_tokens", "completed", "{\"a\":1}", "finished Length", true),
        ("max_output_tokens", "completed", "", "finished Length", true),
        ("max_output_tokens", "incomplete", "{\"a\":1}", "finished Length", false),
        ("max_output_tokens", "in_progress", "{}", "finished Length", false),
        ("max_output_tokens", "", "{\"a\":1}", "finished Length", true),
        ("max_output_tokens", "", "{\"a\":", "finished Length", false),
        ("max_output_tokens", "", "", "finished Length", false),
        ("max_output_tokens", "completed", "{\"a\":", "finished Length", false),
        ("content_filter", "incomplete", "{}", "finished Refused", false),
        ("content_filter", "completed", "{\"a\":1}", "finished Refused", false),
        ("steered", "incomplete", "{}", "finished Length", false),
    ];
    for (reason, status, arguments, expected, is_kept) in cases {
        let call = call_item(1, "t", arguments, status);
        let text = responses(&[delta("output_text", 0, "so"), done(1, &call), incomplete(reason)]);
        let last = told(&events(Format::Responses, [text.as_bytes()])).pop().unwrap();
        assert!(last.starts_with(expected), "{last}");
        assert!(last.contains(r#""text":"so""#), "{last}");
        assert_eq!(last.contains("tool_call"), is_kept, "{status} {arguments}: {last}");
    }
    // A call that began and never completed.
    let begun = added(0, &call_item(1, "t", "", "in_progress"));
    let text = responses(&[
        begun.clone(),
        delta("function_call_arguments", 0, "{}"),
        incomplete("max_output_tokens"),
    ]);
    check_last(Format::Responses, &text, "finished Length []");
    let text = responses(&[begun, delta("function_call_arguments", 0, "{}"), completed()]);
    check_last(
        Format::Responses,
        &text,
        "failed unreadable: the answer ended before a call was complete",
    );
}

#[test]
fn a_chat_that_was_cut_off_keeps_only_whole_calls() {
    let call = |arguments: &str| json!({"index": 0, "id": "c", "function": {"name": "t", "arguments": arguments}});
    for (arguments, reason, stop, is_kept) in [
        ("{\"a\":1}", "length", "finished Length", true),
        ("{\"a\":1", "length", "finished Length", false),
        ("", "length", "finished Length", false),
        ("{", "content_filter", "finished Refused", false),
        ("{\"a\":1}", "content_filter", "finished Refused", false),
        ("{", "stop", "finished ToolCalls", true),
    ] {
        let chunk = json!({"choices": [{"delta": {"content": "so", "tool_calls": [call(arguments)]}, "finish_reason": reason}]});
        let last = told(&events(Format::Chat, [chat(&[chunk]).as_bytes()])).pop().unwrap();
        assert!(last.starts_with(stop) && last.contains(r#""text":"so""#), "{last}");
        assert_eq!(last.contains("tool_call"), is_kept, "{arguments}: {last}");
    }
}

#[test]
fn what_was_told_only_once_is_kept_and_shown() {
    // Only in deltas, because the item is empty.
    let empty = json!({"type": "message", "id": "msg_1", "content": []});
    let text = responses(&[delta("output_text", 0, "hi"), done(0, &empty), completed()]);
    check_last(
        Format::Responses,
        &text,
        r#"finished End [{"type":"text","text":"hi","opaque":{"id":"msg_1"}}]"#,
    );
    // Only in deltas, because no item is done.
    let text =
        responses(&[delta("reasoning_text", 0, "hm"), delta("refusal", 1, "no"), completed()]);
    check_last(
        Format::Responses,
        &text,
        r#"finished End [{"type":"reasoning","text":"hm"},{"type":"text","text":"no"}]"#,
    );
    // Only in the item.
    let text = responses(&[
        done(0, &message_item("hi")),
        done(1, &call_item(1, "t", "{}", "completed")),
        completed(),
    ]);
    let lines = told(&events(Format::Responses, [text.as_bytes()]));
    assert_eq!(&lines[..3], ["text hi", "begun 0 t", "arguments 0 {}"]);
    // Only in the last event.
    let output = [
        message_item("hi"),
        json!({"type": "web_search_call", "id": "ws_1"}),
        call_item(1, "t", "{}", "completed"),
    ];
    let text = responses(&[json!({"type": "response.completed", "response": {"output": output}})]);
    let reply = reply_of(Format::Responses, &text).unwrap();
    assert_eq!((reply.text().as_str(), reply.calls().count()), ("hi", 1));
    // A refusal is text.
    let refusal = json!({"type": "message", "id": "msg_1", "content": [{"type": "refusal", "refusal": "no"}]});
    let text = responses(&[done(0, &refusal), completed()]);
    assert_eq!(reply_of(Format::Responses, &text).unwrap().text(), "no");
}

/// A fragment: its index, id, name and a part of its arguments.
type Fragment = (Option<u64>, Option<&'static str>, Option<&'static str>, &'static str);

#[track_caller]
fn check_fragments(case: &str, fragments: &[Fragment], ids: [Option<&str>; 2]) {
    let chunks = fragments.iter().map(|(index, id, name, arguments)| {
        let mut call = json!({"id": id, "function": {"name": name, "arguments": arguments}});
        if let Some(index) = index {
            call["index"] = json!(index);
        }
        json!({"choices": [{"delta": {"tool_calls": [call]}}]})
    });
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let text = chat(&chunks.chain([last]).collect::<Vec<_>>());
    let reply = reply_of(Format::Chat, &text).unwrap();
    let calls = reply.calls().map(|call| {
        let id = call.origin.as_ref().and_then(|origin| origin.id.as_deref());
        (call.name.as_str(), call.arguments.clone(), id)
    });
    let expected = [("a", json!({"x": 1}), ids[0]), ("a", json!({"x": 2}), ids[1])];
    assert_eq!(calls.collect::<Vec<_>>(), expected, "{case}");
}

#[test]
fn fragments_of_calls_find_their_call_whatever_servers_leave_out() {
    let (one, two) = ("{\"x\":1}", "{\"x\":2}");
    let (begin, end) = ("{\"x\"", ":1}");
    let (a, first, second) = (Some("a"), Some("1"), Some("2"));
    let ids = [first, second];
    let whole = [(None, first, a, one), (None, second, a, two)];
    check_fragments("no index", &whole, ids);
    let pieces = [(None, first, a, begin), (None, None, None, end), (None, second, a, two)];
    check_fragments("no index, in pieces", &pieces, ids);
    let same = [(Some(0), first, a, one), (Some(0), second, a, two)];
    check_fragments("one index for all", &same, ids);
    let repeated =
        [(Some(0), first, a, begin), (Some(0), first, a, end), (Some(1), second, a, two)];
    check_fragments("the name repeated", &repeated, ids);
    let made_up =
        [(Some(0), first, a, begin), (Some(0), Some("7"), None, end), (Some(1), second, a, two)];
    check_fragments("an id for every fragment", &made_up, ids);
    let mixed = [(Some(7), first, a, begin), (Some(9), second, a, two), (Some(7), None, None, end)];
    check_fragments("indices from elsewhere", &mixed, ids);
    let no_ids = [(Some(0), None, a, one), (Some(1), Some(""), a, two)];
    check_fragments("no ids", &no_ids, [None, None]);
    let names = [(None, None, a, one), (None, None, a, two)];
    check_fragments("nothing but names", &names, [None, None]);
    // An object in the place of its text.
    let call = json!({"function": {"name": "a", "arguments": {"x": 1}}});
    let choice = json!({"delta": {"tool_calls": [call]}, "finish_reason": "stop"});
    let reply = reply_of(Format::Chat, &chat(&[json!({"choices": [choice]})])).unwrap();
    assert_eq!(reply.calls().next().unwrap().arguments, json!({"x": 1}));
}

#[test]
fn a_chat_ends_by_its_reason_or_its_mark() {
    let said = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let ended = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let interrupted = "failed interrupted: the stream ended before the answer did";
    let finished = r#"finished End [{"type":"text","text":"a"}]"#;
    check_last(Format::Chat, &format!("{said}{ended}"), finished);
    check_last(Format::Chat, &format!("{said}data: [DONE]\n\n"), finished);
    check_last(Format::Chat, said, interrupted);
    check_last(Format::Chat, "data: [DONE]\n\n", interrupted);
    check_last(Format::Chat, "", interrupted);
    let odd = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}]}\n\n";
    assert_eq!(fault_of(Format::Chat, odd).kind, FaultKind::Provider);
    check_last(Format::Chat, &format!("data:\n\n{said}{ended}"), finished);
}

#[test]
fn errors_within_a_stream_say_what_kind_they_are() {
    let cases = [
        ("context_length_exceeded", FaultKind::TooLong),
        ("insufficient_quota", FaultKind::Quota),
        ("usage_limit_reached", FaultKind::Quota),
        ("rate_limit_exceeded", FaultKind::RateLimited),
        ("server_is_overloaded", FaultKind::Overloaded),
        ("slow_down", FaultKind::Overloaded),
        ("invalid_prompt", FaultKind::Refused),
        ("cyber_policy", FaultKind::Refused),
        ("bio_policy", FaultKind::Refused),
        ("misalignment_policy_violation", FaultKind::Refused),
        ("invalid_function_parameters", FaultKind::BadRequest),
        ("server_error", FaultKind::Provider),
        ("never_heard_of", FaultKind::Provider),
    ];
    for (code, kind) in cases {
        let error = json!({"code": code, "message": "why"});
        let streams = [
            (
                Format::Responses,
                responses(&[json!({"type": "response.failed", "response": {"error": error}})]),
            ),
            (
                Format::Responses,
                responses(&[
                    json!({"type": "error", "code": code, "message": "why", "param": null}),
                ]),
            ),
            (Format::Responses, responses(&[json!({"type": "error", "error": error})])),
            (Format::Chat, chat(&[json!({"error": error})])),
        ];
        for (format, text) in streams {
            let fault = fault_of(format, &text);
            assert_eq!((fault.kind, fault.message.as_str()), (kind, "why"), "{text}");
            assert_eq!(fault.code.as_deref(), Some(code), "{text}");
        }
    }
    let wait = |message: &str| {
        let error = json!({"code": "rate_limit_exceeded", "message": message});
        fault_of(Format::Chat, &chat(&[json!({"error": error})])).retry_after
    };
    assert_eq!(wait("Please try again in 1.5s."), Some(Duration::from_millis(1500)));
    assert_eq!(wait("Please try again in 28ms. Visit"), Some(Duration::from_millis(28)));
    assert_eq!(wait("Try again in 6m0s"), Some(Duration::from_mins(6)));
    assert_eq!(wait("try again in 3 seconds"), Some(Duration::from_secs(3)));
    assert_eq!(wait("try again in a while"), None);
    let fault = fault_of(
        Format::Responses,
        &responses(&[json!({"type": "response.failed", "response": {"error": null}})]),
    );
    assert_eq!(fault.kind, FaultKind::Provider);
}

#[test]
fn events_are_known_by_their_data_where_they_have_no_name() {
    let named = whole_responses();
    let lines = named.split_inclusive('\n');
    let nameless: String = lines.filter(|line| !line.starts_with("event:")).collect();
    let late = nameless.replace(
        "{\"type\":\"response.output_text.delta\",",
        "{\"z\":1,\"type\":\"response.output_text.delta\",",
    );
    let expected = events(Format::Responses, [named.as_bytes()]);
    for text in [
        nameless,
        late,
        named.replace('\n', "\r\n"),
        format!(": hi\n\n{}", named.replace("\n\n", "\n: c\n\n")),
    ] {
        assert_eq!(events(Format::Responses, [text.as_bytes()]), expected, "{text}");
    }
    let text = whole_chat();
    let expected = events(Format::Chat, [text.as_bytes()]);
    for text in [text.replace('\n', "\r\n"), text.replace("\n\n", "\nid: 4\n: c\n\n")] {
        assert_eq!(events(Format::Chat, [text.as_bytes()]), expected, "{text}");
    }
}

#[test]
fn what_is_not_of_the_format_is_said_or_passed_over() {
    let text = responses(&[
        json!({"type": "response.new_thing", "delta": [1]}),
        delta("output_text", 0, "a"),
    ]) + "event: response.whatever\ndata: <html>\n\nevent: response.output_text.delta\ndata: {\"delta\":\n\n"
        + &responses(&[done(0, &message_item("a")), completed()]);
    assert_eq!(reply_of(Format::Responses, &text).unwrap().text(), "a");
    let text = "event: response.output_item.done\ndata: {\"item\":\n\n";
    assert_eq!(fault_of(Format::Responses, text).kind, FaultKind::Unreadable);
    assert_eq!(fault_of(Format::Chat, "data: <html>\n\n").kind, FaultKind::Unreadable);
    // Members of wrong types, and answers that were not requested.
    let odd = json!({"choices": [
        {"index": 1, "delta": {"content": "not this"}},
        {"index": 0, "delta": {"content": ["x"], "reasoning": {"a": 1}, "tool_calls": null}, "finish_reason": "stop"},
    ], "usage": {"prompt_tokens": "many"}});
    check(Format::Chat, &chat(&[odd]), &["finished End []"]);
}

#[test]
fn answers_that_are_too_large_end() {
    let limits = Limits { event_bytes: 1 << 20, reply_bytes: 1000, calls: 2 };
    let last = |format, text: &str| {
        let (mut parser, mut out) = (parser(format, limits), Vec::new());
        parser.feed(text.as_bytes(), &mut out);
        parser.finish(&mut out);
        told(&out).pop().unwrap()
    };
    let large = "failed too_large: the answer exceeds the limit of 1000 bytes";
    let many = "failed too_large: the answer exceeds the limit of 2 calls";
    let long = "x".repeat(400);
    for kind in ["output_text", "reasoning_summary_text", "function_call_arguments"] {
        let deltas = [0, 0, 0].map(|index| delta(kind, index, &long));
        assert_eq!(last(Format::Responses, &responses(&deltas)), large, "{kind}");
    }
    assert_eq!(
        last(Format::Responses, &responses(&[done(0, &message_item(&"x".repeat(1001)))])),
        large
    );
    let items: Vec<Value> =
        (0..50).map(|index| added(index, &json!({"type": "message"}))).collect();
    assert_eq!(last(Format::Responses, &responses(&items)), large);
    // Deltas and their item count once.
    let twice = [
        delta("output_text", 0, &"x".repeat(350)),
        delta("output_text", 0, &"x".repeat(350)),
        done(0, &message_item(&"x".repeat(700))),
        completed(),
    ];
    assert!(last(Format::Responses, &responses(&twice)).starts_with("finished"));
    let calls: Vec<Value> =
        (0..3).map(|index| added(index, &call_item(index, "t", "", ""))).collect();
    assert_eq!(last(Format::Responses, &responses(&calls)), many);

    let chunk = |delta: Value| json!({"choices": [{"delta": delta}]});
    for delta in [
        json!({"content": long}),
        json!({"reasoning": long}),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": long}}]}),
    ] {
        assert_eq!(
            last(Format::Chat, &chat(&[chunk(delta.clone()), chunk(delta.clone()), chunk(delta)])),
            large
        );
    }
    let calls: Vec<Value> = (0..3)
        .map(|index| chunk(json!({"tool_calls": [{"index": index, "function": {"name": "t"}}]})))
        .collect();
    assert_eq!(last(Format::Chat, &chat(&calls)), many);
}

fn is_last(event: &ModelEvent) -> bool {
    matches!(event, ModelEvent::Finished(_) | ModelEvent::Failed(_))
}

#[test]
fn a_stream_that_breaks_at_any_byte_ends_once_and_runs_no_call_that_is_not_whole() {
    for (format, text) in [(Format::Responses, whole_responses()), (Format::Chat, whole_chat())] {
        let whole = events(format, [text.as_bytes()]);
        let Some(ModelEvent::Finished(reply)) = whole.last() else { panic!("{whole:?}") };
        for at in 0..text.len() {
            let cut = events(format, [&text.as_bytes()[..at]]);
            assert_eq!(cut.iter().filter(|event| is_last(event)).count(), 1, "{format:?} at {at}");
            assert!(cut.last().is_some_and(is_last), "{format:?} at {at}");
            assert!(whole.starts_with(&cut[..cut.len() - 1]), "{format:?} at {at}");
            match cut.last() {
                Some(ModelEvent::Finished(got)) => {
                    assert_eq!(got.content, reply.content, "at {at}");
                }
                Some(ModelEvent::Failed(fault)) => assert_eq!(fault.kind, FaultKind::Interrupted),
                _ => {}
            }
        }
    }
}

fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn any_pieces_give_the_same_events(cuts in proptest::collection::vec(any::<usize>(), 0..40), is_crlf: bool) {
        for (format, text) in [(Format::Responses, whole_responses()), (Format::Chat, whole_chat())] {
            let text = if is_crlf { text.replace('\n', "\r\n") } else { text };
            let whole = events(format, [text.as_bytes()]);
            prop_assert_eq!(events(format, pieces(text.as_bytes(), &cuts)), whole);
        }
    }

    /// Every stream ends once, and its events can be serialised as JSON.
    #[test]
    fn whatever_comes_there_is_one_end(order in proptest::collection::vec(any::<u16>(), 0..30), noise in "[ -~\n]{0,40}") {
        for (format, text) in [(Format::Responses, whole_responses()), (Format::Chat, whole_chat())] {
            let parts: Vec<&str> = text.split_inclusive("\n\n").collect();
            let picked = order.iter().map(|pick| parts[usize::from(*pick) % parts.len()]);
            let text: String = picked.collect::<String>() + &noise;
            let got = events(format, [text.as_bytes()]);
            prop_assert_eq!(got.iter().filter(|event| is_last(event)).count(), 1);
            prop_assert!(got.last().is_some_and(is_last));
            if let Some(ModelEvent::Finished(reply)) = got.last() {
                let is_object = |block: &Block| match block {
                    Block::ToolCall(call) => call.arguments.is_object() && call.id.is_empty(),
                    Block::Text { .. } | Block::Reasoning { .. } => true,
                };
                prop_assert!(reply.content.iter().all(is_object));
            }
        }
    }
}
