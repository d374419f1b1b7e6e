//! JSON as a text for checks: strings are written as they read, without escapes, and binary data is left out.
//!
//! A pattern that looks for a word must find it wherever it is. In JSON text a word after a line break follows the letter
//! `n` of an escape.

use serde_json::Value;

/// The members of MCP content that hold base64.
const BINARY: [&str; 2] = ["data", "blob"];

/// The text of a JSON text; a text that is not JSON stays as it is.
pub(crate) fn readable_text(json: &str) -> String {
    serde_json::from_str(json).map_or_else(|_| json.to_owned(), |value| readable_json(&value))
}

/// The text of a JSON value. It is for people and detectors, and cannot be parsed again.
pub fn readable_json(value: &Value) -> String {
    let mut text = String::new();
    push(&mut text, value);
    text
}

fn push(out: &mut String, value: &Value) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
        Value::String(text) => push_quoted(out, text),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                push(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let has_media = members.contains_key("mimeType");
            out.push('{');
            for (at, (key, member)) in members.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                push_quoted(out, key);
                out.push_str(": ");
                match member {
                    Value::String(data) if has_media && BINARY.contains(&key.as_str()) => {
                        let left_out = format!("({} bytes of base64)", data.len());
                        out.push_str(&left_out);
                    }
                    member => push(out, member),
                }
            }
            out.push('}');
        }
    }
}

fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    out.push_str(text);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_read_as_they_are_and_binary_data_is_left_out() {
        for (json, expected) in [
            (r#"{"a":"x\ny","b":[1,true,null]}"#, "{\"a\": \"x\ny\", \"b\": [1, true, null]}"),
            (r#"{"k\u00e9y":"\"q\""}"#, "{\"kéy\": \"\"q\"\"}"),
            (
                r#"{"type":"image","mimeType":"image/png","data":"AAAA"}"#,
                r#"{"type": "image", "mimeType": "image/png", "data": (4 bytes of base64)}"#,
            ),
            (r#"{"data":"AAAA"}"#, r#"{"data": "AAAA"}"#),
            ("{broken", "{broken"),
        ] {
            assert_eq!(readable_text(json), expected);
        }
    }
}
