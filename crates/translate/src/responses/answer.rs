//! Writes answers of Responses.

use serde_json::{Map, Value, json};
use switchboard_chat::{Reply, Source, Stop, Usage};

use crate::answer::{AnswerFormat, AnswerOptions, frame};
use crate::conversation::arguments_of;
use crate::sealed_reply;

/// An answer of Responses.
#[derive(Debug)]
pub(crate) struct ResponsesAnswer {
    source: Source,
    echoed: Map<String, Value>,
    options: AnswerOptions,
    sequence: u64,
    /// Complete items.
    output: Vec<Value>,
    open: Option<OpenItem>,
    whole: Option<String>,
}

/// The item that grows.
#[derive(Debug)]
struct OpenItem {
    kind: TextKind,
    id: String,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Message,
    Reasoning,
}

impl TextKind {
    /// The prefix of ids, and the events of a part: its beginning, a delta, the end of its text and its end.
    fn words(self) -> (&'static str, [&'static str; 4]) {
        match self {
            Self::Message => (
                "msg",
                [
                    "content_part.added",
                    "output_text.delta",
                    "output_text.done",
                    "content_part.done",
                ],
            ),
            Self::Reasoning => (
                "rs",
                [
                    "reasoning_summary_part.added",
                    "reasoning_summary_text.delta",
                    "reasoning_summary_text.done",
                    "reasoning_summary_part.done",
                ],
            ),
        }
    }

    fn part(self, text: &str) -> Value {
        match self {
            Self::Message => {
                json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
            }
            Self::Reasoning => json!({"type": "summary_text", "text": text}),
        }
    }

    fn item(self, id: &str, parts: &[Value], status: &str) -> Value {
        match self {
            Self::Message => {
                json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": parts})
            }
            Self::Reasoning => json!({"id": id, "type": "reasoning", "summary": parts}),
        }
    }
}

impl ResponsesAnswer {
    pub(crate) fn new(source: &Source, echoed: Map<String, Value>, options: AnswerOptions) -> Self {
        let (source, output) = (source.clone(), Vec::new());
        Self { source, echoed, options, sequence: 0, output, open: None, whole: None }
    }

