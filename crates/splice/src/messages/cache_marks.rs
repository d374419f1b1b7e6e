//! The marks of a request for the provider's prompt cache (`cache_control`).
//!
//! A request may have four. Those of the app stay as they are. If the app uses the cache and leaves marks unused, one of them
//! goes on the last session tool, and in later rounds one on the last result, so that each round reads what the round before
//! it wrote.

use crate::raw_json::{Raw, RawObject, array, elements, raw};

const MAX_MARKS: usize = 4;
const MARK: &str = "cache_control";
const SHORT: &str = r#"{"type":"ephemeral"}"#;
const LONG: &str = r#"{"type":"ephemeral","ttl":"1h"}"#;

/// Where marks are added in one request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct AddedMarks {
    /// The mark of the last session tool.
    pub(super) tool: Option<&'static str>,
    pub(super) result: Option<&'static str>,
}

/// Decides which marks are added to a request of the app.
pub(super) fn added_marks(request: &RawObject, messages: &[Raw], is_first: bool) -> AddedMarks {
    let tools = request.get("tools").and_then(elements).unwrap_or_default();
    let system = request.get("system").and_then(elements).unwrap_or_default();
    let mut later = Vec::new();
    let is_automatic = request.get(MARK).is_some_and(|mark| mark.get() != "null");
    later.extend(request.get(MARK).filter(|_| is_automatic).map(ToOwned::to_owned));
    marks(&system, &mut later);
    for message in messages.iter().filter(|message| message.get().contains(MARK)) {
        let content = RawObject::read(message.get())
            .ok()
            .and_then(|message| message.get("content").and_then(elements))
            .unwrap_or_default();
        marks(&content, &mut later);
    }
    let mut before = Vec::new();
    marks(&tools, &mut before);
    let used = before.len() + later.len();
    let spare = MAX_MARKS.saturating_sub(used);
    if used == 0 || spare == 0 {
        return AddedMarks::default();
    }
    // A mark of one hour must not come after a shorter one, and tools come before everything else.
    let is_long = |mark: &Raw| {
        RawObject::read(mark.get())
            .is_ok_and(|mark| mark.parsed::<String>("ttl").as_deref() == Some("1h"))
    };
    let tool = if later.iter().any(is_long) { LONG } else { SHORT };
    // An automatic mark of the provider is on the last block already.
    let marks_result = !is_first && !is_automatic;
    AddedMarks {
        tool: (!marks_result || spare > 1).then_some(tool),
        result: marks_result.then_some(SHORT),
    }
}

/// Collects the marks of blocks, and of the blocks within a tool result.
fn marks(blocks: &[Raw], found: &mut Vec<Raw>) {
    for block in blocks.iter().filter(|block| block.get().contains(MARK)) {
        let Ok(block) = RawObject::read(block.get()) else { continue };
        found.extend(block.get(MARK).filter(|mark| mark.get() != "null").map(ToOwned::to_owned));
        if let Some(inner) = block.get("content").and_then(elements) {
            marks(&inner, found);
        }
    }
}

/// A tool or a block with a mark.
pub(super) fn marked(block: &str, mark: &'static str) -> Raw {
    match RawObject::read(block) {
        Ok(mut block) => {
            block.set(MARK, raw(mark.to_owned()));
            block.to_raw()
        }
        Err(_) => raw(block.to_owned()),
    }
}

/// A message with a mark on its last block.
pub(super) fn marked_message(message: &Raw, mark: &'static str) -> Raw {
    let Ok(mut object) = RawObject::read(message.get()) else { return message.clone() };
    let Some(mut content) = object.get("content").and_then(elements) else {
        return message.clone();
    };
    if let Some(last) = content.last_mut() {
        *last = marked(last.get(), mark);
    }
    object.set("content", array(content.iter().map(|block| block.get())));
    object.to_raw()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(
        request: &serde_json::Value,
        is_first: bool,
        tool: Option<&str>,
        result: Option<&str>,
    ) {
        let request = RawObject::read(&request.to_string()).unwrap();
        let messages = request.get("messages").and_then(elements).unwrap_or_default();
        let added = added_marks(&request, &messages, is_first);
        assert_eq!((added.tool, added.result), (tool, result));
    }

    #[test]
    fn an_app_without_marks_gets_none() {
        check(&json!({"system": "cache_control", "messages": []}), true, None, None);
        let schema = json!({"name": "t", "input_schema": {"properties": {"cache_control": {}}}});
        check(&json!({"tools": [schema], "messages": []}), true, None, None);
    }

    #[test]
    fn a_spare_mark_goes_on_the_last_tool_and_then_on_the_last_result() {
        let block = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
        let plain = json!({"type": "text", "text": "x"});
        let one = json!({"system": [block], "messages": []});
        check(&one, true, Some(SHORT), None);
        check(&one, false, Some(SHORT), Some(SHORT));
        let three = json!({"system": [block, block], "messages": [{"role": "user", "content": [plain, block]}]});
        check(&three, true, Some(SHORT), None);
        check(&three, false, None, Some(SHORT));
        let inner = json!({"type": "tool_result", "content": [block], "cache_control": {"type": "ephemeral"}});
        let four =
            json!({"system": [block, block], "messages": [{"role": "user", "content": [inner]}]});
        check(&four, true, None, None);
        check(&four, false, None, None);
    }

    #[test]
    fn a_long_mark_behind_the_tools_needs_a_long_one_on_the_tools() {
        let long = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}});
        check(&json!({"system": [long], "messages": []}), true, Some(LONG), None);
        let automatic = json!({"cache_control": {"type": "ephemeral"}, "messages": []});
        check(&automatic, false, Some(SHORT), None);
    }
}
