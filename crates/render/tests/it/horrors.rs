//! Hostile and broken schemas, each with its expected result.

use std::time::Duration;

use serde_json::{Map, Value, json};
use switchboard_model::{JsonText, ToolDescriptor};
use switchboard_render::{NamedTool, Provider, RenderedTool, render_tool};
use tokio::time::Instant;

use crate::{render, tool};

/// One such schema.
pub(crate) struct Horror {
    pub(crate) tool: ToolDescriptor,
    /// The end of the reason if the tool is quarantined.
    quarantined: Option<&'static str>,
}

fn horror(name: &str, schema: &Value) -> Horror {
    Horror { tool: tool(name, "A horror.", schema), quarantined: None }
}

fn refused(name: &str, schema: &Value, reason: &'static str) -> Horror {
    Horror { quarantined: Some(reason), ..horror(name, schema) }
}

/// The schemas that are small enough for a golden file.
pub(crate) fn horrors() -> Vec<Horror> {
    let mut horrors = of_shape();
    horrors.extend(of_references());
    horrors.extend(of_keys_and_texts());
    horrors
}

fn of_shape() -> Vec<Horror> {
    vec![
        horror(
            "root_any_of",
            &json!({"anyOf": [
                {"type": "object", "properties": {"id": {"type": "integer"}, "all": {"const": false}}, "required": ["id"]},
                {"type": "object", "properties": {"name": {"type": "string"}, "all": {"const": true}}, "required": ["name"]},
                {"type": "null"},
            ]}),
        ),
        horror(
            "root_one_of_beside_properties",
            &json!({
                "type": "object",
                "properties": {"kind": {"type": "string", "description": "Which"}, "x": {"type": "number"}},
                "required": ["kind"],
                "oneOf": [
                    {"properties": {"kind": {"const": "a"}, "a": {"type": "string"}}, "required": ["a"]},
                    {"properties": {"kind": {"const": "b"}, "b": {"type": "string"}}, "required": ["b"]},
                ],
            }),
        ),
        horror(
            "root_all_of",
            &json!({"allOf": [
                {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"a": {"minLength": 2}, "b": {"type": "boolean"}}, "required": ["a", "b"]},
            ]}),
        ),
        horror("boolean_true", &json!(true)),
        refused("boolean_false", &json!(false), "its schema is `false`: it refuses every call"),
        horror(
            "boolean_parts",
            &json!({"properties": {"any": true, "none": false, "list": {"type": "array", "items": true}}}),
        ),
        refused(
            "not_an_object",
            &json!({"type": "string"}),
            "its schema is not that of an object, but the arguments of a call are always an object",
        ),
        refused("a_list", &json!([1, 2]), "its schema is neither an object nor a boolean"),
        horror("empty", &json!({})),
        horror("type_list_at_the_root", &json!({"type": ["object", "null"]})),
        horror(
            "required_of_missing",
            &json!({"type": "object", "properties": {"a": {}}, "required": ["a", "b", 3, "a"]}),
        ),
        horror(
            "malformed_everywhere",
            &json!({
                "type": "object", "required": true, "description": 5, "minProperties": -1,
                "properties": {
                    "a": {"type": 7, "enum": [], "minimum": "1", "pattern": "("},
                    "b": "string",
                    "c": {"type": ["string", "who"], "items": 3, "anyOf": []},
                    "d": null,
                },
            }),
        ),
        horror(
            "tuple_and_enum",
            &json!({
                "type": "object",
                "properties": {
                    "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false},
                    "mixed": {"enum": ["", "a", 1, 2.5, true, null]},
                    "bare": {"type": "array"},
                },
            }),
        ),
    ]
}

