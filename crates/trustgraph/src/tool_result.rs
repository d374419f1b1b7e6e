//! The result of a tool as the clients read it.

use serde_json::{Value, json};
use switchboard_model::ToolResult;

use crate::error::TrustGraphError;

/// The answer to a call. A result with `isError` is an error.
pub fn tool_answer(result: &ToolResult) -> Result<Value, TrustGraphError> {
    let text = text_of(&result.content);
    match (&result.structured, result.is_error) {
        (_, true) => Err(TrustGraphError::tool(text)),
        (Some(structured), false) => Ok(json!({"object": structured})),
        (None, false) => Ok(json!({"text": text})),
    }
}

/// The texts of the content; what is no text is named.
fn text_of(content: &[Value]) -> String {
    let block = |block: &Value| {
        let member = |name: &str| block.get(name).and_then(Value::as_str);
        match (member("type").unwrap_or("content"), member("text")) {
            ("text", Some(text)) => text.to_owned(),
            ("resource", _) => {
                let resource = block.get("resource");
                let text = resource.and_then(|it| it.get("text")?.as_str());
                text.map_or_else(|| "[resource]".to_owned(), str::to_owned)
            }
            ("resource_link", _) => format!("[{}]", member("uri").unwrap_or("resource")),
            (kind, _) => match member("mimeType") {
                Some(mime) => format!("[{kind} {mime}]"),
                None => format!("[{kind}]"),
            },
        }
    };
    content.iter().map(block).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[track_caller]
    fn check(result: &Value, expected: Result<Value, &str>) {
        let result = ToolResult::from_text(&result.to_string()).unwrap();
        let answer = tool_answer(&result).map_err(|error| error.message);
        assert_eq!(answer, expected.map_err(str::to_owned));
    }

    #[test]
    fn a_result_is_a_text_an_object_or_an_error() {
        let text = json!({"type": "text", "text": "12"});
        check(&json!({"content": [text]}), Ok(json!({"text": "12"})));
        check(&json!({"content": []}), Ok(json!({"text": ""})));
        check(
            &json!({"content": [text], "structuredContent": {"sum": 12}}),
            Ok(json!({"object": {"sum": 12}})),
        );
        check(&json!({"content": [text], "isError": true}), Err("12"));
        check(
            &json!({"content": [text, {"type": "image", "mimeType": "image/png", "data": "AA=="}]}),
            Ok(json!({"text": "12\n[image image/png]"})),
        );
        check(
            &json!({"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "in it"}}]}),
            Ok(json!({"text": "in it"})),
        );
    }
}
