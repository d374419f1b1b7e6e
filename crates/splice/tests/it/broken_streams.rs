//! The checkers are checked: a good stream that is broken in one place is refused, for each rule of each API.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};
use switchboard_splice::Api;

use crate::play::Stage;
use crate::said::{call, chat, responses, said, text};
use crate::sse::{self, Event};
use crate::{chat_checker, gemini, messages, responses_checker};

/// A way to break a stream.
type Break = fn(&mut Vec<Event>);

/// Whether a checker refuses a stream: some return an error, others panic.
fn is_refused(check: impl FnOnce() -> bool) -> bool {
    catch_unwind(AssertUnwindSafe(check)).unwrap_or(true)
}

fn written(events: &[Event]) -> String {
    let frame = |(name, data): &Event| {
        if name.is_empty() {
            format!("data: {data}\n\n")
        } else {
            format!("event: {name}\ndata: {data}\n\n")
        }
    };
    events.iter().map(frame).collect()
}

/// Fails if the good stream is refused, or a broken one is not.
fn check(api: &str, good: &str, breaks: &[(&str, Break)], refuses: impl Fn(&str) -> bool) {
    assert!(!is_refused(|| refuses(good)), "{api}: the good stream is refused: {good}");
    for (rule, break_it) in breaks {
        let mut events = sse::events(good);
        break_it(&mut events);
        let broken = written(&events);
        assert_ne!(broken, good, "{api}: nothing is broken: {rule}");
        assert!(is_refused(|| refuses(&broken)), "{api}: not refused: {rule}\n{broken}");
    }
}

fn place(events: &[Event], word: &str) -> usize {
    let found = events.iter().position(|(name, data)| name == word || data.contains(word));
    found.unwrap_or_else(|| panic!("no event with {word}: {events:#?}"))
}

/// Changes the data of the first event with a word.
fn change(events: &mut [Event], word: &str, edit: impl FnOnce(&mut Value)) {
    let at = place(events, word);
    let mut data = serde_json::from_str(&events[at].1).unwrap();
    edit(&mut data);
    events[at].1 = data.to_string();
}

fn repeat(events: &mut Vec<Event>, word: &str) {
    let at = place(events, word);
    events.insert(at, events[at].clone());
}

fn remove(events: &mut Vec<Event>, word: &str) {
    let at = place(events, word);
    events.remove(at);
}

/// Numbers the events again, so that only the rule in question is broken.
fn numbered(events: &mut [Event]) {
    for (number, (_, data)) in events.iter_mut().enumerate() {
        let mut event: Value = serde_json::from_str(data).unwrap();
        event["sequence_number"] = number.into();
        *data = event.to_string();
    }
}

#[test]
fn broken_streams_of_chat_completions_are_refused() {
    let stage = Stage::new(Api::Chat);
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
    let request = json!({
        "model": "m", "messages": [{"role": "user", "content": "go"}], "stream": true,
        "stream_options": {"include_usage": true}, "tools": [tool("app_one"), tool("app_two")],
    });
    let rounds = [
        said(0, &[text("Wait."), call("find", "{}")]),
        said(1, &[call("app_one", "{}"), call("find", "{}"), call("app_two", "{}")]),
    ];
    let rounds: Vec<_> = rounds.iter().map(|round| chat::stream(round, 3)).collect();
    let good = stage.stream(stage.request(&request).unwrap(), &rounds).out;
    let breaks: [(&str, Break); 9] = [
        ("one id", |events| change(events, "Wai", |chunk| chunk["id"] = json!("other"))),
        ("one model", |events| change(events, "Wai", |chunk| chunk["model"] = json!("other"))),
        ("the role once", |events| repeat(events, "\"role\"")),
        ("one finish reason", |events| repeat(events, "\"finish_reason\":\"tool_calls\"")),
        ("calls are numbered without a gap", |events| {
            change(events, "app_two", |chunk| {
                chunk["choices"][0]["delta"]["tool_calls"][0]["index"] = json!(2);
            });
        }),
        ("usage in the last chunk only", |events| {
            let at = place(events, "\"prompt_tokens\"");
            let usage = events.remove(at);
            events.insert(1, usage);
        }),
        ("nothing after the end", |events| repeat(events, "[DONE]")),
        ("an end", |events| remove(events, "[DONE]")),
        ("a finish reason", |events| remove(events, "\"finish_reason\":\"tool_calls\"")),
    ];
    check("chat", &good, &breaks, |stream| {
        chat_checker::check(stream, true);
        false
    });
}

