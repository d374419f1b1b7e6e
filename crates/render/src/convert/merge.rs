//! Merges two schemas that apply to the same value.

use serde_json::{Map, Value};

use super::vocabulary::{KeywordKind, is_annotation, is_plumbing, kind_of};

/// An internal member with the original path of a moved schema. It never occurs in the result.
const ORIGIN: &str = "\u{0}origin";

pub(super) fn take_origin(map: &mut Map<String, Value>) -> Option<String> {
    match map.shift_remove(ORIGIN) {
        Some(Value::String(origin)) => Some(origin),
        _ => None,
    }
}

/// Records the original path in the schemas below `map`, before they are moved.
pub(super) fn mark(map: &mut Map<String, Value>, origin: &str) {
    for (keyword, value) in map {
        match kind_of(keyword) {
            Some(KeywordKind::Schema | KeywordKind::SameSchema | KeywordKind::SchemaOrFlag) => {
                mark_one(value, || format!("{origin}/{keyword}"));
            }
            Some(KeywordKind::Properties | KeywordKind::SchemaMap | KeywordKind::SameSchemaMap) => {
                for (key, value) in value.as_object_mut().into_iter().flatten() {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    mark_one(value, || format!("{origin}/{keyword}/{key}"));
                }
            }
            Some(KeywordKind::SameSchemas | KeywordKind::Schemas) => {
                for (index, value) in value.as_array_mut().into_iter().flatten().enumerate() {
                    mark_one(value, || format!("{origin}/{keyword}/{index}"));
                }
            }
            _ => {}
        }
    }
}

/// Records the original path of tuple positions, before they become branches of a union.
pub(super) fn mark_positions(schemas: &mut [Value], origin: &str) {
    for (index, schema) in schemas.iter_mut().enumerate() {
        mark_one(schema, || format!("{origin}/prefixItems/{index}"));
    }
}

fn mark_one(value: &mut Value, origin: impl FnOnce() -> String) {
    if let Value::Object(map) = value
        && !map.contains_key(ORIGIN)
    {
        map.insert(ORIGIN.into(), origin().into());
    }
}

/// Whether two schemas are equal, ignoring their recorded paths.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let known = |map: &Map<String, Value>| map.keys().filter(|key| *key != ORIGIN).count();
            known(one) == known(other)
                && one
                    .iter()
                    .filter(|(key, _)| *key != ORIGIN)
                    .all(|(key, value)| other.get(key).is_some_and(|other| is_same(value, other)))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (one, other) => one == other,
    }
}

/// Whether a schema has only annotations, so that the target of its reference can replace it.
pub(super) fn is_only_annotated(map: &Map<String, Value>) -> bool {
    map.keys().all(|key| is_annotation(key) || is_plumbing(key) || key.starts_with('$'))
}

/// Merges `other` into `map`, so that both apply. Returns the keywords that cannot be combined.
pub(super) fn merge(map: &mut Map<String, Value>, other: Map<String, Value>) -> Map<String, Value> {
    let mut left = Map::new();
    for (keyword, value) in other {
        if keyword == ORIGIN || is_plumbing(&keyword) {
            continue;
        }
        match map.get_mut(&keyword) {
            None => {
                map.insert(keyword, value);
            }
            Some(known) if is_same(known, &value) || is_annotation(&keyword) => {}
            Some(known) => {
                if let Some(value) = both(&keyword, known, value) {
                    left.insert(keyword, value);
                }
            }
        }
    }
    left
}

/// Maximum length of lists that are compared with each other.
const MAX_COMPARED: usize = 2_000;

