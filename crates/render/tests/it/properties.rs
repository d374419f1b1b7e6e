//! Properties that hold for every schema.

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_model::{JsonText, ToolDescriptor};
use switchboard_render::{NamedTool, Provider, RenderedTool, render_tool};

use crate::random_schema::{Choices, sample, schema, wild};
use crate::{render, schema_of, tool};

/// Providers whose declarations are JSON Schema, so that a validator can be used.
const VALIDATED: [Provider; 6] = [
    Provider::OpenAi,
    Provider::OpenAiChat,
    Provider::Anthropic,
    Provider::Gemini,
    Provider::LangChain,
    Provider::SemanticKernel,
];

fn rendered(provider: Provider, schema: &Value) -> Result<RenderedTool, String> {
    let descriptor =
        ToolDescriptor { input_schema: JsonText::from(schema), ..ToolDescriptor::named("t") };
    render_tool(provider, &NamedTool { name: "t", descriptor: &descriptor })
        .map_err(|error| error.reason)
}

/// The rules of the providers, implemented independently of the crate.
fn check_rules(provider: Provider, entry: &Value) -> Result<(), TestCaseError> {
    let root = schema_of(provider, entry);
    for keyword in ["anyOf", "oneOf", "allOf", "enum", "const", "not"] {
        prop_assert!(root.get(keyword).is_none(), "{provider}: root has {keyword}: {root}");
    }
    if provider == Provider::GeminiParameters {
        prop_assert_eq!(&root["type"], "OBJECT");
        return check_subset(&root);
    }
    prop_assert_eq!(&root["type"], "object");
    prop_assert!(jsonschema::draft202012::meta::is_valid(&root), "{provider}: {root}");
    check_complete(provider, &root, true)
}

fn check_complete(provider: Provider, schema: &Value, is_root: bool) -> Result<(), TestCaseError> {
    let gone = ["$ref", "$dynamicRef", "\u{0}origin", "definitions", "$defs"];
    let not_portable =
        ["const", "allOf", "prefixItems", "not", "if", "patternProperties", "propertyNames"];
    let refused =
        gone.iter().chain(not_portable.iter().filter(|_| provider != Provider::Anthropic));
    for word in refused {
        prop_assert!(schema.get(*word).is_none(), "{provider}: {schema}");
    }
    let is = |name: &str| {
        schema["type"] == name
            || schema["type"].as_array().is_some_and(|all| all.contains(&json!(name)))
    };
    prop_assert!(!is("object") || schema["properties"].is_object(), "{provider}: {schema}");
    prop_assert!(!is("array") || !schema["items"].is_null(), "{provider}: {schema}");
    for name in schema["required"].as_array().into_iter().flatten() {
        prop_assert!(
            !schema["properties"][name.as_str().unwrap()].is_null(),
            "{provider}: {schema}"
        );
    }
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        let plain =
            |extra: &str| key.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c));
        let is_narrow = plain("_") && !key.starts_with(|c: char| c.is_ascii_digit());
        let fits = (1..=64).contains(&key.len());
        let is_good = match provider {
            Provider::Gemini => fits && is_narrow,
            Provider::SemanticKernel => !is_root || fits && is_narrow,
            Provider::Anthropic => !is_root || fits && plain("_.-"),
            _ => fits && plain("_.-"),
        };
        prop_assert!(is_good, "{provider}: {key:?}");
        check_complete(provider, below, false)?;
    }
    for keyword in ["items", "additionalProperties"] {
        if schema[keyword].is_object() {
            check_complete(provider, &schema[keyword], false)?;
        }
    }
    for branch in ["anyOf", "oneOf"].iter().filter_map(|key| schema[*key].as_array()).flatten() {
        check_complete(provider, branch, false)?;
    }
    Ok(())
}

fn check_subset(schema: &Value) -> Result<(), TestCaseError> {
    let map = schema.as_object().unwrap();
    if let Some(branches) = map.get("anyOf") {
        prop_assert_eq!(map.len(), 1, "{}", schema);
        return branches.as_array().unwrap().iter().try_for_each(check_subset);
    }
    let kind = schema["type"].as_str().unwrap_or_default();
    prop_assert!(
        ["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"].contains(&kind),
        "{}",
        schema
    );
    prop_assert!(kind != "ARRAY" || schema["items"].is_object(), "{}", schema);
    for value in schema["enum"].as_array().into_iter().flatten() {
        prop_assert!(value.as_str().is_some_and(|text| !text.is_empty()), "{}", schema);
    }
    for word in
        ["const", "oneOf", "allOf", "not", "$ref", "prefixItems", "exclusiveMinimum", "multipleOf"]
    {
        prop_assert!(!map.contains_key(word), "{}", schema);
    }
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        let plain = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        prop_assert!(
            plain && key.len() <= 64 && !key.starts_with(|c: char| c.is_ascii_digit()),
            "{key}"
        );
        check_subset(below)?;
    }
    let below = ["items", "additionalProperties"].map(|key| &schema[key]);
    below.into_iter().filter(|below| below.is_object()).try_for_each(check_subset)
}

