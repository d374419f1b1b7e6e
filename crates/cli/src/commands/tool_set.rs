//! `tool set` and `tool delete`: change the entry of a tool in the configuration.

use std::process::ExitCode;

use serde_json::{Map, Value, json};
use switchboard_config::EntryList;
use switchboard_model::AdmissionMode;

use crate::args::Globals;
use crate::declared_arguments::GivenDeclaration;
use crate::entry_args::{EntryDeleteArguments, ToolSetArguments};
use crate::entry_change::EntryChange;
use crate::failure::Failure;
use crate::output::Output;

pub(crate) async fn set(
    globals: &Globals,
    wanted: &ToolSetArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    let change =
        EntryChange { list: EntryList::Tools, name: &wanted.name, dry_run: wanted.dry_run };
    change.set(globals, output, |present| patch(wanted, present)).await
}

pub(crate) async fn delete(
    globals: &Globals,
    wanted: &EntryDeleteArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    let change =
        EntryChange { list: EntryList::Tools, name: &wanted.name, dry_run: wanted.dry_run };
    change.delete(globals, output).await
}

/// The fields that the command line names.
fn patch(
    wanted: &ToolSetArguments,
    present: Option<&Map<String, Value>>,
) -> Result<Map<String, Value>, Failure> {
    let given = GivenDeclaration {
        arguments: &wanted.argument,
        required: &wanted.required,
        optional: &wanted.optional,
        hidden: &wanted.hidden,
        choices: &wanted.choice,
        defaults: &wanted.default,
        items: &wanted.items,
        properties: &wanted.properties,
        values: &wanted.value,
    };
    let arguments = given.apply(present.and_then(|present| present.get("arguments")))?;
    let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
    let texts =
        |texts: &[String], is_none: bool| (is_none || !texts.is_empty()).then(|| json!(texts));
    let enabled = match (wanted.enabled, wanted.disabled) {
        (true, _) => Some(json!(true)),
        (_, true) => Some(json!(false)),
        (false, false) => None,
    };
    let has_alias = present.is_some_and(|present| present.contains_key("applicable-states"));
    let states = if has_alias { "applicable-states" } else { "applicable_states" };
    let fields = [
        ("type", text(&wanted.kind)),
        ("mcp-tool", text(&wanted.mcp_tool)),
        ("id", text(&wanted.id)),
        ("description", text(&wanted.description)),
        ("template", text(&wanted.template)),
        ("provider", text(&wanted.provider)),
        ("model", text(&wanted.model)),
        ("instructions", text(&wanted.instructions)),
        ("tools", texts(&wanted.tools, false)),
        ("max_depth", wanted.max_depth.map(|n| json!(n))),
        ("arguments", arguments),
        ("validate_arguments", wanted.validate_arguments.map(|checks| json!(checks))),
        ("expose_as", text(&wanted.expose_as)),
        ("mode", wanted.mode.map(|mode| json!(AdmissionMode::from(mode).as_str()))),
        ("enabled", enabled),
        ("max_instances", wanted.max_instances.map(|n| json!(n))),
        ("timeout", text(&wanted.timeout)),
        ("max_timeout", text(&wanted.max_timeout)),
        ("queue_timeout", text(&wanted.queue_timeout)),
        ("inactivity_timeout", text(&wanted.inactivity_timeout)),
        ("max_result_bytes", wanted.max_result_bytes.map(|n| json!(n))),
        ("group", texts(&wanted.group, wanted.no_group)),
        ("state", text(&wanted.state)),
        (states, texts(&wanted.applicable_state, wanted.no_applicable_state)),
    ];
    Ok(with_unset(fields, &wanted.unset))
}

/// The fields that have a value, and those to remove as `null`.
pub(super) fn with_unset<'a>(
    fields: impl IntoIterator<Item = (&'a str, Option<Value>)>,
    unset: &[String],
) -> Map<String, Value> {
    let removed = unset.iter().map(|key| (key.clone(), Value::Null));
    let given = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    removed.chain(given).collect()
}
