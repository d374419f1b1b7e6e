//! Encodes a response as events of `OpenAI` Responses, or as one document.

use serde_json::{Value, json};

use super::heard::EventReceiver;
use super::responses_check::seal_reasoning;
use super::state::Ids;
use super::step::{ErrorEvent, Part, Quirk, Step, Stop, Usage, pieces, sent_arguments};
use super::stream::Event;

const CREATED_AT: u64 = 1_790_000_000;

/// The stream of a response.
pub(crate) fn events(step: &Step, heard: &EventReceiver, ids: &Ids) -> Vec<Event> {
    let mut writer = Writer::new(step, heard, ids);
    let opening = writer.response("in_progress");
    writer.push("response.created", json!({"response": opening}));
    let opening = writer.response("in_progress");
    writer.push("response.in_progress", json!({"response": opening}));
    for (place, part) in step.parts.iter().enumerate() {
        writer.part(place, part);
    }
    if let Some(error) = &step.error_event {
        writer.error(error);
    } else if step.ends() {
        let (name, status) = writer.end();
        let response = writer.response(status);
        writer.push(name, json!({"response": response}));
    }
    writer.events
}

/// The document of a response that is not streamed.
pub(crate) fn document(step: &Step, heard: &EventReceiver, ids: &Ids) -> Value {
    let mut writer = Writer::new(step, heard, ids);
    for (place, part) in step.parts.iter().enumerate() {
        writer.part(place, part);
    }
    let (_, status) = writer.end();
    writer.response(status)
}

struct Writer<'a> {
    step: &'a Step,
    heard: &'a EventReceiver,
    ids: &'a Ids,
    id: String,
    /// Finished items.
    output: Vec<Value>,
    /// Ids of the step's calls, known before the reasoning before them is encrypted.
    call_ids: Vec<String>,
    /// The reasoning item that the next item belongs to.
    reasoning: Option<String>,
    events: Vec<Event>,
}

impl<'a> Writer<'a> {
    fn new(step: &'a Step, heard: &'a EventReceiver, ids: &'a Ids) -> Self {
        let call_ids = step.parts.iter().map(|part| match part {
            Part::Call { id: Some(id), .. } => id.clone(),
            _ => ids.next("call"),
        });
        let call_ids = call_ids.collect();
        let id = ids.next("resp");
        let (output, events) = (Vec::new(), Vec::new());
        Self { step, heard, ids, id, output, call_ids, reasoning: None, events }
    }

    fn push(&mut self, name: &str, mut data: Value) {
        data["type"] = json!(name);
        data["sequence_number"] = json!(self.events.len());
        self.events.push(Event::named(name, &data));
    }

    fn response(&self, status: &str) -> Value {
        let is_done = status != "in_progress";
        let reason = match self.step.stop {
            Stop::Natural => Value::Null,
            Stop::Length => json!({"reason": "max_output_tokens"}),
            Stop::Refusal => json!({"reason": "content_filter"}),
        };
        let usage = self.step.counted().filter(|_| is_done).map(usage_of);
        json!({
            "id": self.id, "object": "response", "created_at": CREATED_AT, "status": status,
            "error": null, "incomplete_details": if is_done { reason } else { Value::Null },
            "instructions": null, "metadata": {}, "model": self.heard.model,
            "output": if is_done { self.output.clone() } else { Vec::new() },
            "parallel_tool_calls": true, "temperature": 1.0, "tool_choice": "auto", "tools": [],
            "top_p": 1.0, "usage": usage,
        })
    }

    fn end(&self) -> (&'static str, &'static str) {
        match self.step.stop {
            Stop::Natural => ("response.completed", "completed"),
            Stop::Length | Stop::Refusal => ("response.incomplete", "incomplete"),
        }
    }

    fn part(&mut self, place: usize, part: &Part) {
        match part {
            Part::Thinking(text) => self.thinking(place, text),
            Part::Redacted => {}
            Part::Text(text) => {
                let deltas = pieces(text).into_iter().map(|piece| (piece, 1)).collect();
                self.text(text, deltas, place);
            }
            Part::Repeat { count, text } => {
                self.text(&text.repeat(*count), vec![(text.clone(), *count)], place);
            }
            Part::Call { name, arguments, .. } => self.call(place, name, arguments),
        }
    }

    fn item_id(&mut self, prefix: &str) -> String {
        let id = self.ids.next(prefix);
        match self.reasoning.take() {
            Some(reasoning) => format!("{id}_after_{}", reasoning.trim_start_matches("rs_")),
            None => id,
        }
    }

    fn added(&mut self, item: &Value) {
        let index = self.output.len();
        self.push("response.output_item.added", json!({"output_index": index, "item": item}));
    }

