//! The rules of `OpenAI` for declared tools: names, number, and schemas.

use std::collections::BTreeSet;

use serde_json::Value;

use super::findings::Findings;
use super::heard::{elements, is_plain_name, text_of};

pub(crate) const MOST_TOOLS: usize = 128;
pub(crate) const LONGEST_NAME: usize = 64;
/// Longest name within a namespace, as codex makes them.
const LONGEST_INNER_NAME: usize = 128;

const NAME_PATTERN: &str = "^[a-zA-Z0-9_-]+$";
const TOP_LEVEL: [&str; 6] = ["oneOf", "anyOf", "allOf", "enum", "not", "const"];

/// Checks the tools of a Responses request and adds the names that the model can call. Functions in a namespace are
/// called `namespace.function` here.
pub(crate) fn check_tools(
    place: &str,
    tools: &Value,
    declared: &mut BTreeSet<String>,
    findings: &mut Findings,
) {
    check_count(place, tools, findings);
    for (number, tool) in elements(tools) {
        let place = format!("{place}[{number}]");
        match text_of(tool, "type") {
            "function" => {
                check_function(&place, tool, LONGEST_NAME, findings);
                declare(&place, text_of(tool, "name").to_owned(), declared, findings);
            }
            "namespace" => {
                let namespace = text_of(tool, "name");
                check_name(&place, namespace, LONGEST_NAME, findings);
                for (inner, function) in elements(&tool["tools"]) {
                    let place = format!("{place}.tools[{inner}]");
                    check_function(&place, function, LONGEST_INNER_NAME, findings);
                    let name = format!("{namespace}.{}", text_of(function, "name"));
                    declare(&place, name, declared, findings);
                }
            }
            "custom" => declare(&place, text_of(tool, "name").to_owned(), declared, findings),
            "tool_search" | "web_search" | "web_search_preview" | "file_search" | "mcp"
            | "code_interpreter" | "image_generation" | "local_shell" | "shell" | "apply_patch"
            | "computer_use_preview" => {}
            other => findings.add_at(
                format!("{place}.type"),
                "invalid_value",
                format!("Invalid value: '{other}'. Supported values are: 'function', 'namespace', 'custom', 'tool_search', and others."),
            ),
        }
    }
}

pub(crate) fn check_count(place: &str, tools: &Value, findings: &mut Findings) {
    let count = tools.as_array().map_or(0, Vec::len);
    if count > MOST_TOOLS {
        let message = format!(
            "Invalid '{place}': array too long. Expected an array with maximum length {MOST_TOOLS}, but got an array with length {count} instead."
        );
        findings.add_at(place, "array_above_max_length", message);
    }
}

pub(crate) fn check_function(
    place: &str,
    function: &Value,
    longest: usize,
    findings: &mut Findings,
) {
    let name = text_of(function, "name");
    check_name(place, name, longest, findings);
    let schema = &function["parameters"];
    if !schema.is_null() {
        check_schema(place, name, schema, findings);
    }
}

pub(crate) fn check_name(place: &str, name: &str, longest: usize, findings: &mut Findings) {
    let place = format!("{place}.name");
    if name.is_empty() {
        let message = format!("Missing required parameter: '{place}'.");
        findings.add_at(place, "missing_required_parameter", message);
    } else if name.len() > longest {
        let message = format!(
            "Invalid '{place}': string too long. Expected a string with maximum length {longest}, but got a string with length {} instead.",
            name.len()
        );
        findings.add_at(place, "string_above_max_length", message);
    } else if !is_plain_name(name, longest) {
        let message = format!(
            "Invalid '{place}': string does not match pattern. Expected a string that matches the pattern '{NAME_PATTERN}'."
        );
        findings.add_at(place, "invalid_value", message);
    }
}

pub(crate) fn declare(
    place: &str,
    name: String,
    declared: &mut BTreeSet<String>,
    findings: &mut Findings,
) {
    if declared.contains(&name) {
        let message = format!("Duplicate tool name '{name}': tool names must be unique.");
        findings.add_at(format!("{place}.name"), "duplicate_tool", message);
    }
    declared.insert(name);
}

fn check_schema(place: &str, name: &str, schema: &Value, findings: &mut Findings) {
    let mut refuse = |what: String| {
        let message = format!("Invalid schema for function '{name}': {what}");
        findings.add_at(format!("{place}.parameters"), "invalid_function_parameters", message);
    };
    if schema["type"] != "object" {
        let found = schema["type"].as_str().unwrap_or("None");
        refuse(format!(
            "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{found}\"'."
        ));
        return;
    }
    if TOP_LEVEL.iter().any(|key| schema.get(key).is_some()) {
        refuse(
            "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.".to_owned(),
        );
    }
    if !schema["properties"].is_object() {
        refuse("In context=(), object schema missing properties.".to_owned());
    }
    let mut context = Vec::new();
    if let Some(found) = array_without_items(schema, &mut context) {
        refuse(format!("In context=({found}), array schema missing items."));
    }
}

/// Finds an array schema without `items`.
fn array_without_items(schema: &Value, context: &mut Vec<String>) -> Option<String> {
    if schema["type"] == "array" && schema.get("items").is_none() {
        return Some(context.iter().map(|part| format!("'{part}'")).collect::<Vec<_>>().join(", "));
    }
    let properties = schema["properties"].as_object().into_iter().flatten();
    for (name, property) in properties {
        context.push("properties".to_owned());
        context.push(name.clone());
        let found = array_without_items(property, context);
        context.truncate(context.len() - 2);
        if found.is_some() {
            return found;
        }
    }
    let items = schema.get("items")?;
    context.push("items".to_owned());
    let found = array_without_items(items, context);
    context.pop();
    found
}
