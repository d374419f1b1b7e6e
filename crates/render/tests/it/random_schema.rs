//! Random schemas, and random arguments that fit them.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Keys that some providers reject are as likely as plain ones.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-d]{1,2}",
        1 => "[a-b] [a-b]",
        1 => "[a-b][.$-][a-b]",
        1 => "[éü🙂]{1,2}",
        1 => "[0-9]{1,2}",
        1 => "k{65,70}",
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9i64..9).prop_map(Value::from),
        "[ab1]{0,2}".prop_map(Value::from),
    ]
}

fn reference() -> impl Strategy<Value = Value> {
    let targets =
        ["#/$defs/a", "#/$defs/b", "#/$defs/c", "#/definitions/d", "#anchor", "#", "http://x/y"];
    proptest::sample::select(targets.to_vec()).prop_map(|target| json!({"$ref": target}))
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => proptest::sample::select(vec!["string", "integer", "number", "boolean", "null", "object", "array"])
            .prop_map(|name| json!({"type": name})),
        1 => Just(json!({"type": ["string", "null"], "description": "maybe"})),
        1 => Just(json!({"type": "string", "nullable": true, "maxLength": 5})),
        1 => Just(json!({"type": "integer", "minimum": 0, "exclusiveMinimum": true})),
        1 => Just(json!({"type": "number", "exclusiveMaximum": 5, "multipleOf": 1})),
        1 => Just(json!({"type": "string", "format": "email", "pattern": "^a*"})),
        2 => proptest::collection::vec(scalar(), 1..4).prop_map(|values| json!({"enum": values})),
        1 => scalar().prop_map(|value| json!({"const": value})),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(json!({})),
        3 => reference(),
    ]
}

fn object(inner: impl Strategy<Value = Value> + Clone) -> impl Strategy<Value = Value> {
    let properties = proptest::collection::vec((key(), inner.clone()), 0..4);
    let others = prop_oneof![
        4 => Just(None),
        2 => Just(Some(json!(false))),
        1 => inner.prop_map(Some),
    ];
    (properties, any::<u8>(), others, any::<u8>()).prop_map(
        |(properties, required, others, odds)| {
            let names: Vec<&String> = properties
                .iter()
                .map(|(key, _)| key)
                .enumerate()
                .filter(|(n, _)| required >> n & 1 == 1)
                .map(|(_, key)| key)
                .collect();
            let mut schema = json!({"type": "object", "required": names});
            let members: Map<String, Value> = properties.iter().cloned().collect();
            schema["properties"] = Value::Object(members);
            if let Some(others) = others {
                schema["additionalProperties"] = others;
            }
            if odds % 16 == 0 {
                schema["patternProperties"] = json!({"^a": true});
            }
            if odds % 16 == 1 {
                schema["propertyNames"] = json!({"maxLength": 70});
            }
            schema
        },
    )
}

fn nested() -> impl Strategy<Value = Value> + Clone {
    let some = |inner: BoxedStrategy<Value>| proptest::collection::vec(inner, 1..4);
    leaf().prop_recursive(4, 24, 4, move |inner| {
        let inner = inner.boxed();
        prop_oneof![
            4 => object(inner.clone()),
            2 => inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            1 => some(inner.clone()).prop_map(|items| json!({"type": "array", "items": items})),
            1 => some(inner.clone()).prop_map(|items| json!({"type": "array", "prefixItems": items, "items": false})),
            1 => some(inner.clone()).prop_map(|all| json!({"anyOf": all, "description": "any"})),
            1 => some(inner.clone()).prop_map(|all| json!({"oneOf": all})),
            1 => some(inner.clone()).prop_map(|all| json!({"allOf": all})),
            1 => inner.clone().prop_map(|not| json!({"not": not})),
            1 => (inner.clone(), inner).prop_map(|(a, b)| json!({"if": a, "then": b})),
        ]
    })
}

