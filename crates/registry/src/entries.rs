//! Finds the entries of `toolbox.tools` that speak about a tool.

use switchboard_model::{AdmissionMode, ArgumentSpec, LimitsOverlay, Plan, ServerName, ToolEntry};

/// What the entries say about one tool of one server, laid over each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Explicit {
    pub(crate) limits: LimitsOverlay,
    pub(crate) mode: Option<AdmissionMode>,
    pub(crate) description: Option<String>,
    pub(crate) expose_as: Option<String>,
    pub(crate) enabled: bool,
    pub(crate) arguments: Option<Vec<ArgumentSpec>>,
}

/// The entry that addresses `server.tool` laid over the one that says just `tool`, field by field; `None`
/// when there is neither. An entry that disables the tool does so whichever of the two it is.
pub(crate) fn explicit_for(plan: &Plan, server: &ServerName, tool: &str) -> Option<Explicit> {
    let specific = plan.tools.iter().find(|entry| addresses(entry, server, tool));
    let general = plan.tools.iter().find(|entry| is_general(plan, entry, tool));
    match (specific, general) {
        (Some(upper), Some(lower)) => Some(Explicit {
            limits: upper.limits.over(lower.limits),
            mode: upper.mode.or(lower.mode),
            description: upper.description.clone().or_else(|| lower.description.clone()),
            expose_as: upper.expose_as.clone().or_else(|| lower.expose_as.clone()),
            enabled: upper.enabled && lower.enabled,
            arguments: upper.arguments.clone().or_else(|| lower.arguments.clone()),
        }),
        (Some(entry), None) | (None, Some(entry)) => Some(Explicit {
            limits: entry.limits,
            mode: entry.mode,
            description: entry.description.clone(),
            expose_as: entry.expose_as.clone(),
            enabled: entry.enabled,
            arguments: entry.arguments.clone(),
        }),
        (None, None) => None,
    }
}

/// Whether the entry is about this tool of every server. One that begins with the name of a server is about that server
/// alone: a tool of another one that is literally called `billing.refund` is addressed as `other.billing.refund`.
pub(crate) fn is_general(plan: &Plan, entry: &ToolEntry, tool: &str) -> bool {
    let local = ServerName::local();
    let mut servers = plan.servers.iter().map(|server| &server.spec.name).chain([&local]);
    entry.name == tool && !servers.any(|server| tool_at(entry, server).is_some())
}

/// The tool of this server that the entry is about, where it begins with the name of the server.
pub(crate) fn tool_at<'a>(entry: &'a ToolEntry, server: &ServerName) -> Option<&'a str> {
    entry.name.strip_prefix(server.as_str())?.strip_prefix('.')
}

/// Whether the entry says `server.tool` of exactly this tool.
pub(crate) fn addresses(entry: &ToolEntry, server: &ServerName, tool: &str) -> bool {
    tool_at(entry, server) == Some(tool)
}
