//! The values of an entry of the configuration file as the API shows and takes them.
//!
//! A secret is shown as `***`, and `***` in a request keeps the present value at that place. A reference to a variable or to
//! a file is accepted only where the file has the same one already: a request must not read secrets of this machine.

use serde_json::{Map, Value, from_value, json};
use switchboard_api::{FieldError, ToolDeclaration};
use switchboard_config::{has_reference, is_fixed_or_hidden};
use switchboard_model::redact_url;
use url::Url;

/// Stands for a secret.
const REDACTED: &str = "***";
/// The limits of a tool entry, which the API groups below `limits`.
const LIMITS: [&str; 7] = [
    "max_instances",
    "timeout",
    "max_timeout",
    "queue_timeout",
    "inactivity_timeout",
    "max_result_bytes",
    "rate",
];

/// The fields of a tool entry with its limits below `limits`, and without its name.
pub fn declaration_of(fields: &Map<String, Value>) -> Map<String, Value> {
    let mut declared = Map::new();
    for (key, value) in fields.iter().filter(|(key, _)| *key != "name") {
        if LIMITS.contains(&key.as_str()) {
            let limits = declared.entry("limits").or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(limits) = limits {
                limits.insert(key.clone(), value.clone());
            }
        } else {
            // Both spellings mean the same.
            let key = if key == "applicable-states" { "applicable_states" } else { key };
            declared.insert(key.to_owned(), value.clone());
        }
    }
    declared
}

/// The opposite of [`declaration_of`]. Members without a value are left out. `present` decides between two spellings.
pub fn fields_of(
    mut declared: Map<String, Value>,
    present: Option<&Map<String, Value>>,
) -> Result<Map<String, Value>, FieldError> {
    let error =
        |path: &str, message: &str| FieldError { path: path.into(), message: message.into() };
    let limits = match declared.shift_remove("limits") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(limits)) => limits,
        Some(_) => return Err(error("/limits", "must be an object")),
    };
    if let Some(key) = declared.keys().find(|key| LIMITS.contains(&key.as_str())) {
        return Err(error(&format!("/{key}"), "belongs below `limits`"));
    }
    if let Some(key) = limits.keys().find(|key| !LIMITS.contains(&key.as_str())) {
        return Err(error(&format!("/limits/{key}"), "is not a limit"));
    }
    if declared.contains_key("name") {
        return Err(error("/name", "is given by the path"));
    }
    // The configuration checks only members that have a value.
    let is_unknown = |(key, value): &(&String, &Value)| {
        value.is_null() && from_value::<ToolDeclaration>(json!({ key.as_str(): null })).is_err()
    };
    if let Some((key, _)) = declared.iter().find(is_unknown) {
        return Err(error(&format!("/{key}"), "is not a member of a declaration"));
    }
    let has_alias = present.is_some_and(|present| present.contains_key("applicable-states"));
    if has_alias && let Some(states) = declared.shift_remove("applicable_states") {
        declared.insert("applicable-states".into(), states);
    }
    declared.extend(limits);
    declared.retain(|_, value| !value.is_null());
    Ok(declared)
}

/// The pointer of a field in the file as a pointer in the declaration of a tool.
pub(crate) fn declared_pointer(pointer: &str) -> String {
    let first = pointer.trim_start_matches('/').split('/').next().unwrap_or_default();
    match first {
        _ if LIMITS.contains(&first) => format!("/limits{pointer}"),
        "applicable-states" => pointer.replacen("applicable-states", "applicable_states", 1),
        _ => pointer.to_owned(),
    }
}

/// Replaces the fixed values of arguments, which may be credentials.
pub(crate) fn hide_tool_secrets(fields: &mut Map<String, Value>) {
    let arguments = fields.get_mut("arguments").and_then(Value::as_array_mut);
    for argument in arguments.into_iter().flatten() {
        if let Some(value) = argument.get_mut("value") {
            *value = REDACTED.into();
        }
    }
}

/// Replaces headers, credentials, environment variables, and the secrets in the address.
pub(crate) fn hide_server_secrets(fields: &mut Map<String, Value>) {
    for key in ["headers", "auth", "env"] {
        if let Some(value) = fields.get_mut(key) {
            hide_all(value);
        }
    }
    if let Some(Value::String(url)) = fields.get_mut("url") {
        *url = shown_url(url);
    }
}

