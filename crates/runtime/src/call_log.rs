//! One log line for each call that has ended, and the text of a tool's own error.

use std::time::Duration;

use serde_json::Value;
use switchboard_model::{CallRecord, CanonicalName};
use switchboard_protocol::Members;
use tracing::Level;

use crate::call_result::RawCallResult;

/// Maximum number of characters of a tool's error in a record.
const MAX_ERROR_TEXT: usize = 500;
/// Maximum number of characters of an error in a log line.
const MAX_LOGGED_ERROR: usize = 200;

/// Logs a call that has ended: tool, outcome, duration and caller. The level is DEBUG; arguments and results are not
/// logged.
pub(crate) fn log_call(record: &CallRecord) {
    if !tracing::enabled!(Level::DEBUG) {
        return;
    }
    let milliseconds = |duration: Duration| (duration.as_secs_f64() * 1e6).round() / 1e3;
    tracing::debug!(
        tool = record.tool.as_ref().map_or(record.requested.as_str(), CanonicalName::as_str),
        outcome = record.outcome.as_str(),
        wait_ms = milliseconds(record.wait),
        run_ms = milliseconds(record.run),
        result_bytes = record.result_bytes,
        via = record.face.as_str(),
        client = record.caller.client.as_deref(),
        principal = record.caller.principal.as_deref(),
        session = record.session.as_deref(),
        call = record.id.0,
        error = record.message.as_deref().map(|message| one_line(message, MAX_LOGGED_ERROR)),
        "tool call ended"
    );
}

/// The error message of a tool: the first text of its result.
pub(crate) fn error_text(answer: &RawCallResult) -> Option<String> {
    let result = Members::read(answer.as_str()).ok()?;
    let content: Vec<Value> = serde_json::from_str(result.get("content")?).ok()?;
    let text = content.iter().find_map(|block| block.get("text")?.as_str())?;
    Some(text.chars().take(MAX_ERROR_TEXT).collect())
}

/// A text on one line, without control characters, cut at `most` characters.
fn one_line(text: &str, most: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use switchboard_model::ToolResult;

    use super::*;

    #[test]
    fn the_first_text_of_an_error_is_kept_up_to_a_bound() {
        #[track_caller]
        fn check(content: &Value, expected: Option<&str>) {
            let mut result = ToolResult::error("");
            result.content = content.as_array().cloned().unwrap_or_default();
            assert_eq!(error_text(&RawCallResult::of(&result)).as_deref(), expected);
        }
        let long = "ü".repeat(2 * MAX_ERROR_TEXT);
        let text = |text: &str| serde_json::json!({"type": "text", "text": text});
        let image = serde_json::json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        check(&serde_json::json!([]), None);
        check(&serde_json::json!([image]), None);
        check(
            &serde_json::json!([image, text("no\n\"such\" file"), text("second")]),
            Some("no\n\"such\" file"),
        );
        check(&serde_json::json!([text(&long)]), Some(&"ü".repeat(MAX_ERROR_TEXT)));
    }

    #[test]
    fn an_error_is_one_line_of_the_log() {
        assert_eq!(one_line("a\n  b\u{1b}[31mc\r\n", 20), "a b [31mc");
        assert_eq!(one_line("abcdef", 3), "abc…");
    }
}
