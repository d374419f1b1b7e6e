//! Server lists of other programs: `mcpServers` (Claude Desktop, Claude Code, Cursor, `.mcp.json`) and
//! `servers` (VS Code).
//!
//! Whatever cannot be carried over is said in a note; nothing is dropped in silence.

mod entry;
pub(crate) mod jsonc;
mod variables;

use std::collections::HashSet;
use std::fmt;

use serde_json::{Map, Value as Json, json};
use switchboard_model::{AdmissionMode, LOCAL_SERVER, ServerName};

use crate::emit::Doc;
use crate::place::{Extent, Origin};
use crate::problem::{Problem, Problems, Refused};
use crate::schema::nearest;
use crate::source::Source;

/// The keys under which programs keep their servers.
const LIST_KEYS: [&str; 2] = ["mcpServers", "servers"];

/// The servers of another program's file, in our words.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The servers, in the order of the file.
    pub servers: Vec<ImportedServer>,
    /// What was changed, left out or needs a look.
    pub notes: Vec<String>,
}

/// One imported server.
#[derive(Clone)]
pub struct ImportedServer {
    /// The name, made valid and unique.
    pub name: String,
    pub(crate) fields: Vec<(String, Doc)>,
}

/// Shows the name only: the fields may hold tokens that the other file had in plain text.
impl fmt::Debug for ImportedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportedServer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ImportedServer {
    /// The entry of `toolbox.mcps`.
    pub(crate) fn to_doc(&self, mode: AdmissionMode) -> Doc {
        let mut entries = vec![("name".to_owned(), Doc::text(&self.name))];
        entries.extend(self.fields.iter().cloned());
        entries.push(("mode".into(), Doc::text(mode.as_str())));
        if mode == AdmissionMode::Dynamic {
            let defaults = vec![
                ("max_instances".into(), Doc::Value(json!(5), None)),
                ("timeout".into(), Doc::text("30s")),
            ];
            entries.push(("default_tool_config".into(), Doc::Map(defaults)));
        }
        // The other program starts without a server that is broken, and so does the board.
        entries.push(("required".into(), Doc::Value(json!(false), None)));
        Doc::Map(entries)
    }
}

impl Imported {
    /// A whole file of ours with these servers. Holds secrets when the other file did.
    pub fn to_yaml(&self, mode: AdmissionMode) -> String {
        let servers = self.servers.iter().map(|server| server.to_doc(mode)).collect();
        let toolbox = Doc::Map(vec![("mcps".into(), Doc::List(servers))]);
        let root = Doc::Map(vec![("toolbox".into(), toolbox)]);
        Doc::Map(vec![("switchboard".into(), root)]).to_yaml()
    }
}

/// Reads the servers of another program's file.
pub fn import_servers(file_name: &str, text: &str) -> Result<Imported, Problems> {
    let source = Source::new(file_name, text);
    let json: Json = serde_json::from_str(&jsonc::to_json(text)).map_err(|error| {
        let at = Extent::point(error.line(), error.column().max(1));
        // The reason without its position, which the problem shows anyway.
        let reason = error.to_string();
        let reason = reason.split(" at line ").next().unwrap_or_default();
        let problem = Problem::error(format!("not valid JSON: {reason}"));
        Box::new(source.locate(&Origin::File(at), problem))
    })?;
    let start = Origin::File(Extent::point(1, 1));
    let list = find_list(&json)
        .map_err(|problem| Box::new(Problem { place: Some(source.place(&start)), ..*problem }))?;

    let mut imported = Imported { servers: Vec::new(), notes: Vec::new() };
    let mut taken = HashSet::new();
    for (written, entry) in list {
        let mut notes = Vec::new();
        if let Some(fields) = entry::convert(entry, &mut notes) {
            let name = free_name(written, &taken);
            if name != *written {
                notes.push(format!("renamed to `{name}`"));
            }
            taken.insert(name.clone());
            imported.servers.push(ImportedServer { name, fields });
        }
        imported.notes.extend(notes.into_iter().map(|note| format!("{written}: {note}")));
    }
    Ok(imported)
}

/// The map of servers; VS Code's user settings have it one level down, in `mcp`.
fn find_list(json: &Json) -> Result<&Map<String, Json>, Refused> {
    let refuse = |message: String| {
        Box::new(Problem::error(message).help(
            "expected `{\"mcpServers\": {...}}` (Claude, Cursor, .mcp.json) or `{\"servers\": {...}}` (VS Code)",
        ))
    };
    let Json::Object(whole) = json else {
        return Err(refuse("the file is not a JSON object".into()));
    };
    let nested = whole.get("mcp").and_then(Json::as_object);
    let found = [Some(whole), nested]
        .into_iter()
        .flatten()
        .find_map(|map| LIST_KEYS.iter().find_map(|key| map.get(*key).map(|list| (*key, list))));
    match found {
        Some((_, Json::Object(list))) => Ok(list),
        Some((key, _)) => Err(refuse(format!("`{key}` is not an object of servers"))),
        None => {
            let near = whole.keys().find_map(|key| Some((key, nearest(key, LIST_KEYS)?)));
            Err(refuse(match near {
                Some((key, near)) => {
                    format!("the file has no list of servers: `{key}` should be `{near}`")
                }
                None => "the file has no list of servers".into(),
            }))
        }
    }
}

/// A valid name that nobody has yet.
fn free_name(written: &str, taken: &HashSet<String>) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let mapped: String = written.chars().map(allowed).collect();
    let words: Vec<_> = mapped.split('-').filter(|word| !word.is_empty()).collect();
    let joined = words.join("-");
    let joined = joined.trim_start_matches(['_', '-']);
    // Room for a number behind it.
    let short: String = joined.chars().take(58).collect();
    let base = match short.as_str() {
        _ if ServerName::is_valid(written) && written != LOCAL_SERVER => written.to_owned(),
        "" => "server".into(),
        LOCAL_SERVER => "local-server".into(),
        name => name.into(),
    };
    let numbered = (2..).map(|number| {
        let cut: String = base.chars().take(58).collect();
        format!("{cut}-{number}")
    });
    let mut candidates = std::iter::once(base.clone()).chain(numbered);
    candidates.find(|name| !taken.contains(name)).unwrap_or(base)
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
