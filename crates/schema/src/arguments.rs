//! Applies the declared arguments of a configured tool to the schema of its server.
//!
//! A declared field wins; a field that is not declared is taken from the server. So a declaration changes the type and
//! the description of an argument but keeps the server's `enum` or bounds, and an argument that is not declared stays
//! unchanged. `arguments: []` changes nothing. Declared arguments come first, in the order of the declaration. Fixed and
//! withheld arguments disappear from the schema: callers neither see them nor can they give them.

use serde_json::{Map, Value, json};
use switchboard_model::{ArgumentSpec, ArgumentType};

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
    let mut of_server = take_object(&mut schema, "properties");
    let mut properties = Map::new();
    let mut required = take_names(&mut schema, "required");
    for argument in declared.iter().filter(|argument| argument.is_shown()) {
        let below = of_server.shift_remove(&argument.name);
        properties.insert(argument.name.clone(), declared_property(argument, below));
        // A default is sent in the caller's place, so the caller need not give the argument.
        let is_required = argument.required.or(argument.default.as_ref().map(|_| false));
        match is_required {
            Some(true) if !required.contains(&argument.name) => {
                required.push(argument.name.clone());
            }
            Some(false) => required.retain(|name| *name != argument.name),
            Some(true) | None => {}
        }
    }
    properties.extend(of_server);
    schema.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    let hidden: Vec<_> = declared.iter().filter(|argument| !argument.is_shown()).collect();
    for argument in hidden {
        hide(&mut schema, &argument.name);
    }
    // A declaration lists all arguments, so an unknown argument is a mistake of the caller, unless the server's schema
    // explicitly accepts others. One that only fixes or hides arguments says nothing about the others.
    if declared.iter().any(ArgumentSpec::is_shown) {
        schema.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    Value::Object(schema)
}

/// The schema of a declared argument, over the server's schema of it.
pub(crate) fn declared_property(argument: &ArgumentSpec, below: Option<Value>) -> Value {
    let mut property = match below {
        Some(Value::Object(property)) => property,
        _ => Map::new(),
    };
    if let Some(kind) = argument.kind {
        declare_type(&mut property, kind);
    }
    let description = argument.description.as_ref().map(|text| json!(text));
    let choices = argument.choices.as_ref().map(|choices| json!(choices));
    let declared = [
        ("description", description),
        ("enum", choices),
        ("default", argument.default.clone()),
        ("items", argument.items.clone()),
        ("properties", argument.properties.clone()),
    ];
    for (key, value) in declared {
        if let Some(value) = value {
            property.insert(key.into(), value);
        }
    }
    Value::Object(property)
}

fn declare_type(property: &mut Map<String, Value>, kind: ArgumentType) {
    let word = kind.as_str();
    let has_type = match property.get("type") {
        Some(Value::String(known)) => known == word,
        Some(Value::Array(known)) => known.iter().any(|known| known == word),
        _ => false,
    };
    if !has_type {
        // Constraints of another type could never be met by values of the declared type.
        property.retain(|key, value| match key.as_str() {
            "title" | "examples" => true,
            "default" => kind.accepts(value),
            _ => false,
        });
    }
    property.insert("type".into(), json!(word));
}

/// Removes an argument from the schema, also from the alternatives and conditions beside its properties.
fn hide(schema: &mut Map<String, Value>, name: &str) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.shift_remove(name);
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|required| required != name);
        if required.is_empty() {
            schema.shift_remove("required");
        }
    }
    for key in ["dependentRequired", "dependentSchemas", "dependencies"] {
        if let Some(Value::Object(dependents)) = schema.get_mut(key) {
            dependents.shift_remove(name);
        }
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for part in schema.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(part) = part {
                hide(part, name);
            }
        }
    }
    for key in ["if", "then", "else"] {
        if let Some(Value::Object(part)) = schema.get_mut(key) {
            hide(part, name);
        }
    }
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
#[path = "arguments_tests.rs"]
mod tests;
