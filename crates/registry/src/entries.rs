//! Finds the entries of `toolbox.tools` that apply to a tool.

use switchboard_model::{
    AdmissionMode, ArgumentSpec, ContentCheckOverlay, LimitsOverlay, Plan, PromptToolPlan,
    RecordOverlay, ServerName, ToolEntry, ToolGrouping,
};

/// The merged settings of all entries that apply to one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Explicit {
    pub(crate) limits: LimitsOverlay,
    pub(crate) mode: Option<AdmissionMode>,
    pub(crate) description: Option<String>,
    pub(crate) expose_as: Option<String>,
    pub(crate) enabled: bool,
    pub(crate) arguments: Option<Vec<ArgumentSpec>>,
    pub(crate) validate_arguments: Option<bool>,
    pub(crate) content_check: ContentCheckOverlay,
    pub(crate) record: RecordOverlay,
    pub(crate) grouping: ToolGrouping,
    pub(crate) prompt: Option<PromptToolPlan>,
}

/// Merges the entry for `server.tool` over the one for `tool`, field by field; `None` if there is neither. If either
/// entry disables the tool, it is disabled.
///
/// If `is_foreign`, somebody elsewhere named the server. An entry for `tool` then only disables: it was not written for
/// that server, which would get its fixed arguments.
pub(crate) fn explicit_for(
    plan: &Plan,
    server: &ServerName,
    tool: &str,
    is_foreign: bool,
) -> Option<Explicit> {
    let specific = plan
        .tools
        .iter()
        .find(|entry| addresses(entry, server, tool) || is_prompt_tool(entry, server, tool));
    let general = plan.tools.iter().find(|entry| is_general(plan, entry, tool));
    let general = general.filter(|entry| !is_foreign || !entry.enabled);
    match (specific, general) {
        (Some(upper), Some(lower)) => Some(Explicit {
            limits: upper.limits.over(lower.limits),
            mode: upper.mode.or(lower.mode),
            description: upper.description.clone().or_else(|| lower.description.clone()),
            expose_as: upper.expose_as.clone().or_else(|| lower.expose_as.clone()),
            enabled: upper.enabled && lower.enabled,
            arguments: upper.arguments.clone().or_else(|| lower.arguments.clone()),
            validate_arguments: upper.validate_arguments.or(lower.validate_arguments),
            content_check: upper.content_check.over(lower.content_check),
            record: upper.record.over(lower.record),
            grouping: grouping_over(&upper.grouping, &lower.grouping),
            prompt: upper.prompt.clone(),
        }),
        (Some(entry), None) | (None, Some(entry)) => Some(Explicit {
            limits: entry.limits,
            mode: entry.mode,
            description: entry.description.clone(),
            expose_as: entry.expose_as.clone(),
            enabled: entry.enabled,
            arguments: entry.arguments.clone(),
            validate_arguments: entry.validate_arguments,
            content_check: entry.content_check,
            record: entry.record,
            grouping: entry.grouping.clone(),
            prompt: entry.prompt.clone(),
        }),
        (None, None) => None,
    }
}

/// The index of the entry whose `arguments` are those of a tool.
pub fn declaring_entry(plan: &Plan, server: &ServerName, tool: &str) -> Option<usize> {
    let declares = |is_about: &dyn Fn(&ToolEntry) -> bool| {
        plan.tools.iter().position(|entry| entry.arguments.is_some() && is_about(entry))
    };
    let specific =
        |entry: &ToolEntry| addresses(entry, server, tool) || is_prompt_tool(entry, server, tool);
    let is_foreign =
        || plan.servers.iter().any(|plan| plan.spec.name == *server && plan.is_foreign());
    declares(&specific)
        .or_else(|| declares(&|entry| is_general(plan, entry, tool)).filter(|_| !is_foreign()))
}

fn grouping_over(upper: &ToolGrouping, lower: &ToolGrouping) -> ToolGrouping {
    ToolGrouping {
        group: upper.group.clone().or_else(|| lower.group.clone()),
        state: upper.state.clone().or_else(|| lower.state.clone()),
        applicable_states: upper
            .applicable_states
            .clone()
            .or_else(|| lower.applicable_states.clone()),
    }
}

/// Whether the entry applies to this tool of every server. An entry that begins with the name of a server applies to
/// that server alone: a tool of another server that is literally called `billing.refund` is addressed as
/// `other.billing.refund`.
pub(crate) fn is_general(plan: &Plan, entry: &ToolEntry, tool: &str) -> bool {
    let local = ServerName::local();
    let mut servers = plan.servers.iter().map(|server| &server.spec.name).chain([&local]);
    entry.name == tool
        && entry.prompt.is_none()
        && !servers.any(|server| tool_at(entry, server).is_some())
}

/// Whether the entry defines this tool itself. Such an entry says nothing about tools of servers with the same name.
fn is_prompt_tool(entry: &ToolEntry, server: &ServerName, tool: &str) -> bool {
    entry.prompt.is_some() && server.is_local() && entry.name == tool
}

/// The tool part of the entry's name, if its server part is this server.
pub(crate) fn tool_at<'a>(entry: &'a ToolEntry, server: &ServerName) -> Option<&'a str> {
    entry.name.strip_prefix(server.as_str())?.strip_prefix('.')
}

/// Whether the entry's name is exactly `server.tool`.
pub(crate) fn addresses(entry: &ToolEntry, server: &ServerName, tool: &str) -> bool {
    tool_at(entry, server) == Some(tool)
}