/// The schema of a tool, with definitions for its references.
pub(crate) fn schema() -> impl Strategy<Value = Value> {
    let definitions = (nested(), nested(), nested(), nested());
    let variants = prop_oneof![
        4 => Just(None),
        1 => (proptest::sample::select(vec!["anyOf", "oneOf", "allOf"]), proptest::collection::vec(object(leaf().boxed()), 1..3))
            .prop_map(Some),
    ];
    (object(nested()), definitions, variants).prop_map(|(mut root, (a, b, c, d), variants)| {
        let mut anchored = c;
        if let Value::Object(map) = &mut anchored {
            map.insert("$anchor".into(), json!("anchor"));
        }
        root["$defs"] = json!({"a": a, "b": b, "c": anchored});
        root["definitions"] = json!({"d": d});
        if let Some((keyword, variants)) = variants {
            root[keyword] = Value::Array(variants);
        }
        root
    })
}

/// Arbitrary JSON with many JSON Schema keywords.
pub(crate) fn wild() -> impl Strategy<Value = Value> {
    let words = [
        "type",
        "properties",
        "items",
        "anyOf",
        "allOf",
        "oneOf",
        "$ref",
        "required",
        "enum",
        "const",
        "not",
        "additionalProperties",
        "prefixItems",
        "$defs",
        "description",
        "minimum",
        "exclusiveMinimum",
        "pattern",
        "dependencies",
        "if",
        "then",
        "default",
        "nullable",
        "format",
        "patternProperties",
        "title",
        "object",
        "string",
        "array",
        "#",
        "#/$defs/x",
        "#/properties",
        "x y",
        "\u{0}origin",
    ];
    let word = move || proptest::sample::select(words.to_vec()).prop_map(str::to_owned);
    let leaf = prop_oneof![scalar(), word().prop_map(Value::from), Just(json!({"type": "object"}))];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            4 => proptest::collection::vec((word(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A source of random choices.
#[derive(Debug, Clone)]
pub(crate) struct Choices(pub(crate) u64);

impl Choices {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit.max(1)
    }
}

/// Arguments that probably satisfy a schema. Only declared properties are used.
pub(crate) fn sample(schema: &Value, root: &Value, choices: &mut Choices, depth: usize) -> Value {
    let pick = |list: &Value, choices: &mut Choices| -> Option<Value> {
        let list = list.as_array().filter(|list| !list.is_empty())?;
        list.get(choices.below(list.len())).cloned()
    };
    if depth > 8 {
        return Value::Null;
    }
    if let Some(target) = schema["$ref"].as_str() {
        let target = match target {
            "#anchor" => root.pointer("/$defs/c"),
            target => target.strip_prefix('#').and_then(|pointer| root.pointer(pointer)),
        };
        return target.map_or(Value::Null, |target| sample(target, root, choices, depth + 1));
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(value) = pick(&schema["enum"], choices) {
        return value;
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        if let Some(branch) = pick(&schema[keyword], choices) {
            let mut value = sample(&branch, root, choices, depth + 1);
            if schema["type"] == "object"
                && let (Value::Object(value), Value::Object(own)) =
                    (&mut value, members(schema, root, choices, depth))
            {
                value.extend(own);
            }
            return value;
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds[choices.below(kinds.len())].clone(),
        kind => kind.clone(),
    };
    match kind.as_str() {
        Some("object") => members(schema, root, choices, depth),
        Some("array") => {
            let positions = schema["prefixItems"].as_array().or(schema["items"].as_array());
            match positions {
                Some(positions) => positions
                    .iter()
                    .map(|schema| sample(schema, root, choices, depth + 1))
                    .collect(),
                None => (0..choices.below(3))
                    .map(|_| sample(&schema["items"], root, choices, depth + 1))
                    .collect(),
            }
        }
        Some("string") => json!(["", "a", "ab"][choices.below(3)]),
        Some("integer" | "number") => json!(choices.below(5)),
        Some("boolean") => json!(choices.below(2) == 0),
        _ => Value::Null,
    }
}

fn members(schema: &Value, root: &Value, choices: &mut Choices, depth: usize) -> Value {
    let mut value = Map::new();
    for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
        if choices.below(3) > 0 {
            value.insert(key.clone(), sample(schema, root, choices, depth + 1));
        }
    }
    if schema["additionalProperties"].is_object() && choices.below(2) == 0 {
        let other = sample(&schema["additionalProperties"], root, choices, depth + 1);
        value.insert("another".into(), other);
    }
    // A key that matches the pattern `^a`.
    if schema["patternProperties"].is_object() && choices.below(2) == 0 {
        value.entry("axe").or_insert(json!(1));
    }
    Value::Object(value)
}
