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
