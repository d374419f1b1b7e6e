//! The tools of the golden files.

use serde_json::json;
use switchboard_model::{JsonText, ToolDescriptor};

use crate::horrors::horrors;
use crate::tool;

/// The cases, each with the name of its golden files.
pub(crate) fn cases() -> Vec<(&'static str, Vec<ToolDescriptor>)> {
    let horrors = horrors().into_iter().map(|horror| horror.tool).collect();
    vec![
        ("everyday", everyday()),
        ("dialects", [old_drafts(), neighbours()].concat()),
        ("horrors", horrors),
    ]
}

/// Keywords that most servers use.
fn everyday() -> Vec<ToolDescriptor> {
    let forecast = ToolDescriptor {
        title: Some("Forecast".into()),
        annotations: Some(JsonText::from(&json!({"readOnlyHint": true}))),
        output_schema: Some(JsonText::from(&json!({"type": "object"}))),
        ..tool(
            "weather__forecast",
            "Tells the weather of the next days.",
            &json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "The name of a city", "minLength": 1},
                    "days": {"type": "integer", "minimum": 1, "maximum": 14, "default": 3},
                    "unit": {"type": "string", "enum": ["C", "F"]},
                    "hourly": {"type": "boolean"},
                },
                "required": ["city"],
                "additionalProperties": false,
            }),
        )
    };
    let order = tool(
        "shop__order",
        "Orders things.",
        &json!({
            "type": "object",
            "properties": {
                "customer": {"$ref": "#/$defs/Customer"},
                "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}, "minItems": 1},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
                "priority": {"enum": [1, 2, 3]},
                "when": {"type": ["string", "null"], "format": "date-time"},
            },
            "required": ["customer", "lines"],
            "$defs": {
                "Customer": {
                    "type": "object",
                    "properties": {"first name": {"type": "string"}, "e-mail": {"type": "string", "format": "email"}},
                    "required": ["first name"],
                },
                "Line": {
                    "type": "object",
                    "properties": {"sku": {"type": "string", "pattern": "^[A-Z]{3}-\\d+$"}, "count": {"type": "integer"}},
                    "required": ["sku"],
                },
            },
        }),
    );
    let nothing = ToolDescriptor {
        title: Some("Tells the time".into()),
        ..ToolDescriptor::named("clock__now")
    };
    vec![forecast, order, nothing]
}

/// Keywords of older drafts.
fn old_drafts() -> Vec<ToolDescriptor> {
    let draft_4 = tool(
        "old__draft_4",
        "Bounds as booleans, a tuple and dependencies.",
        &json!({
            "$schema": "http://json-schema.org/draft-04/schema#",
            "id": "http://example.com/root.json",
            "type": "object",
            "properties": {
                "ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 1},
                "pair": {
                    "type": "array",
                    "items": [{"type": "string"}, {"type": "integer"}],
                    "additionalItems": false,
                },
                "card": {"$ref": "#/definitions/card"},
            },
            "dependencies": {"card": ["ratio"]},
            "definitions": {"card": {"type": "string", "description": "A number of a card"}},
        }),
    );
    let draft_7 = tool(
        "old__draft_7",
        "A constant, a condition and parts that must hold together.",
        &json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"kind": {"const": "file"}, "size": {"allOf": [{"type": "integer"}, {"minimum": 1}]}},
            "if": {"properties": {"kind": {"const": "file"}}},
            "then": {"properties": {"path": {"type": "string"}}, "required": ["path"]},
            "patternProperties": {"^x-": {"type": "string"}},
            "additionalProperties": false,
        }),
    );
    vec![draft_4, draft_7]
}

/// Keywords of OpenAPI, common mistakes, and references that are not JSON pointers.
fn neighbours() -> Vec<ToolDescriptor> {
    let open_api = tool(
        "old__open_api",
        "What OpenAPI says, and what people write.",
        &json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "nullable": true, "example": "Ann"},
                "count": {"type": "int"},
                "anything": {"type": "any"},
                "shape": {
                    "oneOf": [
                        {"type": "object", "properties": {"radius": {"type": "number"}}, "required": ["radius"]},
                        {"type": "object", "properties": {"side": {"type": "number"}}, "required": ["side"]},
                    ],
                    "discriminator": {"propertyName": "kind"},
                },
            },
        }),
    );
    let anchored = tool(
        "new__anchors",
        "References by anchor and by id.",
        &json!({
            "type": "object",
            "properties": {
                "one": {"$ref": "#money"},
                "two": {"$ref": "https://example.com/address.json", "description": "Where to"},
                "three": {"type": "object", "additionalProperties": {"$ref": "#money"}},
            },
            "$defs": {
                "money": {"$anchor": "money", "type": "number", "exclusiveMinimum": 0},
                "address": {
                    "$id": "https://example.com/address.json",
                    "type": "object",
                    "properties": {"street": {"type": "string"}},
                },
            },
        }),
    );
    vec![open_api, anchored]
}
