//! `connect --write --move`: takes over the servers that a client has, so that their tools are not there twice.

use std::path::{Path, PathBuf};

use switchboard_config::{Client, ImportScope, Imported, Unwritable, import_servers, merge_into};
use switchboard_model::AdmissionMode;

use crate::args::{Globals, of_flag};
use crate::embedded::config_source;
use crate::failure::Failure;
use crate::replace_file::check_replaceable;

/// Where the user's servers of Claude Code are, and those of projects that nobody shares.
const CLAUDE_STATE: &str = ".claude.json";

/// What is taken over, and what the two files are to be.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) config: PathBuf,
    pub(crate) config_text: String,
    /// The names under which the configuration has them now.
    pub(crate) moved: Vec<String>,
    pub(crate) client_text: String,
    pub(crate) notes: Vec<String>,
}

/// The servers of a client's file, without the entry that leads here.
pub(crate) fn servers_of(file: &Path, text: &str, own_entry: &str) -> Option<Imported> {
    let name = file.display().to_string();
    let mut imported = import_servers(&name, text, ImportScope::NoProject).ok()?;
    let own_note = format!("{own_entry}: ");
    imported.servers.retain(|server| server.written != own_entry);
    imported.notes.retain(|note| !note.starts_with(&own_note));
    (!imported.servers.is_empty()).then_some(imported)
}

/// Decides what is taken over from `text`, the client's file as it is going to be.
pub(crate) fn plan(
    globals: &Globals,
    client: Client,
    text: &str,
    servers: &Imported,
) -> Result<Move, Failure> {
    let config = config_file(globals)?;
    check_replaceable(&config)?;
    let mode = AdmissionMode::Dynamic;
    let (config_text, held, mut notes) = if config.exists() {
        let before = std::fs::read_to_string(&config).map_err(|error| {
            Failure::start(format!("cannot read {}: {error}", config.display()))
        })?;
        let merged = merge_into(&config.display().to_string(), &before, servers, mode)?;
        (merged.text, merged.held, merged.notes)
    } else {
        let all = servers.servers.iter().map(|server| server.name.clone()).collect();
        (servers.to_yaml(mode), all, Vec::new())
    };
    notes.splice(0..0, servers.notes.iter().cloned());
    let moved: Vec<_> =
        servers.servers.iter().filter(|server| held.contains(&server.name)).collect();
    let leaving: Vec<_> = moved.iter().map(|server| server.written.as_str()).collect();
    let client_text = client.without_servers(text, &leaving).map_err(|why: Unwritable| {
        Failure::start(format!("the file of {} {why}", client.title()))
            .with_hint(Some(why.hint().into()))
    })?;
    for server in servers.servers.iter().filter(|server| !held.contains(&server.name)) {
        let name = &server.name;
        notes.push(format!("{name}: stays where it is, the configuration has another `{name}`"));
    }
    let moved = moved.into_iter().map(|server| server.name.clone()).collect();
    Ok(Move { config, config_text, moved, client_text, notes })
}

/// The configuration that takes the servers: the one that a board here would read.
fn config_file(globals: &Globals) -> Result<PathBuf, Failure> {
    if of_flag(globals.url.as_deref(), "SWITCHBOARD_URL").is_some() && globals.config.is_none() {
        let message = "--move adds servers to a configuration file, and --url names none";
        return Err(Failure::usage(message)
            .with_hint(Some("name the file of that instance with --config FILE".into())));
    }
    if let Some(config) = &globals.config {
        return Ok(config.clone());
    }
    let source = config_source(globals);
    Ok(source.path().map_or_else(|| PathBuf::from("switchboard.yaml"), Path::to_path_buf))
}

/// Says that the client has servers of its own, which may be here too.
pub(crate) fn twice_note(client: Client, servers: &Imported) -> String {
    let names: Vec<_> = servers.servers.iter().map(|server| server.written.as_str()).collect();
    format!(
        "{} also has {}. What Switchboard has too is there twice: --move takes these servers over.",
        client.title(),
        names.join(", "),
    )
}

/// Says which servers Claude Code keeps in its own state, which is not edited here: the program writes it while it runs.
pub(crate) fn claude_state_note(project: &Path) -> Option<String> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    let file = Path::new(&home).join(CLAUDE_STATE);
    let text = std::fs::read_to_string(&file).ok()?;
    let name = file.display().to_string();
    let project = project.display().to_string();
    let imported = import_servers(&name, &text, ImportScope::Project(&project))
        .or_else(|_| import_servers(&name, &text, ImportScope::NoProject))
        .ok()?;
    if imported.servers.is_empty() {
        return None;
    }
    let names: Vec<_> = imported.servers.iter().map(|server| server.written.as_str()).collect();
    Some(format!(
        "Claude Code has more servers in {name}: {}. `switchboard import {name} --merge FILE` takes them over, \
         `claude mcp remove NAME` removes them there.",
        names.join(", ")
    ))
}
