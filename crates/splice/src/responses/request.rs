//! Requests of Responses.
//!
//! The conversation is `input`. A reply consists of all items of the model that follow each other. Session calls are shown as
//! `mcp_call` items, so a reply that comes back may have them: the record has the real items. Without a record the results
//! may be invented, and become text of the app.

use std::collections::HashSet;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_chat::{Part, ToolReturn};

use super::ANSWER_PREFIX;
use super::item::Item;
use crate::app_request::{RequestFacts, RequestTarget};
use crate::openai::{is_forced, not_shown, result_text, tool_names, url};
use crate::put_back::TurnRecord;
use crate::raw_json::{Raw, RawObject, array, elements, raw, to_raw};
use crate::request_format::{ConversationUnit, RequestFormat, RoundBody, ShownReply, sorted};
use crate::splicer::PendingCall;
use crate::{Refusal, RefusalKind};

/// The least maximum of output tokens that the provider takes.
const LEAST_OUTPUT: u64 = 16;
const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

/// A request of Responses.
#[derive(Debug)]
pub(crate) struct ResponsesRequest {
    body: RawObject,
    items: Vec<Raw>,
    is_changed: bool,
    app_tools: Vec<Raw>,
    /// The labels of MCP servers that the app declares for the provider. Their calls are not the session's.
    labels: HashSet<String>,
    facts: RequestFacts,
}

impl ResponsesRequest {
    pub(crate) fn read(target: &RequestTarget, text: &str) -> Result<Self, Refusal> {
        let body = RawObject::read(text).map_err(|error| {
            Refusal::new(RefusalKind::Invalid, format!("the body is not a JSON object: {error}"))
        })?;
        refuse(&body)?;
        let items = read_input(&body)?;
        let app_tools = body.get("tools").and_then(elements).unwrap_or_default();
        let labels = app_tools.iter().filter_map(|tool| Item::read(tool.get()).server_label);
        let labels = labels.collect();
        let facts = facts(&body, target, &app_tools);
        Ok(Self { body, items, is_changed: false, app_tools, labels, facts })
    }

    /// Whether an item is a session call that the app was shown.
    fn is_session_call(&self, item: &Item) -> bool {
        let label = item.server_label.as_deref().unwrap_or_default();
        item.r#type == "mcp_call" && !self.labels.contains(label)
    }

