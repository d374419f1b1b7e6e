//! `import`: the server list of another program as our configuration.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use switchboard_config::{import_servers, merge_into};

use crate::args::ImportArguments;
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(wanted: &ImportArguments, output: Output) -> Result<ExitCode, Failure> {
    let text = read(&wanted.file)?;
    let imported = import_servers(&wanted.file.display().to_string(), &text)?;
    let mode = wanted.mode.into();
    let names: Vec<_> = imported.servers.iter().map(|server| server.name.clone()).collect();
    let mut notes = imported.notes.clone();
    let written = match &wanted.merge {
        Some(target) if target.exists() => {
            let merged =
                merge_into(&target.display().to_string(), &read(target)?, &imported, mode)?;
            notes.extend(merged.notes);
            Some((target, merged.text))
        }
        Some(target) => Some((target, imported.to_yaml(mode))),
        None => None,
    };
    if !output.is_json() {
        notes.iter().for_each(|note| output.note(&format!("note: {note}")));
    }
    match written {
        Some((target, text)) => {
            replace(target, &text)?;
            if output.is_json() {
                output.json(&json!({"file": target, "servers": names, "notes": notes}));
            } else {
                output.data(&format!("{}: {} servers", target.display(), names.len()));
            }
        }
        None if output.is_json() => {
            output.json(&json!({"yaml": imported.to_yaml(mode), "servers": names, "notes": notes}));
        }
        None => output.data(&imported.to_yaml(mode)),
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::start(format!("cannot read {}: {error}", path.display())))
}

/// Writes beside the file and renames over it: a full disk must not cost the old one.
fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let cannot =
        |error: std::io::Error| Failure::start(format!("cannot write {}: {error}", path.display()));
    // A link is written through, not replaced.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let fresh = target.with_extension("yaml.new");
    std::fs::write(&fresh, text).map_err(cannot)?;
    if let Ok(before) = std::fs::metadata(&target) {
        std::fs::set_permissions(&fresh, before.permissions()).map_err(cannot)?;
    }
    std::fs::rename(&fresh, &target).map_err(cannot)
}
