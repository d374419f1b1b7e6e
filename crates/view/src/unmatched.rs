//! Finds toolset patterns that match no tool.

use std::fmt;

use switchboard_model::{Plan, ServerName};
use switchboard_registry::{Catalog, CatalogTool};
use wildmatch::WildMatch;

use crate::toolset::matches;

/// Minimum similarity of a suggested name.
const MIN_SIMILARITY: f64 = 0.8;

/// A pattern of a toolset that matches no tool of the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedPattern {
    pub toolset: String,
    pub pattern: String,
    /// Path in the configuration, such as `toolsets[0].tools[1]`.
    pub path: String,
    /// A similar tool name, as a suggestion.
    pub nearest: Option<String>,
}

impl fmt::Display for UnmatchedPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { toolset, pattern, .. } = self;
        write!(f, "toolset '{toolset}' names `{pattern}`, and no tool is called so")
    }
}

/// The toolset patterns that match no tool. The tools of a server that has not connected yet are unknown, so patterns
/// that could match them are not reported.
pub fn unmatched_patterns(
    catalog: &Catalog,
    plan: &Plan,
    is_heard: impl Fn(&ServerName) -> bool,
) -> Vec<UnmatchedPattern> {
    let names = || plan.servers.iter().map(|server| &server.spec.name);
    let is_judged = |pattern: &str| match names().find(|server| below(pattern, server).is_some()) {
        Some(server) => is_heard(server),
        None => names().all(&is_heard),
    };
    let mut unmatched = Vec::new();
    for (set_index, set) in plan.toolsets.iter().enumerate() {
        for (index, pattern) in set.tools.iter().enumerate() {
            let matcher = WildMatch::new(pattern);
            let is_for_something = || catalog.tools().iter().any(|tool| matches(&matcher, tool));
            if is_judged(pattern) && !is_for_something() {
                unmatched.push(UnmatchedPattern {
                    toolset: set.name.clone(),
                    pattern: pattern.clone(),
                    path: format!("toolsets[{set_index}].tools[{index}]"),
                    nearest: nearest(pattern, catalog, plan),
                });
            }
        }
    }
    unmatched
}

/// The part of a pattern after `server.`.
fn below<'a>(pattern: &'a str, server: &ServerName) -> Option<&'a str> {
    pattern.strip_prefix(server.as_str())?.strip_prefix('.')
}

/// The tool whose name is most similar to a pattern without wildcards.
fn nearest(pattern: &str, catalog: &Catalog, plan: &Plan) -> Option<String> {
    if pattern.contains(['*', '?']) {
        return None;
    }
    let servers = || plan.servers.iter().map(|server| &server.spec.name);
    let at_server = servers().find_map(|server| Some((server, below(pattern, server)?)));
    let likeness = |tool: &CatalogTool| match at_server {
        Some((server, name)) if server == tool.name.server() => {
            (strsim::jaro_winkler(name, tool.name.tool()), tool.name.as_str().to_owned())
        }
        Some(_) => (0.0, String::new()),
        None => {
            let bare = strsim::jaro_winkler(pattern, tool.name.tool());
            let whole = strsim::jaro_winkler(pattern, tool.name.as_str());
            let name = if bare >= whole { tool.name.tool() } else { tool.name.as_str() };
            (bare.max(whole), name.to_owned())
        }
    };
    let scored = catalog.tools().iter().map(|tool| likeness(tool));
    let best = scored
        .filter(|(alike, _)| *alike > MIN_SIMILARITY)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    best.map(|(_, name)| name)
}
