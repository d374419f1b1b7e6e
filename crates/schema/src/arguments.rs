//! Applies the declared arguments of a configured tool to the schema of its server.
//!
//! A declared field wins; a field that is not declared is taken from the server. So a declaration changes the type and
//! the description of an argument but keeps the server's `enum` or bounds, and an argument that is not declared stays
//! unchanged. `arguments: []` changes nothing.

use serde_json::{Map, Value, json};
use switchboard_model::ArgumentSpec;

/// Returns `server_schema` with the `declared` arguments applied, as callers see it.
pub fn declare_arguments(server_schema: &Value, declared: &[ArgumentSpec]) -> Value {
    if declared.is_empty() {
        return server_schema.clone();
    }
    let mut schema = match server_schema {
        Value::Object(schema) => schema.clone(),
        // A boolean or malformed schema says nothing about arguments.
        _ => Map::new(),
    };
    schema.insert("type".into(), json!("object"));
    let mut properties = take_object(&mut schema, "properties");
    let mut required = take_names(&mut schema, "required");
    for argument in declared {
        let below = properties.shift_remove(&argument.name);
        properties.insert(argument.name.clone(), declared_property(argument, below));
        match argument.required {
            Some(true) if !required.contains(&argument.name) => {
                required.push(argument.name.clone());
            }
            Some(false) => required.retain(|name| *name != argument.name),
            Some(true) | None => {}
        }
    }
    schema.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    // A declaration lists all arguments, so an unknown argument is a mistake of the caller, unless the server's schema
    // explicitly accepts others.
    schema.entry("additionalProperties").or_insert(Value::Bool(false));
    Value::Object(schema)
}

fn declared_property(argument: &ArgumentSpec, below: Option<Value>) -> Value {
    let mut property = match below {
        Some(Value::Object(property)) => property,
        _ => Map::new(),
    };
    let kind = argument.kind.as_str();
    if property.get("type").and_then(Value::as_str) != Some(kind) {
        // Constraints of another type could never be met by values of the declared type.
        property.retain(|key, _| matches!(key.as_str(), "title" | "default" | "examples"));
        property.insert("type".into(), json!(kind));
    }
    if !argument.description.is_empty() {
        property.insert("description".into(), json!(argument.description));
    }
    Value::Object(property)
}

fn take_object(schema: &mut Map<String, Value>, key: &str) -> Map<String, Value> {
    match schema.shift_remove(key) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

fn take_names(schema: &mut Map<String, Value>, key: &str) -> Vec<String> {
    match schema.shift_remove(key) {
        Some(Value::Array(names)) => {
            names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use switchboard_model::ArgumentType;

    use super::*;

    fn argument(name: &str, kind: ArgumentType, required: Option<bool>) -> ArgumentSpec {
        ArgumentSpec { name: name.into(), kind, description: format!("the {name}"), required }
    }

    fn server_schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "unit": {"type": "string", "enum": ["C", "F"], "description": "old"},
                "days": {"type": "string", "minLength": 2},
                "kept": {"type": "boolean"},
            },
            "required": ["unit", "kept"],
        })
    }

    #[test]
    fn what_is_declared_wins_and_the_rest_is_taken_from_the_server() {
        let declared = [
            argument("unit", ArgumentType::String, Some(false)),
            argument("days", ArgumentType::Integer, Some(true)),
            argument("added", ArgumentType::Array, None),
        ];
        assert_eq!(
            declare_arguments(&server_schema(), &declared),
            json!({
                "type": "object",
                "properties": {
                    "kept": {"type": "boolean"},
                    "unit": {"type": "string", "enum": ["C", "F"], "description": "the unit"},
                    "days": {"type": "integer", "description": "the days"},
                    "added": {"type": "array", "description": "the added"},
                },
                "required": ["kept", "days"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn an_empty_declaration_changes_nothing() {
        assert_eq!(declare_arguments(&server_schema(), &[]), server_schema());
    }

    #[test]
    fn a_schema_that_says_nothing_becomes_an_object_of_the_declared_arguments() {
        for nothing in [json!(true), json!({}), json!({"properties": 3, "required": "x"})] {
            let schema = declare_arguments(&nothing, &[argument("a", ArgumentType::Number, None)]);
            assert_eq!(
                schema,
                json!({
                    "type": "object",
                    "properties": {"a": {"type": "number", "description": "the a"}},
                    "additionalProperties": false,
                })
            );
        }
    }
}
