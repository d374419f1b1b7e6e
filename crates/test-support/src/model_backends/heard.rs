//! The relevant parts of a request, independent of its wire format, and the default response to it.

use serde_json::Value;

use super::step::Step;

#[derive(Debug, Clone, Default)]
pub(crate) struct EventReceiver {
    pub(crate) model: String,
    /// The names of the tools that are offered at this point of the conversation.
    pub(crate) tools: Vec<String>,
    /// The last user text.
    pub(crate) text: String,
    /// The tool results at the end of the conversation, as texts. Empty if something else is at the end.
    pub(crate) results: Vec<String>,
    pub(crate) streams: bool,
    /// The owner of reasoning: a credential or an account, never shown.
    pub(crate) account: String,
    /// `OpenAI`: whether reasoning is returned in a form that can be sent back.
    pub(crate) gives_reasoning: bool,
    /// Chat Completions: whether the last chunk contains the usage.
    pub(crate) includes_usage: bool,
    /// Anthropic: the prefix that a new thinking block is bound to.
    pub(crate) prefix: Vec<u8>,
    /// Anthropic: positions of invalid thinking blocks that the request asked to drop.
    pub(crate) dropped_blocks: Vec<String>,
}

/// The response without a script.
pub(crate) fn improvise(heard: &EventReceiver) -> Step {
    let mut step = Step::new();
    let mut has_calls = false;
    for line in heard.text.lines() {
        if let Some(thought) = line.strip_prefix("think ") {
            step = step.thinking(thought);
        } else if let Some(call) = line.strip_prefix("call ")
            && heard.results.is_empty()
        {
            let (name, arguments) = call.split_once(' ').unwrap_or((call, "{}"));
            step = step.call_raw(name, arguments);
            has_calls = true;
        }
    }
    match (has_calls, heard.results.is_empty()) {
        (true, _) => step,
        (false, false) => step.say(format!("results: {}", heard.results.join(" | "))),
        (false, true) => step.say(format!("echo: {}", heard.text)),
    }
}

/// The text of a content that is a string or a list of parts with `text`.
pub(crate) fn plain_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// The kind of a value, as error messages name it.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

pub(crate) fn elements(value: &Value) -> impl Iterator<Item = (usize, &Value)> {
    value.as_array().into_iter().flatten().enumerate()
}

pub(crate) fn text_of<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

/// Whether a name has only letters, digits, `_` and `-`, and at most `longest` of them.
pub(crate) fn is_plain_name(name: &str, longest: usize) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=longest).contains(&name.len()) && name.bytes().all(is_plain)
}
