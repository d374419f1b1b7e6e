//! `connect --write --move`: moves a client's servers to the configuration, so that their tools do not appear twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reqwest::Url;
use switchboard_config::{
    ClientProgram, ImportNote, ImportScope, Imported, ImportedServer, Unwritable, import_servers,
    merge_into,
};
use switchboard_model::AdmissionMode;

use crate::args::Globals;
use crate::embedded::config_source;
use crate::failure::Failure;
use crate::replace_file::check_replaceable;

/// The file with the user's servers of Claude Code and with private servers of projects.
const CLAUDE_STATE: &str = ".claude.json";

/// The servers to move, and the new content of both files.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) config: PathBuf,
    pub(crate) config_text: String,
    /// The names of the servers that are added to the configuration.
    pub(crate) moved: Vec<String>,
    pub(crate) client_text: String,
    pub(crate) notes: Vec<String>,
}

/// The servers of a client's file, including those of projects, without the entry for Switchboard.
pub(crate) fn servers_of(file: &Path, text: &str, own_entry: &str, boards: &[Url]) -> Imported {
    let nothing = Imported { servers: Vec::new(), tools: Vec::new(), notes: Vec::new() };
    let name = file.display().to_string();
    let read = import_servers(&name, text, ImportScope::Everything, boards);
    let mut imported = read.unwrap_or(nothing);
    imported.retain(|server| server.written != own_entry || server.project().is_some());
    imported.notes.retain(|note| match note {
        ImportNote::LeftOut { server, .. } => server != own_entry,
        ImportNote::Changed { .. } | ImportNote::Programs(_) => true,
    });
    imported
}

/// Plans the move. `text` is the client's file including the new entry.
pub(crate) fn plan(
    globals: &Globals,
    client: ClientProgram,
    file: &Path,
    text: &str,
    mut servers: Imported,
) -> Result<Move, Failure> {
    let config = config_file(globals)?;
    check_replaceable(&config)?;
    let mode = AdmissionMode::Dynamic;
    let (config_text, added, present) = if config.exists() && !servers.servers.is_empty() {
        let before = std::fs::read_to_string(&config).map_err(|error| {
            Failure::start(format!("cannot read {}: {error}", config.display()))
        })?;
        let merged = merge_into(&config.display().to_string(), &before, &servers, mode)?;
        (merged.text, merged.added, merged.present)
    } else {
        let all = servers.servers.iter().map(|server| server.name.clone()).collect();
        (servers.to_yaml(mode), all, Vec::new())
    };
    let (file, config_name) = (file.display(), config.display());
    let mut about_present = Vec::new();
    let mut leaving: BTreeMap<Vec<String>, Vec<&str>> = BTreeMap::new();
    for server in &servers.servers {
        let label = server.label();
        match present.iter().find(|there| there.name == server.name) {
            Some(there) if !there.is_same => {
                let name = &server.name;
                about_present.push(format!(
                    "{label}: stays in {file}: {config_name} has another server `{name}`; rename one of them to move it"
                ));
                continue;
            }
            Some(_) => about_present.push(format!(
                "{label}: removed from {file}, because {config_name} has it already"
            )),
            None => {}
        }
        for place in &server.places {
            leaving.entry(place.list.clone()).or_default().push(&server.written);
        }
    }
    let client_text = client.without_servers(text, &leaving).map_err(|why: Unwritable| {
        Failure::start(format!("the file of {} {why}", client.title()))
            .with_hint(Some(why.hint().into()))
    })?;
    servers.retain(|server| added.contains(&server.name));
    let mut notes: Vec<_> = servers
        .notes
        .iter()
        .map(|note| match note {
            ImportNote::LeftOut { server, reason } => {
                format!("{server}: stays in {file}: {reason}")
            }
            ImportNote::Changed { .. } | ImportNote::Programs(_) => note.to_string(),
        })
        .collect();
    notes.extend(about_present);
    Ok(Move { config, config_text, moved: added, client_text, notes })
}

/// The configuration file that receives the servers: the one that `serve` would read.
fn config_file(globals: &Globals) -> Result<PathBuf, Failure> {
    if let Some(config) = &globals.config {
        return Ok(config.clone());
    }
    let is_named = std::env::var_os("SWITCHBOARD_CONFIG").is_some_and(|file| !file.is_empty());
    if globals.url.is_some() && !is_named {
        let message = "--move adds servers to a configuration file, and --url or SWITCHBOARD_URL names an instance";
        return Err(Failure::usage(message)
            .with_hint(Some("name the file of that instance with --config FILE".into())));
    }
    let source = config_source(globals);
    Ok(source.path().map_or_else(|| PathBuf::from("switchboard.yaml"), Path::to_path_buf))
}

/// A note that the client has servers of its own, whose tools may appear twice.
pub(crate) fn twice_note(client: ClientProgram, servers: &Imported) -> Option<String> {
    let names: Vec<_> = servers.servers.iter().map(ImportedServer::label).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{} also has {}. Tools of servers that Switchboard has too appear twice: --move moves these servers.",
            client.title(),
            names.join(", "),
        )
    })
}

/// A note about the servers in Claude Code's state file beside those of `file`. The state file is changed only if it is
/// `file` itself, because Claude Code writes it while it runs.
pub(crate) fn claude_state_note(file: &Path, project: &Path, boards: &[Url]) -> Option<String> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    let state = Path::new(&home).join(CLAUDE_STATE);
    let text = std::fs::read_to_string(&state).ok()?;
    if state.canonicalize().ok()? == file.canonicalize().unwrap_or_default() {
        return None;
    }
    let name = state.display().to_string();
    let project = project.display().to_string();
    let imported = import_servers(&name, &text, ImportScope::Project(&project), boards)
        .or_else(|_| import_servers(&name, &text, ImportScope::NoProject, boards))
        .ok()?;
    if imported.servers.is_empty() {
        return None;
    }
    let names: Vec<_> = imported.servers.iter().map(|server| server.written.as_str()).collect();
    let of_project = imported.servers.iter().any(|server| server.project().is_some());
    let scope = if of_project { " --project ." } else { "" };
    Some(format!(
        "Claude Code has more servers in {name}: {}. `switchboard import {name}{scope} --merge FILE` takes them over, \
         `claude mcp remove NAME` removes them there.",
        names.join(", ")
    ))
}
