//! A provider that answers with a script, streamed or whole.

use serde_json::{Value, json};

use crate::scripted::Attempt;

/// One answer of the model.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) blocks: Vec<Value>,
    pub(crate) stop_reason: &'static str,
    pub(crate) usage: (u64, u64),
}

pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(crate) fn thinking(text: &str) -> Value {
    json!({"type": "thinking", "thinking": text, "signature": format!("sig-{text}")})
}

pub(crate) fn tool_use(id: &str, name: &str, input: &Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

/// A search by the provider itself.
pub(crate) fn search(id: &str) -> [Value; 2] {
    [
        json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "x"}}),
        json!({"type": "web_search_tool_result", "tool_use_id": id, "content": [
            {"type": "web_search_result", "title": "t", "url": "https://a", "encrypted_content": "e"},
        ]}),
    ]
}

pub(crate) fn answer(blocks: impl IntoIterator<Item = Value>, stop_reason: &'static str) -> Answer {
    Answer { blocks: blocks.into_iter().collect(), stop_reason, usage: (10, 5) }
}

impl Answer {
    pub(crate) fn message(&self) -> Value {
        json!({
            "id": "msg_upstream",
            "type": "message",
            "role": "assistant",
            "model": "claude-test",
            "content": self.blocks,
            "stop_reason": self.stop_reason,
            "stop_sequence": null,
            "usage": {"input_tokens": self.usage.0, "cache_read_input_tokens": 2, "output_tokens": self.usage.1},
        })
    }

    pub(crate) fn whole(&self) -> Attempt {
        Attempt::Whole(self.message().to_string())
    }

    pub(crate) fn streamed(&self) -> Attempt {
        Attempt::Events(self.events())
    }

    pub(crate) fn events(&self) -> Vec<(String, String)> {
        let mut message = self.message();
        message["content"] = json!([]);
        message["stop_reason"] = Value::Null;
        message["usage"]["output_tokens"] = 1.into();
        let mut events = vec![json!({"type": "message_start", "message": message})];
        for (index, block) in self.blocks.iter().enumerate() {
            let (start, deltas) = taken_apart(block);
            events.push(
                json!({"type": "content_block_start", "index": index, "content_block": start}),
            );
            if index == 0 {
                events.push(json!({"type": "ping"}));
            }
            let deltas = deltas.into_iter();
            events.extend(deltas.map(
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ));
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        events.push(json!({
            "type": "message_delta",
            "delta": {"stop_reason": self.stop_reason, "stop_sequence": null},
            "usage": {"output_tokens": self.usage.1},
        }));
        events.push(json!({"type": "message_stop"}));
        let events = events.into_iter();
        events
            .map(|event| (event["type"].as_str().unwrap().to_owned(), event.to_string()))
            .collect()
    }
}

/// The start of a block and its deltas.
fn taken_apart(block: &Value) -> (Value, Vec<Value>) {
    let mut start = block.clone();
    let mut deltas = Vec::new();
    let halves = |text: &str| {
        let middle = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
        let (first, rest) = text.split_at(middle);
        [first.to_owned(), rest.to_owned()]
    };
    match block["type"].as_str().unwrap() {
        "text" => {
            start["text"] = "".into();
            let halves = halves(block["text"].as_str().unwrap());
            deltas.extend(halves.map(|half| json!({"type": "text_delta", "text": half})));
        }
        "thinking" => {
            (start["thinking"], start["signature"]) = ("".into(), "".into());
            let halves = halves(block["thinking"].as_str().unwrap());
            deltas.extend(halves.map(|half| json!({"type": "thinking_delta", "thinking": half})));
            deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
        }
        "tool_use" | "server_tool_use" => {
            start["input"] = json!({});
            let halves = halves(&block["input"].to_string());
            deltas.extend(
                halves.map(|half| json!({"type": "input_json_delta", "partial_json": half})),
            );
        }
        _ => {}
    }
    (start, deltas)
}
