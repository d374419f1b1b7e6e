//! Converts tool results into the messages that a conversation stores.

use serde_json::{Map, Value};
use switchboard_model::ToolResult;

use crate::{Media, Part, Place, ToolCall, ToolReturn};

/// Parses the arguments of a call: an object, or a string that contains one. Missing arguments are an empty object.
/// Anything else, including arguments nested too deep to be stored, is returned as text beside an empty object; such a
/// call must not be run.
pub fn read_arguments(written: Value) -> (Value, Option<String>) {
    let empty = || Value::Object(Map::new());
    match written {
        Value::Object(_) if depth(&written) <= MAX_DEPTH => (written, None),
        Value::Null => (empty(), None),
        Value::String(text) if text.trim().is_empty() => (empty(), None),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(arguments @ Value::Object(_)) if depth(&arguments) <= MAX_DEPTH => (arguments, None),
            Ok(_) | Err(_) => (empty(), Some(text)),
        },
        other => (empty(), Some(other.to_string())),
    }
}

impl ToolReturn {
    /// Converts the result of a tool into a message.
    pub fn of(call: &ToolCall, result: ToolResult, latency_ms: Option<u64>) -> Self {
        let mut content: Vec<_> = result.content.iter().map(part).collect();
        // Structured content nested too deep for a stored message to be parsed again is kept as text.
        let (structured, deep) = match result.structured {
            Some(value) if depth(&value) > MAX_DEPTH => (None, Some(value)),
            structured => (structured, None),
        };
        if content.is_empty() {
            content.extend(deep.map(|value| Part::text(value.to_string())));
        }
        Self {
            call: call.id.clone(),
            name: call.name.clone(),
            content,
            structured,
            is_error: result.is_error,
            latency_ms,
        }
    }
}

/// Maximum nesting depth of a value in a message, well below the limit of JSON parsers.
const MAX_DEPTH: usize = 64;

fn depth(value: &Value) -> usize {
    // The recursion is bounded: parsed values have at most 128 levels.
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Converts a block of MCP content. A block that no provider can represent becomes text.
fn part(block: &Value) -> Part {
    let said = |value: &Value, key: &str| value.get(key)?.as_str().map(str::to_owned);
    let media = |value: &Value, key: &str| {
        let media_type = said(value, "mimeType")?;
        Some(Media { media_type, place: Place::Data(said(value, key)?) })
    };
    let made = match said(block, "type").as_deref() {
        Some("text") => said(block, "text").map(Part::text),
        Some("image") => media(block, "data").map(Part::Image),
        Some("audio") => media(block, "data").map(|media| Part::File { name: None, media }),
        Some("resource") => block.get("resource").and_then(|resource| {
            let name = said(resource, "uri");
            match said(resource, "text") {
                Some(text) => Some(Part::text(text)),
                None => Some(match media(resource, "blob")? {
                    image if image.media_type.starts_with("image/") => Part::Image(image),
                    media => Part::File { name, media },
                }),
            }
        }),
        Some("resource_link") => said(block, "uri").map(|uri| {
            let name = said(block, "title").or_else(|| said(block, "name"));
            Part::text(name.map_or(uri.clone(), |name| format!("{name}: {uri}")))
        }),
        _ => None,
    };
    made.unwrap_or_else(|| Part::text(block.to_string()))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_is_an_empty_object_and_no_object_is_never_run() {
        let check = |written: Value, arguments: Value, unreadable: Option<&str>| {
            assert_eq!(read_arguments(written), (arguments, unreadable.map(str::to_owned)));
        };
        check(json!(""), json!({}), None);
        check(json!(" \n"), json!({}), None);
        check(json!(null), json!({}), None);
        check(json!(r#"{"b":1,"a":2}"#), json!({"b": 1, "a": 2}), None);
        check(json!({"a": 1}), json!({"a": 1}), None);
        check(json!("[1]"), json!({}), Some("[1]"));
        check(json!(r#"{"a":"#), json!({}), Some(r#"{"a":"#));
        check(json!([1]), json!({}), Some("[1]"));
    }

    #[test]
    fn arguments_that_could_not_be_read_again_are_unreadable() {
        let deep =
            |levels: usize| (1..levels).fold(json!({"a": 1}), |inner, _| json!({"a": inner}));
        for (levels, is_read) in [(1, true), (64, true), (65, false), (100, false)] {
            let text = deep(levels).to_string();
            for written in [deep(levels), json!(text)] {
                let (arguments, unreadable) = read_arguments(written);
                assert_eq!(unreadable.is_none(), is_read, "{levels}");
                let expected = if is_read { deep(levels) } else { json!({}) };
                assert_eq!(arguments, expected);
            }
        }
        let list = format!("{{\"a\":{}{}}}", "[".repeat(63), "]".repeat(63));
        assert_eq!(read_arguments(json!(list)).1, None);
    }

    #[test]
    fn every_block_of_mcp_is_kept() {
        let check = |block: Value, expected: Part| assert_eq!(part(&block), expected);
        let media = |kind: &str| Media { media_type: kind.into(), place: Place::Data("AA".into()) };
        check(json!({"type": "text", "text": "a"}), Part::text("a"));
        check(
            json!({"type": "image", "data": "AA", "mimeType": "image/png"}),
            Part::Image(media("image/png")),
        );
        check(
            json!({"type": "audio", "data": "AA", "mimeType": "audio/wav"}),
            Part::File { name: None, media: media("audio/wav") },
        );
        check(
            json!({"type": "resource", "resource": {"uri": "a://b", "text": "t"}}),
            Part::text("t"),
        );
        check(
            json!({"type": "resource", "resource": {"uri": "a://b", "blob": "AA", "mimeType": "application/pdf"}}),
            Part::File { name: Some("a://b".into()), media: media("application/pdf") },
        );
        check(
            json!({"type": "resource_link", "uri": "a://b", "name": "B"}),
            Part::text("B: a://b"),
        );
        check(json!({"type": "later"}), Part::text(r#"{"type":"later"}"#));
        check(json!({"type": "image"}), Part::text(r#"{"type":"image"}"#));
    }
}
