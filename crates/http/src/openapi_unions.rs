//! Rewrites unions in the API document for code generators.
//!
//! A tagged or flattened type is described as `allOf` within `oneOf`, which generators such as openapi-python-client drop,
//! together with every operation that uses it. Here the same set of values is written as a union of complete objects.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

/// The maximum depth of references that are followed; the types of the API are far below it.
const MAX_DEPTH: usize = 16;

/// Rewrites each schema of the document that is an intersection, or has one as an alternative.
pub(crate) fn spell_out_unions(document: &mut Value) {
    let Some(schemas) = document.pointer("/components/schemas").and_then(Value::as_object) else {
        return;
    };
    let known = schemas.clone();
    let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut)
    else {
        return;
    };
    for schema in schemas.values_mut().filter(|schema| has_intersection(schema)) {
        let mut all = alternatives(schema, &known, 0);
        let description = schema.get("description").cloned();
        *schema = match all.len() {
            1 => all.remove(0),
            _ => json!({ "oneOf": all }),
        };
        if let (Some(description), Some(schema)) = (description, schema.as_object_mut()) {
            schema.insert("description".into(), description);
        }
    }
    remove_unused(document);
}

/// Removes the schemas that were only parts of intersections and have no references any more.
fn remove_unused(document: &mut Value) {
    loop {
        let mut used = HashSet::new();
        collect_references(document, &mut used);
        let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut);
        let Some(schemas) = schemas else { return };
        let before = schemas.len();
        schemas.retain(|name, _| used.contains(&format!("#/components/schemas/{name}")));
        // Removing a schema may leave others without references: repeat until nothing changes.
        if schemas.len() == before {
            return;
        }
    }
}

fn collect_references(value: &Value, into: &mut HashSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, into)),
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str().filter(|_| name == "$ref") {
                    Some(reference) => drop(into.insert(reference.to_owned())),
                    None => collect_references(member, into),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn has_intersection(schema: &Value) -> bool {
    let variants = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    schema.get("allOf").is_some() || variants.into_iter().any(|it| it.get("allOf").is_some())
}

/// The complete objects of which a value of the schema is one.
fn alternatives(schema: &Value, known: &Map<String, Value>, depth: usize) -> Vec<Value> {
    if depth > MAX_DEPTH {
        return vec![schema.clone()];
    }
    let below = |schema: &Value| alternatives(schema, known, depth + 1);
    let parts = |key: &str| schema.get(key).and_then(Value::as_array);
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let name = name.rsplit('/').next().unwrap_or_default();
        return known.get(name).map_or_else(|| vec![schema.clone()], below);
    }
    if let Some(variants) = parts("oneOf") {
        return variants.iter().flat_map(below).collect();
    }
    let Some(parts) = parts("allOf") else { return vec![schema.clone()] };
    let mut all = vec![json!({"type": "object"})];
    for part in parts {
        let of_part = below(part);
        all = all.iter().flat_map(|one| of_part.iter().map(|other| joined(one, other))).collect();
    }
    if let Some(description) = schema.get("description") {
        for one in all.iter_mut().filter_map(Value::as_object_mut) {
            one.insert("description".into(), description.clone());
        }
    }
    all
}

/// An object schema with the members of both.
fn joined(one: &Value, other: &Value) -> Value {
    let mut joined = one.clone();
    let required = [one, other].into_iter().filter_map(|it| it.get("required")?.as_array());
    let mut names: Vec<Value> = Vec::new();
    for name in required.flatten() {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let properties = [one, other].into_iter().filter_map(|it| it.get("properties")?.as_object());
    let properties: Map<String, Value> =
        properties.flatten().map(|(name, schema)| (name.clone(), schema.clone())).collect();
    if let Some(joined) = joined.as_object_mut() {
        if !names.is_empty() {
            joined.insert("required".into(), Value::Array(names));
        }
        joined.insert("properties".into(), Value::Object(properties));
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intersection_with_a_union_is_a_union_of_objects() {
        let mut document = json!({"paths": {"$ref": "#/components/schemas/Part"},
                                  "components": {"schemas": {
            "Place": {"oneOf": [
                {"type": "object", "required": ["data"], "properties": {"data": {"type": "string"}}},
                {"type": "object", "required": ["url"], "properties": {"url": {"type": "string"}}},
            ]},
            "Part": {"description": "A part.", "oneOf": [
                {"type": "object", "properties": {"text": {"type": "string"}}},
                {"allOf": [
                    {"$ref": "#/components/schemas/Place"},
                    {"type": "object", "required": ["type"], "properties": {"type": {"enum": ["image"]}}},
                ]},
            ]},
        }}});
        spell_out_unions(&mut document);
        let image = json!({"enum": ["image"]});
        assert_eq!(
            document.pointer("/components/schemas/Part"),
            Some(&json!({"description": "A part.", "oneOf": [
                {"type": "object", "properties": {"text": {"type": "string"}}},
                {"type": "object", "required": ["data", "type"],
                 "properties": {"data": {"type": "string"}, "type": image}},
                {"type": "object", "required": ["url", "type"],
                 "properties": {"url": {"type": "string"}, "type": image}},
            ]}))
        );
        assert_eq!(
            document.pointer("/components/schemas/Place"),
            None,
            "it is part of no type now"
        );
    }

    #[test]
    fn the_document_has_no_intersection_in_its_types() {
        let document: Value = serde_json::from_str(&crate::openapi::openapi_text()).unwrap();
        let schemas = document.pointer("/components/schemas").and_then(Value::as_object).unwrap();
        let left: Vec<_> = schemas.iter().filter(|(_, schema)| has_intersection(schema)).collect();
        assert!(schemas.len() > 20 && left.is_empty(), "{left:?}");
    }
}
