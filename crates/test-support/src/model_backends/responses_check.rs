//! The rules of `OpenAI` Responses, with an API key and with a ChatGPT account.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::backend::Backend;
use super::findings::Findings;
use super::heard::{EventReceiver, elements, kind_of, plain_text, text_of};
use super::openai_tools::{check_name, check_tools};
use super::seal;

const LONGEST_CALL_ID: usize = 64;
const LONGEST_OUTPUT: usize = 10_485_760;

/// The kind of output item for each kind of call.
const ANSWERS: [(&str, &str); 3] = [
    ("function_call", "function_call_output"),
    ("custom_tool_call", "custom_tool_call_output"),
    ("tool_search_call", "tool_search_output"),
];

/// Kinds of items that are accepted without checks.
const OTHERS: [&str; 12] = [
    "file_search_call",
    "web_search_call",
    "computer_call",
    "computer_call_output",
    "code_interpreter_call",
    "image_generation_call",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_call",
    "item_reference",
    "compaction",
    "configuration_update",
];

pub(crate) fn check(
    backend: Backend,
    body: &Value,
    account: &str,
    findings: &mut Findings,
) -> EventReceiver {
    if backend == Backend::ChatGpt {
        check_account_rules(body, findings);
    }
    if text_of(body, "model").is_empty() {
        findings.add_at(
            "model",
            "missing_required_parameter",
            "Missing required parameter: 'model'.",
        );
    }
    let mut declared = BTreeSet::new();
    check_tools("tools", &body["tools"], &mut declared, findings);
    let mut items = Items { account, model: text_of(body, "model"), ..Items::default() };
    match &body["input"] {
        Value::String(text) => items.text.clone_from(text),
        Value::Array(input) => {
            for (number, item) in input.iter().enumerate() {
                items.check(number, item, &mut declared, findings);
            }
            items.check_end(findings);
            items.check_reasoning(input, findings);
        }
        _ => findings.add_at(
            "input",
            "missing_required_parameter",
            "Missing required parameter: 'input'.",
        ),
    }
    check_choice(body, &declared, findings);
    let includes =
        |wanted: &str| elements(&body["include"]).any(|(_, included)| included == wanted);
    EventReceiver {
        model: text_of(body, "model").to_owned(),
        tools: declared.into_iter().collect(),
        text: items.text,
        results: items.results,
        streams: body["stream"] == true,
        account: account.to_owned(),
        gives_reasoning: includes("reasoning.encrypted_content"),
        ..EventReceiver::default()
    }
}

/// The ChatGPT backend supports less than the public API, and has its own error shape.
fn check_account_rules(body: &Value, findings: &mut Findings) {
    for parameter in ["max_output_tokens", "prompt_cache_retention", "previous_response_id"] {
        if body.get(parameter).is_some() {
            findings.add("unsupported_parameter", format!("Unsupported parameter: {parameter}"));
        }
    }
    if body["store"] != false {
        findings.add("store", "Store must be set to false");
    }
    if body["stream"] != true {
        findings.add("stream", "Stream must be set to true");
    }
    if text_of(body, "instructions").is_empty() {
        findings.add("instructions", "Instructions are required");
    }
    if !body["input"].is_array() {
        findings.add("input_list", "Input must be a list");
    }
}

fn check_choice(body: &Value, declared: &BTreeSet<String>, findings: &mut Findings) {
    let choice = &body["tool_choice"];
    if choice == "required" && declared.is_empty() {
        let message = "Tool choice 'required' must be specified with 'tools' parameter.";
        findings.add_at("tool_choice", "invalid_value", message);
    }
    let named = text_of(choice, "name");
    let mut wanted: Vec<&str> = elements(&choice["tools"])
        .filter(|(_, tool)| tool["type"] == "function")
        .map(|(_, tool)| text_of(tool, "name"))
        .collect();
    if choice["type"] == "function" {
        wanted.push(named);
    }
    for name in wanted.into_iter().filter(|name| !declared.contains(*name)) {
        let message = format!("Tool choice '{name}' not found in 'tools' parameter.");
        findings.add_at("tool_choice", "invalid_value", message);
    }
}

#[derive(Debug, Default)]
struct Items<'a> {
    account: &'a str,
    model: &'a str,
    /// Calls by kind and id, with whether each has its output.
    calls: BTreeMap<(&'static str, String), bool>,
    ids: BTreeSet<String>,
    text: String,
    results: Vec<String>,
}

