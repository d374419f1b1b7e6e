//! `tool set`: changes the entry of a tool in the configuration.

use std::process::ExitCode;

use serde_json::{Map, Value, json};
use switchboard_config::{EntryList, released_arguments};
use switchboard_model::AdmissionMode;

use crate::args::Globals;
use crate::declared_arguments::{GivenDeclaration, NewArguments};
use crate::entry_args::ToolSetArguments;
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
    change.set(globals, output, |present| patch(wanted, present, output)).await
}

/// The fields that the command line names.
fn patch(
    wanted: &ToolSetArguments,
    present: Option<&Map<String, Value>>,
    output: Output,
) -> Result<Map<String, Value>, Failure> {
    let given = GivenDeclaration {
        arguments: &wanted.argument,
        removed: &wanted.remove_argument,
        required: &wanted.required,
        optional: &wanted.optional,
        hidden: &wanted.hidden,
        choices: &wanted.choice,
        defaults: &wanted.default,
        items: &wanted.items,
        properties: &wanted.properties,
        values: &wanted.value,
    };
    let NewArguments { value: arguments, kept } =
        given.apply(present.and_then(|present| present.get("arguments")))?;
    // `--remove-argument` alone leaves the other arguments, unless these are to go as well.
    let is_unset = wanted.unset.iter().any(|key| key == "arguments") && given.says_nothing();
    let arguments = arguments.filter(|_| !is_unset);
    for name in kept {
        output.note(&format!(
            "the argument '{name}' is fixed or hidden and stays; `--remove-argument {name}` removes it"
        ));
    }
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
        ("expose_as", text(&wanted.expose_as)),
        ("mode", wanted.mode.map(|mode| json!(AdmissionMode::from(mode).as_str()))),
        ("enabled", enabled),
        ("max_instances", wanted.max_instances.map(|n| json!(n))),
        ("timeout", text(&wanted.timeout)),
        ("max_timeout", text(&wanted.max_timeout)),
        ("queue_timeout", text(&wanted.queue_timeout)),
        ("inactivity_timeout", text(&wanted.inactivity_timeout)),
        ("max_result_bytes", wanted.max_result_bytes.map(|n| json!(n))),
        ("rate", text(&wanted.rate)),
        ("group", texts(&wanted.group, wanted.no_group)),
        ("state", text(&wanted.state)),
        (states, texts(&wanted.applicable_state, wanted.no_applicable_state)),
    ];
    let fields = fields.into_iter().chain(wanted.calls.fields(present));
    let fields = with_unset(fields, &wanted.unset);
    if fields.get("arguments").is_some_and(Value::is_null) {
        refuse_release(present, &wanted.remove_argument)?;
    }
    Ok(fields)
}

/// `--unset arguments` removes fixed and hidden arguments only if each is named.
fn refuse_release(present: Option<&Map<String, Value>>, removed: &[String]) -> Result<(), Failure> {
    let Some(present) = present else { return Ok(()) };
    let mut released = released_arguments(present, &Map::new());
    released.retain(|name| !removed.contains(name));
    if released.is_empty() {
        return Ok(());
    }
    let hint: Vec<_> = released.iter().map(|name| format!("--remove-argument {name}")).collect();
    Err(Failure::usage(format!(
        "--unset arguments would also remove what is fixed or hidden: {}",
        released.join(", ")
    ))
    .with_hint(Some(format!("name each with {}", hint.join(" ")))))
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
