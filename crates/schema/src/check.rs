//! Checks the arguments of a call against the tool's schema before the call is sent.

use std::fmt;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use switchboard_model::json_length;

use crate::complexity::exceeds_max_checks;
use crate::convertible::converted;

/// A larger schema is not compiled: its server checks the arguments itself.
pub const MAX_CHECKED_SCHEMA_BYTES: u64 = 1 << 20;

/// Maximum number of complaints in one answer.
const MAX_COMPLAINTS: usize = 8;
/// Maximum number of validation errors that are examined for complaints.
const MAX_EXAMINED: usize = 256;
/// Longest argument name for which similar names are searched.
const MAX_COMPARED: usize = 256;

/// Checks arguments against one tool's schema. Compiled once, used by every call.
#[derive(Debug)]
pub struct ArgumentChecker {
    validator: Validator,
    known: Vec<String>,
}

/// Why a schema cannot be used to check arguments. The call is then sent unchecked, because the server checks its
/// arguments anyway.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaFault {
    #[error("the schema is larger than {MAX_CHECKED_SCHEMA_BYTES} bytes")]
    TooLarge,
    #[error("too many subschemas apply to one value")]
    Entangled,
    #[error("the schema cannot be compiled: {0}")]
    Invalid(String),
}

/// One error in the arguments, in words that a model can act on. It may quote the argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    path: String,
    text: String,
    masked: String,
}

impl Complaint {
    /// The JSON pointer of the argument that is wrong, missing or unknown.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The complaint without values of arguments, for logs and records: the path of the argument and the rule of the
    /// schema.
    pub fn masked(&self) -> &str {
        &self.masked
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl ArgumentChecker {
    /// Compiles a schema. Never reads other documents: a remote `$ref` is an error.
    pub fn compile(schema: &Value) -> Result<Self, SchemaFault> {
        if json_length(schema) > MAX_CHECKED_SCHEMA_BYTES {
            return Err(SchemaFault::TooLarge);
        }
        if exceeds_max_checks(schema) {
            return Err(SchemaFault::Entangled);
        }
        let validator = jsonschema::options()
            // A regex engine with linear-time matching: a pattern from a server must not be able to stall the process.
            .with_pattern_options(PatternOptions::regex())
            .build(schema)
            .map_err(|error| SchemaFault::Invalid(error.to_string()))?;
        let known = schema
            .get("properties")
            .and_then(Value::as_object)
            .map(|properties| properties.keys().cloned().collect())
            .unwrap_or_default();
        Ok(Self { validator, known })
    }

    /// Checks `arguments` and returns the errors, up to a fixed number. A string that reads as the number or boolean
    /// that the schema asks for is accepted; the result is then the arguments with such strings converted.
    pub fn check(&self, arguments: &Value) -> Result<Option<Value>, Vec<Complaint>> {
        // Most arguments are valid, and `is_valid` is cheaper than collecting errors.
        if self.validator.is_valid(arguments) {
            return Ok(None);
        }
        let unfit = match converted(&self.validator, arguments) {
            Ok(converted) => return Ok(Some(converted)),
            Err(unfit) => unfit,
        };
        // A converted string is an error only if the converted value is invalid too.
        let still_wrong: Vec<_> = self
            .validator
            .iter_errors(&unfit)
            .take(MAX_EXAMINED)
            .map(|error| error.instance_path().to_string())
            .collect();
        let is_wrong = |error: &ValidationError<'_>| {
            let place = error.instance_path().to_string();
            arguments.pointer(&place) == unfit.pointer(&place)
                || still_wrong.iter().any(|wrong| wrong.starts_with(&place))
        };
        let told = |is_told: &dyn Fn(&ValidationError<'_>) -> bool| -> Vec<_> {
            let errors = self.validator.iter_errors(arguments).take(MAX_EXAMINED);
            let told = errors.filter(|error| is_told(error)).take(MAX_COMPLAINTS);
            told.map(|error| Complaint {
                path: pointer_of(&error),
                text: self.describe(&error, &error),
                masked: self.describe(&error, &error.masked_with("the value")),
            })
            .collect()
        };
        let mut complaints = told(&is_wrong);
        if complaints.is_empty() {
            // The converted strings break a rule together that none of them breaks alone.
            complaints = told(&|_| true);
        }
        if complaints.is_empty() { Ok(None) } else { Err(complaints) }
    }

    /// `rule` is the validation library's text of the error.
    fn describe(&self, error: &ValidationError<'_>, rule: &dyn fmt::Display) -> String {
        let place = argument_path(&error.instance_path().to_string());
        match error.kind() {
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                match place {
                    None => format!("missing required argument `{name}`"),
                    Some(place) => format!("argument `{place}` lacks `{name}`"),
                }
            }
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                self.describe_unknown(place, unexpected)
            }
            // The library reports `additionalProperties: false` without any properties in this way.
            ValidationErrorKind::FalseSchema if place.is_none() && self.known.is_empty() => {
                "this tool takes no arguments".into()
            }
            _ => match place {
                None => rule.to_string(),
                Some(place) => format!("argument `{place}`: {rule}"),
            },
        }
    }

    fn describe_unknown(&self, place: Option<String>, unexpected: &[String]) -> String {
        let names = quoted(unexpected);
        let Some(place) = place else {
            let nearest = unexpected.first().and_then(|name| nearest(name, &self.known));
            let known = quoted(&self.known);
            return match nearest {
                Some(nearest) => format!("unknown argument {names}; did you mean `{nearest}`?"),
                None => format!("unknown argument {names}; this tool takes {known}"),
            };
        };
        format!("argument `{place}` has the unknown key {names}")
    }
}