impl Items<'_> {
    fn check(
        &mut self,
        number: usize,
        item: &Value,
        declared: &mut BTreeSet<String>,
        findings: &mut Findings,
    ) {
        let place = format!("input[{number}]");
        let kind = match text_of(item, "type") {
            "" if item.get("role").is_some() => "message",
            kind => kind,
        };
        self.check_id(&place, kind, item, findings);
        let call = ANSWERS.into_iter().find(|(call, _)| *call == kind);
        let answer = ANSWERS.into_iter().find(|(_, answer)| *answer == kind);
        if let Some((call, _)) = call {
            self.results.clear();
            self.check_call(&place, call, item, findings);
        } else if let Some((call, _)) = answer {
            self.check_answer(&place, call, item, findings);
            // A search may find what an earlier one found.
            let mut loaded = BTreeSet::new();
            check_tools(&format!("{place}.tools"), &item["tools"], &mut loaded, findings);
            declared.extend(loaded);
        } else if kind == "message" {
            self.check_message(&place, item, findings);
        } else if kind == "additional_tools" {
            if item["role"] != "developer" {
                let message = format!("Invalid '{place}.role': expected 'developer'.");
                findings.add_at(format!("{place}.role"), "invalid_value", message);
            }
            check_tools(&format!("{place}.tools"), &item["tools"], declared, findings);
        } else if kind != "reasoning" && !OTHERS.contains(&kind) {
            let message = format!(
                "Invalid value: '{kind}'. Supported values are: 'message', 'reasoning', 'function_call', 'function_call_output', and others."
            );
            findings.add_at(format!("{place}.type"), "invalid_value", message);
        }
    }

    fn check_id(&mut self, place: &str, kind: &str, item: &Value, findings: &mut Findings) {
        let id = text_of(item, "id");
        let prefix = match kind {
            "message" => "msg",
            "function_call" => "fc",
            "reasoning" => "rs",
            _ => "",
        };
        if id.is_empty() {
            return;
        }
        if !id.starts_with(prefix) {
            let message = format!(
                "Invalid '{place}.id': '{id}'. Expected an ID that begins with '{prefix}'."
            );
            findings.add_at(format!("{place}.id"), "invalid_value", message);
        }
        let is_placeholder = id.contains('<');
        if !is_placeholder && !self.ids.insert(id.to_owned()) {
            let message = format!(
                "Duplicate item found with id {id}. Remove duplicate items from your input and try again."
            );
            findings.add_at("input", "duplicate_item", message);
        }
    }

    fn check_call(
        &mut self,
        place: &str,
        kind: &'static str,
        item: &Value,
        findings: &mut Findings,
    ) {
        let id = call_id(place, item, findings);
        if kind == "function_call" {
            if !item["arguments"].is_string() {
                let message = format!(
                    "Invalid type for '{place}.arguments': expected a string, but got {} instead.",
                    kind_of(&item["arguments"])
                );
                findings.add_at(format!("{place}.arguments"), "invalid_type", message);
            }
            check_name(place, text_of(item, "name"), 128, findings);
        }
        if self.calls.insert((kind, id.clone()), false).is_some() {
            let message = format!("Duplicate function call found with call_id {id}.");
            findings.add_at("input", "duplicate_call", message);
        }
    }

    fn check_answer(
        &mut self,
        place: &str,
        call: &'static str,
        item: &Value,
        findings: &mut Findings,
    ) {
        let id = call_id(place, item, findings);
        match self.calls.get_mut(&(call, id.clone())) {
            Some(answered) if *answered => {
                let message = format!("Duplicate function call output found with call_id {id}.");
                findings.add_at("input", "duplicate_output", message);
            }
            Some(answered) => *answered = true,
            None => {
                let message =
                    format!("No tool call found for function call output with call_id {id}.");
                findings.add_at("input", "output_without_call", message);
            }
        }
        if call != "tool_search_call" {
            check_output(place, &item["output"], findings);
            self.results.push(plain_text(&item["output"]));
        }
    }

    fn check_message(&mut self, place: &str, item: &Value, findings: &mut Findings) {
        let role = text_of(item, "role");
        let is_assistant = role == "assistant";
        if !["user", "assistant", "system", "developer"].contains(&role) {
            let message = format!(
                "Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
            );
            findings.add_at(format!("{place}.role"), "invalid_value", message);
        }
        let content = &item["content"];
        if !content.is_string() && !content.is_array() {
            let message = format!(
                "Invalid type for '{place}.content': expected one of an array of objects or string, but got {} instead.",
                kind_of(content)
            );
            findings.add_at(format!("{place}.content"), "invalid_type", message);
        }
        let (allowed, words): (&[&str], _) = if is_assistant {
            (&["output_text", "refusal"], "'output_text' and 'refusal'")
        } else {
            (
                &["input_text", "input_image", "input_file"],
                "'input_text', 'input_image', and 'input_file'",
            )
        };
        check_parts(&format!("{place}.content"), content, allowed, words, findings);
        match role {
            "user" => {
                self.text = plain_text(content);
                self.results.clear();
            }
            "assistant" => self.results.clear(),
            _ => {}
        }
    }

    /// Checks that every call has its output at the end of the input.
    fn check_end(&self, findings: &mut Findings) {
        for ((_, id), answered) in &self.calls {
            if !answered {
                let message = format!("No tool output found for function call {id}.");
                findings.add_at("input", "call_without_output", message);
            }
        }
    }

    /// Checks that reasoning was issued by this backend to this account for this model, and is followed by the same
    /// item.
    fn check_reasoning(&self, input: &[Value], findings: &mut Findings) {
        for (number, item) in input.iter().enumerate() {
            let id = text_of(item, "id");
            if let Some((_, reasoning)) = id.split_once("_after_") {
                let wanted = format!("rs_{reasoning}");
                let before = number.checked_sub(1).and_then(|before| input.get(before));
                if before.is_none_or(|before| text_of(before, "id") != wanted) {
                    let kind = text_of(item, "type");
                    let message = format!(
                        "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: '{wanted}'."
                    );
                    findings.add_at("input", "item_without_reasoning", message);
                }
            }
            if item["type"] == "reasoning" {
                self.check_one_reasoning(number, item, input.get(number + 1), findings);
            }
        }
    }

    fn check_one_reasoning(
        &self,
        number: usize,
        item: &Value,
        next: Option<&Value>,
        findings: &mut Findings,
    ) {
        let id = text_of(item, "id");
        let Some(sealed) = item["encrypted_content"].as_str() else {
            let message = format!(
                "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."
            );
            findings.add_with(404, "item_not_found", message);
            return;
        };
        if !item["summary"].is_array() {
            let message = format!("Missing required parameter: 'input[{number}].summary'.");
            findings.add_at("input", "missing_required_parameter", message);
        }
        let Some(follower) = open_reasoning(sealed, id, self.model, self.account) else {
            let message = format!(
                "The encrypted content for item {id} could not be verified. Reason: Encrypted content could not be decrypted or parsed."
            );
            findings.add_at("input", "invalid_encrypted_content", message);
            return;
        };
        let found = next.map(|next| match text_of(next, "type") {
            "message" | "" => text_of(next, "role"),
            "reasoning" => "reasoning",
            _ => text_of(next, "call_id"),
        });
        if found != Some(follower.as_str()) {
            let message = format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            );
            findings.add_at("input", "reasoning_without_item", message);
        }
    }
}

