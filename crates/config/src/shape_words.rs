//! Names of types and values in error messages.

use crate::schema::SchemaAt;
use crate::tree::{Node, Value};

/// Longer strings are truncated in quotes.
const QUOTED_CHARACTERS: usize = 60;

/// The types that the schema accepts: "an integer", "a string or a list".
pub(crate) fn expected(schema: SchemaAt) -> String {
    let words = schema.words();
    if !words.is_empty() {
        return format!("one of {}", listed(&words));
    }
    let words: Vec<_> = schema
        .types()
        .map(|kind| match kind {
            "integer" => "an integer",
            "number" => "a number",
            "string" => "a string",
            "boolean" => "true or false",
            "array" => "a list",
            _ => "a map",
        })
        .collect();
    words.join(" or ")
}

/// A list of words, each in backticks.
pub(crate) fn listed(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// The actual value: `the string "many"`. A sensitive value is described by its type alone.
pub(crate) fn found(node: &Node) -> String {
    match (&node.value, node.sensitive) {
        (Value::Null | Value::Broken, _) => "nothing".into(),
        (Value::List(_), _) => "a list".into(),
        (Value::Map(_), _) => "a map".into(),
        (Value::Bool(_), true) => "a boolean (its value is not shown)".into(),
        (Value::Integer(_), true) => "an integer (its value is not shown)".into(),
        (Value::Float(_), true) => "a number (its value is not shown)".into(),
        (Value::Text(_), true) => "a string (its value is not shown)".into(),
        (Value::Bool(value), false) => format!("`{value}`"),
        (Value::Integer(value), false) => format!("the integer {value}"),
        (Value::Float(value), false) => format!("the number {value}"),
        (Value::Text(text), false) => format!("the string {}", quoted(text)),
    }
}

/// A string in quotes, escaped and truncated.
pub(crate) fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(QUOTED_CHARACTERS).collect();
    let mark = if cut.len() < text.len() { "..." } else { "" };
    format!("{cut:?}{mark}")
}

/// Describes the `pattern` of a key.
pub(crate) fn pattern_in_words(key: &str) -> &'static str {
    match key {
        "local_tools" => "`all` or a list of names",
        "expose_as" => {
            "a letter or `_`, followed by letters, digits, `_` and `-`, 64 characters at most"
        }
        _ => "letters, digits, `_` and `-`, starting with a letter or digit, 64 characters at most",
    }
}
