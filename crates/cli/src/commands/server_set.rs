//! `server set`: changes the entry of a server in the configuration.

use std::process::ExitCode;

use serde_json::{Map, Value, json};
use switchboard_config::EntryList;
use switchboard_model::AdmissionMode;

use super::tool_set::with_unset;
use crate::args::Globals;
use crate::entry_args::ServerSetArguments;
use crate::entry_change::EntryChange;
use crate::failure::Failure;
use crate::output::Output;

/// What a program runs with, and what a server at an address has instead.
const OF_PROGRAMS: [&str; 4] = ["command", "args", "env", "cwd"];
const OF_ADDRESSES: [&str; 3] = ["url", "headers", "auth"];

pub(crate) async fn set(
    globals: &Globals,
    wanted: &ServerSetArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    let is_program = wanted.command.is_some() || !wanted.env.is_empty() || wanted.cwd.is_some();
    if is_program && globals.instance().is_some() {
        let message = "a program can be written into a configuration file only: no instance takes one over --url";
        let hint =
            "run the command on that machine with --config FILE; the instance watches its file";
        return Err(Failure::usage(message).with_hint(Some(hint.into())));
    }
    let change =
        EntryChange { list: EntryList::Servers, name: &wanted.name, dry_run: wanted.dry_run };
    change.set(globals, output, |present| patch(wanted, present)).await
}

fn patch(
    wanted: &ServerSetArguments,
    present: Option<&Map<String, Value>>,
) -> Result<Map<String, Value>, Failure> {
    if present.is_none() && wanted.address.is_none() && wanted.command.is_none() {
        let message = format!("no server '{}' is configured", wanted.name);
        let hint = "give --tool-url URL or --command PROGRAM to add it";
        return Err(Failure::usage(message).with_hint(Some(hint.into())));
    }
    let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
    let texts = |texts: &[String]| (!texts.is_empty()).then(|| json!(texts));
    let below = |key: &str, more: Map<String, Value>| {
        let old = present.and_then(|present| present.get(key)?.as_object().cloned());
        let mut all = old.unwrap_or_default();
        all.extend(more.clone());
        (!more.is_empty()).then_some(Value::Object(all))
    };
    let headers = pairs(&wanted.header, ':', "--header", "'Name: value'")?;
    let env = pairs(&wanted.env, '=', "--env", "NAME=VALUE")?;
    let mut limits = Map::new();
    limits.extend(wanted.max_instances.map(|n| ("max_instances".to_owned(), json!(n))));
    limits.extend(wanted.timeout.as_ref().map(|time| ("timeout".to_owned(), json!(time))));
    let mut mode = wanted.mode.map(AdmissionMode::from);
    if present.is_none() {
        mode = mode.or(Some(AdmissionMode::Dynamic));
        if mode == Some(AdmissionMode::Dynamic) {
            limits.entry("max_instances").or_insert_with(|| json!(5));
            limits.entry("timeout").or_insert_with(|| json!("30s"));
        }
    }
    let required = match (wanted.required, wanted.not_required) {
        (true, _) => Some(json!(true)),
        (_, true) => Some(json!(false)),
        (false, false) => None,
    };
    let fields = [
        ("transport", text(&wanted.transport)),
        ("url", text(&wanted.address)),
        ("headers", below("headers", headers)),
        ("auth", wanted.bearer.as_ref().map(|token| json!({"bearer": token}))),
        ("command", text(&wanted.command)),
        ("args", wanted.command.as_ref().map(|_| json!(wanted.args))),
        ("env", below("env", env)),
        ("cwd", text(&wanted.cwd)),
        ("mode", mode.map(|mode| json!(mode.as_str()))),
        ("default_tool_config", below("default_tool_config", limits)),
        ("tool_allowlist", texts(&wanted.allow)),
        ("tool_denylist", texts(&wanted.deny)),
        ("required", required),
        ("toolset", text(&wanted.toolset)),
        ("prompts", texts(&wanted.prompt)),
        ("era", text(&wanted.era)),
        ("connect_timeout", text(&wanted.connect_timeout)),
        ("poll_interval", text(&wanted.poll_interval)),
    ];
    let mut unset = wanted.unset.clone();
    let replaced: &[&str] = match (&wanted.address, &wanted.command) {
        (Some(_), _) => &OF_PROGRAMS,
        (_, Some(_)) => &OF_ADDRESSES,
        (None, None) => &[],
    };
    let has = |key: &&&str| present.is_some_and(|present| present.contains_key(**key));
    unset.extend(replaced.iter().filter(has).map(|key| (*key).to_owned()));
    Ok(with_unset(fields.into_iter().chain(wanted.calls.fields(present)), &unset))
}

/// Options of the form `name` separator `value`.
fn pairs(
    texts: &[String],
    separator: char,
    option: &str,
    form: &str,
) -> Result<Map<String, Value>, Failure> {
    let pair = |text: &String| {
        let (name, value) = text.split_once(separator).ok_or_else(|| {
            // The value may be a secret, so it is not repeated.
            Failure::usage(format!("{option} must be of the form {form}"))
        })?;
        Ok((name.trim().to_owned(), json!(value.trim())))
    };
    texts.iter().map(pair).collect()
}