/// Combines two values of a keyword in `known`, or returns `value` if that is not possible.
fn both(keyword: &str, known: &mut Value, value: Value) -> Option<Value> {
    let is_long = |value: &Value| value.as_array().is_some_and(|list| list.len() > MAX_COMPARED);
    if is_long(known) || is_long(&value) {
        return Some(value);
    }
    match (keyword, known, value) {
        ("properties", Value::Object(known), Value::Object(more)) => {
            join_properties(known, more);
            None
        }
        ("required", Value::Array(known), Value::Array(more)) => {
            for name in more {
                if !known.contains(&name) {
                    known.push(name);
                }
            }
            None
        }
        ("enum", Value::Array(known), Value::Array(more)) => {
            let shared: Vec<Value> =
                known.iter().filter(|value| more.contains(value)).cloned().collect();
            if shared.is_empty() {
                return Some(Value::Array(more));
            }
            *known = shared;
            None
        }
        ("type", known, value) => {
            let shared = shared_types(known, &value);
            if shared.is_empty() {
                return Some(value);
            }
            *known = Value::Array(shared);
            None
        }
        ("additionalProperties", known, value) => {
            // The stricter value wins; the merged `properties` list the keys of both schemas.
            if value == Value::Bool(false) || *known == Value::Bool(true) {
                *known = value;
                None
            } else {
                (known.is_object() && value.is_object()).then_some(value)
            }
        }
        (
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties",
            known,
            value,
        ) => {
            if value.as_f64() > known.as_f64() {
                *known = value;
            }
            None
        }
        (
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties",
            known,
            value,
        ) => {
            if value.as_f64().is_some() && value.as_f64() < known.as_f64() {
                *known = value;
            }
            None
        }
        (_, _, value) => Some(value),
    }
}

fn join_properties(known: &mut Map<String, Value>, more: Map<String, Value>) {
    for (key, schema) in more {
        let joined = match known.get_mut(&key).map(Value::take) {
            Some(before) if is_same(&before, &schema) => before,
            Some(before) => all_of(before, schema),
            None => schema,
        };
        known.insert(key, joined);
    }
}

/// A schema that requires both: a merged one if that is possible, else `allOf`.
pub(super) fn all_of(one: Value, other: Value) -> Value {
    if let (Value::Object(one), Value::Object(other)) = (&one, &other) {
        let is_plain =
            |map: &Map<String, Value>| !map.contains_key("$ref") && !map.contains_key("allOf");
        let (mut merged, mut other) = (one.clone(), other.clone());
        if let Some(origin) = take_origin(&mut other) {
            mark(&mut other, &origin);
        }
        if is_plain(one) && is_plain(&other) && merge(&mut merged, other).is_empty() {
            return Value::Object(merged);
        }
    }
    let mut map = Map::new();
    map.insert("allOf".into(), Value::Array(vec![one, other]));
    Value::Object(map)
}

fn shared_types(one: &Value, other: &Value) -> Vec<Value> {
    let list = |value: &Value| match value {
        Value::Array(names) => names.clone(),
        value => vec![value.clone()],
    };
    let (one, other) = (list(one), list(other));
    let within = |name: &Value, names: &[Value]| {
        names.contains(name) || (name == "integer" && names.contains(&"number".into()))
    };
    let mut shared: Vec<Value> = one.iter().filter(|name| within(name, &other)).cloned().collect();
    for name in other {
        if within(&name, &one) && !shared.contains(&name) {
            shared.push(name);
        }
    }
    shared
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn check(one: Value, other: Value, merged: Value, left: Value) {
        let (Value::Object(mut one), Value::Object(other)) = (one, other) else { unreachable!() };
        let rest = merge(&mut one, other);
        assert_eq!((Value::Object(one), Value::Object(rest)), (merged, left));
    }

    #[test]
    fn both_schemas_hold_after_a_merge() {
        check(
            json!({"type": "number", "minimum": 1, "description": "mine"}),
            json!({"type": ["integer", "null"], "minimum": 3, "maximum": 9, "description": "theirs"}),
            json!({"type": ["integer"], "minimum": 3, "description": "mine", "maximum": 9}),
            json!({}),
        );
        check(
            json!({"properties": {"a": {"type": "string"}, "b": true}, "required": ["a"]}),
            json!({"properties": {"a": {"minLength": 1}, "c": {}}, "required": ["a", "c"]}),
            json!({
                "properties": {"a": {"type": "string", "minLength": 1}, "b": true, "c": {}},
                "required": ["a", "c"],
            }),
            json!({}),
        );
        check(
            json!({"enum": [1, 2, 3], "additionalProperties": {}}),
            json!({"enum": [2, 3, 4], "additionalProperties": false}),
            json!({"enum": [2, 3], "additionalProperties": false}),
            json!({}),
        );
    }

    #[test]
    fn what_cannot_be_said_in_one_is_given_back() {
        check(
            json!({"pattern": "a", "type": "string", "enum": [1]}),
            json!({"pattern": "b", "type": "number", "enum": [2]}),
            json!({"pattern": "a", "type": "string", "enum": [1]}),
            json!({"pattern": "b", "type": "number", "enum": [2]}),
        );
    }
}