fn of_references() -> Vec<Horror> {
    vec![
        horror(
            "cycle",
            &json!({
                "type": "object",
                "properties": {"tree": {"$ref": "#/$defs/Node"}},
                "$defs": {"Node": {
                    "type": "object",
                    "description": "A node",
                    "properties": {"label": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
                }},
            }),
        ),
        horror(
            "cycle_of_the_root",
            &json!({"type": "object", "properties": {"again": {"$ref": "#"}}}),
        ),
        horror(
            "cycle_of_references",
            &json!({
                "properties": {"a": {"$ref": "#/$defs/a"}},
                "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
            }),
        ),
        horror(
            "cycle_of_all_of",
            &json!({
                "properties": {"a": {"allOf": [{"$ref": "#/$defs/a"}, {"title": "more"}]}},
                "$defs": {"a": {"type": "object", "properties": {"next": {"allOf": [{"$ref": "#/$defs/a"}, {"title": "more"}]}}}},
            }),
        ),
        horror(
            "remote_reference",
            &json!({"properties": {
                "far": {"$ref": "http://127.0.0.1:9/schema.json#/a", "description": "Elsewhere"},
                "file": {"$ref": "file:///etc/passwd"},
                "lost": {"$ref": "#/$defs/lost"},
            }}),
        ),
    ]
}

fn of_keys_and_texts() -> Vec<Horror> {
    let mut keys = Map::new();
    for key in
        ["first name", "🙂", "", "2nd", "a.b", "a-b", "$filter", "bad\u{202E}key", "k_x01234567"]
    {
        keys.insert(key.to_owned(), json!({"type": "string"}));
    }
    keys.insert(
        "k".repeat(300),
        json!({"type": "object", "properties": {"in side": {"type": "integer"}}}),
    );
    let mut hidden = horror(
        "hidden_characters",
        &json!({"properties": {"a": {"type": "string", "description": "left\u{202E}right\u{0}\u{E0041}"}}}),
    );
    hidden.tool.description = Some("Safe\u{202E} \u{200B}and\u{7} sound\r\n".into());
    let named = |name: &str| {
        let mut horror = refused(name, &json!({}), "and begin with a letter or `_`");
        horror.tool.name = name.into();
        horror
    };
    vec![
        horror("keys", &json!({"properties": keys, "required": ["first name", "🙂"]})),
        hidden,
        named(""),
        named("a.b"),
        named("3d"),
        named("with space"),
        named("bidi\u{202E}"),
        named("a_name_that_is_longer_than_the_sixty_four_characters_that_providers_take"),
        refused("boolean_true", &json!({}), "another tool before it has the name `boolean_true`"),
    ]
}

#[test]
fn no_horror_spoils_a_rendering_and_each_is_shown_or_explained() {
    let horrors = horrors();
    let tools: Vec<_> = horrors.iter().map(|horror| horror.tool.clone()).collect();
    for provider in Provider::ALL {
        let rendering = render(provider, &tools);
        let reasons: Vec<&str> =
            rendering.quarantined.iter().map(|tool| tool.reason.as_str()).collect();
        let expected: Vec<&str> = horrors.iter().filter_map(|horror| horror.quarantined).collect();
        assert_eq!(reasons.len(), expected.len(), "{provider}: {reasons:#?}");
        for (reason, expected) in reasons.iter().zip(expected) {
            assert!(reason.ends_with(expected), "{provider}: {reason}");
        }
        assert_eq!(rendering.tools.len(), tools.len() - reasons.len());
        serde_json::from_slice::<Value>(&rendering.json()).unwrap();
    }
}

/// Renders one tool and measures the time.
fn timed(provider: Provider, schema: &str) -> (Result<RenderedTool, String>, Duration) {
    let raw: &serde_json::value::RawValue = serde_json::from_str(schema).unwrap();
    let descriptor =
        ToolDescriptor { input_schema: JsonText::from(raw), ..ToolDescriptor::named("t") };
    let begun = Instant::now();
    let rendered = render_tool(provider, &NamedTool { name: "t", descriptor: &descriptor });
    (rendered.map_err(|quarantine| quarantine.reason), begun.elapsed())
}

/// Time limit, far above the expected time even in debug builds; exponential expansion would take hours.
const PATIENCE: Duration = Duration::from_secs(5);

fn check_large(
    name: &str,
    schema: &str,
    is_expected: impl Fn(&Result<RenderedTool, String>) -> bool,
) {
    // One provider for each set of rules.
    let providers = [
        Provider::Mcp,
        Provider::OpenAi,
        Provider::Anthropic,
        Provider::GeminiParameters,
        Provider::SemanticKernel,
    ];
    for provider in providers {
        let (rendered, took) = timed(provider, schema);
        assert!(took < PATIENCE, "{name} for {provider} took {took:?}");
        if let Ok(tool) = &rendered
            && provider != Provider::Mcp
        {
            assert!(
                tool.json.len() < 100 << 10,
                "{name} for {provider}: {} bytes",
                tool.json.len()
            );
            serde_json::from_str::<Value>(&tool.json).unwrap();
        }
        let shown = rendered.as_ref().map(|tool| tool.json.len());
        assert!(
            provider == Provider::Mcp || is_expected(&rendered),
            "{name} for {provider}: {shown:?}"
        );
    }
}

fn is_cut(rendered: &Result<RenderedTool, String>) -> bool {
    let cut = |tool: &RenderedTool| {
        tool.rewrites.iter().any(|rewrite| rewrite.what.starts_with("cut to"))
    };
    rendered.as_ref().is_ok_and(cut)
}

#[test]
fn a_schema_of_5_mb_is_refused_unread() {
    let schema = json!({"properties": {"a": {"description": "x".repeat(5 << 20)}}}).to_string();
    check_large("5 MB", &schema, |rendered| {
        rendered
            .as_ref()
            .is_err_and(|reason| reason == "its schema has 5120 KiB; the limit is 1024 KiB")
    });
}

#[test]
fn a_schema_of_200_levels_is_refused() {
    let mut schema = String::new();
    for _ in 0..200 {
        schema.push_str(r#"{"type":"object","properties":{"a":"#);
    }
    schema.push_str("{}");
    schema.push_str(&"}}".repeat(200));
    for provider in Provider::ALL {
        let (rendered, _) = timed(provider, &schema);
        assert_eq!(rendered.unwrap_err(), "its schema is nested deeper than 127 levels");
    }
}

/// Forty definitions, each of which refers to the next one twice.
fn doubling(refer: impl Fn(&str) -> Value) -> String {
    let mut definitions = Map::new();
    for level in 0..40 {
        let next = format!("#/$defs/d{}", level + 1);
        let both = json!({"properties": {"l": refer(&next), "r": refer(&next)}});
        definitions.insert(format!("d{level}"), both);
    }
    definitions.insert("d40".into(), json!({}));
    json!({"properties": {"a": refer("#/$defs/d0")}, "$defs": definitions}).to_string()
}

#[test]
fn a_schema_that_doubles_with_every_reference_is_cut() {
    check_large("references", &doubling(|next| json!({"$ref": next})), is_cut);
    let beside = doubling(|next| json!({"$ref": next, "type": "object"}));
    check_large("references beside others", &beside, is_cut);
    let merged = doubling(|next| json!({"allOf": [{"title": "m"}, {"$ref": next}]}));
    check_large("references in allOf", &merged, is_cut);
}

#[test]
fn copies_of_something_large_that_is_never_shown_are_paid_for() {
    let large: Vec<String> = (0..5_000).map(|n| format!("value {n}")).collect();
    let properties: Map<String, Value> =
        (0..500).map(|n| (format!("p{n}"), json!({"$ref": "#/$defs/large"}))).collect();
    let schema =
        json!({"properties": properties, "$defs": {"large": {"examples": large}}}).to_string();
    check_large("large examples", &schema, Result::is_err);
    let anchored = schema.replace("#/$defs/large", "#nowhere");
    check_large("searches", &anchored, Result::is_err);
}

#[test]
fn many_parameters_long_lists_and_long_texts_are_refused_or_cut() {
    let properties: Map<String, Value> =
        (0..10_000).map(|n| (format!("p{n}"), json!({}))).collect();
    let schema = json!({"properties": properties}).to_string();
    check_large("parameters", &schema, Result::is_err);
    let values: Vec<usize> = (0..50_000).collect();
    let schema = json!({"properties": {"a": {"enum": values}}}).to_string();
    check_large("enum", &schema, Result::is_ok);
    let inner: Map<String, Value> =
        (0..50).map(|n| (format!("p{n}"), json!({"description": "x".repeat(3_000)}))).collect();
    let schema = json!({"properties": {"a": {"properties": inner}}}).to_string();
    check_large("texts", &schema, is_cut);
}
