//! Writes answers of Gemini.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use switchboard_chat::{Reply, Source, Stop, Usage};

use crate::answer::{AnswerFormat, AnswerOptions, frame};
use crate::sealed_reply;

/// An answer of Gemini.
#[derive(Debug)]
pub(crate) struct GeminiAnswer {
    source: Source,
    options: AnswerOptions,
    thinking: String,
    text: String,
    whole: Option<String>,
}

impl GeminiAnswer {
    pub(crate) fn new(source: &Source, options: AnswerOptions) -> Self {
        let source = source.clone();
        Self { source, options, thinking: String::new(), text: String::new(), whole: None }
    }

    fn chunk(&self, parts: &[Value]) -> Value {
        json!({
            "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}],
            "modelVersion": self.source.model,
            "responseId": self.options.id,
        })
    }

    /// The calls, and opaque data of the provider, which the app sends back.
    fn last_parts(&self, reply: &Reply) -> Vec<Value> {
        let calls = reply.calls().enumerate().map(|(index, call)| {
            let id = format!("call_{}_{index}", self.options.id);
            json!({"functionCall": {"id": id, "name": call.name, "args": call.arguments}})
        });
        let mut parts: Vec<Value> = calls.collect();
        if let Some(sealed) = sealed_reply::seal(reply, &self.source) {
            if parts.is_empty() {
                parts.push(json!({"text": ""}));
            }
            parts[0]["thoughtSignature"] = STANDARD.encode(sealed).into();
        }
        parts
    }
}

impl AnswerFormat for GeminiAnswer {
    fn begin(&mut self, _out: &mut Vec<u8>) {}

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        self.text.push_str(text);
        frame(None, &self.chunk(&[json!({"text": text})]).to_string(), out);
    }

    fn thinking(&mut self, text: &str, out: &mut Vec<u8>) {
        self.thinking.push_str(text);
        let part = json!({"text": text, "thought": true});
        frame(None, &self.chunk(&[part]).to_string(), out);
    }

    fn finish(&mut self, reply: &Reply, usage: Usage, out: &mut Vec<u8>) {
        let reason = match reply.stop {
            Stop::Length => "MAX_TOKENS",
            Stop::Refused => "SAFETY",
            Stop::End | Stop::ToolCalls | Stop::Paused | Stop::Cancelled => "STOP",
        };
        let mut last = self.last_parts(reply);
        let mut whole = Vec::new();
        if !self.thinking.is_empty() {
            whole.push(json!({"text": self.thinking, "thought": true}));
        }
        if !self.text.is_empty() || last.is_empty() {
            whole.push(json!({"text": self.text}));
        }
        whole.extend(last.iter().cloned());
        if last.is_empty() {
            last.push(json!({"text": ""}));
        }
        let ended = |parts: &[Value]| {
            let mut chunk = self.chunk(parts);
            chunk["candidates"][0]["finishReason"] = reason.into();
            chunk["usageMetadata"] = usage_of(usage);
            chunk.to_string()
        };
        frame(None, &ended(&last), out);
        let whole = ended(&whole);
        self.whole = Some(whole);
    }

    fn whole(&self) -> Option<String> {
        self.whole.clone()
    }
}

fn usage_of(usage: Usage) -> Value {
    json!({
        "promptTokenCount": usage.input_tokens,
        "cachedContentTokenCount": usage.cached_tokens,
        "candidatesTokenCount": usage.output_tokens.saturating_sub(usage.reasoning_tokens),
        "thoughtsTokenCount": usage.reasoning_tokens,
        "totalTokenCount": usage.total(),
    })
}