/// The encrypted content of reasoning. `follower` is the id of the next call, or a word for it.
pub(crate) fn seal_reasoning(id: &str, model: &str, account: &str, follower: &str) -> String {
    let mac = seal::seal("reasoning", &[id, model, account, follower]);
    format!("{}.{}", seal::encode(follower.as_bytes()), seal::encode(&mac))
}

fn open_reasoning(sealed: &str, id: &str, model: &str, account: &str) -> Option<String> {
    let (follower, _) = sealed.split_once('.')?;
    let follower = String::from_utf8(seal::decode(follower)?).ok()?;
    (seal_reasoning(id, model, account, &follower) == sealed).then_some(follower)
}

fn call_id(place: &str, item: &Value, findings: &mut Findings) -> String {
    let id = text_of(item, "call_id");
    let place = format!("{place}.call_id");
    if id.is_empty() {
        let message = format!(
            "Invalid '{place}': empty string. Expected a string with minimum length 1, but got an empty string instead."
        );
        findings.add_at(place, "empty_string", message);
    } else if id.len() > LONGEST_CALL_ID {
        let message = format!(
            "Invalid '{place}': string too long. Expected a string with maximum length {LONGEST_CALL_ID}, but got a string with length {} instead.",
            id.len()
        );
        findings.add_at(place, "string_above_max_length", message);
    }
    id.to_owned()
}

fn check_output(place: &str, output: &Value, findings: &mut Findings) {
    let place = format!("{place}.output");
    match output {
        Value::String(text) if text.chars().count() > LONGEST_OUTPUT => {
            let message = format!(
                "Invalid '{place}': string too long. Expected a string with maximum length {LONGEST_OUTPUT}."
            );
            findings.add_at(place, "string_above_max_length", message);
        }
        Value::String(_) => {}
        Value::Array(_) => check_parts(
            &place,
            output,
            &["input_text", "input_image", "input_file"],
            "'input_text', 'input_image', and 'input_file'",
            findings,
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            let message = format!(
                "Invalid type for '{place}': expected one of an array of objects or string, but got {} instead.",
                kind_of(output)
            );
            findings.add_at(place, "invalid_type", message);
        }
    }
}

fn check_parts(
    place: &str,
    content: &Value,
    allowed: &[&str],
    words: &str,
    findings: &mut Findings,
) {
    for (number, part) in elements(content) {
        let kind = text_of(part, "type");
        if !allowed.contains(&kind) {
            let message = format!("Invalid value: '{kind}'. Supported values are: {words}.");
            findings.add_at(format!("{place}[{number}].type"), "invalid_value", message);
        }
        let has_text = kind.ends_with("_text");
        if has_text && !part["text"].is_string() {
            let message = format!("Missing required parameter: '{place}[{number}].text'.");
            findings.add_at(
                format!("{place}[{number}].text"),
                "missing_required_parameter",
                message,
            );
        }
    }
}
