//! Sample arguments that a tool's schema accepts.

use serde_json::{Map, Value, json};

/// Makes a value for each required argument from its type.
pub(crate) fn arguments(tool: &Value, tools: &[Value]) -> Value {
    if tool["name"] == "json_schema_echo" {
        // This tool checks the schema of the other tool as the client received it.
        let focal = tools.iter().find(|tool| tool["name"] == "json_schema_2020_12_tool");
        return json!({"schema": focal.map(|tool| &tool["inputSchema"])});
    }
    let schema = &tool["inputSchema"];
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let filled = required.map(|name| (name.to_owned(), value_of(&schema["properties"][name])));
    Value::Object(filled.collect())
}

/// The answer to a form that is accepted unchanged: all defaults, and the required fields.
pub(crate) fn form(schema: &Value) -> Value {
    let mut answer = Map::new();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(default) = property.get("default") {
            answer.insert(name.clone(), default.clone());
        } else if required.contains(&json!(name)) || property["type"] == "boolean" {
            answer.insert(name.clone(), value_of(property));
        }
    }
    Value::Object(answer)
}

fn value_of(property: &Value) -> Value {
    match property["type"].as_str() {
        Some("number") => json!(2.5),
        Some("integer") => json!(2),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        Some("null") => Value::Null,
        _ => property["enum"].get(0).cloned().unwrap_or_else(|| json!("text")),
    }
}
