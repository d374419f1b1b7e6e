//! `connect`: prints or writes the entry that an MCP client needs to reach this Switchboard.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use switchboard_config::{
    API_KEY_VARIABLE, ClientEntry, ClientProgram, KeyUse, Laid, Reach, SameName, Unwritable,
    mcp_address, needs_key,
};
use switchboard_model::ServerName;

use super::connect_move;
use super::import::own_addresses;
use crate::args::{ConnectArguments, Globals, of_flag};
use crate::embedded::config_source;
use crate::failure::Failure;
use crate::output::Output;
use crate::replace_file::{check_replaceable, replace_file};

pub(crate) fn run(
    globals: &Globals,
    wanted: &ConnectArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    let client = ClientProgram::from(wanted.client);
    if !ServerName::is_valid(&wanted.name) {
        let message = format!("--name {:?} cannot be the name of an entry", wanted.name);
        let hint = "use letters, digits, `_` and `-`, starting with a letter or digit";
        return Err(Failure::usage(message).with_hint(Some(hint.into())));
    }
    let (reach, key) = reach(globals, wanted, client)?;
    let entry = ClientEntry::new(client, &wanted.name, reach);
    let file = match &wanted.file {
        Some(file) => file.clone(),
        None => usual_file(client)?,
    };
    let written =
        if wanted.write { Some(write(globals, &entry, client, &file, wanted)?) } else { None };
    if output.is_json() {
        output.json(&json!({
            "client": client.as_str(),
            "file": file,
            "name": wanted.name,
            "entry": entry.to_json(),
            "text": entry.file_text(),
            "changed": written.as_ref().is_some_and(|written| written.changed),
            "backup": written.as_ref().and_then(|written| written.backup.as_ref()),
            "moved": written.as_ref().map(|written| &written.moved),
            "notes": written.as_ref().map(|written| &written.notes),
        }));
        return Ok(ExitCode::SUCCESS);
    }
    match written {
        None => {
            output.document(&entry.file_text());
            output.note(&format!("This belongs into {}; --write puts it there.", file.display()));
        }
        Some(written) => {
            for note in &written.notes {
                output.note(note);
            }
            if let Some((config, moved)) = &written.moved {
                let names = moved.join(", ");
                output.data(&format!("{}: took over {names}", config.display()));
            }
            let backup = written
                .backup
                .map(|backup| format!("; what was there is in {}", backup.display()))
                .unwrap_or_default();
            output.data(&if written.changed {
                format!("{}: `{}` written{backup}", file.display(), wanted.name)
            } else {
                format!("{}: nothing changed", file.display())
            });
        }
    }
    if key == KeyUse::FromVariable {
        output.note(&key_note(client));
    }
    Ok(ExitCode::SUCCESS)
}

fn key_note(client: ClientProgram) -> String {
    let title = client.title();
    match client {
        ClientProgram::VsCode => {
            format!("{title} asks for an API key of Switchboard and keeps it.")
        }
        // Claude Desktop has no syntax for variables and does not pass its environment to the programs that it starts.
        ClientProgram::ClaudeDesktop => format!(
            "Add an API key of Switchboard to the entry: \"env\": {{\"{API_KEY_VARIABLE}\": \"...\"}}."
        ),
        ClientProgram::ClaudeCode
        | ClientProgram::Cursor
        | ClientProgram::Codex
        | ClientProgram::Gemini => {
            format!("Set {API_KEY_VARIABLE} to an API key of Switchboard where {title} starts.")
        }
    }
}

/// How the client reaches Switchboard, and whether it needs an API key.
fn reach(
    globals: &Globals,
    wanted: &ConnectArguments,
    client: ClientProgram,
) -> Result<(Reach, KeyUse), Failure> {
    let starts_program = wanted.stdio || !client.speaks_http();
    let url = if starts_program { globals.instance() } else { globals.url.as_deref() };
    if starts_program && url.is_none() {
        if wanted.api_key {
            let message =
                format!("{} starts a board of its own, which needs no key", client.title());
            let hint = "leave out --api-key, or name a running instance with --url";
            return Err(Failure::usage(message).with_hint(Some(hint.into())));
        }
        return Ok((own_board(globals)?, KeyUse::None));
    }
    let url = mcp_address(url).map_err(|why| {
        let hint = "write an address such as http://127.0.0.1:8420/mcp";
        Failure::usage(format!("--url: {why}")).with_hint(Some(hint.into()))
    })?;
    let is_needed = wanted.api_key || needs_key(&url);
    let key = if is_needed { KeyUse::FromVariable } else { KeyUse::None };
    if starts_program {
        let args = vec!["--url".into(), url.into(), "stdio".into()];
        return Ok((Reach::Stdio { command: this_program()?, args, key }, key));
    }
    Ok((Reach::Http { url, key }, key))
}

