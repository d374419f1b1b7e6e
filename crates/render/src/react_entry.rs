//! A tool as the prompt of a ReACT turn lists it: each argument with its type in words.

use serde_json::{Map, Value, json};

/// The members of objects are written out to this depth, and the elements of arrays one level deeper.
const MAX_DEPTH: usize = 2;
/// Maximum number of values of an `enum` that are listed.
const MAX_VALUES: usize = 20;
/// Maximum number of members of an object that are listed.
const MAX_MEMBERS: usize = 20;

/// The entry of a tool: `{name, description, arguments: [{name, type, required, description}]}`.
pub(crate) fn react_entry(name: &str, text: Option<&str>, schema: &Map<String, Value>) -> Value {
    let arguments = members(schema).map(|(key, argument, required)| {
        let default = argument.get("default").map(|default| format!("Default: {default}"));
        let texts = [said(argument).to_owned(), default.unwrap_or_default()];
        let description = texts.join(" ").trim().to_owned();
        json!({
            "name": key,
            "type": type_text(argument, 0),
            "required": required,
            "description": description,
        })
    });
    json!({
        "name": name,
        "description": text.unwrap_or_default(),
        "arguments": arguments.collect::<Vec<_>>(),
    })
}

/// The properties of an object: key, schema, and whether it is required.
fn members(schema: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value, bool)> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        move |key: &String| required.is_some_and(|names| names.iter().any(|name| name == key));
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(move |(key, value)| (key, value, is_required(key)))
}

fn said(schema: &Value) -> &str {
    schema.get("description").and_then(Value::as_str).unwrap_or_default().trim()
}

/// The type of a value in words, such as `array of string` or `one of "a", "b"`.
fn type_text(schema: &Value, depth: usize) -> String {
    let Some(map) = schema.as_object() else { return "any".into() };
    if let Some(values) = map.get("enum").and_then(Value::as_array) {
        let shown: Vec<_> = values.iter().take(MAX_VALUES).map(Value::to_string).collect();
        let more = if values.len() > MAX_VALUES { ", ..." } else { "" };
        return format!("one of {}{more}", shown.join(", "));
    }
    for variants in ["anyOf", "oneOf"] {
        if let Some(variants) = map.get(variants).and_then(Value::as_array) {
            return joined(variants.iter().map(|variant| type_text(variant, depth)));
        }
    }
    match map.get("type") {
        Some(Value::String(name)) => named_type(name, map, depth),
        Some(Value::Array(names)) => {
            joined(names.iter().filter_map(Value::as_str).map(|name| named_type(name, map, depth)))
        }
        _ => "any".into(),
    }
}

fn joined(types: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = Vec::new();
    for text in types {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    if all.is_empty() { "any".into() } else { all.join(" or ") }
}

fn named_type(name: &str, schema: &Map<String, Value>, depth: usize) -> String {
    match name {
        "array" => match schema.get("items").map(|items| type_text(items, depth + 1)) {
            Some(items) if items != "any" && depth <= MAX_DEPTH => format!("array of {items}"),
            _ => "array".into(),
        },
        "object" if depth < MAX_DEPTH => {
            let mut listed: Vec<_> = members(schema)
                .take(MAX_MEMBERS)
                .map(|(key, value, required)| {
                    let mark = if required { "" } else { "?" };
                    format!("{key}{mark}: {}", type_text(value, depth + 1))
                })
                .collect();
            if members(schema).nth(MAX_MEMBERS).is_some() {
                listed.push("...".into());
            }
            if listed.is_empty() {
                "object".into()
            } else {
                format!("object {{{}}}", listed.join(", "))
            }
        }
        "string" => match schema.get("format").and_then(Value::as_str) {
            Some(format) => format!("string in the format {format}"),
            None => "string".into(),
        },
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn types_are_written_in_words() {
        let check = |schema: Value, expected: &str| assert_eq!(type_text(&schema, 0), expected);
        check(json!({"type": "string"}), "string");
        check(json!({"type": "string", "format": "date"}), "string in the format date");
        check(json!({"type": ["integer", "null"]}), "integer or null");
        check(json!({"enum": ["a", 1, null]}), r#"one of "a", 1, null"#);
        check(json!({"type": "array", "items": {"type": "string"}}), "array of string");
        check(json!({"type": "array", "items": {}}), "array");
        check(json!({"type": "object", "properties": {}}), "object");
        check(
            json!({"type": "object", "required": ["a"], "properties": {
                "a": {"type": "number"},
                "b": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "string"}}}},
            }}),
            "object {a: number, b?: array of object}",
        );
        check(
            json!({"type": "array", "items": {"type": "object", "properties": {
                "texts": {"type": "array", "items": {"type": "string"}},
                "rows": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
            }}}),
            "array of object {texts?: array of string, rows?: array of array}",
        );
        check(
            json!({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "string"}]}),
            "string or number",
        );
        check(json!({}), "any");
        check(json!(true), "any");
        let many: Vec<_> = (0..30).collect();
        assert!(type_text(&json!({"enum": many}), 0).ends_with("18, 19, ..."));
    }

    #[test]
    fn an_entry_names_each_argument_and_whether_it_is_required() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "number", "description": "the first"},
            "b": {"type": "integer", "default": 5, "description": "the second."},
        }});
        assert_eq!(
            react_entry("add", Some("Adds."), schema.as_object().unwrap()),
            json!({"name": "add", "description": "Adds.", "arguments": [
                {"name": "a", "type": "number", "required": true, "description": "the first"},
                {"name": "b", "type": "integer", "required": false, "description": "the second. Default: 5"},
            ]})
        );
        let bare = react_entry("x", None, &Map::new());
        assert_eq!(bare, json!({"name": "x", "description": "", "arguments": []}));
    }
}