fn hide_all(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(hide_all),
        Value::Array(items) => items.iter_mut().for_each(hide_all),
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) => *value = REDACTED.into(),
    }
}

fn shown_url(url: &str) -> String {
    if has_reference(url) {
        return url.to_owned();
    }
    Url::parse(url).map_or_else(
        |_| url.to_owned(),
        |parsed| {
            let shown = redact_url(&parsed);
            // An address without secrets is shown as it is written.
            if shown == parsed.to_string() { url.to_owned() } else { shown }
        },
    )
}

/// Puts the present values in the places of `***`.
pub(crate) fn keep_hidden(new: &mut Map<String, Value>, present: &Map<String, Value>) {
    for (key, value) in new.iter_mut() {
        if let Some(present) = present.get(key) {
            keep_value(value, present);
        }
    }
    let is_shown = |url: &str, present: &str| url == shown_url(present);
    if let (Some(Value::String(url)), Some(Value::String(present))) =
        (new.get_mut("url"), present.get("url"))
        && is_shown(url, present)
    {
        url.clone_from(present);
    }
}

fn keep_value(new: &mut Value, present: &Value) {
    match (&mut *new, present) {
        (Value::String(text), present) if text == REDACTED => *new = present.clone(),
        (Value::Object(new), Value::Object(present)) => keep_hidden(new, present),
        (Value::Array(items), Value::Array(present)) => {
            for (index, item) in items.iter_mut().enumerate() {
                if let Some(present) = counterpart(item, index, present) {
                    keep_value(item, present);
                }
            }
        }
        _ => {}
    }
}

/// The item of `present` that an item of a new list stands for: that of the same name, else that of the same index.
fn counterpart<'a>(item: &Value, index: usize, present: &'a [Value]) -> Option<&'a Value> {
    match item.get("name") {
        Some(name) => present.iter().find(|other| other.get("name") == Some(name)),
        None => present.get(index),
    }
}