/// Starts this program with this configuration, both by absolute path, because the client's working directory is
/// unknown.
fn own_board(globals: &Globals) -> Result<Reach, Failure> {
    let source = config_source(globals);
    let Some(config) = source.path() else {
        return Err(Failure::start("there is no configuration that the client could start with")
            .with_hint(Some("give one with --config FILE".into())));
    };
    let config = config.canonicalize().map_err(|error| {
        Failure::start(format!("cannot read the configuration {}: {error}", config.display()))
    })?;
    let mut args = vec!["--config".into(), text(config)?];
    if let Some(directory) = of_flag(globals.data_dir.as_deref(), "SWITCHBOARD_DATA_DIR") {
        let directory = std::path::absolute(directory).map_err(|error| {
            Failure::usage(format!("--data-dir {}: {error}", directory.display()))
        })?;
        args.extend(["--data-dir".into(), text(directory)?]);
    }
    args.push("stdio".into());
    Ok(Reach::Stdio { command: this_program()?, args, key: KeyUse::None })
}

fn this_program() -> Result<String, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::start(format!("cannot determine the path of the switchboard executable: {error}"))
    })?;
    text(program)
}

fn text(path: PathBuf) -> Result<String, Failure> {
    path.into_os_string().into_string().map_err(|path| {
        Failure::start(format!("the path {} is not UTF-8", Path::new(&path).display()))
    })
}

/// The default path of the client's file.
fn usual_file(client: ClientProgram) -> Result<PathBuf, Failure> {
    let directory = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || {
        directory("HOME").map(PathBuf::from).ok_or_else(|| {
            Failure::start(format!("HOME is not set, so the file of {} is unknown", client.title()))
                .with_hint(Some("name it with --file PATH".into()))
        })
    };
    Ok(match client {
        ClientProgram::ClaudeDesktop => {
            let settings = match directory("XDG_CONFIG_HOME") {
                _ if cfg!(target_os = "macos") => home()?.join("Library/Application Support"),
                Some(settings) => settings.into(),
                None => home()?.join(".config"),
            };
            settings.join("Claude/claude_desktop_config.json")
        }
        ClientProgram::ClaudeCode => ".mcp.json".into(),
        ClientProgram::Cursor => home()?.join(".cursor/mcp.json"),
        ClientProgram::VsCode => ".vscode/mcp.json".into(),
        ClientProgram::Codex => match directory("CODEX_HOME") {
            Some(own) => PathBuf::from(own).join("config.toml"),
            None => home()?.join(".codex/config.toml"),
        },
        ClientProgram::Gemini => home()?.join(".gemini/settings.json"),
    })
}

struct Written {
    changed: bool,
    /// The backup of the file.
    backup: Option<PathBuf>,
    /// The configuration file that the servers were moved to, and their names.
    moved: Option<(PathBuf, Vec<String>)>,
    notes: Vec<String>,
}

fn write(
    globals: &Globals,
    entry: &ClientEntry,
    client: ClientProgram,
    file: &Path,
    wanted: &ConnectArguments,
) -> Result<Written, Failure> {
    check_replaceable(file)?;
    let before = match std::fs::read_to_string(file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => {
            return Err(Failure::start(format!("cannot read {}: {error}", file.display())));
        }
    };
    let same_name = if wanted.force { SameName::Replace } else { SameName::Refuse };
    let refused = |why: Unwritable| {
        Failure::start(format!("{} {why}", file.display())).with_hint(Some(why.hint().into()))
    };
    let there = before.clone().unwrap_or_default();
    let mut text = match entry.lay_into(&there, same_name).map_err(refused)? {
        Laid::Unchanged => there.clone(),
        Laid::Changed(text) => text,
    };
    let (mut notes, mut moved) = (Vec::new(), None);
    let boards = own_addresses(globals.url.as_deref());
    let servers = connect_move::servers_of(file, &there, &wanted.name, &boards);
    if wanted.take_over {
        let plan = connect_move::plan(globals, client, file, &text, servers)?;
        notes.extend(plan.notes.into_iter().map(|note| format!("note: {note}")));
        // The configuration is written first, so that a server is never missing from both files.
        if !plan.moved.is_empty() {
            if let Ok(before) = std::fs::read_to_string(&plan.config) {
                back_up(&plan.config, &before)?;
            }
            replace_file(&plan.config, &plan.config_text)?;
            moved = Some((plan.config, plan.moved));
        }
        text = plan.client_text;
    } else {
        notes.extend(connect_move::twice_note(client, &servers));
    }
    if client == ClientProgram::ClaudeCode
        && let Ok(project) = std::env::current_dir()
    {
        notes.extend(connect_move::claude_state_note(file, &project, &boards));
    }
    if text == there {
        return Ok(Written { changed: false, backup: None, moved, notes });
    }
    // The default directory may not exist before the client's first run and is created; that of `--file` is not.
    if let (None, Some(directory)) = (&wanted.file, file.parent()) {
        std::fs::create_dir_all(directory).map_err(|error| {
            Failure::start(format!("cannot make {}: {error}", directory.display()))
        })?;
    }
    let backup = before.map(|before| back_up(file, &before)).transpose()?;
    replace_file(file, &text)?;
    Ok(Written { changed: true, backup, moved, notes })
}

fn back_up(file: &Path, before: &str) -> Result<PathBuf, Failure> {
    let mut backup = OsString::from(file);
    backup.push(".bak");
    let backup = PathBuf::from(backup);
    replace_file(&backup, before)?;
    Ok(backup)
}
