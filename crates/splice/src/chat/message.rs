//! A message of the model, put together from deltas.

use serde_json::{Map, Value};

/// Members of a message that the provider does not take back.
const NOT_SENT_BACK: [&str; 3] = ["annotations", "function_call", "switchboard"];

/// What a message has beside its calls.
#[derive(Debug, Default)]
pub(super) struct MessageSoFar {
    pub(super) text: String,
    has_text: bool,
    /// `refusal`, `reasoning_content` and members that are unknown here.
    more: Map<String, Value>,
}

impl MessageSoFar {
    /// Adds the members of a delta, without its role and its calls.
    pub(super) fn add(&mut self, delta: Map<String, Value>) {
        for (name, value) in delta {
            match (&*name, value) {
                ("content", Value::String(text)) => {
                    self.has_text = true;
                    self.text.push_str(&text);
                }
                ("role" | "tool_calls" | "content", _) => {}
                (_, value) => merge(self.more.entry(name).or_insert(Value::Null), value),
            }
        }
    }

    /// The message with its calls, as the app gets it.
    pub(super) fn to_json(&self, calls: Vec<Value>) -> Map<String, Value> {
        let mut message = Map::new();
        message.insert("role".to_owned(), "assistant".into());
        let is_empty = self.text.is_empty() && (!self.has_text || !calls.is_empty());
        let text = if is_empty { Value::Null } else { self.text.clone().into() };
        message.insert("content".to_owned(), text);
        message.insert("refusal".to_owned(), Value::Null);
        for (name, value) in &self.more {
            message.insert(name.clone(), value.clone());
        }
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), calls.into());
        }
        message
    }

    /// The message with its calls, as the provider takes it back.
    pub(super) fn to_replay(&self, calls: Vec<Value>) -> Map<String, Value> {
        let mut message = self.to_json(calls);
        message.retain(|name, value| {
            let is_content = name == "content";
            is_content || !value.is_null() && !NOT_SENT_BACK.contains(&&**name)
        });
        // Audio is named by its id.
        if let Some(Value::Object(audio)) = message.get_mut("audio") {
            audio.retain(|name, _| name == "id");
        }
        message
    }
}

/// Adds a delta as the SDKs do: texts are joined, lists with indexes are merged, other lists are appended, and of other
/// values the last one counts.
pub(super) fn merge(whole: &mut Value, delta: Value) {
    match (whole, delta) {
        (_, Value::Null) => {}
        (Value::String(whole), Value::String(delta)) => whole.push_str(&delta),
        (Value::Object(whole), Value::Object(delta)) => {
            for (name, value) in delta {
                match whole.get_mut(&name) {
                    // These name an entry and are not parts of a text.
                    Some(known) if matches!(&*name, "index" | "type" | "id" | "format") => {
                        *known = value;
                    }
                    Some(known) => merge(known, value),
                    None => {
                        whole.insert(name, value);
                    }
                }
            }
        }
        (Value::Array(whole), Value::Array(delta)) => {
            for entry in delta {
                let index = entry.get("index").and_then(Value::as_u64);
                let known = index.and_then(|index| {
                    whole
                        .iter_mut()
                        .find(|known| known.get("index").and_then(Value::as_u64) == Some(index))
                });
                match known {
                    Some(known) => merge(known, entry),
                    None => whole.push(entry),
                }
            }
        }
        (whole, delta) => *whole = delta,
    }
}
