//! Checks a declaration against the schema of the server: whether the values that the configuration sends fit it.

use serde_json::{Map, Value, json};
use switchboard_model::{ArgumentSource, ArgumentSpec};

use crate::arguments::declared_property;
use crate::check::{ArgumentChecker, Complaint};

/// An error in the declaration of one argument. It never quotes a value that callers do not see.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("argument `{argument}` {message}")]
pub struct DeclarationFault {
    pub argument: String,
    /// The position of the argument in the declaration.
    pub index: usize,
    /// The key of the argument that is wrong.
    pub key: &'static str,
    pub message: String,
}

/// Returns the errors of `declared` that only the server's schema shows. A tool with such an error cannot be called.
pub fn check_declaration(
    server_schema: &Value,
    declared: &[ArgumentSpec],
) -> Vec<DeclarationFault> {
    let fault = |(index, argument): (usize, &ArgumentSpec)| {
        let (key, message) = fault_of(server_schema, argument)?;
        Some(DeclarationFault { argument: argument.name.clone(), index, key, message })
    };
    declared.iter().enumerate().filter_map(fault).collect()
}

/// The wrong key of an argument, and what is wrong.
fn fault_of(server_schema: &Value, argument: &ArgumentSpec) -> Option<(&'static str, String)> {
    let property = server_schema.get("properties").and_then(|all| all.get(&argument.name));
    match &argument.source {
        ArgumentSource::Caller => {
            let merged = declared_property(argument, property.cloned());
            let unfit = unfit(server_schema, &argument.name, &merged, argument.default.as_ref()?)?;
            Some(("default", format!("has a default that does not fit its schema: {unfit}")))
        }
        ArgumentSource::Fixed(value) => {
            let unfit = unfit_for_server(server_schema, argument, value.expose())?;
            Some(("value", format!("has a fixed value{unfit}")))
        }
        ArgumentSource::HiddenDefault(value) => {
            let unfit = unfit_for_server(server_schema, argument, value.expose())?;
            Some(("default", format!("has a hidden default{unfit}")))
        }
        ArgumentSource::Withheld => {
            let required = server_schema.get("required").and_then(Value::as_array)?;
            let is_required = required.iter().any(|name| *name == argument.name);
            let message =
                "is hidden and has no default, but the server requires it: give it a `value`";
            is_required.then(|| ("hidden", message.into()))
        }
    }
}

/// Why the server would refuse a value that the configuration gives.
fn unfit_for_server(root: &Value, argument: &ArgumentSpec, value: &Value) -> Option<String> {
    let property = root.get("properties").and_then(|all| all.get(&argument.name));
    match property {
        Some(property) => {
            // The value may be a credential, so the rule is told without it.
            let complaint = complaint(root, &argument.name, property, value)?;
            let place = format!("argument `{}`: ", argument.name);
            let rule = complaint.masked();
            let rule = rule.strip_prefix(&place).unwrap_or(rule);
            Some(format!(" that does not fit the schema of the server: {rule}"))
        }
        None if root.get("additionalProperties") == Some(&Value::Bool(false)) => {
            Some(", but the server has no such argument".into())
        }
        None => None,
    }
}

fn unfit(root: &Value, name: &str, property: &Value, value: &Value) -> Option<String> {
    complaint(root, name, property, value).as_ref().map(ToString::to_string)
}

/// Why a value does not fit the schema of an argument; `None` if it does, or if the schema cannot be compiled.
fn complaint(root: &Value, name: &str, property: &Value, value: &Value) -> Option<Complaint> {
    let mut schema = Map::new();
    for key in ["$schema", "$defs", "definitions"] {
        if let Some(definitions) = root.get(key) {
            schema.insert(key.into(), definitions.clone());
        }
    }
    schema.insert("properties".into(), json!({ name: property }));
    let checker = ArgumentChecker::compile(&Value::Object(schema)).ok()?;
    checker.check(&json!({ name: value })).err()?.into_iter().next()
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

    fn hidden_default(name: &str, value: Value) -> ArgumentSpec {
        ArgumentSpec {
            source: ArgumentSource::HiddenDefault(FixedValue::new(value)),
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
        let unfit = "that does not fit the schema of the server: the value is";
        let too_large = format!("{unfit} greater than the maximum of 10");
        check(fixed("limit", json!(5)), "");
        check(fixed("limit", json!("5")), "");
        check(
            fixed("limit", json!(11)),
            &format!("argument `limit` has a fixed value {too_large}"),
        );
        check(
            fixed("limit", json!("s3cret")),
            &format!("argument `limit` has a fixed value {unfit} not of type \"integer\""),
        );
        check(
            hidden_default("limit", json!(11)),
            &format!("argument `limit` has a hidden default {too_large}"),
        );
        check(fixed("day", json!("mo")), "");
        check(
            fixed("day", json!("su")),
            &format!("argument `day` has a fixed value {unfit} not one of \"mo\" or \"tu\""),
        );
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
    fn a_fault_has_the_place_of_its_argument() {
        let server = json!({"properties": {"a": {"type": "integer"}}, "required": ["b"]});
        let declared = [
            withheld("b"),
            fixed("c", json!(1)),
            fixed("a", json!("x")),
            hidden_default("a", json!("x")),
            with_default("a", None, json!("x")),
        ];
        let faults = check_declaration(&server, &declared);
        let places: Vec<_> = faults.iter().map(|fault| (fault.index, fault.key)).collect();
        assert_eq!(places, [(0, "hidden"), (2, "value"), (3, "default"), (4, "default")]);
    }

    #[test]
    fn a_server_that_accepts_more_arguments_takes_any_fixed_value() {
        let declared = [fixed("tenant", json!("a"))];
        for open in [json!({"type": "object"}), json!(true)] {
            assert_eq!(check_declaration(&open, &declared), []);
        }
    }
}
