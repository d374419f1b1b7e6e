//! A toolset of an index, and the patterns of its members.

use switchboard_model::ServerName;
use switchboard_registry::CatalogTool;
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

/// Whether a toolset's pattern matches the tool, by its bare name or as `server.tool`.
pub(crate) fn matches(pattern: &WildMatch, tool: &CatalogTool) -> bool {
    pattern.matches(tool.name.tool()) || pattern.matches(tool.name.as_str())
}
