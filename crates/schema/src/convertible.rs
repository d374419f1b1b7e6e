//! Conversion of strings that read as the number or boolean that a schema asks for.
//!
//! Models write `"1"` where an integer is wanted, and many servers accept it. What converts without loss is left for
//! the server to judge.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::{Number, Value};

/// Maximum number of conversion rounds: converting one string may reveal another error inside of an alternative.
const MAX_ROUNDS: usize = 8;
/// Maximum number of strings that are converted in one round; the next round converts the others.
const MAX_TEXTS: usize = 256;

/// Returns the arguments with such strings converted: `Ok` if they are then valid, else `Err`.
pub(crate) fn converted(validator: &Validator, arguments: &Value) -> Result<Value, Value> {
    let mut converted = arguments.clone();
    for _ in 0..MAX_ROUNDS {
        let mut found = Vec::new();
        for error in validator.iter_errors(&converted).take(MAX_TEXTS) {
            collect(&error, &mut found);
        }
        if found.is_empty() {
            break;
        }
        for (place, value) in found {
            if let Some(text) = converted.pointer_mut(&place) {
                *text = value;
            }
        }
        if validator.is_valid(&converted) {
            return Ok(converted);
        }
    }
    Err(converted)
}

/// Collects the position of each convertible string and its value. Errors of alternatives (`anyOf`, `oneOf`) are
/// nested.
fn collect(error: &ValidationError<'_>, found: &mut Vec<(String, Value)>) {
    match error.kind() {
        ValidationErrorKind::Type { kind } => {
            if let Value::String(text) = error.instance().as_ref()
                && let Some(value) = read_as(text, kind)
                && found.len() < MAX_TEXTS
            {
                found.push((error.instance_path().to_string(), value));
            }
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            for error in context.iter().flatten() {
                collect(error, found);
            }
        }
        _ => {}
    }
}

fn read_as(text: &str, wanted: &TypeKind) -> Option<Value> {
    let wants = |kind: JsonType| match wanted {
        TypeKind::Single(one) => *one == kind,
        TypeKind::Multiple(several) => several.contains(kind),
    };
    if wants(JsonType::Boolean) && text.eq_ignore_ascii_case("true") {
        return Some(Value::Bool(true));
    }
    if wants(JsonType::Boolean) && text.eq_ignore_ascii_case("false") {
        return Some(Value::Bool(false));
    }
    // The parser skips whitespace around a number; a string with such whitespace is not converted.
    let is_bare = !text.starts_with(char::is_whitespace) && !text.ends_with(char::is_whitespace);
    let number = || serde_json::from_str::<Number>(text).ok().filter(|_| is_bare);
    let is_wanted = wants(JsonType::Number) || wants(JsonType::Integer);
    is_wanted.then(number).flatten().map(Value::Number)
}
