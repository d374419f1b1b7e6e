//! Reads the arguments of an action: finds the end of a JSON object as its characters arrive, and parses it.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// Arguments, or the text that was written in their place.
pub(crate) type ReadArguments = Result<Map<String, Value>, String>;

/// Words that models write when an action has no arguments.
const NONE: [&str; 7] = ["none", "null", "n/a", "empty", "-", "no arguments", ")"];
/// Maximum size of arguments that are not read, as they are kept for display.
const MAX_UNREAD: usize = 4 << 10;

/// Finds the end of a JSON value that begins with `{`, character by character.
#[derive(Debug, Default)]
pub(crate) struct ObjectEnd {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl ObjectEnd {
    /// Whether the end is within a string.
    pub(crate) fn is_in_string(&self) -> bool {
        self.in_string
    }

    /// Whether the value is complete with this character.
    pub(crate) fn ends_with(&mut self, c: char) -> bool {
        if self.in_string {
            match c {
                _ if self.is_escaped => self.is_escaped = false,
                '\\' => self.is_escaped = true,
                '"' => self.in_string = false,
                _ => {}
            }
            return false;
        }
        match c {
            '"' => self.in_string = true,
            '{' | '[' => self.depth += 1,
            '}' | ']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.depth == 0
    }
}

/// Parses the arguments of an action. The error is their text, cut to a size that can be shown.
pub(crate) fn read(text: &str) -> ReadArguments {
    let text = text.trim();
    let bare = text.trim_matches(['`', '"', '\'', '*']).trim();
    if bare.is_empty() || NONE.iter().any(|none| bare.eq_ignore_ascii_case(none)) {
        return Ok(Map::new());
    }
    let value = parse(text).or_else(|| parse(text.trim_matches(['`', '\''])));
    match value {
        Some(Value::Object(arguments)) => Ok(arguments),
        // Some models write the object as a string.
        Some(Value::String(inner)) => match parse(&inner) {
            Some(Value::Object(arguments)) => Ok(arguments),
            _ => Err(cut(text)),
        },
        _ => Err(cut(text)),
    }
}

/// The answer that a model gave as the arguments of an action named `Final Answer`.
pub(crate) fn as_answer(arguments: ReadArguments) -> String {
    match arguments {
        Ok(arguments) => match arguments.values().next() {
            Some(Value::String(text)) if arguments.len() == 1 => text.clone(),
            None => String::new(),
            Some(_) => Value::Object(arguments).to_string(),
        },
        Err(text) => match serde_json::from_str(&text) {
            Ok(Value::String(inner)) => inner,
            _ => text,
        },
    }
}

/// Parses a JSON value. Raw line breaks and tabs within strings, and a comma after the last element, which JSON forbids and
/// models write, are accepted.
pub(crate) fn parse(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let escaped = escape_controls(text);
    let parsed = serde_json::from_str(&escaped);
    parsed.or_else(|_| serde_json::from_str(&without_last_commas(&escaped))).ok()
}

/// The text without commas that are followed by `}` or `]`, outside of strings.
fn without_last_commas(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, c) in text.char_indices() {
        let rest = text.get(at + c.len_utf8()..).unwrap_or_default();
        let is_last = || rest.trim_start().starts_with(['}', ']']);
        if in_string || c != ',' || !is_last() {
            kept.push(c);
        }
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if in_string => is_escaped = true,
            '"' => in_string = !in_string,
            _ => {}
        }
    }
    kept
}

fn escape_controls(text: &str) -> Cow<'_, str> {
    if !text.contains(['\n', '\t']) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let (mut in_string, mut is_escaped) = (false, false);
    for c in text.chars() {
        match c {
            '\n' if in_string => escaped.push_str("\\n"),
            '\t' if in_string => escaped.push_str("\\t"),
            _ => escaped.push(c),
        }
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if in_string => is_escaped = true,
            '"' => in_string = !in_string,
            _ => {}
        }
    }
    Cow::Owned(escaped)
}

/// The beginning of a text, up to a size that can be shown.
pub(crate) fn cut(text: &str) -> String {
    let mut kept = String::new();
    for c in text.chars() {
        if kept.len() + c.len_utf8() > MAX_UNREAD {
            break;
        }
        kept.push(c);
    }
    kept
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_ends_with_its_last_brace() {
        let check = |text: &str, expected: Option<usize>| {
            let mut end = ObjectEnd::default();
            assert_eq!(text.chars().position(|c| end.ends_with(c)), expected, "{text}");
        };
        check("{}", Some(1));
        check(r#"{"a":"}"} x"#, Some(8));
        check(r#"{"a":"\"}"}"#, Some(10));
        check(r#"{"a":[{}]}"#, Some(9));
        check(r#"{"a":"#, None);
    }

    #[test]
    fn arguments_are_an_object_or_their_text() {
        let check = |text: &str, expected: Result<Value, &str>| {
            let read = read(text).map(Value::Object);
            assert_eq!(read, expected.map_err(str::to_owned), "{text}");
        };
        check("", Ok(json!({})));
        check(" None ", Ok(json!({})));
        check("`{}`x", Err("`{}`x"));
        check("`{\"a\":1}`", Ok(json!({"a": 1})));
        check(r#""{\"a\":1}""#, Ok(json!({"a": 1})));
        check("{\"a\": \"x\ny\\\"\t\"}", Ok(json!({"a": "x\ny\"\t"})));
        check("{\"a\": [1, 2, ], \"b\": \",}\",\n}", Ok(json!({"a": [1, 2], "b": ",}"})));
        check("{\"a\": 1,,}", Err("{\"a\": 1,,}"));
        check("[1]", Err("[1]"));
        check("{'a': 1}", Err("{'a': 1}"));
        check("a = 1", Err("a = 1"));
        assert_eq!(read(&"é".repeat(4000)).unwrap_err().len(), MAX_UNREAD);
    }
}
