//! Writes answers of Chat Completions.

use serde_json::{Value, json};
use switchboard_chat::{Reply, Source, Stop, Usage};

use crate::answer::{AnswerFormat, AnswerOptions, frame};
use crate::conversation::arguments_of;
use crate::sealed_reply;

/// An answer of Chat Completions.
#[derive(Debug)]
pub(crate) struct ChatAnswer {
    source: Source,
    options: AnswerOptions,
    text: String,
    thinking: String,
    whole: Option<String>,
}

impl ChatAnswer {
    pub(crate) fn new(source: &Source, options: AnswerOptions) -> Self {
        let source = source.clone();
        Self { source, options, text: String::new(), thinking: String::new(), whole: None }
    }

    fn head(&self, object: &str) -> Value {
        json!({
            "id": format!("chatcmpl-{}", self.options.id),
            "object": object,
            "created": self.options.now,
            "model": self.source.model,
        })
    }

    fn delta(&self, delta: &Value, finish: Option<&str>, out: &mut Vec<u8>) {
        let mut chunk = self.head("chat.completion.chunk");
        chunk["choices"] =
            json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
        frame(None, &chunk.to_string(), out);
    }

    /// The calls, with ids that occur once in a conversation.
    fn calls(&self, reply: &Reply) -> Vec<Value> {
        let calls = reply.calls().enumerate().map(|(index, call)| {
            json!({
                "id": format!("call_{}_{index}", self.options.id),
                "type": "function",
                "function": {"name": call.name, "arguments": arguments_of(call)},
            })
        });
        calls.collect()
    }

    fn whole_of(&self, reply: &Reply, finish: &str, usage: &Value) -> Value {
        let calls = self.calls(reply);
        let text = Some(&self.text).filter(|text| !text.is_empty() || calls.is_empty());
        let mut message = json!({"role": "assistant", "content": text, "refusal": null});
        if !self.thinking.is_empty() {
            message["reasoning_content"] = self.thinking.clone().into();
        }
        if let Some(details) = self.details(reply) {
            message["reasoning_details"] = details;
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        let mut whole = self.head("chat.completion");
        whole["choices"] = json!([
            {"index": 0, "message": message, "logprobs": null, "finish_reason": finish},
        ]);
        whole["usage"] = usage.clone();
        whole
    }

    /// Opaque data of the provider, which the app sends back.
    fn details(&self, reply: &Reply) -> Option<Value> {
        let sealed = sealed_reply::seal(reply, &self.source)?;
        Some(json!([{"index": 0, "type": "reasoning.encrypted", "data": sealed}]))
    }
}

impl AnswerFormat for ChatAnswer {
    fn begin(&mut self, out: &mut Vec<u8>) {
        self.delta(&json!({"role": "assistant", "content": ""}), None, out);
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        self.text.push_str(text);
        self.delta(&json!({"content": text}), None, out);
    }

    fn thinking(&mut self, text: &str, out: &mut Vec<u8>) {
        self.thinking.push_str(text);
        self.delta(&json!({"reasoning_content": text}), None, out);
    }

    fn finish(&mut self, reply: &Reply, usage: Usage, out: &mut Vec<u8>) {
        let mut calls = self.calls(reply);
        let finish = match reply.stop {
            Stop::Length => "length",
            Stop::Refused => "content_filter",
            Stop::End | Stop::ToolCalls | Stop::Paused | Stop::Cancelled if calls.is_empty() => {
                "stop"
            }
            Stop::End | Stop::ToolCalls | Stop::Paused | Stop::Cancelled => "tool_calls",
        };
        let usage = usage_of(usage);
        self.whole = Some(self.whole_of(reply, finish, &usage).to_string());
        if let Some(details) = self.details(reply) {
            self.delta(&json!({"reasoning_details": details}), None, out);
        }
        for (index, call) in calls.iter_mut().enumerate() {
            call["index"] = index.into();
        }
        if !calls.is_empty() {
            self.delta(&json!({"tool_calls": calls}), None, out);
        }
        self.delta(&json!({}), Some(finish), out);
        let mut chunk = self.head("chat.completion.chunk");
        chunk["choices"] = json!([]);
        chunk["usage"] = usage;
        frame(None, &chunk.to_string(), out);
        frame(None, "[DONE]", out);
    }

    fn whole(&self) -> Option<String> {
        self.whole.clone()
    }
}

fn usage_of(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    })
}
