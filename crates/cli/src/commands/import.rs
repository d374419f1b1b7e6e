//! `import`: converts the server list of another program.

use std::path::Path;
use std::process::ExitCode;

use reqwest::Url;
use serde_json::json;
use switchboard_config::{ImportScope, import_servers, mcp_address, merge_into};

use crate::args::{Globals, ImportArguments};
use crate::failure::Failure;
use crate::output::Output;
use crate::replace_file::replace_file;

pub(crate) fn run(
    globals: &Globals,
    wanted: &ImportArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    let text = read(&wanted.file)?;
    let project = wanted.project.as_deref().map(project_of).transpose()?;
    let scope = project.as_deref().map_or(ImportScope::Everything, ImportScope::Project);
    let boards = own_addresses(globals.url.as_deref());
    let mut imported = import_servers(&wanted.file.display().to_string(), &text, scope, &boards)?;
    let mode = wanted.mode.into();
    let is_empty = imported.servers.is_empty() && imported.tools.is_empty();
    let mut present = Vec::new();
    let written = match &wanted.merge {
        Some(target) if target.exists() => {
            let merged =
                merge_into(&target.display().to_string(), &read(target)?, &imported, mode)?;
            imported.retain(|server| merged.added.contains(&server.name));
            imported.tools.retain(|tool| merged.added_tools.contains(&tool.name));
            present = merged.notes();
            Some((target, merged.text))
        }
        Some(target) => Some((target, imported.to_yaml(mode))),
        None => None,
    };
    let names: Vec<_> = imported.servers.iter().map(|server| &server.name).collect();
    let tools: Vec<_> = imported.tools.iter().map(|tool| &tool.name).collect();
    let mut notes: Vec<_> = imported.notes.iter().map(ToString::to_string).collect();
    notes.extend(present);
    if is_empty {
        notes.push(format!("{} has no server that can be imported", wanted.file.display()));
    }
    if !output.is_json() {
        for note in &notes {
            output.note(&format!("note: {note}"));
        }
    }
    match written {
        Some((target, text)) => {
            replace_file(target, &text)?;
            if output.is_json() {
                output.json(
                    &json!({"file": target, "servers": names, "tools": tools, "notes": notes}),
                );
            } else {
                let entries = match tools.len() {
                    0 => String::new(),
                    count => format!(", {count} tool entries added"),
                };
                let servers = names.len();
                output.data(&format!("{}: {servers} servers added{entries}", target.display()));
            }
        }
        None if output.is_json() => {
            let yaml = imported.to_yaml(mode);
            output.json(&json!({"yaml": yaml, "servers": names, "tools": tools, "notes": notes}));
        }
        None => output.document(&imported.to_yaml(mode)),
    }
    Ok(ExitCode::SUCCESS)
}

/// The project's absolute path, which is its name in other programs' files.
fn project_of(directory: &Path) -> Result<String, Failure> {
    let whole = directory.canonicalize().or_else(|_| std::path::absolute(directory));
    let whole = whole
        .map_err(|error| Failure::usage(format!("--project {}: {error}", directory.display())))?;
    Ok(whole.display().to_string())
}

/// The addresses of this Switchboard: the default one, and that of `--url`.
pub(super) fn own_addresses(named: Option<&str>) -> Vec<Url> {
    let addresses = [None].into_iter().chain(named.map(Some));
    addresses.filter_map(|address| mcp_address(address).ok()).collect()
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::start(format!("cannot read {}: {error}", path.display())))
}
