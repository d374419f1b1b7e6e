//! Writes answers of Anthropic Messages.

use serde_json::{Value, json};
use switchboard_chat::{Reply, Source, Stop, Usage};

use crate::answer::{AnswerFormat, AnswerOptions, frame};
use crate::sealed_reply;

/// An answer of Anthropic Messages.
#[derive(Debug)]
pub(crate) struct MessagesAnswer {
    source: Source,
    options: AnswerOptions,
    /// Complete blocks.
    content: Vec<Value>,
    open: Option<OpenBlock>,
    whole: Option<String>,
}

/// The block that grows.
#[derive(Debug)]
struct OpenBlock {
    kind: BlockKind,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
}

impl BlockKind {
    fn block(self, text: &str) -> Value {
        match self {
            Self::Text => json!({"type": "text", "text": text}),
            Self::Thinking => json!({"type": "thinking", "thinking": text, "signature": ""}),
        }
    }

    fn delta(self, text: &str) -> Value {
        match self {
            Self::Text => json!({"type": "text_delta", "text": text}),
            Self::Thinking => json!({"type": "thinking_delta", "thinking": text}),
        }
    }
}

impl MessagesAnswer {
    pub(crate) fn new(source: &Source, options: AnswerOptions) -> Self {
        let source = source.clone();
        Self { source, options, content: Vec::new(), open: None, whole: None }
    }

    fn message(&self, stop_reason: Option<&str>, usage: &Value) -> Value {
        json!({
            "id": format!("msg_{}", self.options.id),
            "type": "message",
            "role": "assistant",
            "model": self.source.model,
            "content": self.content,
            "stop_reason": stop_reason,
            "stop_sequence": null,
            "usage": usage,
        })
    }

    fn start(&self, block: &Value, out: &mut Vec<u8>) {
        let index = self.content.len();
        write(&json!({"type": "content_block_start", "index": index, "content_block": block}), out);
    }

    fn delta(&self, delta: &Value, out: &mut Vec<u8>) {
        let index = self.content.len();
        write(&json!({"type": "content_block_delta", "index": index, "delta": delta}), out);
    }

    fn stop(&mut self, block: Value, out: &mut Vec<u8>) {
        write(&json!({"type": "content_block_stop", "index": self.content.len()}), out);
        self.content.push(block);
    }

    /// More text of a block, which begins if it is not open.
    fn grow(&mut self, kind: BlockKind, text: &str, out: &mut Vec<u8>) {
        if self.open.as_ref().is_some_and(|open| open.kind != kind) {
            self.close(out);
        }
        if self.open.is_none() {
            self.start(&kind.block(""), out);
        }
        self.delta(&kind.delta(text), out);
        let open = self.open.get_or_insert(OpenBlock { kind, text: String::new() });
        open.text.push_str(text);
    }

    /// Ends the block that is open.
    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some(OpenBlock { kind, text }) = self.open.take() {
            self.stop(kind.block(&text), out);
        }
    }
}

impl AnswerFormat for MessagesAnswer {
    fn begin(&mut self, out: &mut Vec<u8>) {
        let message = self.message(None, &usage_of(Usage::default()));
        write(&json!({"type": "message_start", "message": message}), out);
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        self.grow(BlockKind::Text, text, out);
    }

    fn thinking(&mut self, text: &str, out: &mut Vec<u8>) {
        self.grow(BlockKind::Thinking, text, out);
    }

    fn finish(&mut self, reply: &Reply, usage: Usage, out: &mut Vec<u8>) {
        self.close(out);
        // Opaque data of the provider, which the app sends back.
        if let Some(data) = sealed_reply::seal(reply, &self.source) {
            let block = json!({"type": "redacted_thinking", "data": data});
            self.start(&block, out);
            self.stop(block, out);
        }
        for (index, call) in reply.calls().enumerate() {
            let mut block = json!({
                "type": "tool_use",
                "id": format!("toolu_{}_{index}", self.options.id),
                "name": call.name,
                "input": {},
            });
            self.start(&block, out);
            let input = call.arguments.to_string();
            self.delta(&json!({"type": "input_json_delta", "partial_json": input}), out);
            block["input"] = call.arguments.clone();
            self.stop(block, out);
        }
        let stop_reason = match reply.stop {
            Stop::Length => "max_tokens",
            Stop::Refused => "refusal",
            Stop::End | Stop::ToolCalls | Stop::Paused | Stop::Cancelled
                if reply.calls().next().is_some() =>
            {
                "tool_use"
            }
            Stop::Paused => "pause_turn",
            Stop::End | Stop::ToolCalls | Stop::Cancelled => "end_turn",
        };
        let usage = usage_of(usage);
        self.whole = Some(self.message(Some(stop_reason), &usage).to_string());
        let delta = json!({"stop_reason": stop_reason, "stop_sequence": null});
        write(&json!({"type": "message_delta", "delta": delta, "usage": usage}), out);
        write(&json!({"type": "message_stop"}), out);
    }

    fn whole(&self) -> Option<String> {
        self.whole.clone()
    }
}

fn write(event: &Value, out: &mut Vec<u8>) {
    frame(event["type"].as_str(), &event.to_string(), out);
}

/// Here the input does not include what was cached.
fn usage_of(usage: Usage) -> Value {
    let cached = usage.cached_tokens.saturating_add(usage.cache_write_tokens);
    json!({
        "input_tokens": usage.input_tokens.saturating_sub(cached),
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
    })
}
