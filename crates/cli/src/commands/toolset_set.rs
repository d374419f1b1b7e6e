//! `toolset set`: changes the entry of a toolset in the configuration.

use std::process::ExitCode;

use serde_json::{Map, Value, json};
use switchboard_config::EntryList;

use super::tool_set::with_unset;
use crate::args::Globals;
use crate::entry_args::ToolsetSetArguments;
use crate::entry_change::EntryChange;
use crate::failure::Failure;
use crate::output::Output;

pub(crate) async fn set(
    globals: &Globals,
    wanted: &ToolsetSetArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    let change =
        EntryChange { list: EntryList::Toolsets, name: &wanted.name, dry_run: wanted.dry_run };
    change.set(globals, output, |present| patch(wanted, present)).await
}

fn patch(
    wanted: &ToolsetSetArguments,
    present: Option<&Map<String, Value>>,
) -> Result<Map<String, Value>, Failure> {
    if present.is_none() && wanted.description.is_none() {
        let message = format!("no toolset '{}' is configured", wanted.name);
        let hint = "give --description TEXT, and --server NAME or --tool PATTERN, to add it";
        return Err(Failure::usage(message).with_hint(Some(hint.into())));
    }
    let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
    let texts = |texts: &[String]| (!texts.is_empty()).then(|| json!(texts));
    let fields = [
        ("description", text(&wanted.description)),
        ("when_to_use", text(&wanted.when_to_use)),
        ("servers", texts(&wanted.server)),
        ("tools", texts(&wanted.tool)),
    ];
    Ok(with_unset(fields, &wanted.unset))
}
