//! Every imported conversation is valid, and requests to all providers can be built from it.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use switchboard_chat::{History, check};

use crate::conversations::{any_json, messages};
use crate::mutation::Mutation;
use crate::{asking, config};

/// Imports a conversation; if that succeeds, it is valid, and exporting and importing it again changes nothing.
#[track_caller]
fn read(text: &[u8]) -> Option<History> {
    let history = History::read(text).ok()?;
    assert_eq!(check(&history.messages), Ok(()));
    let written = serde_json::to_vec(&history).unwrap();
    assert_eq!(History::read(&written).as_ref(), Ok(&history));
    Some(history)
}

/// The same message in the older format, `"version": "v1"`.
fn as_v1(message: &Value) -> Value {
    let content = message["content"].as_array().cloned().unwrap_or_default();
    let (calls, content): (Vec<_>, Vec<_>) =
        content.into_iter().partition(|part| part["type"] == "tool_call");
    json!({
        "role": message["role"], "content": content, "tool_calls": calls,
        "tool_call_id": message.get("call"), "_meta": {"function_name": message["name"]},
    })
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn any_json_is_a_history_or_is_not(version in any_json(), messages in any_json(), whole in any_json()) {
        read(whole.to_string().as_bytes());
        read(json!({"version": 1, "messages": messages}).to_string().as_bytes());
        read(json!({"version": version, "messages": []}).to_string().as_bytes());
    }

    #[test]
    fn a_history_is_taken_by_every_provider(messages in messages()) {
        if let Some(history) = read(json!({"version": 1, "messages": messages}).to_string().as_bytes()) {
            asking::check(&history.messages);
        }
    }

    #[test]
    fn a_v1_history_is_accepted_by_every_provider(messages in messages()) {
        let messages: Vec<_> = messages.iter().map(as_v1).collect();
        if let Some(history) = read(json!({"version": "v1", "messages": messages}).to_string().as_bytes()) {
            asking::check(&history.messages);
        }
    }

    #[test]
    fn a_history_that_is_damaged_is_refused_or_valid(
        messages in messages(),
        mutations in proptest::collection::vec(Mutation::any(), 1..4),
        replaced in any::<Index>(),
        by in any_json(),
    ) {
        let mut text = json!({"version": 1, "messages": messages}).to_string().into_bytes();
        for mutation in &mutations {
            mutation.apply(&mut text);
        }
        read(&text);
        let mut messages = messages;
        let message = messages.len().checked_sub(1).map(|last| replaced.index(last + 1));
        if let Some(Value::Object(members)) = message.and_then(|at| messages.get_mut(at)) {
            let member = replaced.index(members.len());
            if let Some((_, value)) = members.iter_mut().nth(member) {
                *value = by;
            }
        }
        if let Some(history) = read(json!({"version": 1, "messages": messages}).to_string().as_bytes()) {
            asking::check(&history.messages);
        }
    }
}