/// The JSON pointer of the argument that an error is about; for a missing or an unknown one, its own.
fn pointer_of(error: &ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    let below = match error.kind() {
        ValidationErrorKind::Required { property } => property.as_str(),
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            unexpected.first().map(String::as_str)
        }
        _ => None,
    };
    match below {
        Some(name) => format!("{place}/{}", name.replace('~', "~0").replace('/', "~1")),
        None => place,
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a String> {
    // The cost of a comparison grows with the lengths of both names.
    if name.len() > MAX_COMPARED {
        return None;
    }
    known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(similarity, _)| *similarity > 0.8)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

/// Formats a JSON pointer `/a/0/b` as `a[0].b`; `None` for the arguments as a whole.
fn argument_path(pointer: &str) -> Option<String> {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if path.is_empty() {
            path.push_str(&part);
        } else if part.bytes().all(|byte| byte.is_ascii_digit()) {
            path.extend(["[", &part, "]"]);
        } else {
            path.push('.');
            path.push_str(&part);
        }
    }
    (!path.is_empty()).then_some(path)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, arguments: &Value, expected: &[&str]) {
        let checker = ArgumentChecker::compile(schema).unwrap();
        let complaints = checker.check(arguments).err().unwrap_or_default();
        let texts: Vec<_> = complaints.iter().map(ToString::to_string).collect();
        assert_eq!(texts, expected);
    }

    fn sum_schema() -> Value {
        json!({
            "type": "object",
            "properties": {"a": {"type": "number"}, "labels": {"type": "array", "items": {"type": "object", "required": ["k"]}}},
            "required": ["a"],
            "additionalProperties": false,
        })
    }

    #[test]
    fn every_complaint_has_the_pointer_of_its_argument() {
        let checker = ArgumentChecker::compile(&sum_schema()).unwrap();
        let rows = [
            (json!({"a": "x"}), "/a"),
            (json!({}), "/a"),
            (json!({"a": 1, "b/c": 2}), "/b~1c"),
            (json!({"a": 1, "labels": [{}]}), "/labels/0/k"),
        ];
        for (arguments, path) in rows {
            let complaints = checker.check(&arguments).unwrap_err();
            assert_eq!(complaints.iter().map(Complaint::path).collect::<Vec<_>>(), [path]);
        }
    }

    #[test]
    fn good_arguments_pass() {
        check(&sum_schema(), &json!({"a": 1, "labels": [{"k": 1}]}), &[]);
    }

    #[test]
    fn a_text_that_reads_as_what_is_asked_for_passes() {
        let optional = |schema: Value| json!({"anyOf": [schema, {"type": "null"}]});
        let point = json!({"type": "object", "properties": {"x": {"type": "integer"}, "s": {"type": "string"}}});
        let schema = json!({"properties": {
            "n": {"type": "number"}, "i": {"type": "integer", "minimum": 2}, "b": {"type": "boolean"},
            "several": {"type": ["integer", "boolean"]}, "maybe": optional(json!({"type": "integer"})),
            "list": {"type": "array", "items": {"type": "integer"}}, "point": optional(point), "s": {"type": "string"},
            "one": {"oneOf": [{"type": "integer"}, {"type": "array"}]},
        }});
        let checker = ArgumentChecker::compile(&schema).unwrap();
        for (arguments, read) in [
            (json!({"n": "1.5"}), json!({"n": 1.5})),
            (json!({"n": "-1e3", "i": "7"}), json!({"n": -1e3, "i": 7})),
            (json!({"i": "3.0"}), json!({"i": 3.0})),
            (json!({"b": "true"}), json!({"b": true})),
            (json!({"b": "False"}), json!({"b": false})),
            (json!({"several": "1"}), json!({"several": 1})),
            (json!({"several": "true"}), json!({"several": true})),
            (json!({"maybe": "1"}), json!({"maybe": 1})),
            (json!({"one": "1"}), json!({"one": 1})),
            (json!({"list": [1, "2", "3"]}), json!({"list": [1, 2, 3]})),
            (json!({"point": {"x": "1", "s": "2"}}), json!({"point": {"x": 1, "s": "2"}})),
        ] {
            assert_eq!(checker.check(&arguments).unwrap(), Some(read), "{arguments}");
        }
        assert_eq!(checker.check(&json!({"n": 1, "s": "1"})).unwrap(), None);
        for wrong in [
            json!({"n": "one"}),
            json!({"n": ""}),
            json!({"n": " 1"}),
            json!({"n": "1\n"}),
            json!({"n": "+1"}),
            json!({"n": "0x10"}),
            json!({"n": "NaN"}),
            json!({"n": "true"}),
            json!({"i": "1.5"}),
            json!({"i": "1"}),
            json!({"b": "1"}),
            json!({"b": "yes"}),
            json!({"s": 1}),
            json!({"list": "1"}),
            json!({"i": "3", "n": "x"}),
        ] {
            assert!(checker.check(&wrong).is_err(), "{wrong}");
        }
        // An argument that does not fit must not cause complaints about others that do.
        let told = checker.check(&json!({"i": "3", "b": "yes", "list": ["1", "x"]})).unwrap_err();
        let told: Vec<_> = told.iter().map(ToString::to_string).collect();
        let wrong = [
            r#"argument `b`: "yes" is not of type "boolean""#,
            r#"argument `list[1]`: "x" is not of type "integer""#,
        ];
        assert_eq!(told, wrong);
        let exclusive = json!({"properties": {"a": {"type": "integer"}}, "not": {"properties": {"a": {"const": 1}}}});
        let told = ArgumentChecker::compile(&exclusive).unwrap().check(&json!({"a": "1"}));
        assert!(told.is_err(), "{told:?}");
        // Complaints quote the arguments as they were sent, before conversion.
        let told = checker.check(&json!({"i": "1"})).unwrap_err()[0].to_string();
        assert_eq!(told, r#"argument `i`: "1" is not of type "integer""#);
    }

    #[test]
    fn a_masked_complaint_has_the_argument_and_the_rule_and_no_value() {
        #[track_caller]
        fn check(property: &Value, arguments: &Value, expected: &str) {
            let schema = json!({"properties": {"a": property}, "required": ["a"], "additionalProperties": false});
            let checker = ArgumentChecker::compile(&schema).unwrap();
            let complaints = checker.check(arguments).unwrap_err();
            let masked: Vec<_> = complaints.iter().map(Complaint::masked).collect();
            assert_eq!(masked, [expected]);
        }
        let secret = json!({"a": "s3cret"});
        let number = json!({"type": "number"});
        check(&number, &secret, r#"argument `a`: the value is not of type "number""#);
        check(&number, &json!({}), "missing required argument `a`");
        check(
            &number,
            &json!({"a": 1, "b": "s3cret"}),
            "unknown argument `b`; this tool takes `a`",
        );
        let rules = [
            (json!({"enum": ["x", "y"]}), r#"the value is not one of "x" or "y""#),
            (json!({"const": "x"}), r#""x" was expected"#),
            (json!({"pattern": "^[0-9]+$"}), r#"the value does not match "^[0-9]+$""#),
            (json!({"maxLength": 2}), "the value is longer than 2 characters"),
            (json!(false), "False schema does not allow the value"),
            (
                json!({"not": {"type": "string"}}),
                r#"{"type":"string"} is not allowed for the value"#,
            ),
            (
                json!({"anyOf": [{"type": "null"}, {"type": "array"}]}),
                "the value is not valid under any of the schemas listed in the 'anyOf' keyword",
            ),
        ];
        for (rule, told) in rules {
            check(&rule, &secret, &format!("argument `a`: {told}"));
        }
    }

    #[test]
    fn every_complaint_names_the_argument_and_the_way_out() {
        check(&sum_schema(), &json!({}), &["missing required argument `a`"]);
        check(&sum_schema(), &json!({"a": "x"}), &[r#"argument `a`: "x" is not of type "number""#]);
        check(
            &sum_schema(),
            &json!({"a": 1, "label": []}),
            &["unknown argument `label`; did you mean `labels`?"],
        );
        check(
            &sum_schema(),
            &json!({"a": 1, "zzz": []}),
            &["unknown argument `zzz`; this tool takes `a`, `labels`"],
        );
        check(&sum_schema(), &json!({"a": 1, "labels": [{}]}), &["argument `labels[0]` lacks `k`"]);
        check(
            &json!({"type": "object", "additionalProperties": false}),
            &json!({"x": 1}),
            &["this tool takes no arguments"],
        );
        let nested = json!({"properties": {"o": {"properties": {"p/q": {}}, "additionalProperties": false}}});
        check(&nested, &json!({"o": {"z": 1}}), &["argument `o` has the unknown key `z`"]);
        check(&json!({"minProperties": 1}), &json!({}), &["{} has less than 1 property"]);
        let deep = json!({"properties": {"o": {"properties": {"p/q": {"type": "null"}}}}});
        check(&deep, &json!({"o": {"p/q": 1}}), &[r#"argument `o.p/q`: 1 is not of type "null""#]);
    }

    #[test]
    fn complaints_are_capped() {
        let schema = json!({"required": (0..50).map(|n| n.to_string()).collect::<Vec<_>>()});
        let checker = ArgumentChecker::compile(&schema).unwrap();
        assert_eq!(checker.check(&json!({})).unwrap_err().len(), MAX_COMPLAINTS);
    }

    #[test]
    fn a_remote_reference_is_a_fault_and_is_never_fetched() {
        let fault = ArgumentChecker::compile(&json!({"$ref": "http://127.0.0.1:9/schema.json"}));
        assert!(matches!(fault, Err(SchemaFault::Invalid(_))), "{fault:?}");
    }

    #[test]
    fn a_schema_that_is_none_and_one_that_is_too_large_are_faults() {
        assert!(matches!(
            ArgumentChecker::compile(&json!({"type": 7})),
            Err(SchemaFault::Invalid(_))
        ));
        let huge = json!({"description": "x".repeat(1 << 20)});
        assert_eq!(ArgumentChecker::compile(&huge).unwrap_err(), SchemaFault::TooLarge);
    }

    #[test]
    fn a_hostile_pattern_does_not_stall() {
        let schema = json!({"properties": {"a": {"pattern": "^(a+)+$"}}});
        let arguments = json!({"a": format!("{}!", "a".repeat(50_000))});
        let checker = ArgumentChecker::compile(&schema).unwrap();
        assert!(checker.check(&arguments).is_err());
    }

    proptest! {
        #[test]
        fn declared_types_accept_what_they_say(number in any::<i32>(), text in ".*") {
            let schema = json!({"properties": {"n": {"type": "integer"}, "s": {"type": "string"}}});
            let checker = ArgumentChecker::compile(&schema).unwrap();
            let good = json!({"n": number, "s": text});
            prop_assert!(checker.check(&good).is_ok());
            let swapped = json!({"n": format!("x{text}"), "s": number});
            prop_assert_eq!(checker.check(&swapped).unwrap_err().len(), 2);
        }
    }
}
