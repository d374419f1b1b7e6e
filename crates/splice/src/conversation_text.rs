//! A conversation as texts, for content checks. Pictures and files are left out.

use serde_json::Value;

use crate::raw_json::Raw;

/// The author of a text in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextAuthor {
    System,
    User,
    /// The model, its calls, and results of tools.
    Assistant,
}

/// An element of a conversation as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationText {
    pub author: TextAuthor,
    /// Whether it is a reply of the model, and not a result of a tool.
    pub is_reply: bool,
    pub text: String,
}

/// Members that hold no words: ids, kinds, and opaque or encoded data.
const WITHOUT_WORDS: [&str; 18] = [
    "type",
    "role",
    "id",
    "call_id",
    "tool_call_id",
    "tool_use_id",
    "status",
    "signature",
    "thoughtSignature",
    "thought_signature",
    "encrypted_content",
    "data",
    "image_url",
    "file_data",
    "inlineData",
    "inline_data",
    "cache_control",
    "media_type",
];

/// The texts of the elements of a conversation, whichever API they belong to.
pub(crate) fn texts(elements: &[Raw]) -> Vec<ConversationText> {
    let read = elements.iter().filter_map(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    read.map(|element| of(&element)).collect()
}

fn of(element: &Value) -> ConversationText {
    let word = |name: &str| element.get(name).and_then(Value::as_str).unwrap_or_default();
    let (role, kind) = (word("role"), word("type"));
    let author = match (role, kind) {
        ("system" | "developer", _) => TextAuthor::System,
        ("user", _) if holds_results(element) => TextAuthor::Assistant,
        ("", "" | "message") => TextAuthor::User,
        ("assistant" | "model" | "tool" | "function" | "", _) => TextAuthor::Assistant,
        (_, _) => TextAuthor::User,
    };
    let is_reply = matches!(role, "assistant" | "model")
        || (role.is_empty() && !kind.is_empty() && kind != "message" && !kind.ends_with("_output"));
    let mut text = String::new();
    collect(element, &mut text);
    ConversationText { author, is_reply, text }
}

/// Whether a message of the user consists of results of tools, as Anthropic and Gemini write them.
fn holds_results(message: &Value) -> bool {
    let parts = message.get("content").or_else(|| message.get("parts")).and_then(Value::as_array);
    let is_result = |part: &Value| {
        part.get("type").and_then(Value::as_str) == Some("tool_result")
            || part.get("functionResponse").is_some()
    };
    parts.is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_result))
}

/// Appends all words of a value. The recursion is bounded by that of the JSON parser.
fn collect(value: &Value, text: &mut String) {
    match value {
        Value::String(words) => append(words, text),
        Value::Number(number) => append(&number.to_string(), text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, text)),
        Value::Object(members) => {
            let members =
                members.iter().filter(|(name, _)| !WITHOUT_WORDS.contains(&name.as_str()));
            members.for_each(|(_, value)| collect(value, text));
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn append(words: &str, text: &mut String) {
    if !text.is_empty() && !words.is_empty() {
        text.push('\n');
    }
    text.push_str(words);
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;
    use crate::raw_json::to_raw;

    #[test]
    fn each_api_gives_its_words_and_their_author() {
        use TextAuthor::{Assistant, System, User};
        let rows = [
            (json!({"role": "system", "content": "Be kind"}), System, false, "Be kind"),
            (
                json!({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image", "source": {"data": "AAAA"}}]}),
                User,
                false,
                "a",
            ),
            (
                json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}),
                Assistant,
                true,
                "f\n{}",
            ),
            (json!({"role": "tool", "tool_call_id": "c", "content": "42"}), Assistant, false, "42"),
            (
                json!({"type": "function_call_output", "call_id": "c", "output": "42"}),
                Assistant,
                false,
                "42",
            ),
            (json!({"type": "mcp_call", "name": "f", "output": "42"}), Assistant, true, "f\n42"),
            (
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "42"}]}),
                Assistant,
                false,
                "42",
            ),
            (
                json!({"role": "model", "parts": [{"text": "hi", "thoughtSignature": "x"}]}),
                Assistant,
                true,
                "hi",
            ),
            (json!({"parts": [{"text": "hi"}]}), User, false, "hi"),
            (
                json!({"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"n": 42}}}]}),
                Assistant,
                false,
                "f\n42",
            ),
        ];
        for (element, author, is_reply, text) in rows {
            let expected = ConversationText { author, is_reply, text: text.to_owned() };
            assert_eq!(texts(&[to_raw(&element)]), [expected], "{element}");
        }
    }
}
