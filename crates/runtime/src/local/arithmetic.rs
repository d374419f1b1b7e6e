//! `sum_numbers` and `multiply_numbers`.

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use switchboard_model::{ToolDescriptor, ToolResult};

use super::{LocalTool, described};

#[derive(Debug)]
pub(super) struct SumNumbers;

#[derive(Debug)]
pub(super) struct MultiplyNumbers;

impl LocalTool for SumNumbers {
    fn descriptor(&self) -> ToolDescriptor {
        described("sum_numbers", "Adds two numbers", &two_numbers())
    }

    fn run(&self, arguments: Map<String, Value>) -> BoxFuture<'static, ToolResult> {
        answer(&arguments, |a, b| a + b, i64::checked_add)
    }
}

impl LocalTool for MultiplyNumbers {
    fn descriptor(&self) -> ToolDescriptor {
        described("multiply_numbers", "Multiplies two numbers", &two_numbers())
    }

    fn run(&self, arguments: Map<String, Value>) -> BoxFuture<'static, ToolResult> {
        answer(&arguments, |a, b| a * b, i64::checked_mul)
    }
}

fn two_numbers() -> Value {
    json!({
        "type": "object",
        "properties": {
            "a": {"type": "number", "description": "The first number"},
            "b": {"type": "number", "description": "The second number"},
        },
        "required": ["a", "b"],
        "additionalProperties": false,
    })
}

/// Integers stay integers as long as they fit.
fn answer(
    arguments: &Map<String, Value>,
    with_floats: fn(f64, f64) -> f64,
    with_integers: fn(i64, i64) -> Option<i64>,
) -> BoxFuture<'static, ToolResult> {
    let (a, b) = (&arguments["a"], &arguments["b"]);
    let whole = a.as_i64().zip(b.as_i64()).and_then(|(a, b)| with_integers(a, b));
    let result = match whole {
        Some(whole) => json!(whole),
        None => json!(with_floats(a.as_f64().unwrap_or_default(), b.as_f64().unwrap_or_default())),
    };
    // A sum beyond the range of floats is not a JSON number.
    let result = if result.is_null() {
        ToolResult::error("the result is too large for a number")
    } else {
        ToolResult {
            structured: Some(json!({"result": result})),
            ..ToolResult::text(result.to_string())
        }
    };
    futures::future::ready(result).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tool: &dyn LocalTool, a: Value, b: Value, expected: &str) {
        let arguments = Map::from_iter([("a".into(), a), ("b".into(), b)]);
        let result = tool.run(arguments).now_or_never().unwrap();
        assert_eq!(result.content[0]["text"], expected);
    }

    #[test]
    fn whole_numbers_stay_whole_and_large_ones_do_not_wrap() {
        check(&SumNumbers, json!(1), json!(2), "3");
        check(&SumNumbers, json!(1), json!(0.5), "1.5");
        check(&MultiplyNumbers, json!(6), json!(7), "42");
        check(&SumNumbers, json!(i64::MAX), json!(1), "9.223372036854776e+18");
        check(&MultiplyNumbers, json!(1e308), json!(1e308), "the result is too large for a number");
    }
}
