//! Converts strings from the environment and from expansions to the types that the schema wants.

use crate::schema::SchemaAt;
use crate::tree::{Node, Value};

/// Converts every untyped string below `node`; a string that does not convert stays one and fails validation.
pub(crate) fn coerce(node: &mut Node, schema: SchemaAt) {
    match &mut node.value {
        Value::Map(entries) => {
            for entry in entries {
                if let Some(schema) = schema.property(&entry.key) {
                    coerce(&mut entry.node, schema);
                }
            }
        }
        Value::List(items) => {
            if let Some(schema) = schema.items() {
                for item in items {
                    coerce(item, schema);
                }
            }
        }
        Value::Text(text) if node.loose => {
            if let Some(value) = read(text.trim(), schema) {
                node.value = value;
            }
        }
        Value::Bool(_) | Value::Integer(_) | Value::Float(_) if node.loose => {
            node.value = unread(&node.value, schema);
        }
        Value::Text(_)
        | Value::Bool(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Null
        | Value::Broken => {}
    }
}

fn read(text: &str, schema: SchemaAt) -> Option<Value> {
    if schema.accepts("string") {
        return None;
    }
    let integer = || text.parse().ok().map(Value::Integer).filter(|_| schema.accepts("integer"));
    let boolean = || {
        let value = text.to_ascii_lowercase().parse().ok();
        value.map(Value::Bool).filter(|_| schema.accepts("boolean"))
    };
    let number = || {
        let value = text.parse().ok().filter(|value: &f64| value.is_finite());
        value.map(Value::Float).filter(|_| schema.accepts("number"))
    };
    integer().or_else(number).or_else(boolean)
}

/// The reverse, for JSON from the environment: makes strings where the schema wants them, as in `{"PORT": 8080}`.
fn unread(value: &Value, schema: SchemaAt) -> Value {
    let types: Vec<_> = schema.types().collect();
    match value {
        Value::Bool(value) if types == ["string"] => Value::Text(value.to_string()),
        Value::Integer(value) if types == ["string"] => Value::Text(value.to_string()),
        other => other.clone(),
    }
}
