//! Encodes a response as chunks of Gemini, public or in the envelope of Code Assist.

use serde_json::{Value, json};

use super::backend::{Backend, google_error};
use super::gemini_check::{sign_call, sign_text};
use super::heard::EventReceiver;
use super::state::Ids;
use super::step::{Part, Quirk, Step, Stop, Usage, pieces};
use super::stream::Event;

pub(crate) fn events(
    backend: Backend,
    step: &Step,
    heard: &EventReceiver,
    ids: &Ids,
) -> Vec<Event> {
    let id = ids.next("response");
    let chunk = |parts: Value, finish: Option<&Finish>| {
        enveloped(backend, response(&id, step, heard, &parts, finish))
    };
    let finish = finish_of(step, heard);
    let mut events = Vec::new();
    for (part, count) in parts(step, heard, ids, &finish) {
        events.push(Event::data(&chunk(json!([part]), None)).times(count));
    }
    if let Some(error) = &step.error_event {
        let mut body = google_error(503, &error.message);
        body["error"]["status"] = json!(error.kind);
        events.push(Event::data(&body));
    } else if step.ends() {
        let parts = if finish.is_fault { json!([]) } else { json!([{"text": ""}]) };
        events.push(Event::data(&chunk(parts, Some(&finish))));
    }
    events
}

pub(crate) fn document(backend: Backend, step: &Step, heard: &EventReceiver, ids: &Ids) -> Value {
    let finish = finish_of(step, heard);
    let mut whole = Vec::new();
    for (part, count) in parts(step, heard, ids, &finish) {
        whole.extend(std::iter::repeat_n(part, count));
    }
    let id = ids.next("response");
    enveloped(backend, response(&id, step, heard, &json!(whole), Some(&finish)))
}

struct Finish {
    reason: &'static str,
    message: Option<String>,
    /// Whether the response is blocked, which loses its parts.
    is_fault: bool,
}

fn finish_of(step: &Step, heard: &EventReceiver) -> Finish {
    let unknown = step.calls().find(|(name, _)| !heard.tools.iter().any(|tool| tool == name));
    if let Some((name, _)) = unknown {
        let message = Some(format!("Unexpected tool call: {name}"));
        return Finish { reason: "UNEXPECTED_TOOL_CALL", message, is_fault: true };
    }
    let is_object = |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|it| it.is_object());
    if let Some((name, _)) = step.calls().find(|(_, arguments)| !is_object(arguments)) {
        let message = Some(format!("Malformed function call: {name}"));
        return Finish { reason: "MALFORMED_FUNCTION_CALL", message, is_fault: true };
    }
    let reason = match step.stop {
        Stop::Natural => "STOP",
        Stop::Length => "MAX_TOKENS",
        Stop::Refusal => "SAFETY",
    };
    Finish { reason, message: None, is_fault: false }
}

/// The parts in streaming order, each with the number of repetitions.
fn parts(step: &Step, heard: &EventReceiver, ids: &Ids, finish: &Finish) -> Vec<(Value, usize)> {
    let mut parts = Vec::new();
    let mut is_first_call = true;
    let thinks = step.parts.iter().any(|part| matches!(part, Part::Thinking(_)));
    for (place, part) in step.parts.iter().enumerate() {
        match part {
            Part::Thinking(text) => {
                let thoughts = pieces(text).into_iter();
                parts.extend(thoughts.map(|piece| (json!({"text": piece, "thought": true}), 1)));
            }
            Part::Redacted => {}
            Part::Text(text) => {
                parts.extend(pieces(text).into_iter().map(|piece| (json!({"text": piece}), 1)));
                // Without a call, the last text carries the signature.
                let is_last = place + 1 == step.parts.len();
                if thinks
                    && is_last
                    && let Some((part, _)) = parts.last_mut()
                {
                    part["thoughtSignature"] = json!(sign_text(&heard.model));
                }
            }
            Part::Repeat { count, text } => parts.push((json!({"text": text}), *count)),
            // Calls are sent whole: a truncated call is not sent at all.
            Part::Call { .. } if finish.is_fault || step.is_cut(place) => {}
            Part::Call { name, arguments, id } => {
                let args: Value = serde_json::from_str(arguments).unwrap_or_default();
                let mut part = json!({"functionCall": {"name": name, "args": args}});
                if let Some(id) = id {
                    part["functionCall"]["id"] = json!(id);
                } else if step.has(Quirk::WithIds) {
                    part["functionCall"]["id"] = json!(ids.next("call"));
                }
                if is_first_call {
                    part["thoughtSignature"] = json!(sign_call(&heard.model, name, &args));
                }
                is_first_call = false;
                parts.push((part, 1));
            }
        }
    }
    parts
}

fn response(
    id: &str,
    step: &Step,
    heard: &EventReceiver,
    parts: &Value,
    finish: Option<&Finish>,
) -> Value {
    let mut candidate = json!({"index": 0});
    if !parts.as_array().is_some_and(Vec::is_empty) {
        candidate["content"] = json!({"role": "model", "parts": parts});
    }
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish.reason);
        if let Some(message) = &finish.message {
            candidate["finishMessage"] = json!(message);
        }
    }
    let mut response = json!({
        "candidates": [candidate], "modelVersion": heard.model, "responseId": id,
    });
    if let Some(usage) = step.counted() {
        response["usageMetadata"] = usage_of(usage, finish.is_some());
    }
    response
}

fn enveloped(backend: Backend, response: Value) -> Value {
    match backend {
        Backend::CodeAssist => json!({"response": response, "traceId": "trace-fake"}),
        Backend::OpenAi
        | Backend::ChatGpt
        | Backend::Chat
        | Backend::Anthropic
        | Backend::Gemini => response,
    }
}

/// Every chunk has the usage so far; the last one counts. Reasoning tokens are counted separately.
fn usage_of(usage: Usage, is_last: bool) -> Value {
    let output = if is_last { usage.output.saturating_sub(usage.reasoning) } else { 1 };
    let mut counted = json!({
        "promptTokenCount": usage.input, "candidatesTokenCount": output,
        "totalTokenCount": usage.input + output + usage.reasoning,
    });
    if usage.cached > 0 {
        counted["cachedContentTokenCount"] = json!(usage.cached);
    }
    if usage.reasoning > 0 {
        counted["thoughtsTokenCount"] = json!(usage.reasoning);
    }
    counted
}
