//! Checks whether clients can compile an `outputSchema`.
//!
//! The TypeScript SDK 1.x compiles the `outputSchema` of every tool during `tools/list`, with Ajv for draft-07, and the
//! whole list fails if one of them cannot be compiled. This module rejects what Ajv throws at; a schema that only
//! causes a warning passes.

use std::collections::HashSet;

use regress::Regex;
use serde_json::{Map, Value};

const ONE_SCHEMA: [&str; 12] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const LISTS_OF_SCHEMAS: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];
const MAPS_OF_SCHEMAS: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// The error says what a client cannot compile.
pub(super) fn check_compilable(schema: &Value) -> Result<(), String> {
    if let Err(error) = jsonschema::draft7::meta::validate(schema) {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { String::new() } else { format!(" at {place}") };
        return Err(format!("it is not a JSON Schema{place}: {}", shortened(&error.to_string())));
    }
    let mut anchors = HashSet::new();
    walk(
        schema,
        &mut |object| match object.get("$anchor").or_else(|| object.get("$dynamicAnchor")) {
            None => Ok(()),
            Some(Value::String(name)) if is_anchor(name) && anchors.insert(name.clone()) => Ok(()),
            Some(name) => Err(format!("the anchor {name} is not usable")),
        },
    )?;
    walk(schema, &mut |object| check_object(object, schema, &anchors))
}

fn check_object(
    object: &Map<String, Value>,
    root: &Value,
    anchors: &HashSet<String>,
) -> Result<(), String> {
    let is_root = root.as_object().is_some_and(|root| std::ptr::eq(root, object));
    if object.contains_key("id") {
        return Err("it has the keyword `id` of draft 4".into());
    }
    if object.contains_key("$id") && !is_root {
        return Err("a part of it has an `$id`".into());
    }
    if object.contains_key("$async") {
        return Err("it has the keyword `$async`".into());
    }
    if object.get("enum").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        return Err("it has an empty `enum`".into());
    }
    check_nullable(object)?;
    let pattern = object.get("pattern").and_then(Value::as_str);
    let keys = object.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
    for pattern in pattern.into_iter().chain(keys.map(|(key, _)| key.as_str())) {
        if Regex::with_flags(pattern, "u").is_err() {
            return Err(format!(
                "{} is not a regular expression of JavaScript",
                shortened(pattern)
            ));
        }
    }
    match object.get("$ref").and_then(Value::as_str) {
        Some(reference) if !resolves(reference, root, anchors) => {
            Err(format!("`$ref` {} cannot be resolved", shortened(reference)))
        }
        _ => Ok(()),
    }
}

/// `nullable` of OpenAPI, which Ajv supports only beside a `type`.
fn check_nullable(object: &Map<String, Value>) -> Result<(), String> {
    let Some(nullable) = object.get("nullable") else { return Ok(()) };
    let allows_null = match object.get("type") {
        None => return Err("it has `nullable` without a `type`".into()),
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "null"),
        Some(kind) => kind == "null",
    };
    match nullable {
        Value::Bool(false) if allows_null => Err("`nullable: false` contradicts its `type`".into()),
        Value::Bool(_) => Ok(()),
        _ => Err("`nullable` is not a boolean".into()),
    }
}

/// Whether a reference resolves within the document. References to other documents never do.
fn resolves(reference: &str, root: &Value, anchors: &HashSet<String>) -> bool {
    match reference.strip_prefix('#') {
        Some("") => true,
        // Percent-encoded pointers are not decoded; generators do not write them.
        Some(pointer) if pointer.starts_with('/') => {
            root.pointer(pointer).is_some_and(|it| it.is_object() || it.is_boolean())
        }
        Some(anchor) => anchors.contains(anchor),
        None => false,
    }
}

fn is_anchor(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// Visits the schema and all its subschemas. The parser's depth limit bounds the recursion.
fn walk(
    schema: &Value,
    visit: &mut impl FnMut(&Map<String, Value>) -> Result<(), String>,
) -> Result<(), String> {
    let Value::Object(object) = schema else { return Ok(()) };
    visit(object)?;
    for (key, value) in object {
        match value {
            Value::Object(_) if ONE_SCHEMA.contains(&key.as_str()) => walk(value, visit)?,
            Value::Array(schemas) if LISTS_OF_SCHEMAS.contains(&key.as_str()) => {
                schemas.iter().try_for_each(|schema| walk(schema, visit))?;
            }
            Value::Object(schemas) if MAPS_OF_SCHEMAS.contains(&key.as_str()) => {
                schemas.values().try_for_each(|schema| walk(schema, visit))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn shortened(text: &str) -> String {
    const MOST: usize = 120;
    text.chars().take(MOST).collect()
}
