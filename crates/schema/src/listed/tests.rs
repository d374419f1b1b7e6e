//! Repairs that need no server. The whole table of malformed tools is in the tests of upstream tool lists.

use pretty_assertions::assert_eq;
use serde_json::value::RawValue;
use switchboard_model::ToolDescriptor;

use super::*;

fn tool(input: &str, output: Option<&Value>) -> ToolDescriptor {
    ToolDescriptor {
        input_schema: JsonText::from(&*RawValue::from_string(input.into()).unwrap()),
        output_schema: output.map(JsonText::from),
        ..ToolDescriptor::named("t")
    }
}

#[test]
fn a_fine_definition_stays_as_it_was_written() {
    let input = r#"{ "type":"object","properties":{"a":{"maximum":1.0}},"required":["a"], "$schema":"x:y"}"#;
    let output = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/result",
        "type": "object",
        "properties": {
            "node": {"$ref": "#/$defs/node"}, "again": {"$ref": "#"}, "named": {"$ref": "#anchored"},
            "when": {"type": "string", "format": "date-time", "pattern": "^\\d{4}-[0-9-]+(?<rest>.*)$"},
            "maybe": {"type": ["string", "null"]}, "openapi": {"type": "string", "nullable": true},
            "pair": {"prefixItems": [{"type": "string"}], "items": false, "unevaluatedItems": false},
        },
        "patternProperties": {"^x-": true},
        "$defs": {"node": {"anyOf": [{"$ref": "#/$defs/node"}, {"const": null}]}, "n": {"$anchor": "anchored"}},
        "additionalProperties": {"enum": [{"id": 1, "$ref": "#/nowhere"}]},
        "examples": [{"$ref": "nowhere"}],
    });
    let mut fine = tool(input, Some(&output));
    let before = fine.clone();
    prepare_for_lists(&mut fine).unwrap();
    assert_eq!(fine, before);
    assert_eq!(fine.shown_schema().as_str(), input);
}

