//! Accumulates a stream of Chat Completions by the rules of the official SDKs, and refuses what breaks one of them.

use serde_json::{Map, Value, json};

use crate::sse;

/// What a client has after a stream.
#[derive(Debug)]
pub(crate) struct Accumulated {
    /// The completion, in the shape of an answer without a stream.
    pub(crate) completion: Value,
    /// The error at the end, if the stream failed.
    pub(crate) error: Option<Value>,
}

pub(crate) fn check(stream: &str, wants_usage: bool) -> Accumulated {
    let events = sse::events(stream);
    let mut completion = Map::new();
    let mut message = Map::new();
    let (mut roles, mut finishes, mut error, mut is_done) = (0, 0, None, false);
    let mut finish = Value::Null;
    for (index, (name, data)) in events.iter().enumerate() {
        assert!(!is_done && error.is_none(), "something follows the end: {data}");
        assert_eq!(name, "", "Chat Completions has no event names");
        if data == "[DONE]" {
            is_done = true;
            continue;
        }
        let chunk: Value = serde_json::from_str(data).unwrap();
        if let Some(failed) = chunk.get("error") {
            assert!(failed["message"].is_string());
            error = Some(failed.clone());
            continue;
        }
        assert_eq!(chunk["object"], "chat.completion.chunk");
        for name in ["id", "created", "model"] {
            let known = completion.entry(name).or_insert(chunk[name].clone());
            assert_eq!(*known, chunk[name], "{name} changed");
        }
        assert!(!completion["id"].as_str().unwrap().contains("up"), "an id of the provider");
        let choices = chunk["choices"].as_array().unwrap();
        if let Some(usage) = chunk.get("usage").filter(|usage| !usage.is_null()) {
            assert!(wants_usage, "usage that nobody asked for");
            assert!(choices.is_empty() && finishes == 1, "usage comes after the answer");
            assert_eq!(index, events.len() - 2, "usage comes last");
            completion.insert("usage".into(), usage.clone());
            continue;
        }
        assert_eq!(choices.len(), 1);
        assert_eq!(finishes, 0, "a chunk after the finish reason");
        assert_eq!(choices[0]["index"], 0);
        let delta = choices[0]["delta"].as_object().unwrap();
        roles += usize::from(delta.contains_key("role"));
        assert_eq!(roles, 1, "the first delta alone has the role");
        for (name, value) in delta {
            if name == "tool_calls" {
                add_calls(&mut message, value);
            } else {
                add(message.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        if !choices[0]["finish_reason"].is_null() {
            finishes += 1;
            finish = choices[0]["finish_reason"].clone();
        }
    }
    if error.is_none() {
        assert!(is_done && finishes == 1, "the answer has no end");
    }
    completion.insert("message".into(), message.into());
    completion.insert("finish_reason".into(), finish);
    Accumulated { completion: Value::Object(completion), error }
}

/// The same shape from an answer without a stream.
pub(crate) fn of_whole(body: &str) -> Value {
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["object"], "chat.completion");
    let choice = &body["choices"][0];
    json!({"id": body["id"], "created": body["created"], "model": body["model"], "usage": body["usage"],
        "message": choice["message"], "finish_reason": choice["finish_reason"]})
}

/// Removes what is absent in one form and empty in the other.
pub(crate) fn normalised(mut completion: Value) -> Value {
    let message = completion["message"].as_object_mut().unwrap();
    message.retain(|_, value| !value.is_null() && value != "");
    completion
}

fn add_calls(message: &mut Map<String, Value>, fragments: &Value) {
    let calls = message.entry("tool_calls").or_insert(json!([])).as_array_mut().unwrap();
    for fragment in fragments.as_array().unwrap() {
        let index = usize::try_from(fragment["index"].as_u64().unwrap()).unwrap();
        assert!(index <= calls.len(), "a gap before call {index}");
        let mut fragment = fragment.clone();
        fragment.as_object_mut().unwrap().remove("index");
        if index == calls.len() {
            assert!(fragment["id"].as_str().is_some_and(|id| !id.is_empty()));
            assert_eq!(fragment["type"], "function");
            assert!(fragment["function"]["name"].is_string());
            let is_new = calls.iter().all(|call| call["id"] != fragment["id"]);
            assert!(is_new, "two calls with one id");
            calls.push(fragment);
        } else {
            assert!(fragment.get("id").is_none() && fragment["function"].get("name").is_none());
            add(&mut calls[index], &fragment);
        }
    }
}

fn add(whole: &mut Value, delta: &Value) {
    match (whole, delta) {
        (_, Value::Null) => {}
        (Value::String(whole), Value::String(delta)) => whole.push_str(delta),
        (Value::Object(whole), Value::Object(delta)) => {
            for (name, value) in delta {
                add(whole.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(whole), Value::Array(delta)) => {
            for entry in delta {
                let index = usize::try_from(entry["index"].as_u64().unwrap()).unwrap();
                assert_eq!(index, whole.len(), "entries of a list come one after the other");
                whole.push(entry.clone());
            }
        }
        (whole, delta) => *whole = delta.clone(),
    }
}
