//! A toolset of an index, and the patterns of its members.

use std::sync::Arc;

use switchboard_model::{ServerName, ToolsetPlan};
use switchboard_registry::{Catalog, CatalogTool};
use wildmatch::WildMatch;

/// A named group of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolset {
    pub name: String,
    pub description: String,
    pub when_to_use: Option<String>,
    /// The servers whose tools are all members.
    pub servers: Vec<ServerName>,
    /// Positions in the index, ascending.
    pub members: Vec<usize>,
}

/// Whether a tool belongs to a toolset of the configuration.
pub(crate) fn membership(set: &ToolsetPlan) -> impl Fn(&CatalogTool) -> bool {
    let patterns: Vec<_> = set.tools.iter().map(|pattern| WildMatch::new(pattern)).collect();
    move |tool| {
        tool.toolset == set.name
            || set.servers.contains(tool.name.server())
            || patterns.iter().any(|pattern| matches(pattern, tool))
    }
}

/// The tools of a catalog that a toolset has, or would have.
pub fn toolset_members<'a>(
    catalog: &'a Catalog,
    set: &'a ToolsetPlan,
) -> impl Iterator<Item = &'a Arc<CatalogTool>> {
    let is_member = membership(set);
    catalog.tools().iter().filter(move |tool| is_member(tool))
}

/// Whether a toolset's pattern matches the tool, by its bare name or as `server.tool`.
pub(crate) fn matches(pattern: &WildMatch, tool: &CatalogTool) -> bool {
    pattern.matches(tool.name.tool()) || pattern.matches(tool.name.as_str())
}
