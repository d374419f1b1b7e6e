use pretty_assertions::assert_eq;
use switchboard_model::{ArgumentSource, FixedValue};

use super::*;

fn argument(name: &str, kind: ArgumentType, required: Option<bool>) -> ArgumentSpec {
    ArgumentSpec {
        kind: Some(kind),
        description: Some(format!("the {name}")),
        required,
        ..ArgumentSpec::named(name)
    }
}

fn fixed(name: &str, value: Value) -> ArgumentSpec {
    ArgumentSpec {
        source: ArgumentSource::Fixed(FixedValue::new(value)),
        ..ArgumentSpec::named(name)
    }
}

fn server_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "unit": {"type": "string", "enum": ["C", "F"], "description": "old"},
            "days": {"type": "string", "minLength": 2},
            "kept": {"type": "boolean"},
        },
        "required": ["unit", "kept"],
    })
}

#[test]
fn what_is_declared_wins_and_the_rest_is_taken_from_the_server() {
    let declared = [
        argument("unit", ArgumentType::String, Some(false)),
        argument("days", ArgumentType::Integer, Some(true)),
        argument("added", ArgumentType::Array, None),
    ];
    assert_eq!(
        declare_arguments(&server_schema(), &declared),
        json!({
            "type": "object",
            "properties": {
                "kept": {"type": "boolean"},
                "unit": {"type": "string", "enum": ["C", "F"], "description": "the unit"},
                "days": {"type": "integer", "description": "the days"},
                "added": {"type": "array", "description": "the added"},
            },
            "required": ["kept", "days"],
            "additionalProperties": false,
        })
    );
}

#[test]
fn declared_arguments_come_first_in_the_order_of_the_declaration() {
    let declared = [
        argument("kept", ArgumentType::Boolean, None),
        argument("added", ArgumentType::Array, None),
        argument("unit", ArgumentType::String, None),
    ];
    let schema = declare_arguments(&server_schema(), &declared);
    let names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["kept", "added", "unit", "days"]);
}

#[test]
fn an_empty_declaration_changes_nothing() {
    assert_eq!(declare_arguments(&server_schema(), &[]), server_schema());
}

#[test]
fn a_schema_that_says_nothing_becomes_an_object_of_the_declared_arguments() {
    for nothing in [json!(true), json!({}), json!({"properties": 3, "required": "x"})] {
        let schema = declare_arguments(&nothing, &[argument("a", ArgumentType::Number, None)]);
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {"a": {"type": "number", "description": "the a"}},
                "additionalProperties": false,
            })
        );
    }
}

#[test]
fn an_argument_without_a_declared_type_keeps_that_of_the_server() {
    let renamed = ArgumentSpec {
        description: Some("the unit".into()),
        choices: Some(vec![json!("C")]),
        ..ArgumentSpec::named("unit")
    };
    let schema = declare_arguments(&server_schema(), &[renamed]);
    assert_eq!(
        schema["properties"]["unit"],
        json!({"type": "string", "enum": ["C"], "description": "the unit"})
    );
}

#[test]
fn a_declared_type_keeps_the_constraints_of_a_server_that_also_allows_null() {
    let server =
        json!({"properties": {"a": {"type": ["string", "null"], "maxLength": 3, "default": null}}});
    let schema = declare_arguments(&server, &[argument("a", ArgumentType::String, None)]);
    assert_eq!(schema["properties"]["a"]["type"], "string");
    assert_eq!(schema["properties"]["a"]["maxLength"], 3);
    let optional = json!({"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}}});
    let schema = declare_arguments(&optional, &[argument("a", ArgumentType::String, None)]);
    assert_eq!(schema["properties"]["a"], json!({"type": "string", "description": "the a"}));
}

#[test]
fn nested_schemas_and_defaults_are_declared() {
    let declared = [
        ArgumentSpec {
            items: Some(json!({"type": "string"})),
            default: Some(json!([])),
            ..argument("tags", ArgumentType::Array, None)
        },
        ArgumentSpec {
            properties: Some(json!({"zip": {"type": "string"}})),
            ..argument("address", ArgumentType::Object, None)
        },
        // The default makes a required argument of the server optional.
        ArgumentSpec { default: Some(json!("C")), ..ArgumentSpec::named("unit") },
    ];
    let schema = declare_arguments(&server_schema(), &declared);
    assert_eq!(
        schema["properties"]["tags"],
        json!({"type": "array", "description": "the tags", "default": [], "items": {"type": "string"}})
    );
    assert_eq!(schema["properties"]["address"]["properties"]["zip"]["type"], "string");
    assert_eq!(schema["required"], json!(["kept"]));
}

#[test]
fn hidden_arguments_leave_no_trace_in_the_schema() {
    let server = json!({
        "type": "object",
        "properties": {"key": {"type": "string"}, "q": {"type": "string"}, "old": {"type": "string"}},
        "required": ["key"],
        "allOf": [{"required": ["key", "q"]}],
        "if": {"properties": {"key": {"const": "x"}}},
        "dependentRequired": {"key": ["q"]},
    });
    let withheld = ArgumentSpec { source: ArgumentSource::Withheld, ..ArgumentSpec::named("old") };
    let schema = declare_arguments(&server, &[fixed("key", json!("s3cret")), withheld]);
    let text = schema.to_string();
    assert!(!text.contains("key") && !text.contains("old") && !text.contains("s3cret"), "{text}");
    assert_eq!(schema["allOf"], json!([{"required": ["q"]}]));
}
