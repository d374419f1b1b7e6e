//! What a model says in one round, in the formats of the providers.

use serde_json::{Value, json};

use crate::sse::Event;

/// One round of a scripted model.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    pub(crate) parts: Vec<Part>,
    pub(crate) end: End,
    /// The number of the round, which makes its ids unique.
    pub(crate) number: usize,
}

#[derive(Debug, Clone)]
pub(crate) enum Part {
    Thought(String),
    Text(String),
    Call { name: String, arguments: String },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum End {
    #[default]
    Whole,
    /// The model's own limit of tokens.
    Length,
    /// The stream ends without its end.
    Cut,
    /// An error inside the stream.
    Error,
}

pub(crate) fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

pub(crate) fn call(name: &str, arguments: &str) -> Part {
    Part::Call { name: name.to_owned(), arguments: arguments.to_owned() }
}

pub(crate) fn said(number: usize, parts: &[Part]) -> Said {
    Said { parts: parts.to_vec(), end: End::Whole, number }
}

impl Said {
    pub(crate) fn ends(self, end: End) -> Self {
        Self { end, ..self }
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call { name, arguments } => Some((name.as_str(), arguments.as_str())),
            Part::Text(_) | Part::Thought(_) => None,
        })
    }

    /// The texts of one kind, joined.
    fn joined(&self, of: fn(&Part) -> Option<&str>) -> Option<String> {
        let texts: Vec<_> = self.parts.iter().filter_map(of).collect();
        (!texts.is_empty()).then(|| texts.concat())
    }

    pub(crate) fn text(&self) -> Option<String> {
        self.joined(|part| match part {
            Part::Text(text) => Some(text),
            Part::Thought(_) | Part::Call { .. } => None,
        })
    }

    pub(crate) fn thought(&self) -> Option<String> {
        self.joined(|part| match part {
            Part::Thought(text) => Some(text),
            Part::Text(_) | Part::Call { .. } => None,
        })
    }

    pub(crate) fn tokens(&self) -> (u64, u64) {
        let number = u64::try_from(self.number).unwrap();
        (10 + number, 5 + u64::try_from(self.parts.len()).unwrap())
    }
}

/// Pieces of a text of at most `size` characters; one empty piece for an empty text.
pub(crate) fn pieces(text: &str, size: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    if letters.is_empty() {
        return vec![String::new()];
    }
    letters.chunks(size.max(1)).map(|piece| piece.iter().collect()).collect()
}

/// A round in the format of Chat Completions.
pub(crate) mod chat {
    use super::{End, Event, Part, Said, Value, json, pieces};

