//! Formats a conversation for the terminal.

use serde_json::Value;
use switchboard_chat::{Block, History, Message, Part, ToolReturn};

use crate::output::harmless;

/// Maximum number of characters of arguments and results.
const MOST_SHOWN: usize = 120;

/// The whole conversation, in order.
pub(crate) fn history_text(history: &History) -> String {
    let mut lines = Vec::new();
    for message in &history.messages {
        match message {
            Message::System(said) => lines.push(marked('#', &said.content)),
            Message::User(said) => lines.push(marked('>', &said.content)),
            Message::Assistant(reply) => lines.extend(reply.content.iter().filter_map(block_text)),
            Message::Tool(result) => lines.push(result_text(result)),
        }
    }
    lines.join("\n") + "\n"
}

fn marked(mark: char, content: &[Part]) -> String {
    let text = parts_text(content);
    text.lines().map(|line| format!("{mark} {line}")).collect::<Vec<_>>().join("\n")
}

fn block_text(block: &Block) -> Option<String> {
    match block {
        Block::Text { text, .. } => Some(text.clone()),
        // Reasoning is often encrypted and has no text.
        Block::Reasoning { text, .. } if text.is_empty() => None,
        Block::Reasoning { text, .. } => Some(format!("(thinking) {text}")),
        Block::ToolCall(call) => Some(format!("-> {}", call_text(&call.name, &call.arguments))),
    }
}

fn result_text(result: &ToolReturn) -> String {
    let outcome = if result.is_error { "error" } else { "ok" };
    format!("<- {} {outcome}: {}", harmless(&result.name), first_line(&result.content))
}

/// A call on one line.
pub(crate) fn call_text(name: &str, arguments: &Value) -> String {
    format!("{} {}", harmless(name), short(&arguments.to_string()))
}

/// The beginning of a result.
pub(crate) fn first_line(content: &[Part]) -> String {
    let text = parts_text(content);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or("(nothing)");
    let more = if lines.next().is_some() { " ..." } else { "" };
    format!("{}{more}", short(first))
}

fn parts_text(parts: &[Part]) -> String {
    let texts = parts.iter().map(|part| match part {
        Part::Text { text } => text.clone(),
        Part::Image(media) => format!("[image, {}]", media.media_type),
        Part::File { name, media } => {
            format!("[file {}, {}]", name.as_deref().unwrap_or("without a name"), media.media_type)
        }
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn short(text: &str) -> String {
    let cut: String = text.chars().take(MOST_SHOWN).collect();
    let end = if cut.len() < text.len() { "..." } else { "" };
    format!("{}{end}", harmless(&cut))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_conversation_is_one_line_for_each_thing_that_happened() {
        let history = History::of_value(json!({"version": 1, "messages": [
            {"role": "system", "content": [{"type": "text", "text": "be brief"}]},
            {"role": "user", "content": [
                {"type": "text", "text": "add"},
                {"type": "image", "media_type": "image/png", "data": ""},
            ]},
            {"role": "assistant", "content": [
                {"type": "reasoning", "text": ""},
                {"type": "reasoning", "text": "hm"},
                {"type": "tool_call", "id": "c1", "name": "add\u{7}", "arguments": {"a": "x".repeat(200)}},
            ]},
            {"role": "tool", "call": "c1", "name": "add", "is_error": true,
                "content": [{"type": "text", "text": "\nno\nmore"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "It failed."}]},
        ]}));
        insta::assert_snapshot!(history_text(&history.unwrap()), @r#"
        # be brief
        > add
        > [image, image/png]
        (thinking) hm
        -> add\u{7} {"a":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...
        <- add error: no ...
        It failed.
        "#);
    }
}
