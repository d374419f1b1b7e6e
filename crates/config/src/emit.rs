//! Writes YAML in block style with one value per line, for easy editing and diffing.

use std::fmt::Write as _;

use saphyr::Scalar;
use serde_json::Value as Json;

use crate::place::SourceLocation;

/// A document to be written.
#[derive(Clone)]
pub(crate) enum Doc {
    /// A scalar or an empty list, with its origin if that is to be shown.
    Value(Json, Option<SourceLocation>),
    /// A string in which `${VAR}` is a reference; it is never escaped.
    Template(String, SourceLocation),
    List(Vec<Doc>),
    Map(Vec<(String, Doc)>),
}

impl Doc {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Value(Json::String(text.into()), None)
    }

    /// A document without origins.
    pub(crate) fn from_json(json: &Json) -> Self {
        match json {
            Json::Array(items) if !items.is_empty() => {
                Self::List(items.iter().map(Self::from_json).collect())
            }
            Json::Object(map) if !map.is_empty() => {
                Self::Map(map.iter().map(|(key, it)| (key.clone(), Self::from_json(it))).collect())
            }
            other => Self::Value(other.clone(), None),
        }
    }

    /// The document as text that ends with a newline.
    pub(crate) fn to_yaml(&self) -> String {
        let mut text = self.lines(0).join("\n");
        text.push('\n');
        text
    }

    /// The lines of a list or map, indented.
    pub(crate) fn lines(&self, indent: usize) -> Vec<String> {
        let margin = " ".repeat(indent);
        match self {
            Self::Value(..) | Self::Template(..) => vec![format!("{margin}{}", self.inline())],
            Self::List(items) => items.iter().flat_map(|item| item.item_lines(indent)).collect(),
            Self::Map(entries) => entries
                .iter()
                .flat_map(|(key, value)| {
                    let key = format!("{margin}{}:", plain_or_quoted(key));
                    if value.is_inline() {
                        return vec![format!("{key} {}", value.inline())];
                    }
                    let mut lines = vec![key];
                    lines.extend(value.lines(indent + 2));
                    lines
                })
                .collect(),
        }
    }

    /// The document as JSON, without origins.
    pub(crate) fn to_json(&self) -> Json {
        match self {
            Self::Value(json, _) => json.clone(),
            Self::Template(text, _) => Json::String(text.clone()),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Map(entries) => {
                entries.iter().map(|(key, value)| (key.clone(), value.to_json())).collect()
            }
        }
    }

    /// The same document with `change` applied to every string.
    pub(crate) fn map_text(&self, change: &dyn Fn(&str) -> String) -> Self {
        match self {
            Self::Value(Json::String(text), place) => {
                Self::Value(Json::String(change(text)), place.clone())
            }
            Self::Value(..) | Self::Template(..) => self.clone(),
            Self::List(items) => {
                Self::List(items.iter().map(|item| item.map_text(change)).collect())
            }
            Self::Map(entries) => Self::Map(
                entries.iter().map(|(key, value)| (key.clone(), value.map_text(change))).collect(),
            ),
        }
    }

    fn item_lines(&self, indent: usize) -> Vec<String> {
        let margin = " ".repeat(indent);
        if self.is_inline() {
            return vec![format!("{margin}- {}", self.inline())];
        }
        let mut lines = self.lines(indent + 2);
        if let Some(first) = lines.first_mut() {
            *first = format!("{margin}- {}", first.trim_start());
        }
        lines
    }

    fn is_inline(&self) -> bool {
        match self {
            Self::Value(..) | Self::Template(..) => true,
            Self::List(items) => items.is_empty(),
            Self::Map(entries) => entries.is_empty(),
        }
    }

    fn inline(&self) -> String {
        match self {
            Self::Value(json, place) => {
                let value = match json {
                    Json::String(text) => plain_or_quoted(text),
                    other => other.to_string(),
                };
                match place {
                    Some(place) => format!("{value}  # {}", one_line(&place.to_string())),
                    None => value,
                }
            }
            Self::Template(text, place) => {
                format!("{}  # {}", plain_or_quoted(text), one_line(&place.to_string()))
            }
            Self::List(_) => "[]".into(),
            Self::Map(_) => "{}".into(),
        }
    }
}

/// A string as YAML: unquoted if every YAML version reads it as a string, else quoted.
pub(crate) fn plain_or_quoted(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "_./-:${}@=+".contains(c);
    let starts_safe = text.starts_with(|c: char| c.is_ascii_alphanumeric() || "_/$".contains(c));
    let is_text = matches!(Scalar::parse_from_cow(text.into()), Scalar::String(_));
    let is_old_boolean =
        ["y", "n", "yes", "no", "on", "off"].contains(&text.to_ascii_lowercase().as_str());
    if starts_safe
        && text.chars().all(is_safe)
        && !text.ends_with(':')
        && is_text
        && !is_old_boolean
    {
        text.into()
    } else {
        quoted(text)
    }
}

pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\u{2028}' | '\u{2029}' | '\u{feff}' => push_escape(&mut out, c),
            c if c.is_control() => push_escape(&mut out, c),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn push_escape(out: &mut String, c: char) {
    // Writing to a string cannot fail.
    let _written = write!(out, "\\u{:04x}", u32::from(c));
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::source::SourceText;
    use crate::tree::Value;

    fn read_back(yaml: &str) -> Option<Value> {
        let source = SourceText::new("x", yaml);
        let document = crate::yaml::parse(&source, yaml).ok()?.root?;
        document.get("k").map(|node| node.value.clone())
    }

    #[test]
    fn only_what_needs_quotes_gets_them() {
        let rows = [
            ("30s", "30s"),
            ("http://localhost:8180/mcp", "http://localhost:8180/mcp"),
            ("${TOKEN}", "${TOKEN}"),
            ("00:00:30", "00:00:30"),
            ("7", "\"7\""),
            ("1e3", "\"1e3\""),
            ("true", "\"true\""),
            ("No", "\"No\""),
            ("", "\"\""),
            ("***", "\"***\""),
            ("a: b", "\"a: b\""),
            ("a\n\"b\"\\\t\u{7f}", "\"a\\n\\\"b\\\"\\\\\\t\\u007f\""),
        ];
        for (text, expected) in rows {
            assert_eq!(plain_or_quoted(text), expected);
        }
    }

    #[test]
    fn nested_lists_and_maps_are_indented() {
        let doc = Doc::Map(vec![(
            "a".into(),
            Doc::List(vec![
                Doc::Map(vec![("b".into(), Doc::text("x")), ("c".into(), Doc::List(vec![]))]),
                Doc::List(vec![Doc::text("z"), Doc::Map(vec![])]),
            ]),
        )]);
        assert_eq!(doc.to_yaml(), "a:\n  - b: x\n    c: []\n  - - z\n    - {}\n");
    }

    proptest! {
        #[test]
        fn every_text_is_read_back(text in any::<String>()) {
            let yaml = Doc::Map(vec![("k".into(), Doc::text(text.clone()))]).to_yaml();
            prop_assert_eq!(read_back(&yaml), Some(Value::Text(text)), "{}", yaml);
        }
    }
}
