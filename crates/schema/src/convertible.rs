//! Texts that read as the number or the boolean that a schema asks for.
//!
//! Models write `"1"` where an integer is wanted, and many servers take it: what can be converted without loss is theirs to
//! judge.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::{Number, Value};

/// Converting one text may show the next that does not fit, inside of an alternative.
const MAX_ROUNDS: usize = 8;
/// Texts that are converted in one round; the next round takes the others.
const MAX_TEXTS: usize = 256;

/// The arguments with such texts converted: `Ok` where they fit then, else `Err`.
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

/// Where a text stands and what it reads as. Alternatives report what is wrong with each of them.
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
    // Blanks around a number are no part of it, and parsers skip them.
    let is_bare = !text.starts_with(char::is_whitespace) && !text.ends_with(char::is_whitespace);
    let number = || serde_json::from_str::<Number>(text).ok().filter(|_| is_bare);
    let is_wanted = wants(JsonType::Number) || wants(JsonType::Integer);
    is_wanted.then(number).flatten().map(Value::Number)
}
