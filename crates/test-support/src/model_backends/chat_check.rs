//! The rules of Chat Completions.

use std::collections::BTreeSet;

use serde_json::Value;

use super::findings::Findings;
use super::heard::{EventReceiver, elements, kind_of, plain_text, text_of};
use super::openai_tools::{LONGEST_NAME, check_count, check_function, check_name, declare};

pub(crate) fn check(body: &Value, findings: &mut Findings) -> EventReceiver {
    if text_of(body, "model").is_empty() {
        findings.add_at("model", "missing_model", "you must provide a model parameter");
    }
    let is_reasoning =
        ["o1", "o3", "o4", "gpt-5"].iter().any(|it| text_of(body, "model").starts_with(it));
    if is_reasoning && body.get("stop").is_some() {
        let message = "Unsupported parameter: 'stop' is not supported with this model.";
        findings.add_at("stop", "unsupported_parameter", message);
    }
    let mut declared = BTreeSet::new();
    check_declared(body, &mut declared, findings);
    let mut messages = Messages::default();
    for (number, message) in elements(&body["messages"]) {
        messages.check(number, message, findings);
    }
    messages.check_answered(findings);
    if elements(&body["messages"]).next().is_none() {
        let message = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.";
        findings.add_at("messages", "empty_array", message);
    }
    let options = &body["stream_options"];
    if !options.is_null() && body["stream"] != true {
        let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        findings.add_at("stream_options", "invalid_value", message);
    }
    EventReceiver {
        model: text_of(body, "model").to_owned(),
        tools: declared.into_iter().collect(),
        text: messages.text,
        results: messages.results,
        streams: body["stream"] == true,
        includes_usage: options["include_usage"] == true,
        ..EventReceiver::default()
    }
}

fn check_declared(body: &Value, declared: &mut BTreeSet<String>, findings: &mut Findings) {
    let tools = &body["tools"];
    if tools.as_array().is_some_and(Vec::is_empty) {
        let message = "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.";
        findings.add_at("tools", "empty_array", message);
    }
    check_count("tools", tools, findings);
    for (number, tool) in elements(tools) {
        let place = format!("tools[{number}]");
        if tool["type"] != "function" {
            let message = format!(
                "Invalid value: {}. Supported values are: 'function' and 'custom'.",
                tool["type"]
            );
            findings.add_at(format!("{place}.type"), "invalid_value", message);
        }
        let place = format!("{place}.function");
        check_function(&place, &tool["function"], LONGEST_NAME, findings);
        declare(&place, text_of(&tool["function"], "name").to_owned(), declared, findings);
    }
    for parameter in ["tool_choice", "parallel_tool_calls"] {
        if tools.is_null() && body.get(parameter).is_some() {
            let message = format!("'{parameter}' is only allowed when 'tools' are specified.");
            findings.add_at(parameter, "invalid_value", message);
        }
    }
}

#[derive(Debug, Default)]
struct Messages {
    /// Calls of the last assistant message without a result.
    open: Vec<String>,
    seen: BTreeSet<String>,
    text: String,
    results: Vec<String>,
}

impl Messages {
    fn check(&mut self, number: usize, message: &Value, findings: &mut Findings) {
        let place = format!("messages[{number}]");
        let role = text_of(message, "role");
        if role != "tool" {
            self.check_answered(findings);
        }
        check_content(&place, role, message, findings);
        match role {
            "tool" => self.check_result(&place, message, findings),
            "assistant" => {
                self.results.clear();
                self.check_calls(&place, message, findings);
            }
            "user" => {
                self.text = plain_text(&message["content"]);
                self.results.clear();
            }
            "system" | "developer" => {}
            other => {
                let words = format!(
                    "Invalid value: '{other}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
                );
                findings.add_at(format!("{place}.role"), "invalid_value", words);
            }
        }
    }

    fn check_calls(&mut self, place: &str, message: &Value, findings: &mut Findings) {
        let calls = &message["tool_calls"];
        if calls.as_array().is_some_and(Vec::is_empty) {
            let words = format!(
                "Invalid '{place}.tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead."
            );
            findings.add_at(format!("{place}.tool_calls"), "empty_array", words);
        }
        for (number, call) in elements(calls) {
            let place = format!("{place}.tool_calls[{number}]");
            let id = text_of(call, "id");
            if id.is_empty() {
                let words = format!("Missing required parameter: '{place}.id'.");
                findings.add_at(format!("{place}.id"), "missing_required_parameter", words);
            } else if !self.seen.insert(id.to_owned()) {
                let words =
                    format!("Duplicate value for 'tool_call_id' of '{id}' in '{place}.id'.");
                findings.add_at(format!("{place}.id"), "duplicate_call", words);
            }
            if call["type"] != "function" {
                let words = format!("Missing required parameter: '{place}.type'.");
                findings.add_at(format!("{place}.type"), "missing_required_parameter", words);
            }
            let function = &call["function"];
            check_name(
                &format!("{place}.function"),
                text_of(function, "name"),
                LONGEST_NAME,
                findings,
            );
            if !function["arguments"].is_string() {
                let words = format!(
                    "Invalid type for '{place}.function.arguments': expected a string, but got {} instead.",
                    kind_of(&function["arguments"])
                );
                findings.add_at(format!("{place}.function.arguments"), "invalid_type", words);
            }
            self.open.push(id.to_owned());
        }
    }

    fn check_result(&mut self, place: &str, message: &Value, findings: &mut Findings) {
        let id = text_of(message, "tool_call_id");
        if let Some(found) = self.open.iter().position(|open| open == id) {
            self.open.remove(found);
        } else {
            let words = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
            findings.add_at(format!("{place}.role"), "result_without_call", words);
        }
        self.results.push(plain_text(&message["content"]));
    }

    /// Checks that the calls of an assistant message are answered directly after it.
    fn check_answered(&mut self, findings: &mut Findings) {
        if !self.open.is_empty() {
            let words = format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
                self.open.join(", ")
            );
            findings.add_at("messages", "call_without_result", words);
        }
        self.open.clear();
    }
}

fn check_content(place: &str, role: &str, message: &Value, findings: &mut Findings) {
    let content = &message["content"];
    let place = format!("{place}.content");
    let may_be_missing = role == "assistant" && message["tool_calls"].is_array();
    match content {
        Value::String(_) => {}
        Value::Array(parts) => {
            let allowed: &[&str] = match role {
                "user" => &["text", "image_url", "input_audio", "file"],
                "assistant" => &["text", "refusal"],
                _ => &["text"],
            };
            for (number, part) in parts.iter().enumerate() {
                let kind = text_of(part, "type");
                if !allowed.contains(&kind) {
                    let words = format!(
                        "Invalid value: '{kind}'. Supported values are: '{}'.",
                        allowed.join("', '")
                    );
                    findings.add_at(format!("{place}[{number}].type"), "invalid_value", words);
                }
            }
        }
        Value::Null if may_be_missing => {}
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            let words = format!(
                "Invalid type for '{place}': expected one of a string or array of objects, but got {} instead.",
                kind_of(content)
            );
            findings.add_at(place, "invalid_type", words);
        }
    }
}
