//! Imports server lists of other programs: `mcpServers` (Claude Desktop, Claude Code, Cursor, `.mcp.json`), `servers`
//! (VS Code) and `mcp_servers` (Codex, in TOML). Claude Code also has lists per project. From TrustGraph, tools are
//! imported, too.
//!
//! Everything that cannot be imported is reported in a note.

mod codex;
mod command_line;
mod entry;
pub(crate) mod jsonc;
mod lists;
mod literal_key;
mod note;
mod own_board;
mod stdio_entry;
mod trustgraph;
mod variables;

use std::collections::HashSet;
use std::fmt;

use serde_json::{Map, Value as Json, json};
use switchboard_model::{AdmissionMode, LOCAL_SERVER, ServerName};
use url::Url;

use crate::emit::Doc;
use crate::problem::Problems;
use crate::source::SourceText;
use crate::template;
use lists::ImportedServers;
pub use lists::ServerPlace;
pub use note::ImportNote;
use trustgraph::TrustGraphTool;

/// The servers of another program's file, converted.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The servers, in the order of the file.
    pub servers: Vec<ImportedServer>,
    /// Entries of `toolbox.tools`, in the order of the file.
    pub tools: Vec<ImportedTool>,
    /// Notes about changed and skipped servers.
    pub notes: Vec<ImportNote>,
}

/// One imported server.
#[derive(Clone)]
pub struct ImportedServer {
    /// The name, made valid and unique.
    pub name: String,
    /// The name in the other file.
    pub written: String,
    /// Where the other file has it: more than once where projects have the same server.
    pub places: Vec<ServerPlace>,
    /// The timeout of calls, if the other file sets one.
    pub(crate) tool_timeout: Option<String>,
    pub(crate) fields: Vec<(String, Doc)>,
}

/// One imported entry of `toolbox.tools`.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedTool {
    pub name: String,
    /// The whole entry, its name included.
    pub entry: Map<String, Json>,
}

impl ImportedTool {
    /// The fields besides the name. A `${` of the other file is text there, so it is escaped.
    pub(crate) fn escaped_fields(&self) -> Map<String, Json> {
        let whole = Doc::from_json(&Json::Object(self.entry.clone())).map_text(&template::escape);
        match whole.to_json() {
            Json::Object(mut fields) => {
                fields.shift_remove("name");
                fields
            }
            _ => Map::new(),
        }
    }
}

/// Prints the name only: the fields may hold tokens in plain text.
impl fmt::Debug for ImportedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportedServer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ImportedServer {
    /// The project of the server; `None` for a global one.
    pub fn project(&self) -> Option<&str> {
        self.places.first()?.project.as_deref()
    }

    /// The name of the server in notes.
    pub fn label(&self) -> String {
        label(&self.written, self.project())
    }

    /// The string, or the strings, of a field.
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

    /// Whether it is a stdio server.
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
        // The other program starts even if a server is broken, so the server is not required here.
        entries.push(("required".into(), Doc::Value(json!(false), None)));
        Doc::Map(entries)
    }
}

/// A server's name in the other file, with its project if it has one.
fn label(written: &str, project: Option<&str>) -> String {
    match project {
        Some(project) => format!("{written} (project {project})"),
        None => written.to_owned(),
    }
}

impl Imported {
    /// Keeps only these servers, and drops the notes about changes of the removed ones.
    pub fn retain(&mut self, is_kept: impl Fn(&ImportedServer) -> bool) {
        self.servers.retain(is_kept);
        let (servers, tools) = (&self.servers, &self.tools);
        self.notes.retain(|note| match note {
            ImportNote::LeftOut { .. } => true,
            ImportNote::Changed { name, .. } => {
                servers.iter().any(|server| server.name == *name)
                    || tools.iter().any(|tool| tool.name == *name)
            }
            ImportNote::Programs(_) => servers.iter().any(ImportedServer::is_program),
        });
    }

    /// A complete configuration file with these servers. It holds secrets if the other file did.
    pub fn to_yaml(&self, mode: AdmissionMode) -> String {
        let servers = self.servers.iter().map(|server| server.to_doc(mode)).collect();
        let mut toolbox = vec![("mcps".into(), Doc::List(servers))];
        if !self.tools.is_empty() {
            let tools = self.tools.iter().map(|tool| {
                let mut entry = Map::from_iter([("name".into(), json!(tool.name))]);
                entry.extend(tool.escaped_fields());
                Doc::from_json(&Json::Object(entry))
            });
            toolbox.insert(0, ("tools".into(), Doc::List(tools.collect())));
        }
        let toolbox = Doc::Map(toolbox);
        let root = Doc::Map(vec![("toolbox".into(), toolbox)]);
        Doc::Map(vec![("switchboard".into(), root)]).to_yaml()
    }
}

/// Which servers of a file to import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportScope<'a> {
    /// All servers: global ones and those of every project.
    Everything,
    /// Global servers and those of this project.
    Project(&'a str),
    /// Global servers only.
    NoProject,
}