    fn finish(said: &Said) -> &'static str {
        match said.end {
            End::Length => "length",
            _ if said.calls().next().is_some() => "tool_calls",
            _ => "stop",
        }
    }

    fn usage(said: &Said) -> Value {
        let (input, output) = said.tokens();
        json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
            "prompt_tokens_details": {"cached_tokens": 3}, "completion_tokens_details": {"reasoning_tokens": 1}})
    }

    /// The stream of a round, in pieces of at most `size` characters.
    pub(crate) fn stream(said: &Said, size: usize) -> Vec<Event> {
        let number = said.number;
        let mut events = Vec::new();
        let mut push = |choices: Value, usage: Value| {
            let chunk = json!({"id": format!("chatcmpl-up{number}"), "object": "chat.completion.chunk",
                "created": 1000 + number, "model": "m-1", "system_fingerprint": "fp", "choices": choices, "usage": usage});
            events.push((String::new(), chunk.to_string()));
        };
        let choice = |delta: Value, finish: Option<&str>| json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
        push(
            choice(json!({"role": "assistant", "content": "", "refusal": null}), None),
            Value::Null,
        );
        let mut calls = 0;
        for part in &said.parts {
            match part {
                Part::Thought(text) => {
                    for piece in pieces(text, size) {
                        push(choice(json!({"reasoning_content": piece}), None), Value::Null);
                    }
                }
                Part::Text(text) => {
                    for piece in pieces(text, size) {
                        push(choice(json!({"content": piece}), None), Value::Null);
                    }
                }
                Part::Call { name, arguments } => {
                    let first = json!({"index": calls, "id": format!("call_up{number}_{calls}"), "type": "function",
                        "function": {"name": name, "arguments": ""}});
                    push(choice(json!({"tool_calls": [first]}), None), Value::Null);
                    for piece in pieces(arguments, size) {
                        let more = json!({"index": calls, "function": {"arguments": piece}});
                        push(choice(json!({"tool_calls": [more]}), None), Value::Null);
                    }
                    calls += 1;
                }
            }
        }
        match said.end {
            End::Cut => {}
            End::Error => events.push((
                String::new(),
                json!({"error": {"message": "it broke", "type": "server_error", "param": null, "code": null}}).to_string(),
            )),
            End::Whole | End::Length => {
                push(choice(json!({}), Some(finish(said))), Value::Null);
                push(json!([]), usage(said));
                events.push((String::new(), "[DONE]".to_owned()));
            }
        }
        events
    }

    /// The round as one body.
    pub(crate) fn whole(said: &Said) -> String {
        let number = said.number;
        let calls = said.calls().enumerate().map(|(index, (name, arguments))| {
            json!({"id": format!("call_up{number}_{index}"), "type": "function",
                "function": {"name": name, "arguments": arguments}})
        });
        let calls: Vec<_> = calls.collect();
        let mut message = json!({"role": "assistant", "content": said.text(), "refusal": null});
        if let Some(thought) = said.thought() {
            message["reasoning_content"] = thought.into();
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        json!({"id": format!("chatcmpl-up{number}"), "object": "chat.completion", "created": 1000 + number, "model": "m-1",
            "system_fingerprint": "fp", "usage": usage(said),
            "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish(said)}]})
        .to_string()
    }
}

/// A round in the format of Responses.
pub(crate) mod responses {
    use super::{End, Event, Part, Said, Value, json, pieces};

    fn usage(said: &Said) -> Value {
        let (input, output) = said.tokens();
        json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": 3}, "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": 1}, "total_tokens": input + output})
    }

    fn item(said: &Said, index: usize, part: &Part) -> Value {
        let number = said.number;
        match part {
            Part::Thought(text) => {
                json!({"id": format!("rs_up{number}_{index}"), "type": "reasoning",
                "summary": [{"type": "summary_text", "text": text}], "encrypted_content": format!("sealed{number}"), "status": null})
            }
            Part::Text(text) => {
                json!({"id": format!("msg_up{number}_{index}"), "type": "message", "status": "completed", "role": "assistant",
                "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]})
            }
            Part::Call { name, arguments } => {
                json!({"id": format!("fc_up{number}_{index}"), "type": "function_call", "status": "completed",
                "call_id": format!("call_up{number}_{index}"), "name": name, "arguments": arguments})
            }
        }
    }

    pub(crate) fn response(said: &Said, status: &str, output: &Value) -> Value {
        let number = said.number;
        let is_over = status != "in_progress";
        let details = (status == "incomplete").then(|| json!({"reason": "max_output_tokens"}));
        json!({"id": format!("resp_up{number}"), "object": "response", "created_at": 1000 + number, "status": status,
            "model": "m-1", "error": null, "incomplete_details": details, "instructions": null, "metadata": {},
            "max_output_tokens": 100 - number, "parallel_tool_calls": true, "tool_choice": "auto",
            "tools": [{"type": "function", "name": "find"}, {"type": "function", "name": "app_one"}, {"type": "web_search"}],
            "store": true, "output": output, "usage": is_over.then(|| usage(said))})
    }

    fn items(said: &Said) -> Vec<Value> {
        said.parts.iter().enumerate().map(|(index, part)| item(said, index, part)).collect()
    }

    fn status(said: &Said) -> &'static str {
        if said.end == End::Length { "incomplete" } else { "completed" }
    }

    /// The events between the beginning and the end of an item.
    fn deltas(part: &Part, item: &Value, size: usize) -> Vec<(&'static str, Value)> {
        let mut events = Vec::new();
        match part {
            Part::Thought(text) => {
                let empty = json!({"type": "summary_text", "text": ""});
                let added = json!({"summary_index": 0, "part": empty});
                events.push(("reasoning_summary_part.added", added));
                events.extend(pieces(text, size).into_iter().map(|piece| {
                    ("reasoning_summary_text.delta", json!({"summary_index": 0, "delta": piece}))
                }));
            }
            Part::Text(text) => {
                let whole = &item["content"][0];
                let mut empty = whole.clone();
                empty["text"] = "".into();
                events.push(("content_part.added", json!({"content_index": 0, "part": empty})));
                events.extend(pieces(text, size).into_iter().map(|piece| {
                    let delta = json!({"content_index": 0, "delta": piece, "logprobs": []});
                    ("output_text.delta", delta)
                }));
                let done = json!({"content_index": 0, "text": text, "logprobs": []});
                events.push(("output_text.done", done));
                events.push(("content_part.done", json!({"content_index": 0, "part": whole})));
            }
            Part::Call { name, arguments } => {
                events.extend(
                    pieces(arguments, size)
                        .into_iter()
                        .map(|piece| ("function_call_arguments.delta", json!({"delta": piece}))),
                );
                let done = json!({"name": name, "arguments": arguments});
                events.push(("function_call_arguments.done", done));
            }
        }
        events
    }

    /// The stream of a round, in pieces of at most `size` characters.
    pub(crate) fn stream(said: &Said, size: usize) -> Vec<Event> {
        let mut events = Vec::new();
        let mut push = |kind: &str, mut event: Value| {
            event["type"] = kind.into();
            event["sequence_number"] = (events.len() + 100).into();
            events.push((kind.to_owned(), event.to_string()));
        };
        let begun = response(said, "in_progress", &json!([]));
        push("response.created", json!({"response": begun}));
        push("response.in_progress", json!({"response": begun}));
        for (index, (part, item)) in said.parts.iter().zip(items(said)).enumerate() {
            let mut added = item.clone();
            added["status"] = "in_progress".into();
            match part {
                Part::Thought(_) => added["summary"] = json!([]),
                Part::Text(_) => added["content"] = json!([]),
                Part::Call { .. } => added["arguments"] = "".into(),
            }
            push("response.output_item.added", json!({"output_index": index, "item": added}));
            for (kind, mut event) in deltas(part, &item, size) {
                event["item_id"] = item["id"].clone();
                event["output_index"] = index.into();
                push(&format!("response.{kind}"), event);
            }
            push("response.output_item.done", json!({"output_index": index, "item": item}));
        }
        match said.end {
            End::Cut => {}
            End::Error => {
                let mut failed = response(said, "failed", &json!([]));
                failed["error"] = json!({"code": "server_error", "message": "it broke"});
                push("response.failed", json!({"response": failed}));
            }
            End::Whole | End::Length => {
                let response = response(said, status(said), &items(said).into());
                push(&format!("response.{}", status(said)), json!({"response": response}));
            }
        }
        events
    }

    /// The round as one body.
    pub(crate) fn whole(said: &Said) -> String {
        response(said, status(said), &items(said).into()).to_string()
    }
}
