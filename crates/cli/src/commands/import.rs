//! `import`: the server list of another program as our configuration.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use switchboard_config::{ImportScope, import_servers, merge_into};

use crate::args::ImportArguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::replace_file::replace_file;

pub(crate) fn run(wanted: &ImportArguments, output: Output) -> Result<ExitCode, Failure> {
    let text = read(&wanted.file)?;
    let project = wanted.project.as_deref().map(project_of).transpose()?;
    let scope = project.as_deref().map_or(ImportScope::Everything, ImportScope::Project);
    let imported = import_servers(&wanted.file.display().to_string(), &text, scope)?;
    let mode = wanted.mode.into();
    let mut names: Vec<_> = imported.servers.iter().map(|server| server.name.clone()).collect();
    let mut notes = imported.notes.clone();
    if names.is_empty() {
        notes.push(format!("{} names no server that can be taken over", wanted.file.display()));
    }
    let written = match &wanted.merge {
        Some(target) if target.exists() => {
            let merged =
                merge_into(&target.display().to_string(), &read(target)?, &imported, mode)?;
            names.retain(|name| !merged.notes.iter().any(|note| is_about(note, name)));
            notes.extend(merged.notes);
            Some((target, merged.text))
        }
        Some(target) => Some((target, imported.to_yaml(mode))),
        None => None,
    };
    if !output.is_json() {
        for note in &notes {
            output.note(&format!("note: {note}"));
        }
    }
    match written {
        Some((target, text)) => {
            replace_file(target, &text)?;
            if output.is_json() {
                output.json(&json!({"file": target, "servers": names, "notes": notes}));
            } else {
                output.data(&format!("{}: {} servers added", target.display(), names.len()));
            }
        }
        None if output.is_json() => {
            output.json(&json!({"yaml": imported.to_yaml(mode), "servers": names, "notes": notes}));
        }
        None => output.document(&imported.to_yaml(mode)),
    }
    Ok(ExitCode::SUCCESS)
}

/// The project as other programs name it: by its whole path.
fn project_of(directory: &Path) -> Result<String, Failure> {
    let whole = directory.canonicalize().or_else(|_| std::path::absolute(directory));
    let whole = whole
        .map_err(|error| Failure::usage(format!("--project {}: {error}", directory.display())))?;
    Ok(whole.display().to_string())
}

/// Notes begin with the name of their server.
fn is_about(note: &str, server: &str) -> bool {
    note.strip_prefix(server).is_some_and(|rest| rest.starts_with(": left out"))
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::start(format!("cannot read {}: {error}", path.display())))
}