/// Note for users who migrate: most other programs pass on their whole environment.
const SMALL_ENVIRONMENT: &str = "programs are started with PATH, HOME and a few other variables, and with what `env` names; \
                                 other variables of your environment have to be named there";

/// Imports the servers of another program's file. Entries that lead to one of `boards`, the addresses of this
/// Switchboard, are skipped.
pub fn import_servers(
    file_name: &str,
    text: &str,
    scope: ImportScope<'_>,
    boards: &[Url],
) -> Result<Imported, Problems> {
    let source = SourceText::new(file_name, text);
    let mut imported = Imported { servers: Vec::new(), tools: Vec::new(), notes: Vec::new() };
    let lists = if std::path::Path::new(file_name).extension().is_some_and(|end| end == "toml") {
        vec![codex::servers(&source, text)?]
    } else if let Some(file) = trustgraph::read(text) {
        let place = ServerPlace::for_every_project(&["mcp"]);
        imported.add_tools(file.tools);
        vec![ImportedServers { place, servers: file.servers }]
    } else {
        lists::json_lists(&source, text, scope)?
    };
    for ImportedServers { place, servers } in lists {
        for (written, entry) in servers {
            imported.add(&place, written, &entry, boards);
        }
    }
    imported.follow_renamed_servers();
    if imported.servers.iter().any(ImportedServer::is_program) {
        imported.notes.push(ImportNote::Programs(SMALL_ENVIRONMENT));
    }
    Ok(imported)
}

impl Imported {
    fn add_tools(&mut self, tools: Vec<(String, Result<TrustGraphTool, String>)>) {
        for (id, tool) in tools {
            let label = format!("tool {id}");
            let TrustGraphTool { entry, notes } = match tool {
                Ok(tool) => tool,
                Err(reason) => {
                    self.notes.push(ImportNote::LeftOut { server: label, reason });
                    continue;
                }
            };
            let name = entry.get("name").and_then(Json::as_str).unwrap_or(&id).to_owned();
            let note =
                |text| ImportNote::Changed { name: name.clone(), server: label.clone(), text };
            self.notes.extend(notes.into_iter().map(note));
            self.tools.push(ImportedTool { name, entry });
        }
    }

    /// Lets the tools of TrustGraph name their servers as they are called here.
    fn follow_renamed_servers(&mut self) {
        for tool in &mut self.tools {
            let Some(target) = tool.entry.get_mut("mcp-tool") else { continue };
            let named = self.servers.iter().find(|server| *target == *server.written);
            if let Some(server) = named.filter(|server| server.name != server.written) {
                *target = server.name.clone().into();
            }
        }
    }

    fn add(&mut self, place: &ServerPlace, written: String, entry: &Json, boards: &[Url]) {
        let label = label(&written, place.project.as_deref());
        let mut texts = Vec::new();
        let converted = if own_board::is_switchboard(&written, entry, boards) {
            Err("it is a Switchboard itself".to_owned())
        } else {
            entry::convert(entry, &mut texts)
        };
        let fields = match converted {
            Ok(fields) => fields,
            Err(reason) => {
                return self.notes.push(ImportNote::LeftOut { server: label, reason });
            }
        };
        let tool_timeout = entry.get("tool_timeout").and_then(Json::as_str).map(str::to_owned);
        // Several projects often have the same server; it is imported once.
        let wanted = content(&fields);
        let same = self.servers.iter_mut().find(|server| {
            server.written == written
                && server.tool_timeout == tool_timeout
                && content(&server.fields) == wanted
        });
        if let Some(same) = same {
            return same.places.push(place.clone());
        }
        let name = free_name(&written, &self.servers);
        if name != written {
            texts.push(format!("renamed to `{name}`"));
        }
        if place.project.is_some() {
            texts.push(
                "imported for all clients; in the other file it is for this project only".into(),
            );
        }
        self.notes.extend(texts.into_iter().map(|text| ImportNote::Changed {
            name: name.clone(),
            server: label.clone(),
            text,
        }));
        let places = vec![place.clone()];
        self.servers.push(ImportedServer { name, written, places, tool_timeout, fields });
    }
}

/// The fields as JSON, for a comparison that ignores the order of variables and headers.
fn content(fields: &[(String, Doc)]) -> Json {
    Doc::Map(fields.to_vec()).to_json()
}

/// A valid name that is not in use yet.
fn free_name(written: &str, servers: &[ImportedServer]) -> String {
    let taken: HashSet<_> = servers.iter().map(|server| server.name.as_str()).collect();
    unique_name(written, &taken)
}

fn unique_name(written: &str, taken: &HashSet<&str>) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let mapped: String = written.chars().map(allowed).collect();
    let words: Vec<_> = mapped.split('-').filter(|word| !word.is_empty()).collect();
    let joined = words.join("-");
    let joined = joined.trim_start_matches(['_', '-']);
    // Leaves room for a numeric suffix.
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
    candidates.find(|name| !taken.contains(name.as_str())).unwrap_or(base)
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
