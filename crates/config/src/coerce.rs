//! Gives text from the environment and from expansions the type that the schema wants.

use crate::schema::SchemaAt;
use crate::tree::{Node, Value};

/// Coerces every loose text below `node`; what does not fit stays text and fails the shape check.
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

/// The other way round, for JSON from the environment: `{"PORT": 8080}` where text is wanted.
fn unread(value: &Value, schema: SchemaAt) -> Value {
    let types: Vec<_> = schema.types().collect();
    match value {
        Value::Bool(value) if types == ["string"] => Value::Text(value.to_string()),
        Value::Integer(value) if types == ["string"] => Value::Text(value.to_string()),
        other => other.clone(),
    }
}
