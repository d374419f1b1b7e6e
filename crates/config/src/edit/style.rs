//! Writes new values in the style of the file that they are added to.

use saphyr_parser::ScalarStyle;
use serde_json::Value as Json;

use super::layout::{Form, Layout, LayoutKind};
use super::lines::Lines;
use crate::emit::{plain_or_quoted, quoted};

/// Indentation and line breaks of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileStyle {
    /// How many columns a map is indented below its key.
    step: usize,
    /// How many columns the dashes of a list are indented below its key.
    list_step: usize,
    pub(super) line_break: &'static str,
}

impl FileStyle {
    /// The style of the first nested map and of the first list in the file; two columns where there is none.
    pub(super) fn of(root: Option<&Layout>, lines: &Lines<'_>) -> Self {
        let (mut step, mut list_step) = (None, None);
        if let Some(root) = root {
            measure(root, lines, &mut step, &mut list_step);
        }
        let step = step.unwrap_or(2);
        Self { step, list_step: list_step.unwrap_or(step), line_break: lines.line_break() }
    }

    /// The lines of a value below a key in `column`.
    pub(super) fn below_key(self, value: &Json, column: usize) -> Vec<String> {
        let indent = if value.is_array() { self.list_step } else { self.step };
        self.block(value, column + indent)
    }

    /// The lines of a non-empty list or map in block style, in `column`.
    pub(super) fn block(self, value: &Json, column: usize) -> Vec<String> {
        let margin = " ".repeat(column);
        match value {
            Json::Array(items) => items.iter().flat_map(|item| self.item(item, column)).collect(),
            Json::Object(members) => {
                let members = members.iter();
                members.flat_map(|(key, value)| self.entry(key, value, column)).collect()
            }
            scalar => vec![format!("{margin}{}", inline(scalar))],
        }
    }

    /// The lines of one key and its value.
    pub(super) fn entry(self, key: &str, value: &Json, column: usize) -> Vec<String> {
        let key = format!("{}{}:", " ".repeat(column), plain_or_quoted(key));
        if is_inline(value) {
            return vec![format!("{key} {}", inline(value))];
        }
        std::iter::once(key).chain(self.below_key(value, column)).collect()
    }

    /// The lines of one item of a list, with its dash.
    pub(super) fn item(self, value: &Json, column: usize) -> Vec<String> {
        let margin = " ".repeat(column);
        if is_inline(value) {
            return vec![format!("{margin}- {}", inline(value))];
        }
        let mut lines = self.block(value, column + 2);
        if let Some(first) = lines.first_mut() {
            *first = format!("{margin}- {}", first.trim_start());
        }
        lines
    }

    /// Joins lines, each with a line break.
    pub(super) fn join(self, lines: &[String]) -> String {
        lines.iter().flat_map(|line| [line.as_str(), self.line_break]).collect()
    }
}

fn measure(node: &Layout, lines: &Lines<'_>, step: &mut Option<usize>, list: &mut Option<usize>) {
    if step.is_some() && list.is_some() {
        return;
    }
    match &node.kind {
        LayoutKind::Map(entries, Form::Block) => {
            for entry in entries {
                let (key, value) = (entry.key_span.start, &entry.value);
                let below = lines.column(value.span.start).checked_sub(lines.column(key));
                let is_below = lines.start_of(value.span.start) > lines.start_of(key);
                match (&value.kind, below.filter(|_| is_below)) {
                    (LayoutKind::Map(_, Form::Block), Some(below)) if below > 0 => {
                        step.get_or_insert(below);
                    }
                    (LayoutKind::List(_, Form::Block), Some(below)) => {
                        list.get_or_insert(below);
                    }
                    _ => {}
                }
                measure(value, lines, step, list);
            }
        }
        LayoutKind::List(items, Form::Block) => {
            for item in items {
                measure(&item.value, lines, step, list);
            }
        }
        _ => {}
    }
}

/// Whether a value is written on the line of its key.
pub(super) fn is_inline(value: &Json) -> bool {
    match value {
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
        _ => true,
    }
}

/// Writes a scalar, an empty list or an empty map as YAML that fits behind a `key:`. Callers split other lists and maps
/// over several lines.
pub(super) fn inline(value: &Json) -> String {
    match value {
        Json::String(text) => plain_or_quoted(text),
        other => other.to_string(),
    }
}

/// A scalar with the quotes of the one that it replaces, where these can hold it.
pub(super) fn like(value: &Json, style: ScalarStyle) -> String {
    let Json::String(text) = value else { return inline(value) };
    match style {
        ScalarStyle::DoubleQuoted => quoted(text),
        ScalarStyle::SingleQuoted if !text.chars().any(char::is_control) => {
            format!("'{}'", text.replace('\'', "''"))
        }
        ScalarStyle::SingleQuoted
        | ScalarStyle::Plain
        | ScalarStyle::Literal
        | ScalarStyle::Folded => plain_or_quoted(text),
    }
}

/// How values between brackets are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowStyle {
    /// Whether keys have quotes, as in JSON.
    pub(super) quotes_keys: bool,
}

impl FlowStyle {
    pub(super) fn value(self, value: &Json) -> String {
        match value {
            Json::String(text) if self.quotes_keys || !is_word(text) => quoted(text),
            Json::String(text) => plain_or_quoted(text),
            Json::Array(items) => {
                let items: Vec<_> = items.iter().map(|item| self.value(item)).collect();
                format!("[{}]", items.join(", "))
            }
            Json::Object(members) => {
                let members = members.iter().map(|(key, value)| self.entry(key, value));
                format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
            }
            other => other.to_string(),
        }
    }

    pub(super) fn entry(self, key: &str, value: &Json) -> String {
        let key =
            if self.quotes_keys || !is_word(key) { quoted(key) } else { plain_or_quoted(key) };
        format!("{key}: {}", self.value(value))
    }

    /// A list or map over several lines, as in a JSON file; the first line is not indented.
    pub(super) fn spread(self, value: &Json, margin: &str, line_break: &str) -> String {
        let inner = format!("{margin}  ");
        let between = format!(",{line_break}{inner}");
        let (open, close, parts): (_, _, Vec<_>) = match value {
            Json::Array(items) if !items.is_empty() => {
                let parts = items.iter().map(|item| self.spread(item, &inner, line_break));
                ('[', ']', parts.collect())
            }
            Json::Object(members) if !members.is_empty() => {
                let parts = members.iter().map(|(key, value)| {
                    let key = self.entry(key, &Json::Null);
                    let key = key.strip_suffix("null").unwrap_or(&key);
                    format!("{key}{}", self.spread(value, &inner, line_break))
                });
                ('{', '}', parts.collect())
            }
            other => return self.value(other),
        };
        format!("{open}{line_break}{inner}{}{line_break}{margin}{close}", parts.join(&between))
    }
}

/// Whether a text needs no quotes between brackets.
fn is_word(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "_.-/".contains(c))
}
