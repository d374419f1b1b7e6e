//! Accumulates a stream of Responses by the rules of the official SDKs, and refuses what breaks one of them.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use crate::sse;

/// An item that was announced.
#[derive(Debug)]
struct Seen {
    added: Value,
    text: String,
    parts: usize,
    arguments: String,
    progress: Vec<String>,
    done: Option<Value>,
}

/// Returns the response object of the last event.
pub(crate) fn check(stream: &str) -> Value {
    let events = sse::events(stream);
    let mut items: BTreeMap<u64, Seen> = BTreeMap::new();
    let mut identities = HashSet::new();
    let mut id = Value::Null;
    for (number, (name, data)) in events.iter().enumerate() {
        let event: Value = serde_json::from_str(data).unwrap();
        assert_eq!(event["type"], **name, "the name and the type differ");
        assert_eq!(event["sequence_number"], number, "sequence numbers count from 0");
        match (number, &**name) {
            (0, name) => assert_eq!(name, "response.created"),
            (1, name) => assert_eq!(name, "response.in_progress"),
            (_, name) => {
                assert!(
                    !matches!(name, "response.created" | "response.in_progress"),
                    "{name} again"
                );
            }
        }
        if let Some(response) = event.get("response") {
            if id.is_null() {
                id = response["id"].clone();
            }
            assert!(!id.as_str().unwrap().contains("up"), "an id of the provider");
            assert_eq!(response["id"], id, "the id of the response changed");
            let is_last =
                matches!(&**name, "response.completed" | "response.incomplete" | "response.failed");
            assert_eq!(is_last, number + 1 == events.len(), "{name} in the middle");
            if is_last {
                check_end(name, response, &items);
                return response.clone();
            }
            assert_eq!(response["status"], "in_progress");
            continue;
        }
        let Some(index) = event.get("output_index") else { continue };
        let index = index.as_u64().unwrap();
        if &**name == "response.output_item.added" {
            let added = event["item"].clone();
            assert_eq!(index, items.len() as u64, "indexes count from 0");
            let identity = (added["type"].to_string(), added["id"].to_string());
            assert!(identities.insert(identity), "two items with one id");
            let seen = Seen {
                added,
                text: String::new(),
                parts: 0,
                arguments: String::new(),
                progress: Vec::new(),
                done: None,
            };
            items.insert(index, seen);
            continue;
        }
        let seen = items.get_mut(&index).expect("an event of an item that was not announced");
        seen.take(name, &event);
    }
    panic!("the answer has no end");
}

impl Seen {
    fn take(&mut self, name: &str, event: &Value) {
        assert!(self.done.is_none(), "{name} after the end of the item");
        let delta = || event["delta"].as_str().unwrap();
        if name != "response.output_item.done" {
            assert_eq!(event["item_id"], self.added["id"]);
        }
        match name {
            "response.content_part.added" => {
                assert_eq!(event["content_index"], self.parts);
                self.parts += 1;
            }
            "response.output_text.delta" => {
                assert!(
                    event["content_index"].as_u64().unwrap() < self.parts as u64,
                    "a delta without its part"
                );
                self.text.push_str(delta());
            }
            "response.output_text.done" => assert_eq!(event["text"], *self.text),
            "response.function_call_arguments.delta" | "response.mcp_call_arguments.delta" => {
                self.arguments.push_str(delta());
            }
            "response.function_call_arguments.done" | "response.mcp_call_arguments.done" => {
                assert_eq!(event["arguments"], *self.arguments);
            }
            "response.output_item.done" => self.end(&event["item"]),
            name if name.starts_with("response.mcp_call.") => self.progress.push(name.to_owned()),
            _ => {}
        }
    }

    fn end(&mut self, item: &Value) {
        for name in ["type", "id", "call_id"] {
            assert_eq!(item[name], self.added[name], "{name} of an item changed");
        }
        match item["type"].as_str().unwrap() {
            "message" if self.parts > 0 => assert_eq!(item["content"][0]["text"], *self.text),
            "function_call" => assert_eq!(item["arguments"], *self.arguments),
            "mcp_call" => {
                let status = item["status"].as_str().unwrap();
                let progress = [
                    "response.mcp_call.in_progress".to_owned(),
                    format!("response.mcp_call.{status}"),
                ];
                assert_eq!(self.progress, progress);
                assert_eq!(item["error"].is_null(), status == "completed");
                assert_eq!(item["output"].is_null(), status == "failed");
            }
            _ => {}
        }
        self.done = Some(item.clone());
    }
}

fn check_end(name: &str, response: &Value, items: &BTreeMap<u64, Seen>) {
    assert_eq!(format!("response.{}", response["status"].as_str().unwrap()), name);
    let output = response["output"].as_array().unwrap();
    assert_eq!(output.len(), items.len(), "the output differs from the items");
    for (item, seen) in output.iter().zip(items.values()) {
        assert_eq!(item["id"], seen.added["id"]);
        if name == "response.failed" {
            continue;
        }
        assert_eq!(Some(item), seen.done.as_ref(), "an item has no end");
    }
}