#[test]
fn broken_streams_of_responses_are_refused() {
    let stage = Stage::new(Api::Responses);
    let request = json!({"model": "m", "input": "go", "stream": true});
    let rounds =
        [said(0, &[text("Wait."), call("find", r#"{"q":"x"}"#)]), said(1, &[text("Done.")])];
    let rounds: Vec<_> = rounds.iter().map(|round| responses::stream(round, 3)).collect();
    let good = stage.stream(stage.request(&request).unwrap(), &rounds).out;
    let breaks: [(&str, Break); 12] = [
        ("created once", |events| {
            repeat(events, "response.created");
            numbered(events);
        }),
        ("one id in all events of the response", |events| {
            change(events, "response.in_progress", |event| event["response"]["id"] = json!("resp"));
        }),
        ("numbers that count on", |events| {
            change(events, "response.output_item.added", |event| {
                event["sequence_number"] = json!(0);
            });
        }),
        ("each index is announced once", |events| {
            repeat(events, "response.output_item.added");
            numbered(events);
        }),
        ("an item is announced before its events", |events| {
            remove(events, "response.output_item.added");
            numbered(events);
        }),
        ("the end of an item is that of what was announced", |events| {
            change(events, "response.output_item.done", |event| event["item"]["id"] = json!("msg"));
        }),
        ("each item ends", |events| {
            remove(events, "response.output_item.done");
            numbered(events);
        }),
        ("the text is what the deltas add up to", |events| {
            remove(events, "response.output_text.delta");
            numbered(events);
        }),
        ("a call that ran tells its progress", |events| {
            remove(events, "response.mcp_call.completed");
            numbered(events);
        }),
        ("the output has all items", |events| {
            change(events, "response.completed", |event| {
                event["response"]["output"].as_array_mut().unwrap().pop();
            });
        }),
        ("one end", |events| {
            repeat(events, "response.completed");
            numbered(events);
        }),
        ("an end", |events| remove(events, "response.completed")),
    ];
    check("responses", &good, &breaks, |stream| {
        responses_checker::check(stream);
        false
    });
}

#[test]
fn broken_streams_of_messages_are_refused() {
    let good = messages::golden::shown_stream();
    let breaks: [(&str, Break); 11] = [
        ("one start", |events| repeat(events, "message_start")),
        ("indexes without a gap", |events| {
            change(events, "content_block_start", |event| event["index"] = json!(7));
        }),
        ("no index twice", |events| {
            let at = place(events, "mcp_tool_use");
            change(&mut events[at..], "content_block_start", |event| event["index"] = json!(0));
        }),
        ("events belong to the open block", |events| {
            change(events, "content_block_delta", |event| event["index"] = json!(5));
        }),
        ("a block ends before the next one", |events| remove(events, "content_block_stop")),
        ("only blocks that clients know", |events| {
            change(events, "mcp_tool_use", |event| event["content_block"]["type"] = json!("new"));
        }),
        ("the input of a call that ran comes at once", |events| {
            let at = place(events, "mcp_tool_use");
            let index = serde_json::from_str::<Value>(&events[at].1).unwrap()["index"].clone();
            let delta = json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": "{}"}});
            events.insert(at + 1, ("content_block_delta".into(), delta.to_string()));
        }),
        ("each call that ran has a result", |events| {
            change(events, "mcp_tool_result", |event| {
                event["content_block"]["tool_use_id"] = json!("another");
            });
        }),
        ("the name of an event is its type", |events| events[1].0 = "other".into()),
        ("a stop reason", |events| remove(events, "message_delta")),
        ("an end", |events| remove(events, "message_stop")),
    ];
    check("messages", &good, &breaks, |stream| messages::checker::accumulate(stream).is_err());
}

#[test]
fn broken_streams_of_gemini_are_refused() {
    let good = gemini::golden::shown_stream();
    let breaks: [(&str, Break); 6] = [
        ("one id", |events| {
            let last = events.last_mut().unwrap();
            let mut chunk: Value = serde_json::from_str(&last.1).unwrap();
            chunk["responseId"] = json!("another");
            last.1 = chunk.to_string();
        }),
        ("one finish reason, at the end", |events| {
            let last = events.last().unwrap().clone();
            events.insert(0, last);
        }),
        ("each chunk has a part", |events| {
            change(events, "\"parts\"", |chunk| {
                chunk["candidates"][0]["content"]["parts"] = json!([]);
            });
        }),
        ("usage at the end only", |events| {
            change(events, "\"parts\"", |chunk| {
                chunk["usageMetadata"] = json!({"promptTokenCount": 1});
            });
        }),
        ("the usage adds up", |events| {
            change(events, "\"finishReason\"", |chunk| {
                chunk["usageMetadata"]["totalTokenCount"] = json!(1);
            });
        }),
        ("an end", |events| drop(events.pop())),
    ];
    check("gemini", &good, &breaks, |stream| gemini::checker::accumulate(stream).is_err());
}