    fn done(&mut self, item: Value) {
        let index = self.output.len();
        self.push("response.output_item.done", json!({"output_index": index, "item": item}));
        self.output.push(item);
    }

    fn thinking(&mut self, place: usize, text: &str) {
        let id = self.ids.next("rs");
        let follower = match self.step.parts.get(place + 1) {
            Some(Part::Call { .. }) => self.call_ids[place + 1].clone(),
            Some(Part::Thinking(_)) => "reasoning".to_owned(),
            Some(Part::Text(_) | Part::Repeat { .. } | Part::Redacted) | None => {
                "assistant".to_owned()
            }
        };
        let sealed = self
            .heard
            .gives_reasoning
            .then(|| seal_reasoning(&id, &self.heard.model, &self.heard.account, &follower));
        let index = self.output.len();
        // Real backends omit the encrypted content, or send it incomplete, until the item is done.
        self.added(&json!({"id": id, "type": "reasoning", "summary": []}));
        let at = |more: Value| {
            let mut data = json!({"item_id": id, "output_index": index, "summary_index": 0});
            data.as_object_mut().into_iter().for_each(|data| {
                data.extend(more.as_object().cloned().unwrap_or_default());
            });
            data
        };
        let empty = json!({"type": "summary_text", "text": ""});
        self.push("response.reasoning_summary_part.added", at(json!({"part": empty})));
        for piece in pieces(text) {
            self.push("response.reasoning_summary_text.delta", at(json!({"delta": piece})));
        }
        self.push("response.reasoning_summary_text.done", at(json!({"text": text})));
        let part = json!({"type": "summary_text", "text": text});
        self.push("response.reasoning_summary_part.done", at(json!({"part": part})));
        self.done(json!({
            "id": id, "type": "reasoning", "summary": [part], "encrypted_content": sealed,
        }));
        self.reasoning = sealed.is_some().then_some(id);
    }

    fn text(&mut self, text: &str, deltas: Vec<(String, usize)>, place: usize) {
        let id = self.item_id("msg");
        let index = self.output.len();
        let item = |status: &str, content: Value| json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content});
        let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
        let at = || json!({"item_id": id, "output_index": index, "content_index": 0});
        self.added(&item("in_progress", json!([])));
        let mut data = at();
        data["part"] = part("");
        self.push("response.content_part.added", data);
        for (piece, count) in deltas {
            let mut data = at();
            data["delta"] = json!(piece);
            data["logprobs"] = json!([]);
            self.push("response.output_text.delta", data);
            if let Some(event) = self.events.pop() {
                self.events.push(event.times(count));
            }
        }
        let mut data = at();
        data["text"] = json!(text);
        data["logprobs"] = json!([]);
        self.push("response.output_text.done", data);
        let mut data = at();
        data["part"] = part(text);
        self.push("response.content_part.done", data);
        let status = if self.step.is_cut(place) { "incomplete" } else { "completed" };
        self.done(item(status, json!([part(text)])));
    }

    fn call(&mut self, place: usize, name: &str, arguments: &str) {
        let id = self.item_id("fc");
        let index = self.output.len();
        let is_cut = self.step.is_cut(place);
        let sent = sent_arguments(arguments, is_cut);
        let call_id = self.call_ids[place].clone();
        let (namespace, short) = match name.split_once('.') {
            Some((namespace, short)) => (Some(namespace), short),
            None => (None, name),
        };
        let item = |status: &str, arguments: &str| {
            let mut item = json!({
                "id": id, "type": "function_call", "status": status, "arguments": arguments,
                "call_id": call_id, "name": short,
            });
            if let Some(namespace) = namespace {
                item["namespace"] = json!(namespace);
            }
            item
        };
        self.added(&item("in_progress", ""));
        for piece in pieces(&sent) {
            let data = json!({"item_id": id, "output_index": index, "delta": piece});
            self.push("response.function_call_arguments.delta", data);
        }
        if !is_cut {
            let data =
                json!({"item_id": id, "output_index": index, "name": short, "arguments": sent});
            self.push("response.function_call_arguments.done", data);
        }
        self.done(item(if is_cut { "incomplete" } else { "completed" }, &sent));
    }

    fn error(&mut self, ErrorEvent { kind, message }: &ErrorEvent) {
        if self.step.has(Quirk::FailedResponse) {
            let mut response = self.response("failed");
            response["error"] = json!({"code": kind, "message": message});
            self.push("response.failed", json!({"response": response}));
        } else {
            self.push("error", json!({"code": kind, "message": message, "param": null}));
        }
    }
}

fn usage_of(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    })
}
