//! The subset of `OpenAPI` schemas that Gemini accepts in `parameters`.

use serde_json::Value;

const KEYS: [&str; 25] = [
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "anyOf",
    "propertyOrdering",
    "default",
    "example",
    "additionalProperties",
    "ref",
    "defs",
];

/// The first fault of a schema with its position; `None` if it is accepted.
pub(crate) fn fault_of(schema: &Value, place: &str) -> Option<String> {
    let Some(members) = schema.as_object() else {
        return Some(format!("Invalid value at '{place}' (Schema), {schema}"));
    };
    if let Some(unknown) = members.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Some(format!(
            "Invalid JSON payload received. Unknown name \"{unknown}\" at '{place}': Cannot find field."
        ));
    }
    if members.get("type").is_some_and(|kind| !kind.is_string()) {
        return Some(format!("Invalid value at '{place}.type' (Type), {}", members["type"]));
    }
    let is_kind =
        |kind: &str| schema["type"].as_str().is_some_and(|found| found.eq_ignore_ascii_case(kind));
    if is_kind("array") && schema["items"].is_null() {
        return Some(format!("{place}.items: missing field."));
    }
    let values = schema["enum"].as_array().into_iter().flatten();
    if let Some(wrong) = values.into_iter().find(|value| !value.is_string()) {
        return Some(format!("Invalid value at '{place}.enum[0]' (TYPE_STRING), {wrong}"));
    }
    let properties = schema["properties"].as_object();
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !properties.is_some_and(|properties| properties.contains_key(name)) {
            return Some(format!("{place}.required: property is not defined: {name}"));
        }
    }
    let inner = properties.into_iter().flatten();
    let inner = inner.map(|(name, value)| (format!("{place}.properties[{name}]"), value));
    let items = schema.get("items").map(|items| (format!("{place}.items"), items));
    let choices = schema["anyOf"].as_array().into_iter().flatten().enumerate();
    let choices = choices.map(|(number, value)| (format!("{place}.any_of[{number}]"), value));
    inner.chain(items).chain(choices).find_map(|(place, value)| fault_of(value, &place))
}
