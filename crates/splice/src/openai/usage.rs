//! Sums of token usage over rounds.

use serde_json::{Number, Value};

/// Adds the numbers of one usage to those of another, in nested objects too. What is no number is taken from the last one.
pub(crate) fn add_usage(sum: &mut Value, more: Value) {
    match (sum, more) {
        (Value::Object(sum), Value::Object(more)) => {
            for (name, value) in more {
                add_usage(sum.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Number(sum), Value::Number(more)) => *sum = added(sum, &more),
        (_, Value::Null) => {}
        (sum, more) => *sum = more,
    }
}

fn added(one: &Number, other: &Number) -> Number {
    if let (Some(one), Some(other)) = (one.as_u64(), other.as_u64()) {
        return Number::from(one.saturating_add(other));
    }
    let sum = one.as_f64().unwrap_or(0.0) + other.as_f64().unwrap_or(0.0);
    Number::from_f64(sum).unwrap_or_else(|| other.clone())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_number_is_added() {
        let mut sum = Value::Null;
        add_usage(&mut sum, json!({"a": 1, "details": {"cached": 4, "kind": "x"}, "cost": 0.5}));
        add_usage(&mut sum, json!({"a": 2, "details": {"cached": 5, "new": 1}, "cost": 0.25}));
        add_usage(&mut sum, json!({"a": 3, "details": null}));
        let expected =
            json!({"a": 6, "details": {"cached": 9, "kind": "x", "new": 1}, "cost": 0.75});
        assert_eq!(sum, expected);
    }
}