#[test]
fn what_was_repaired_is_said_and_the_servers_own_schema_stays() {
    let input = r#"{"properties":{"a":true}}"#;
    let mut odd =
        tool(input, Some(&json!({"type": "object", "properties": {"b": {"$ref": "#/x"}}})));
    prepare_for_lists(&mut odd).unwrap();
    assert_eq!(odd.input_schema.as_str(), input);
    assert_eq!(odd.shown_schema().as_str(), r#"{"properties":{"a":{}},"type":"object"}"#);
    assert_eq!(odd.output_schema, None);
    assert_eq!(
        odd.repairs,
        [
            "inputSchema: `type: object` was added",
            "inputSchema: `properties.a`: `true` became {}",
            "outputSchema was left out: `$ref` #/x cannot be resolved",
        ]
    );
}

#[test]
fn what_clients_may_not_be_able_to_read_is_quarantined() {
    for unreadable in [
        r#"{"type":"object","properties":{"a":{"maximum":1e999}}}"#,
        r#"{"type":"object","description":"\ud800"}"#,
    ] {
        let reason = prepare_for_lists(&mut tool(unreadable, None)).unwrap_err();
        assert!(reason.starts_with("its inputSchema cannot be read: "), "{reason}");
    }
}

#[track_caller]
fn check_input(schema: &Value, expected: Result<(Value, &[&str]), &str>) {
    let mut tool = tool(&schema.to_string(), None);
    let prepared = prepare_for_lists(&mut tool);
    let shown = prepared.map(|()| {
        let shown: Value = serde_json::from_str(tool.shown_schema().as_str()).unwrap();
        (shown, tool.repairs.clone())
    });
    let expected = expected
        .map(|(schema, repairs)| (schema, repairs.iter().map(ToString::to_string).collect()));
    assert_eq!(shown, expected.map_err(str::to_owned), "{schema}");
    assert_eq!(tool.input_schema.as_str(), schema.to_string(), "calls are checked against it");
}

#[test]
fn an_input_schema_is_repaired_where_its_meaning_can_be_kept() {
    let object = || json!({"type": "object"});
    check_input(&json!(true), Ok((object(), &["inputSchema `true` became {\"type\":\"object\"}"])));
    check_input(&json!({}), Ok((object(), &["inputSchema: `type: object` was added"])));
    check_input(&json!({"type": null}), Ok((object(), &["inputSchema: `type: object` was added"])));
    check_input(
        &json!({"type": ["object", "null"]}),
        Ok((object(), &["inputSchema: `type` became `object`: arguments are always one"])),
    );
    check_input(
        &json!({"type": "OBJECT"}),
        Ok((object(), &["inputSchema: `type` is written `object`"])),
    );
    check_input(
        &json!({"type": "object", "$schema": 7}),
        Ok((object(), &["inputSchema: `$schema` was left out: it is not a string"])),
    );
    for empty in [json!([]), json!(null)] {
        check_input(
            &json!({"type": "object", "properties": empty}),
            Ok((
                json!({"type": "object", "properties": {}}),
                &["inputSchema: `properties` became {}"],
            )),
        );
    }
    check_input(
        &json!({"type": "object", "properties": {"a": null, "b": false, "c": {}}}),
        Ok((
            json!({"type": "object", "properties": {"a": {}, "b": {"not": {}}, "c": {}}}),
            &[
                "inputSchema: `properties.a`: `null` became {}",
                "inputSchema: `properties.b`: `false` became {\"not\":{}}",
            ],
        )),
    );
    for not_names in [json!(true), json!(null), json!({})] {
        check_input(
            &json!({"type": "object", "required": not_names}),
            Ok((
                object(),
                &["inputSchema: `required` was left out: it is not a list of property names"],
            )),
        );
    }
}

#[test]
fn an_input_schema_that_means_something_else_is_refused() {
    for (schema, reason) in [
        (json!(false), "its inputSchema is a boolean, not an object"),
        (json!([]), "its inputSchema is a list, not an object"),
        (json!("object"), "its inputSchema is a string, not an object"),
        (json!(7), "its inputSchema is a number, not an object"),
        (json!(null), "its inputSchema is null, not an object"),
        (
            json!({"type": "string"}),
            "its inputSchema is of type \"string\", and arguments are always an object",
        ),
        (
            json!({"type": ["string", "null"]}),
            "its inputSchema is of type [\"string\",\"null\"], and arguments are always an object",
        ),
        (
            json!({"type": "object", "properties": {"a": "string"}}),
            "`properties.a` of its inputSchema is a string, not a schema",
        ),
        (
            json!({"type": "object", "properties": ["a"]}),
            "`properties` of its inputSchema is a list, not an object",
        ),
        (
            json!({"type": "object", "required": "a"}),
            "`required` of its inputSchema is \"a\", not a list of names",
        ),
        (
            json!({"type": "object", "required": ["a", 7]}),
            "`required` of its inputSchema is [\"a\",7], not a list of names",
        ),
    ] {
        check_input(&schema, Err(reason));
    }
    let long = json!({"type": "object", "required": "x".repeat(500)});
    let reason = prepare_for_lists(&mut tool(&long.to_string(), None)).unwrap_err();
    assert!(reason.contains("xxx...") && reason.len() < 150, "{reason}");
}

#[test]
fn an_output_schema_that_clients_cannot_compile_is_left_out_with_its_reason() {
    for (schema, reason) in [
        (json!(true), "it is a boolean, not an object"),
        (json!({"type": "objekt"}), "it is not a JSON Schema at /type: "),
        (
            json!({"properties": {"a": {"minimum": "x"}}}),
            "it is not a JSON Schema at /properties/a",
        ),
        (json!({"id": "x"}), "it has the keyword `id` of draft 4"),
        (json!({"items": {"$id": "https://example.com/x"}}), "a part of it has an `$id`"),
        (json!({"$async": true}), "it has the keyword `$async`"),
        (json!({"enum": []}), "it has an empty `enum`"),
        (json!({"nullable": true}), "it has `nullable` without a `type`"),
        (json!({"type": "string", "nullable": 1}), "`nullable` is not a boolean"),
        (
            json!({"type": ["string", "null"], "nullable": false}),
            "`nullable: false` contradicts its `type`",
        ),
        (json!({"type": "null", "nullable": false}), "`nullable: false` contradicts its `type`"),
        (json!({"pattern": "(?<=a"}), "it is not a JSON Schema at /pattern"),
        (json!({"pattern": "a\\-b"}), "a\\-b is not a regular expression of JavaScript"),
        (
            json!({"patternProperties": {"a\\-b": {}}}),
            "a\\-b is not a regular expression of JavaScript",
        ),
        (
            json!({"$ref": "https://example.com/x"}),
            "`$ref` https://example.com/x cannot be resolved",
        ),
        (json!({"$ref": "#missing"}), "`$ref` #missing cannot be resolved"),
        (json!({"$defs": {"a": {"$anchor": "1a"}}}), "the anchor \"1a\" is not usable"),
        (
            json!({"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}}),
            "the anchor \"x\" is not usable",
        ),
        (json!({"anyOf": [{"not": {"enum": []}}]}), "it has an empty `enum`"),
    ] {
        let mut tool = tool(r#"{"type":"object"}"#, Some(&schema));
        prepare_for_lists(&mut tool).unwrap();
        assert_eq!(tool.output_schema, None, "{schema}");
        let [repair] = &*tool.repairs else { panic!("{schema}: {:?}", tool.repairs) };
        let told = repair.strip_prefix("outputSchema was left out: ").unwrap();
        assert!(told.starts_with(reason), "{schema}: {told}");
    }
}

#[test]
fn an_output_schema_is_repaired_like_an_input_schema() {
    let mut tool =
        tool(r#"{"type":"object"}"#, Some(&json!({"properties": {"a": true}, "required": true})));
    prepare_for_lists(&mut tool).unwrap();
    let shown = tool.output_schema.as_ref().map(JsonText::as_str);
    assert_eq!(shown, Some(r#"{"properties":{"a":{}}}"#));
    assert_eq!(
        tool.repairs,
        [
            "outputSchema: `properties.a`: `true` became {}",
            "outputSchema: `required` was left out: it is not a list of property names",
        ]
    );
}
