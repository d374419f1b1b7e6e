//! Encodes a response as chunks of Chat Completions, with the quirks of imperfect servers.

use serde_json::{Value, json};

use super::heard::EventReceiver;
use super::state::Ids;
use super::step::{Part, Quirk, Step, Stop, Usage, pieces, sent_arguments};
use super::stream::Event;

const CREATED: u64 = 1_790_000_000;

pub(crate) fn events(step: &Step, heard: &EventReceiver, ids: &Ids) -> Vec<Event> {
    let id = ids.next("chatcmpl");
    let chunk = |choices: Value, usage: Option<Value>| {
        let mut chunk = json!({
            "id": id, "object": "chat.completion.chunk", "created": CREATED, "model": heard.model,
            "choices": choices,
        });
        if heard.includes_usage {
            chunk["usage"] = json!(usage);
        }
        Event::data(&chunk)
    };
    let delta = |delta: Value, finish: Value| {
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": finish}]), None)
    };
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}), Value::Null)];
    let mut index = 0;
    for (place, part) in step.parts.iter().enumerate() {
        match part {
            Part::Thinking(text) => events.extend(
                pieces(text)
                    .into_iter()
                    .map(|piece| delta(json!({"reasoning_content": piece}), Value::Null)),
            ),
            Part::Redacted => {}
            Part::Text(text) => events.extend(
                pieces(text).into_iter().map(|piece| delta(json!({"content": piece}), Value::Null)),
            ),
            Part::Repeat { count, text } => {
                events.push(delta(json!({"content": text}), Value::Null).times(*count));
            }
            Part::Call { name, arguments, id } => {
                let id = id.clone().unwrap_or_else(|| ids.next("call"));
                let sent = sent_arguments(arguments, step.is_cut(place));
                let fragments = fragments(step, index, &id, name, &sent);
                events.extend(
                    fragments
                        .into_iter()
                        .map(|call| delta(json!({"tool_calls": [call]}), Value::Null)),
                );
                index += 1;
            }
        }
    }
    if let Some(error) = &step.error_event {
        let error = json!({"message": error.message, "type": error.kind, "param": null, "code": error.kind});
        events.push(Event::data(&json!({"error": error})));
    } else if step.ends() {
        events.push(delta(json!({}), json!(finish_of(step))));
        if heard.includes_usage
            && let Some(usage) = step.counted()
        {
            events.push(chunk(json!([]), Some(usage_of(usage))));
        }
        events.push(Event { name: None, data: "[DONE]".to_owned(), count: 1 });
    }
    events
}

/// The fragments of one streamed call.
fn fragments(step: &Step, index: usize, id: &str, name: &str, arguments: &str) -> Vec<Value> {
    let mut first = json!({"function": {"name": name, "arguments": ""}});
    if !step.has(Quirk::NoType) {
        first["type"] = json!("function");
    }
    if step.has(Quirk::NullId) {
        first["id"] = Value::Null;
    } else if !step.has(Quirk::NoId) {
        first["id"] = json!(id);
    }
    let mut fragments = vec![first];
    if step.has(Quirk::WholeArguments) {
        fragments[0]["function"]["arguments"] = json!(arguments);
    } else {
        let rest = pieces(arguments).into_iter().map(|piece| {
            let mut fragment = json!({"function": {"arguments": piece}});
            if step.has(Quirk::RepeatedName) {
                fragment["function"]["name"] = json!(name);
            }
            fragment
        });
        fragments.extend(rest);
    }
    // Without `index` fragments could not be told apart, so every call is sent whole.
    if step.has(Quirk::NoIndex) {
        fragments.truncate(1);
        fragments[0]["function"]["arguments"] = json!(arguments);
    } else {
        for fragment in &mut fragments {
            fragment["index"] = json!(index);
        }
    }
    fragments
}

pub(crate) fn document(step: &Step, heard: &EventReceiver, ids: &Ids) -> Value {
    let mut message = json!({"role": "assistant", "content": null});
    let mut calls = Vec::new();
    let mut said = String::new();
    for (place, part) in step.parts.iter().enumerate() {
        match part {
            Part::Thinking(text) => message["reasoning_content"] = json!(text),
            Part::Redacted => {}
            Part::Text(text) => said.push_str(text),
            Part::Repeat { count, text } => said.push_str(&text.repeat(*count)),
            Part::Call { name, arguments, id } => {
                let id = id.clone().unwrap_or_else(|| ids.next("call"));
                let arguments = sent_arguments(arguments, step.is_cut(place));
                let function = json!({"name": name, "arguments": arguments});
                calls.push(json!({"id": id, "type": "function", "function": function}));
            }
        }
    }
    if !said.is_empty() {
        message["content"] = json!(said);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let choice =
        json!({"index": 0, "message": message, "finish_reason": finish_of(step), "logprobs": null});
    json!({
        "id": ids.next("chatcmpl"), "object": "chat.completion", "created": CREATED,
        "model": heard.model, "choices": [choice], "usage": step.counted().map(usage_of),
    })
}

fn finish_of(step: &Step) -> &'static str {
    let has_calls = step.calls().next().is_some() && !step.has(Quirk::StopWithCalls);
    match step.stop {
        Stop::Natural if has_calls => "tool_calls",
        Stop::Natural => "stop",
        Stop::Length => "length",
        Stop::Refusal => "content_filter",
    }
}

fn usage_of(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input, "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}