    fn write(&mut self, kind: &str, mut event: Value, out: &mut Vec<u8>) {
        let kind = format!("response.{kind}");
        event["type"] = kind.clone().into();
        event["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        frame(Some(&kind), &event.to_string(), out);
    }

    fn response(&self, status: &str, usage: &Value) -> Value {
        let mut response = json!({
            "id": format!("resp_{}", self.options.id),
            "object": "response",
            "created_at": self.options.now,
            "status": status,
            "error": null,
            "incomplete_details": null,
            "instructions": null,
            "metadata": {},
            "model": self.source.model,
            "output": self.output,
            "parallel_tool_calls": true,
            "temperature": null,
            "tool_choice": "auto",
            "tools": [],
            "top_p": null,
            "usage": usage,
        });
        for (name, value) in &self.echoed {
            response[name] = value.clone();
        }
        response
    }

    fn next_id(&self, prefix: &str) -> String {
        format!("{prefix}_{}_{}", self.options.id, self.output.len())
    }

    /// More text of an item, which begins if it is not open.
    fn grow(&mut self, kind: TextKind, text: &str, out: &mut Vec<u8>) {
        let (prefix, [begun, delta, ..]) = kind.words();
        if self.open.as_ref().is_some_and(|open| open.kind != kind) {
            self.close("completed", out);
        }
        if self.open.is_none() {
            let id = self.next_id(prefix);
            let item = kind.item(&id, &[], "in_progress");
            let index = self.output.len();
            self.write("output_item.added", json!({"output_index": index, "item": item}), out);
            let part = self.of_part(kind, &id, json!({"part": kind.part("")}));
            self.open = Some(OpenItem { kind, id, text: String::new() });
            self.write(begun, part, out);
        }
        let Some(open) = &mut self.open else { return };
        open.text.push_str(text);
        let id = open.id.clone();
        let mut more = json!({"delta": text});
        if kind == TextKind::Message {
            more["logprobs"] = json!([]);
        }
        let event = self.of_part(kind, &id, more);
        self.write(delta, event, out);
    }

    /// Ends the item that is open.
    fn close(&mut self, status: &str, out: &mut Vec<u8>) {
        let Some(OpenItem { kind, id, text }) = self.open.take() else { return };
        let (_, [_, _, done, ended]) = kind.words();
        let mut more = json!({"text": text});
        if kind == TextKind::Message {
            more["logprobs"] = json!([]);
        }
        let part = kind.part(&text);
        self.write(done, self.of_part(kind, &id, more), out);
        self.write(ended, self.of_part(kind, &id, json!({"part": part})), out);
        self.end_item(kind.item(&id, &[part], status), out);
    }

    /// The members of an event of the only part of an item.
    fn of_part(&self, kind: TextKind, id: &str, mut event: Value) -> Value {
        let index = match kind {
            TextKind::Message => "content_index",
            TextKind::Reasoning => "summary_index",
        };
        event[index] = 0.into();
        event["item_id"] = id.into();
        event["output_index"] = self.output.len().into();
        event
    }

    fn end_item(&mut self, item: Value, out: &mut Vec<u8>) {
        let index = self.output.len();
        self.write("output_item.done", json!({"output_index": index, "item": item}), out);
        self.output.push(item);
    }

    /// Opaque data of the provider, which the app sends back.
    fn seal(&mut self, reply: &Reply, out: &mut Vec<u8>) {
        let Some(sealed) = sealed_reply::seal(reply, &self.source) else { return };
        let id = self.next_id("rs");
        let item =
            json!({"id": id, "type": "reasoning", "summary": [], "encrypted_content": sealed});
        let index = self.output.len();
        self.write("output_item.added", json!({"output_index": index, "item": item}), out);
        self.end_item(item, out);
    }

    fn call(&mut self, name: &str, arguments: &str, out: &mut Vec<u8>) {
        let (id, call) = (self.next_id("fc"), self.next_id("call"));
        let index = self.output.len();
        let item = |arguments: &str, status: &str| json!({"id": id, "type": "function_call", "status": status, "call_id": call, "name": name, "arguments": arguments});
        let of_item = |mut event: Value| {
            event["item_id"] = id.clone().into();
            event["output_index"] = index.into();
            event
        };
        let added = json!({"output_index": index, "item": item("", "in_progress")});
        self.write("output_item.added", added, out);
        let delta = of_item(json!({"delta": arguments}));
        self.write("function_call_arguments.delta", delta, out);
        let done = of_item(json!({"name": name, "arguments": arguments}));
        self.write("function_call_arguments.done", done, out);
        self.end_item(item(arguments, "completed"), out);
    }
}

impl AnswerFormat for ResponsesAnswer {
    fn begin(&mut self, out: &mut Vec<u8>) {
        let response = self.response("in_progress", &Value::Null);
        self.write("created", json!({"response": response}), out);
        self.write("in_progress", json!({"response": response}), out);
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        self.grow(TextKind::Message, text, out);
    }

    fn thinking(&mut self, text: &str, out: &mut Vec<u8>) {
        self.grow(TextKind::Reasoning, text, out);
    }

    fn finish(&mut self, reply: &Reply, usage: Usage, out: &mut Vec<u8>) {
        let reason = match reply.stop {
            Stop::Length => Some("max_output_tokens"),
            Stop::Refused => Some("content_filter"),
            Stop::End | Stop::ToolCalls | Stop::Paused | Stop::Cancelled => None,
        };
        let status = if reason.is_some() { "incomplete" } else { "completed" };
        self.close(status, out);
        self.seal(reply, out);
        for call in reply.calls() {
            self.call(&call.name, &arguments_of(call), out);
        }
        let mut response = self.response(status, &usage_of(usage));
        if let Some(reason) = reason {
            response["incomplete_details"] = json!({"reason": reason});
        }
        self.whole = Some(response.to_string());
        self.write(status, json!({"response": response}), out);
    }

    fn whole(&self) -> Option<String> {
        self.whole.clone()
    }
}

fn usage_of(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total(),
    })
}