/// Closes variants. A variant with additional properties accepts any value for a property that another variant
/// declares; the conversion restricts that deliberately, so that a model sees the parameters of all variants. Closed
/// variants must be preserved.
fn with_closed_variants(mut schema: Value) -> Value {
    let mut has_variants = false;
    for keyword in ["anyOf", "oneOf"] {
        for variant in schema.get_mut(keyword).and_then(Value::as_array_mut).into_iter().flatten() {
            has_variants = true;
            let variant = variant.as_object_mut().unwrap();
            variant.remove("patternProperties");
            variant.insert("additionalProperties".into(), json!(false));
        }
    }
    if has_variants {
        for keyword in ["properties", "required", "patternProperties", "additionalProperties"] {
            schema.as_object_mut().unwrap().remove(keyword);
        }
    }
    schema
}

/// Found failures are added as cases: seeds would not survive changes of the generator.
fn cases(number: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(number) }
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn what_is_declared_keeps_the_rules_of_its_provider(schema in schema()) {
        for provider in Provider::ALL {
            let tool = rendered(provider, &schema).map_err(TestCaseError::fail)?;
            if provider != Provider::Mcp {
                check_rules(provider, &serde_json::from_str(&tool.json).unwrap())?;
            }
        }
    }

    #[test]
    fn whatever_a_server_calls_a_schema_is_declared_by_the_rules_or_refused(schema in wild()) {
        for provider in Provider::ALL {
            match rendered(provider, &schema) {
                Ok(tool) if provider != Provider::Mcp => {
                    check_rules(provider, &serde_json::from_str(&tool.json).unwrap())?;
                }
                Ok(tool) => prop_assert!(serde_json::from_str::<Value>(&tool.json).is_ok()),
                // The second check must find nothing.
                Err(reason) => prop_assert!(!reason.contains("cannot be declared"), "{provider}: {reason}"),
            }
        }
    }

    #[test]
    fn arguments_that_the_server_takes_are_declared_and_come_back(schema in schema(), seed in any::<u64>()) {
        let schema = with_closed_variants(schema);
        let Ok(original) = jsonschema::options().build(&schema) else { return Ok(()) };
        let mut choices = Choices(seed);
        let arguments: Vec<Value> = (0..6)
            .map(|_| sample(&schema, &schema, &mut choices, 0))
            .filter(|arguments| original.is_valid(arguments))
            .collect();
        for provider in VALIDATED {
            let tool = rendered(provider, &schema).map_err(TestCaseError::fail)?;
            let entry: Value = serde_json::from_str(&tool.json).unwrap();
            let declared = schema_of(provider, &entry);
            let declared = jsonschema::draft202012::new(&declared).unwrap();
            for arguments in &arguments {
                let shown = tool.arguments.as_ref().map_or_else(|| arguments.clone(), |map| map.rename(arguments.clone()));
                let errors: Vec<String> = declared.iter_errors(&shown).map(|error| error.to_string()).collect();
                prop_assert!(errors.is_empty(), "{provider}: {arguments} shown as {shown}: {errors:?}\n{entry}");
                let back = tool.arguments.as_ref().map_or_else(|| shown.clone(), |map| map.restore(shown.clone()));
                prop_assert_eq!(&back, arguments, "{}", provider);
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn turning_arguments_back_is_the_inverse_of_showing_them(schema in schema(), seed in any::<u64>()) {
        let mut choices = Choices(seed);
        let arguments = sample(&schema, &schema, &mut choices, 0);
        for provider in Provider::ALL {
            let tool = rendered(provider, &schema).map_err(TestCaseError::fail)?;
            let Some(map) = tool.arguments else { continue };
            let shown = map.rename(arguments.clone());
            let back = map.restore(shown.clone());
            if provider == Provider::GeminiParameters {
                // `1` is shown as a string, and a union may contain that string too: then both are equal, and either is
                // correct.
                prop_assert_eq!(map.rename(back), shown, "{}", provider);
            } else {
                prop_assert_eq!(back, arguments.clone(), "{}", provider);
            }
        }
    }

    #[test]
    fn a_rendering_is_the_same_every_time_and_grows_at_its_end(
        schemas in proptest::collection::vec(schema(), 1..4),
    ) {
        let name = |n: usize| format!("tool_{n}");
        let tools: Vec<ToolDescriptor> =
            schemas.iter().enumerate().map(|(n, schema)| tool(&name(n), "A tool.", schema)).collect();
        for provider in Provider::ALL {
            let whole = render(provider, &tools).json();
            prop_assert_eq!(&render(provider, &tools).json(), &whole);
            let (_, fewer) = tools.split_last().unwrap();
            let fewer = render(provider, fewer).json();
            let closing = if fewer.ends_with(b"]}]") { 3 } else { 1 };
            prop_assert!(&fewer[..] == b"[]" || whole.starts_with(&fewer[..fewer.len() - closing]));
        }
    }
}
