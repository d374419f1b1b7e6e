//! Finds the server lists in a JSON file: a global one, and those of single projects.

use serde_json::{Map, Value as Json};

use super::{ImportScope, jsonc};
use crate::place::{Extent, ValueOrigin};
use crate::problem::{BoxedProblem, ConfigProblem, Problems};
use crate::schema::nearest;
use crate::source::SourceText;

/// The keys under which programs keep their servers.
const LIST_KEYS: [&str; 2] = ["mcpServers", "servers"];

/// One list of servers of a file.
#[derive(Debug)]
pub(super) struct ImportedServers {
    pub(super) place: ServerPlace,
    pub(super) servers: Map<String, Json>,
}

/// The position of a server in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPlace {
    /// The keys that lead to its list, from the top of the file.
    pub list: Vec<String>,
    /// The project whose list it is; `None` for the global list.
    pub project: Option<String>,
}

impl ServerPlace {
    pub(super) fn for_every_project(list: &[&str]) -> Self {
        Self { list: list.iter().map(|key| (*key).to_owned()).collect(), project: None }
    }

    fn of_project(project: &str) -> Self {
        let list = ["projects", project, "mcpServers"].map(str::to_owned).into();
        Self { list, project: Some(project.to_owned()) }
    }
}

/// The lists of a JSON file: the global one first, then those of projects.
pub(super) fn json_lists(
    source: &SourceText<'_>,
    text: &str,
    scope: ImportScope<'_>,
) -> Result<Vec<ImportedServers>, Problems> {
    let json = jsonc::read(text).map_err(|error| {
        let at = Extent::point(error.line_display(), error.column_display());
        let problem = ConfigProblem::error(format!("not valid JSON: {}", jsonc::reason(&error)));
        Box::new(source.locate(&ValueOrigin::File(at), problem))
    })?;
    let json = json.unwrap_or_default();
    let start = ValueOrigin::File(Extent::point(1, 1));
    let located = |problem: BoxedProblem| {
        Problems::from(Box::new(ConfigProblem { place: Some(source.place(&start)), ..*problem }))
    };
    let of_projects: Vec<_> = projects(&json)
        .filter(|(project, _)| match scope {
            ImportScope::Everything => true,
            ImportScope::Project(wanted) => wanted == *project,
            ImportScope::NoProject => false,
        })
        .map(|(project, list)| ImportedServers {
            place: ServerPlace::of_project(project),
            servers: list.clone(),
        })
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
        return Err(located(Box::new(ConfigProblem::error(message).help(help))));
    }
    let mut lists = match find_list(&json) {
        Ok(list) => vec![list],
        // A file may have project lists only.
        Err(_) if projects(&json).next().is_some() => Vec::new(),
        Err(problem) => return Err(located(problem)),
    };
    lists.extend(of_projects);
    Ok(lists)
}

/// The projects of a Claude Code file that have servers.
fn projects(json: &Json) -> impl Iterator<Item = (&str, &Map<String, Json>)> {
    let projects = json.get("projects").and_then(Json::as_object).into_iter().flatten();
    projects.filter_map(|(project, settings)| {
        let list = settings.get("mcpServers")?.as_object()?;
        (!list.is_empty()).then_some((project.as_str(), list))
    })
}

/// The global list; in VS Code's user settings it is one level down, below `mcp`.
fn find_list(json: &Json) -> Result<ImportedServers, BoxedProblem> {
    let refuse = |message: String| {
        Box::new(ConfigProblem::error(message).help(
            "expected `{\"mcpServers\": {...}}` (Claude, Cursor, .mcp.json), `{\"servers\": {...}}` (VS Code), or a `.toml` file of Codex",
        ))
    };
    let Json::Object(whole) = json else {
        return Err(refuse("the file is not a JSON object".into()));
    };
    let nested = whole.get("mcp").and_then(Json::as_object);
    let levels = [(vec![], Some(whole)), (vec!["mcp"], nested)];
    let found = levels.into_iter().find_map(|(above, map)| {
        let map = map?;
        LIST_KEYS
            .iter()
            .find_map(|key| Some(([above.as_slice(), &[*key]].concat(), map.get(*key)?)))
    });
    match found {
        Some((keys, Json::Object(list))) => Ok(ImportedServers {
            place: ServerPlace::for_every_project(&keys),
            servers: list.clone(),
        }),
        Some((keys, _)) => {
            let key = keys.last().copied().unwrap_or_default();
            Err(refuse(format!("`{key}` is not an object of servers")))
        }
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
