//! Checks a declaration against the schema of the server: whether the values that the configuration sends fit it.

use serde_json::{Map, Value, json};
use switchboard_model::{ArgumentSource, ArgumentSpec};

use crate::arguments::declared_property;
use crate::check::ArgumentChecker;

/// An error in the declaration of one argument.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("argument `{argument}` {message}")]
pub struct DeclarationFault {
    pub argument: String,
    pub message: String,
}

/// Returns the errors of `declared` that only the server's schema shows. A tool with such an error cannot be called.
pub fn check_declaration(
    server_schema: &Value,
    declared: &[ArgumentSpec],
) -> Vec<DeclarationFault> {
    let fault = |argument: &ArgumentSpec| {
        let message = fault_of(server_schema, argument)?;
        Some(DeclarationFault { argument: argument.name.clone(), message })
    };
    declared.iter().filter_map(fault).collect()
}

fn fault_of(server_schema: &Value, argument: &ArgumentSpec) -> Option<String> {
    let property = server_schema.get("properties").and_then(|all| all.get(&argument.name));
    match &argument.source {
        ArgumentSource::Caller => {
            let merged = declared_property(argument, property.cloned());
            let unfit = unfit(server_schema, &argument.name, &merged, argument.default.as_ref()?)?;
            Some(format!("has a default that does not fit its schema: {unfit}"))
        }
        ArgumentSource::Fixed(value) => match property {
            Some(property) => {
                unfit(server_schema, &argument.name, property, value.expose())?;
                // The rule is not quoted: its text may contain the value, which may be a credential.
                Some("has a fixed value that does not fit the schema of the server".into())
            }
            None if server_schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
                Some("has a fixed value, but the server has no such argument".into())
            }
            None => None,
        },
        ArgumentSource::Withheld => {
            let required = server_schema.get("required").and_then(Value::as_array)?;
            let is_required = required.iter().any(|name| *name == argument.name);
            is_required.then(|| {
                "is hidden and has no default, but the server requires it: give it a `value`".into()
            })
        }
    }
}

/// Why a value does not fit the schema of an argument; `None` if it does, or if the schema cannot be compiled.
fn unfit(root: &Value, name: &str, property: &Value, value: &Value) -> Option<String> {
    let mut schema = Map::new();
    for key in ["$schema", "$defs", "definitions"] {
        if let Some(definitions) = root.get(key) {
            schema.insert(key.into(), definitions.clone());
        }
    }
    schema.insert("properties".into(), json!({ name: property }));
    let checker = ArgumentChecker::compile(&Value::Object(schema)).ok()?;
    let complaints = checker.check(&json!({ name: value })).err()?;
    complaints.first().map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use switchboard_model::{ArgumentType, FixedValue};

    use super::*;

    fn fixed(name: &str, value: Value) -> ArgumentSpec {
        ArgumentSpec {
            source: ArgumentSource::Fixed(FixedValue::new(value)),
            ..ArgumentSpec::named(name)
        }
    }

    fn with_default(name: &str, kind: Option<ArgumentType>, default: Value) -> ArgumentSpec {
        ArgumentSpec { kind, default: Some(default), ..ArgumentSpec::named(name) }
    }

    fn withheld(name: &str) -> ArgumentSpec {
        ArgumentSpec { source: ArgumentSource::Withheld, ..ArgumentSpec::named(name) }
    }

    #[track_caller]
    fn check(declared: ArgumentSpec, expected: &str) {
        let server = json!({
            "type": "object",
            "$defs": {"day": {"enum": ["mo", "tu"]}},
            "properties": {
                "limit": {"type": "integer", "maximum": 10},
                "day": {"$ref": "#/$defs/day"},
                "q": {"type": "string"},
            },
            "required": ["q"],
            "additionalProperties": false,
        });
        let faults: Vec<_> =
            check_declaration(&server, &[declared]).iter().map(ToString::to_string).collect();
        assert_eq!(faults.join("; "), expected);
    }

    #[test]
    fn values_that_the_server_would_refuse_are_faults() {
        let unfit = "has a fixed value that does not fit the schema of the server";
        check(fixed("limit", json!(5)), "");
        check(fixed("limit", json!("5")), "");
        check(fixed("limit", json!(11)), &format!("argument `limit` {unfit}"));
        check(fixed("limit", json!("s3cret")), &format!("argument `limit` {unfit}"));
        check(fixed("day", json!("mo")), "");
        check(fixed("day", json!("su")), &format!("argument `day` {unfit}"));
        check(
            fixed("other", json!(1)),
            "argument `other` has a fixed value, but the server has no such argument",
        );
        check(
            with_default("limit", None, json!(11)),
            "argument `limit` has a default that does not fit its schema: argument `limit`: 11 is greater than the maximum of 10",
        );
        check(with_default("limit", Some(ArgumentType::String), json!("all")), "");
        check(withheld("limit"), "");
        check(
            withheld("q"),
            "argument `q` is hidden and has no default, but the server requires it: give it a `value`",
        );
    }

    #[test]
    fn a_server_that_accepts_more_arguments_takes_any_fixed_value() {
        let declared = [fixed("tenant", json!("a"))];
        for open in [json!({"type": "object"}), json!(true)] {
            assert_eq!(check_declaration(&open, &declared), []);
        }
    }
}
