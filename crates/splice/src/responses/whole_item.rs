//! The events of an item that arrived in one piece.

use serde_json::{Value, json};

use crate::raw_json::{Raw, RawObject, raw, to_raw};

/// The events that announce a complete item, with its content as deltas, and end it. Their output index is left to the caller.
pub(super) fn events(item: &Raw) -> Vec<RawObject> {
    let whole = RawObject::read(item.get()).unwrap_or_default();
    let kind: String = whole.parsed("type").unwrap_or_default();
    let mut begun = whole.clone();
    if begun.get("status").is_some() {
        begun.set("status", to_raw(&"in_progress"));
    }
    let mut between = Vec::new();
    match &*kind {
        "message" => {
            begun.set("content", raw("[]".to_owned()));
            let parts: Vec<Value> = whole.parsed("content").unwrap_or_default();
            for (index, part) in parts.iter().enumerate() {
                between.extend(of_part(index, part));
            }
        }
        "function_call" => {
            begun.set("arguments", to_raw(&""));
            let name: Value = whole.parsed("name").unwrap_or_default();
            let arguments: Value = whole.parsed("arguments").unwrap_or_default();
            between = vec![
                json!({"type": "response.function_call_arguments.delta", "delta": arguments}),
                json!({"type": "response.function_call_arguments.done", "name": name, "arguments": arguments}),
            ];
        }
        _ => {}
    }
    let around = |kind: &str, item: Raw| {
        let mut event = RawObject::default();
        event.set("type", to_raw(&kind));
        event.set("item", item);
        event
    };
    let between = between.iter().map(|event| {
        let mut event = RawObject::read(&event.to_string()).unwrap_or_default();
        event.set("item_id", to_raw(&whole.parsed::<Value>("id")));
        event
    });
    std::iter::once(around("response.output_item.added", begun.to_raw()))
        .chain(between)
        .chain([around("response.output_item.done", item.clone())])
        .collect()
}

/// The events of a part of a message.
fn of_part(index: usize, part: &Value) -> [Value; 4] {
    let (member, name) = match part.get("refusal") {
        Some(_) => ("refusal", "refusal"),
        None => ("text", "output_text"),
    };
    let said = part.get(member).cloned().unwrap_or_else(|| "".into());
    let mut empty = part.clone();
    if let Some(members) = empty.as_object_mut() {
        members.insert(member.to_owned(), "".into());
    }
    let event = |kind: &str| json!({"type": format!("response.{kind}"), "content_index": index});
    let mut events = [
        event("content_part.added"),
        event(&format!("{name}.delta")),
        event(&format!("{name}.done")),
        event("content_part.done"),
    ];
    let [added, delta, done, ended] = &mut events;
    added["part"] = empty;
    delta["delta"] = said.clone();
    done[member] = said;
    if member == "text" {
        delta["logprobs"] = json!([]);
        done["logprobs"] = json!([]);
    }
    ended["part"] = part.clone();
    events
}