    fn built(&self, round: &RoundBody<'_>) -> RawObject {
        let mut body = self.body.clone();
        if self.is_changed || !round.appended.is_empty() {
            let items = self.items.iter().chain(round.appended).map(|item| item.get());
            body.set("input", array(items));
        }
        if !round.tools.is_empty() {
            let declared = self.app_tools.iter().map(|tool| tool.get());
            body.set("tools", array(declared.chain(round.tools.iter().map(|tool| &**tool))));
        }
        if !round.is_first && body.get("tool_choice").is_some_and(is_forced) {
            body.set("tool_choice", raw(r#""auto""#.to_owned()));
        }
        if let Some(left) = round.output_left.filter(|_| !round.is_first) {
            body.set("max_output_tokens", raw(left.max(LEAST_OUTPUT).to_string()));
        }
        body
    }

    /// Asks for encrypted reasoning where the provider stores nothing: later rounds send it back.
    fn include_reasoning(&self, body: &mut RawObject) {
        if self.facts.is_stored || !thinks(&self.facts.model) {
            return;
        }
        let mut include = body.parsed::<Vec<Value>>("include").unwrap_or_default();
        if !include.iter().any(|entry| entry == ENCRYPTED_REASONING) {
            include.push(ENCRYPTED_REASONING.into());
            body.set("include", to_raw(&include));
        }
    }
}

fn refuse(body: &RawObject) -> Result<(), Refusal> {
    if body.get("conversation").is_some_and(|value| value.get() != "null") {
        let text = "`conversation` is not supported while the tools of a session are added: send the items in `input`, or the id of the earlier response as `previous_response_id`";
        return Err(Refusal::of_member("conversation", text));
    }
    if body.parsed("background").unwrap_or(false) {
        let text = "`background` is not supported while the tools of a session are added, because they run during the request";
        return Err(Refusal::of_member("background", text));
    }
    Ok(())
}

fn read_input(body: &RawObject) -> Result<Vec<Raw>, Refusal> {
    let Some(input) = body.get("input").filter(|input| input.get() != "null") else {
        return Ok(Vec::new());
    };
    if input.get().starts_with('"') {
        let message = format!(r#"{{"type":"message","role":"user","content":{}}}"#, input.get());
        return Ok(vec![raw(message)]);
    }
    elements(input)
        .ok_or_else(|| Refusal::of_member("input", "`input` must be a text or an array of items"))
}

fn facts(body: &RawObject, target: &RequestTarget, app_tools: &[Raw]) -> RequestFacts {
    #[derive(Deserialize)]
    struct Format {
        r#type: String,
    }
    #[derive(Deserialize)]
    struct Text {
        format: Option<Format>,
    }
    let format = body.parsed::<Text>("text").and_then(|text| text.format);
    RequestFacts {
        model: body.parsed("model").or_else(|| target.model.clone()).unwrap_or_default(),
        is_streamed: body.parsed("stream").or(target.is_streamed).unwrap_or(false),
        app_tools: tool_names(app_tools),
        wants_format: format.is_some_and(|format| format.r#type != "text"),
        wants_usage: true,
        shows_calls: true,
        max_tool_calls: body.parsed("max_tool_calls"),
        max_output_tokens: body.parsed("max_output_tokens"),
        previous_answer: body.parsed("previous_response_id"),
        is_stored: body.parsed("store").unwrap_or(true),
        is_beta: false,
        is_json_array: false,
    }
}

/// Whether OpenAI's model produces reasoning. Others refuse to be asked for it in encrypted form.
fn thinks(model: &str) -> bool {
    let model = model.strip_prefix("ft:").unwrap_or(model);
    let is_older = ["gpt-3", "gpt-4"].iter().any(|older| model.starts_with(older));
    let is_numbered = model
        .strip_prefix('o')
        .is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()));
    !is_older && (is_numbered || model.starts_with("gpt-") || model.starts_with("codex"))
}

impl RequestFormat for ResponsesRequest {
    fn facts(&self) -> &RequestFacts {
        &self.facts
    }

    fn conversation(&self) -> &[Raw] {
        &self.items
    }

    fn set_conversation(&mut self, conversation: Vec<Raw>) {
        let is_same = self.items.len() == conversation.len()
            && self.items.iter().zip(&conversation).all(|(old, new)| old.get() == new.get());
        self.is_changed |= !is_same;
        self.items = conversation;
    }

    fn units(&self) -> Vec<ConversationUnit> {
        let mut units: Vec<ConversationUnit> = Vec::new();
        let mut reply = ShownReply::default();
        for (index, item) in self.items.iter().enumerate() {
            let item = Item::read(item.get());
            let range = index..index + 1;
            if !item.is_of_model() {
                units.push(ConversationUnit { range, is_reply: false, identity: said(&item) });
                continue;
            }
            if !units.last().is_some_and(|unit| unit.is_reply) {
                reply = ShownReply::default();
                units.push(ConversationUnit { range, is_reply: true, identity: String::new() });
            }
            if item.is_message() {
                reply.text.push_str(&item.text());
            }
            reply.calls.extend(item.as_app_call());
            if let Some(unit) = units.last_mut() {
                unit.range.end = index + 1;
                unit.identity = reply.identity();
            }
        }
        units
    }

    fn handles(&self, unit: &[Raw]) -> Vec<String> {
        let items: Vec<_> = unit.iter().map(|item| Item::read(item.get())).collect();
        let calls = items.iter().filter(|item| item.as_app_call().is_some());
        let calls = calls.filter_map(|item| item.call_id.clone());
        let others = items.iter().filter(|item| item.as_app_call().is_none());
        calls.chain(others.filter_map(|item| item.id.clone())).collect()
    }

    fn call_ids(&self, unit: &[Raw]) -> Vec<String> {
        let items = unit.iter().map(|item| Item::read(item.get()));
        let calls = items.filter(|item| item.as_app_call().is_some());
        calls.filter_map(|item| item.call_id).collect()
    }

    fn without_claims(&self, unit: &[Raw]) -> Vec<Raw> {
        let kept = unit.iter().map(|raw| {
            let item = Item::read(raw.get());
            if self.is_session_call(&item) { as_text(&item) } else { raw.clone() }
        });
        kept.collect()
    }

    fn put_results(&self, conversation: &mut Vec<Raw>, after: usize, results: &[Raw]) {
        let at = after.min(conversation.len());
        conversation.splice(at..at, results.iter().cloned());
    }

    fn go_on_from(&mut self, record: Option<&TurnRecord>) -> Result<(), Refusal> {
        let id = self.facts.previous_answer.clone().unwrap_or_default();
        let Some(record) = record else {
            // An answer of the provider itself: it knows whether it has it.
            return if id.starts_with(ANSWER_PREFIX) { Err(not_found(&id)) } else { Ok(()) };
        };
        let mut items = Vec::new();
        if let Some(upstream) = &record.upstream_id {
            self.body.set("previous_response_id", to_raw(upstream));
        } else {
            self.body.remove("previous_response_id");
            items.extend(record.conversation.iter().chain(&record.real).cloned());
        }
        items.extend(record.pending.iter().cloned());
        self.is_changed |= !items.is_empty();
        items.append(&mut self.items);
        self.items = items;
        Ok(())
    }

    fn results(&self, results: &[(PendingCall, ToolReturn)]) -> Vec<Raw> {
        let items = results.iter().map(|(call, result)| {
            to_raw(&json!({
                "type": "function_call_output",
                "call_id": call.id,
                "output": output(result),
            }))
        });
        items.collect()
    }

    fn results_as_elements(&self, results: Vec<Raw>) -> Vec<Raw> {
        results
    }

    fn body(&self, round: &RoundBody<'_>) -> Bytes {
        let mut body = self.built(round);
        if !round.tools.is_empty() {
            self.include_reasoning(&mut body);
        }
        body.to_json().into()
    }

    fn count_body(&self, round: &RoundBody<'_>) -> Bytes {
        self.built(round).to_json().into()
    }

    fn renamed(&self, declaration: &str, name: &str) -> Option<Box<str>> {
        let mut tool = RawObject::read(declaration).ok()?;
        tool.set("name", to_raw(&name));
        Some(tool.to_json().into())
    }
}

/// The output of a call: a text, or a list with images.
fn output(result: &ToolReturn) -> Value {
    let (mut text, media) = result_text(result);
    let mut images = Vec::new();
    for part in media {
        match part {
            Part::Image(media) => {
                let image =
                    json!({"type": "input_image", "image_url": url(media), "detail": "auto"});
                images.push(image);
            }
            Part::File { name, media } => text.push_str(&not_shown(name.as_deref(), media)),
            Part::Text { .. } => {}
        }
    }
    if images.is_empty() {
        return text.into();
    }
    if !text.trim().is_empty() {
        images.insert(0, json!({"type": "input_text", "text": text}));
    }
    images.into()
}

/// A call that the app says was made, as its text.
fn as_text(item: &Item) -> Raw {
    let name = item.name.as_deref().unwrap_or("?");
    let arguments = item.arguments.as_str().unwrap_or_default();
    let output = [&item.output, &item.error].into_iter().find(|value| !value.is_null());
    let output = match output {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let text = format!(
        "[The app reports that the tool `{name}` was called with {arguments} and answered: {output}]"
    );
    to_raw(&json!({"type": "message", "role": "user", "content": text}))
}

/// What identifies an item that is not of the model.
fn said(item: &Item) -> String {
    if !item.is_message() {
        return format!("{}\n{}", item.r#type, sorted(&item.output));
    }
    let is_text = match &item.content {
        Value::String(_) => true,
        Value::Array(parts) => parts.iter().all(|part| part.get("text").is_some()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    };
    let content = if is_text { item.text() } else { sorted(&item.content) };
    format!("{}\n{content}", item.role)
}

fn not_found(id: &str) -> Refusal {
    let message = format!("Previous response with id '{id}' not found.");
    let mut refusal = Refusal::of_member("previous_response_id", message);
    let body = json!({"error": {
        "message": refusal.message,
        "type": "invalid_request_error",
        "param": "previous_response_id",
        "code": "previous_response_not_found",
    }});
    refusal.body = Some(body.to_string().into());
    refusal
}
