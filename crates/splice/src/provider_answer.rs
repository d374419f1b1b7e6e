//! A model's answer in the format of an API, as its provider would send it: for models that have no provider.

use serde_json::{Value, json};

use crate::Api;

/// An answer of a model without a provider.
#[derive(Debug, Clone, Default)]
pub struct ProviderAnswer {
    /// Unique among answers.
    pub id: String,
    pub model: String,
    /// Seconds since 1970.
    pub created: u64,
    pub parts: Vec<AnswerPart>,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerPart {
    /// A text, in the pieces in which it is sent.
    Text(Vec<String>),
    /// A call of a tool, with its arguments as JSON.
    Call { name: String, arguments: String },
}

impl ProviderAnswer {
    fn call_id(&self, index: usize) -> String {
        format!("call_{}_{index}", self.id)
    }

    fn has_calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, AnswerPart::Call { .. }))
    }

    /// The parts, with the index of each.
    fn numbered(&self) -> impl Iterator<Item = (usize, &AnswerPart)> {
        self.parts.iter().enumerate()
    }

    fn total_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The answer as complete SSE frames.
    pub fn frames(&self, api: Api) -> Vec<String> {
        match api {
            Api::Responses => self.responses_frames(),
            Api::Chat => self.chat_frames(),
            Api::Messages => self.messages_frames(),
            Api::Gemini => self.gemini_frames(),
        }
    }

    /// The answer as one body.
    pub fn whole(&self, api: Api) -> String {
        match api {
            Api::Responses => self.response("completed", &self.output()),
            Api::Chat => self.chat_whole(),
            Api::Messages => self.message(&self.blocks(), &json!(self.stop_reason())),
            Api::Gemini => {
                let parts: Vec<_> = self.numbered().map(|(_, part)| gemini_part(part)).collect();
                self.gemini_chunk(&parts, true)
            }
        }
        .to_string()
    }

    fn response(&self, status: &str, output: &[Value]) -> Value {
        let mut response = json!({
            "id": format!("resp_{}", self.id), "object": "response", "created_at": self.created,
            "status": status, "model": self.model, "output": output, "error": null,
            "incomplete_details": null, "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
        });
        if status == "completed" {
            response["usage"] = json!({
                "input_tokens": self.input_tokens, "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": self.output_tokens, "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": self.total_tokens(),
            });
        }
        response
    }

    fn output(&self) -> Vec<Value> {
        self.numbered().map(|(index, part)| self.item(index, part)).collect()
    }

    fn item(&self, index: usize, part: &AnswerPart) -> Value {
        match part {
            AnswerPart::Text(pieces) => json!({
                "id": format!("msg_{}_{index}", self.id), "type": "message", "status": "completed",
                "role": "assistant", "content": [output_text(&pieces.concat())],
            }),
            AnswerPart::Call { name, arguments } => json!({
                "id": format!("fc_{}_{index}", self.id), "type": "function_call", "status": "completed",
                "call_id": self.call_id(index), "name": name, "arguments": arguments,
            }),
        }
    }

    fn responses_frames(&self) -> Vec<String> {
        let mut events = vec![
            json!({"type": "response.created", "response": self.response("in_progress", &[])}),
            json!({"type": "response.in_progress", "response": self.response("in_progress", &[])}),
        ];
        for (index, part) in self.numbered() {
            let item = self.item(index, part);
            let mut begun = item.clone();
            begun["status"] = json!("in_progress");
            let event = |kind: &str, more: Value| {
                let mut event = json!({"type": kind, "item_id": item["id"], "output_index": index});
                if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
                    event.extend(more);
                }
                event
            };
            let added = |item: &Value| json!({"type": "response.output_item.added", "output_index": index, "item": item});
            match part {
                AnswerPart::Text(pieces) => {
                    begun["content"] = json!([]);
                    events.push(added(&begun));
                    let part = json!({"content_index": 0, "part": output_text("")});
                    events.push(event("response.content_part.added", part));
                    events.extend(pieces.iter().map(|piece| {
                        let delta = json!({"content_index": 0, "delta": piece, "logprobs": []});
                        event("response.output_text.delta", delta)
                    }));
                    let text = pieces.concat();
                    let done = json!({"content_index": 0, "text": text, "logprobs": []});
                    events.push(event("response.output_text.done", done));
                    let part = json!({"content_index": 0, "part": output_text(&text)});
                    events.push(event("response.content_part.done", part));
                }
                AnswerPart::Call { name, arguments } => {
                    begun["arguments"] = json!("");
                    events.push(added(&begun));
                    let delta = json!({"delta": arguments});
                    events.push(event("response.function_call_arguments.delta", delta));
                    let done = json!({"name": name, "arguments": arguments});
                    events.push(event("response.function_call_arguments.done", done));
                }
            }
            events.push(
                json!({"type": "response.output_item.done", "output_index": index, "item": item}),
            );
        }
        let last = self.response("completed", &self.output());
        events.push(json!({"type": "response.completed", "response": last}));
        let numbered = events.into_iter().enumerate().map(|(number, mut event)| {
            event["sequence_number"] = json!(number);
            named_frame(&event)
        });
        numbered.collect()
    }

    fn chat_usage(&self) -> Value {
        json!({
            "prompt_tokens": self.input_tokens, "completion_tokens": self.output_tokens,
            "total_tokens": self.total_tokens(),
        })
    }

    fn finish_reason(&self) -> &'static str {
        if self.has_calls() { "tool_calls" } else { "stop" }
    }

    fn chat_call(&self, index: usize, name: &str, arguments: &str) -> Value {
        json!({
            "id": self.call_id(index), "type": "function",
            "function": {"name": name, "arguments": arguments},
        })
    }

    fn chat_whole(&self) -> Value {
        let mut text = String::new();
        let mut calls = Vec::new();
        for (index, part) in self.numbered() {
            match part {
                AnswerPart::Text(pieces) => text.push_str(&pieces.concat()),
                AnswerPart::Call { name, arguments } => {
                    calls.push(self.chat_call(index, name, arguments));
                }
            }
        }
        let content = if text.is_empty() { Value::Null } else { json!(text) };
        let mut message = json!({"role": "assistant", "content": content, "refusal": null});
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        json!({
            "id": format!("chatcmpl-{}", self.id), "object": "chat.completion",
            "created": self.created, "model": self.model,
            "choices": [{
                "index": 0, "message": message, "logprobs": null,
                "finish_reason": self.finish_reason(),
            }],
            "usage": self.chat_usage(),
        })
    }

    fn chat_frames(&self) -> Vec<String> {
        let chunk = |choices: Value, usage: Value| {
            frame(&json!({
                "id": format!("chatcmpl-{}", self.id), "object": "chat.completion.chunk",
                "created": self.created, "model": self.model, "choices": choices, "usage": usage,
            }))
        };
        let delta = |delta: Value, finish: Option<&str>| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
            chunk(json!([choice]), Value::Null)
        };
        let mut frames = vec![delta(json!({"role": "assistant", "content": ""}), None)];
        let mut calls = 0;
        for (index, part) in self.numbered() {
            match part {
                AnswerPart::Text(pieces) => {
                    frames.extend(pieces.iter().map(|text| delta(json!({"content": text}), None)));
                }
                AnswerPart::Call { name, arguments } => {
                    let mut call = self.chat_call(index, name, arguments);
                    call["index"] = json!(calls);
                    calls += 1;
                    frames.push(delta(json!({"tool_calls": [call]}), None));
                }
            }
        }
        frames.push(delta(json!({}), Some(self.finish_reason())));
        frames.push(chunk(json!([]), self.chat_usage()));
        frames.push("data: [DONE]\n\n".to_owned());
        frames
    }

    fn stop_reason(&self) -> &'static str {
        if self.has_calls() { "tool_use" } else { "end_turn" }
    }

    fn message(&self, content: &[Value], stop_reason: &Value) -> Value {
        json!({
            "id": format!("msg_{}", self.id), "type": "message", "role": "assistant",
            "model": self.model, "content": content, "stop_reason": stop_reason,
            "stop_sequence": null,
            "usage": {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens},
        })
    }

    fn blocks(&self) -> Vec<Value> {
        let block = |(index, part): (usize, &AnswerPart)| match part {
            AnswerPart::Text(pieces) => json!({"type": "text", "text": pieces.concat()}),
            AnswerPart::Call { name, arguments } => json!({
                "type": "tool_use", "id": self.call_id(index), "name": name,
                "input": parsed(arguments),
            }),
        };
        self.numbered().map(block).collect()
    }

    fn messages_frames(&self) -> Vec<String> {
        let begun = self.message(&[], &Value::Null);
        let mut events = vec![json!({"type": "message_start", "message": begun})];
        for (index, part) in self.numbered() {
            let (block, deltas) = match part {
                AnswerPart::Text(pieces) => {
                    let delta = |text| json!({"type": "text_delta", "text": text});
                    (json!({"type": "text", "text": ""}), pieces.iter().map(delta).collect())
                }
                AnswerPart::Call { name, arguments } => {
                    let id = self.call_id(index);
                    let delta = json!({"type": "input_json_delta", "partial_json": arguments});
                    (json!({"type": "tool_use", "id": id, "name": name, "input": {}}), vec![delta])
                }
            };
            let at = |kind: &str| json!({"type": kind, "index": index});
            let mut start = at("content_block_start");
            start["content_block"] = block;
            events.push(start);
            events.extend(deltas.into_iter().map(|delta: Value| {
                let mut event = at("content_block_delta");
                event["delta"] = delta;
                event
            }));
            events.push(at("content_block_stop"));
        }
        events.push(json!({
            "type": "message_delta",
            "delta": {"stop_reason": self.stop_reason(), "stop_sequence": null},
            "usage": {"output_tokens": self.output_tokens},
        }));
        events.push(json!({"type": "message_stop"}));
        events.iter().map(named_frame).collect()
    }

    fn gemini_chunk(&self, parts: &[Value], is_last: bool) -> Value {
        let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
        let mut chunk = json!({"modelVersion": self.model, "responseId": self.id});
        if is_last {
            candidate["finishReason"] = json!("STOP");
            chunk["usageMetadata"] = json!({
                "promptTokenCount": self.input_tokens, "candidatesTokenCount": self.output_tokens,
                "totalTokenCount": self.total_tokens(),
            });
        }
        chunk["candidates"] = json!([candidate]);
        chunk
    }

    fn gemini_frames(&self) -> Vec<String> {
        let mut parts = Vec::new();
        for (_, part) in self.numbered() {
            match part {
                AnswerPart::Text(pieces) => {
                    parts.extend(pieces.iter().map(|text| json!({"text": text})));
                }
                AnswerPart::Call { .. } => parts.push(gemini_part(part)),
            }
        }
        let last = parts.pop().unwrap_or_else(|| json!({"text": ""}));
        let mut frames: Vec<_> =
            parts.into_iter().map(|part| frame(&self.gemini_chunk(&[part], false))).collect();
        frames.push(frame(&self.gemini_chunk(&[last], true)));
        frames
    }
}

fn gemini_part(part: &AnswerPart) -> Value {
    match part {
        AnswerPart::Text(pieces) => json!({"text": pieces.concat()}),
        AnswerPart::Call { name, arguments } => {
            json!({"functionCall": {"name": name, "args": parsed(arguments)}})
        }
    }
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

/// Arguments as JSON; an object with their text if they are none.
fn parsed(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| json!({"arguments": arguments}))
}

fn frame(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn named_frame(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}