/// References that the file does not have at the same place, each as an error.
pub(crate) fn new_references(new: &Value, present: Option<&Value>, path: &str) -> Vec<FieldError> {
    match new {
        Value::String(text) if present == Some(new) || !is_reference(text) => Vec::new(),
        Value::String(_) => vec![FieldError {
            path: path.to_owned(),
            message: "refers to an environment variable or a file, which only the configuration file may do; write `$${` for the characters `${`"
                .into(),
        }],
        Value::Object(members) => members
            .iter()
            .flat_map(|(key, value)| {
                let present = present.and_then(|present| present.get(key));
                let key = key.replace('~', "~0").replace('/', "~1");
                new_references(value, present, &format!("{path}/{key}"))
            })
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(index, item)| {
                let present = present.and_then(Value::as_array);
                let present = present.and_then(|present| counterpart(item, index, present));
                new_references(item, present, &format!("{path}/{index}"))
            })
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// References in the default or the choices of an argument that callers do not see at present and would see then, each as
/// an error: callers would read what the reference stands for.
pub(crate) fn shown_references(
    new: &Map<String, Value>,
    present: &Map<String, Value>,
) -> Vec<FieldError> {
    let arguments = |entry: &'_ Map<String, Value>| {
        entry.get("arguments").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let present = arguments(present);
    let mut errors = Vec::new();
    for (index, argument) in arguments(new).iter().enumerate() {
        let was_hidden = counterpart(argument, index, &present).is_some_and(is_fixed_or_hidden);
        if !was_hidden || is_fixed_or_hidden(argument) {
            continue;
        }
        let shown = ["default", "enum"].into_iter().filter(|key| {
            let value = argument.get(*key);
            value.is_some_and(|value| !new_references(value, None, "").is_empty())
        });
        errors.extend(shown.map(|key| FieldError {
            path: format!("/arguments/{index}/{key}"),
            message: "refers to an environment variable or a file, and callers would see what it stands for: keep the argument hidden, or give another value"
                .into(),
        }));
    }
    errors
}

fn is_reference(text: &str) -> bool {
    has_reference(text) || text.starts_with("file:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(json: Value) -> Map<String, Value> {
        match json {
            Value::Object(members) => members,
            other => panic!("not an object: {other}"),
        }
    }

    #[test]
    fn limits_are_grouped_and_ungrouped() {
        let fields = object(json!({"timeout": "5s", "applicable-states": ["a"], "enabled": true}));
        let mut written = object(json!({"name": "x"}));
        written.extend(fields.clone());
        let declared = declaration_of(&written);
        assert_eq!(
            Value::Object(declared.clone()),
            json!({"limits": {"timeout": "5s"}, "applicable_states": ["a"], "enabled": true})
        );
        assert_eq!(fields_of(declared, Some(&written)).unwrap(), fields);
        for (wrong, path) in [
            (json!({"timeout": "5s"}), "/timeout"),
            (json!({"limits": {"timeot": "5s"}}), "/limits/timeot"),
            (json!({"limits": 5}), "/limits"),
            (json!({"name": "y"}), "/name"),
            (json!({"descripton": null}), "/descripton"),
        ] {
            assert_eq!(fields_of(object(wrong), None).unwrap_err().path, path);
        }
    }

    #[test]
    fn a_secret_is_shown_as_stars_and_stars_keep_it() {
        let written = object(json!({
            "url": "https://me:pw@h/?key=1",
            "headers": {"X": "s3cret"},
            "auth": {"bearer": "${TOKEN}"},
        }));
        let mut shown = written.clone();
        hide_server_secrets(&mut shown);
        assert_eq!(
            Value::Object(shown.clone()),
            json!({"url": "https://***@h/?key=***", "headers": {"X": "***"}, "auth": {"bearer": "***"}})
        );
        keep_hidden(&mut shown, &written);
        assert_eq!(shown, written);
        let tool = object(json!({"arguments": [{"name": "a"}, {"name": "b", "value": 5}]}));
        let mut shown = tool.clone();
        hide_tool_secrets(&mut shown);
        assert_eq!(shown["arguments"][1]["value"], "***");
        shown["arguments"].as_array_mut().unwrap().reverse();
        keep_hidden(&mut shown, &tool);
        assert_eq!(shown["arguments"][0], json!({"name": "b", "value": 5}));
    }

    #[test]
    fn references_are_refused_unless_the_file_has_them_at_the_same_place() {
        let present = json!({"description": "${TEAM}", "headers": {"X": "file:/run/x"}, "list": [{"name": "a", "value": "${V}"}]});
        let paths = |new: Value| -> Vec<_> {
            new_references(&new, Some(&present), "").into_iter().map(|error| error.path).collect()
        };
        assert_eq!(paths(present.clone()), Vec::<String>::new());
        assert_eq!(paths(json!({"description": "$${TEAM} {x}"})), Vec::<String>::new());
        assert_eq!(paths(json!({"description": "${OTHER}"})), ["/description"]);
        assert_eq!(paths(json!({"list": [{"name": "b", "value": "${V}"}]})), ["/list/0/value"]);
        assert_eq!(paths(json!({"headers": {"Y": "file:/run/x"}})), ["/headers/Y"]);
        assert_eq!(paths(json!({"expose_as": "${V"})), ["/expose_as"]);
    }

    #[test]
    fn a_reference_behind_a_hidden_argument_is_not_shown() {
        let present = object(json!({"arguments": [
            {"name": "key", "hidden": true, "default": "${KEY}"},
            {"name": "team", "default": "${TEAM}"},
        ]}));
        let paths = |arguments: Value| -> Vec<_> {
            let new = object(json!({ "arguments": arguments }));
            shown_references(&new, &present).into_iter().map(|error| error.path).collect()
        };
        assert_eq!(paths(present["arguments"].clone()), Vec::<String>::new());
        assert_eq!(paths(json!([{"name": "key", "default": "${KEY}"}])), ["/arguments/0/default"]);
        assert_eq!(paths(json!([{"name": "key", "enum": ["a", "${KEY}"]}])), ["/arguments/0/enum"]);
        assert_eq!(paths(json!([{"name": "key", "default": "mine"}])), Vec::<String>::new());
    }
}
