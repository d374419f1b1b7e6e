//! Server lists of other programs: `mcpServers` (Claude Desktop, Claude Code, Cursor, `.mcp.json`), `servers`
//! (VS Code) and `mcp_servers` (Codex, in TOML). Claude Code also has lists for single projects.
//!
//! Whatever cannot be carried over is said in a note; nothing is dropped in silence.

mod codex;
mod command_line;
mod entry;
pub(crate) mod jsonc;
mod literal_key;
mod variables;

use std::collections::{HashMap, HashSet};
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
    /// The name in the other file.
    pub written: String,
    /// The project whose server it is, where the file has servers of projects.
    pub project: Option<String>,
    /// How long a call may run, where the other file says so.
    pub(crate) tool_timeout: Option<String>,
    pub(crate) fields: Vec<(String, Doc)>,
}

/// Shows the name only: the fields may hold tokens that the other file had in plain text.
impl fmt::Debug for ImportedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportedServer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ImportedServer {
    /// The text, or the texts, of a field.
    pub(crate) fn texts(&self, key: &str) -> Vec<&str> {
        fn text(doc: &Doc) -> Option<&str> {
            match doc {
                Doc::Value(Json::String(text), _) => Some(text),
                Doc::Value(..) | Doc::Template(..) | Doc::List(_) | Doc::Map(_) => None,
            }
        }
        match self.fields.iter().find(|(field, _)| field == key).map(|(_, doc)| doc) {
            Some(Doc::List(items)) => items.iter().filter_map(text).collect(),
            field => field.and_then(text).into_iter().collect(),
        }
    }

    /// Whether it is started here.
    fn is_program(&self) -> bool {
        self.fields.iter().any(|(key, _)| key == "command")
    }

    /// The entry of `toolbox.mcps`.
    pub(crate) fn to_doc(&self, mode: AdmissionMode) -> Doc {
        let mut entries = vec![("name".to_owned(), Doc::text(&self.name))];
        entries.extend(self.fields.iter().cloned());
        entries.push(("mode".into(), Doc::text(mode.as_str())));
        if mode == AdmissionMode::Dynamic {
            let defaults = vec![
                ("max_instances".into(), Doc::Value(json!(5), None)),
                ("timeout".into(), Doc::text(self.tool_timeout.as_deref().unwrap_or("30s"))),
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

/// Which servers of a file are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportScope<'a> {
    /// All of them, those of every project too.
    Everything,
    /// Those that are for every project, and those of this one.
    Project(&'a str),
    /// Those that are for every project.
    NoProject,
}

/// The environment of a program is smaller here than at most other programs, which matters to who moves.
const SMALL_ENVIRONMENT: &str = "programs are started with PATH, HOME and a few other variables, and with what `env` names; \
                                 other variables of your environment have to be named there";

/// Reads the servers of another program's file.
pub fn import_servers(
    file_name: &str,
    text: &str,
    scope: ImportScope<'_>,
) -> Result<Imported, Problems> {
    let source = Source::new(file_name, text);
    let lists = if std::path::Path::new(file_name).extension().is_some_and(|end| end == "toml") {
        vec![(None, codex::servers(&source, text)?)]
    } else {
        json_lists(&source, text, scope)?
    };
    let mut imported = Imported { servers: Vec::new(), notes: Vec::new() };
    let mut taken = HashSet::new();
    let mut entries: HashMap<String, Json> = HashMap::new();
    for (project, list) in lists {
        for (written, entry) in list {
            let mut notes = Vec::new();
            // Projects often have the same server.
            if project.is_some() && entries.get(&written) == Some(&entry) {
                continue;
            }
            if entry::is_switchboard(&written, &entry) {
                imported.notes.push(format!("{written}: left out: it is a Switchboard itself"));
                continue;
            }
            if let Some(fields) = entry::convert(&entry, &mut notes) {
                let name = free_name(&written, &taken);
                if name != written {
                    notes.push(format!("renamed to `{name}`"));
                }
                if let Some(project) = &project {
                    notes.push(format!("taken from the project {project}"));
                }
                taken.insert(name.clone());
                let tool_timeout =
                    entry.get("tool_timeout").and_then(Json::as_str).map(str::to_owned);
                let (written, project) = (written.clone(), project.clone());
                let server = ImportedServer { name, written, project, tool_timeout, fields };
                imported.servers.push(server);
            }
            imported.notes.extend(notes.into_iter().map(|note| format!("{written}: {note}")));
            entries.insert(written, entry);
        }
    }
    if imported.servers.iter().any(ImportedServer::is_program) {
        imported.notes.push(SMALL_ENVIRONMENT.into());
    }
    Ok(imported)
}

type ServerLists = Vec<(Option<String>, Map<String, Json>)>;

/// The lists of a JSON file: the one for every project first, then those of projects.
fn json_lists(
    source: &Source<'_>,
    text: &str,
    scope: ImportScope<'_>,
) -> Result<ServerLists, Problems> {
    let json: Json = serde_json::from_str(&jsonc::to_json(text)).map_err(|error| {
        let at = Extent::point(error.line(), error.column().max(1));
        // The reason without its position, which the problem shows anyway.
        let reason = error.to_string();
        let reason = reason.split(" at line ").next().unwrap_or_default();
        let problem = Problem::error(format!("not valid JSON: {reason}"));
        Box::new(source.locate(&Origin::File(at), problem))
    })?;
    let start = Origin::File(Extent::point(1, 1));
    let located = |problem: Refused| {
        Problems::from(Box::new(Problem { place: Some(source.place(&start)), ..*problem }))
    };
    let of_projects: ServerLists = projects(&json)
        .filter(|(project, _)| match scope {
            ImportScope::Everything => true,
            ImportScope::Project(wanted) => wanted == *project,
            ImportScope::NoProject => false,
        })
        .map(|(project, list)| (Some(project.to_owned()), list.clone()))
        .collect();
    if let ImportScope::Project(wanted) = scope
        && of_projects.is_empty()
    {
        let with_servers: Vec<_> = projects(&json).map(|(project, _)| project).collect();
        let help = match with_servers.as_slice() {
            [] => "the file has no servers of projects".to_owned(),
            known => format!("projects with servers: {}", known.join(", ")),
        };
        let message = format!("the file has no servers of the project {wanted}");
        return Err(located(Box::new(Problem::error(message).help(help))));
    }
    let mut lists = match find_list(&json) {
        Ok(list) => vec![(None, list.clone())],
        // A file may have servers of projects alone.
        Err(_) if projects(&json).next().is_some() => Vec::new(),
        Err(problem) => return Err(located(problem)),
    };
    lists.extend(of_projects);
    Ok(lists)
}

/// The projects of a file of Claude Code that have servers.
fn projects(json: &Json) -> impl Iterator<Item = (&str, &Map<String, Json>)> {
    let projects = json.get("projects").and_then(Json::as_object).into_iter().flatten();
    projects.filter_map(|(project, settings)| {
        let list = settings.get("mcpServers")?.as_object()?;
        (!list.is_empty()).then_some((project.as_str(), list))
    })
}

/// The map of servers; VS Code's user settings have it one level down, in `mcp`.
fn find_list(json: &Json) -> Result<&Map<String, Json>, Refused> {
    let refuse = |message: String| {
        Box::new(Problem::error(message).help(
            "expected `{\"mcpServers\": {...}}` (Claude, Cursor, .mcp.json), `{\"servers\": {...}}` (VS Code), or a `.toml` file of Codex",
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
