//! Says why a tool is not in the catalog.

use switchboard_api::{AbsentTool, HiddenToolView};
use switchboard_model::{CanonicalName, ConnectError, ToolDescriptor};
use switchboard_registry::Absence;
use switchboard_runtime::Board;

/// The message about a name that no tool of the catalog has, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSuchTool {
    pub message: String,
    pub hint: Option<String>,
}

/// Why the catalog has no tool of this name; `None` if nothing here has the name.
pub fn absent_tool(board: &Board, name: &str) -> Option<AbsentTool> {
    Some(described(board, name, board.absence_of(name)?))
}

/// The tools that clients do not see: those that are not in the catalog, and those that policy hides.
pub(crate) fn hidden_tools(board: &Board) -> Vec<HiddenToolView> {
    let absent = board.absent_tools().into_iter().map(|(name, tool, absence)| {
        let AbsentTool { reason, message, hint } = described(board, name.as_str(), absence);
        hidden(&name, &tool, (&reason, message, hint))
    });
    let snapshot = board.snapshot();
    let denied = snapshot.catalog().tools().iter();
    let denied = denied.filter(|tool| !snapshot.index().permits(tool.name.as_str())).map(|tool| {
        let by =
            "`gateway.allow_toolsets` or `gateway.deny_toolsets` hides its toolsets from clients";
        hidden(&tool.name, &tool.descriptor, ("denied", by.into(), None))
    });
    absent.chain(denied).collect()
}

fn hidden(
    name: &CanonicalName,
    tool: &ToolDescriptor,
    (reason, by, hint): (&str, String, Option<String>),
) -> HiddenToolView {
    HiddenToolView {
        name: name.to_string(),
        server: name.server().to_string(),
        tool: name.tool().to_owned(),
        title: tool.title.clone(),
        description: tool.description.clone(),
        reason: reason.into(),
        by,
        hint,
    }
}

fn described(board: &Board, name: &str, absence: Absence) -> AbsentTool {
    let (reason, message, hint) = match absence {
        Absence::Disabled { entry } => (
            "disabled",
            format!("the entry '{entry}' in toolbox.tools says `enabled: false`"),
            Some(format!("`switchboard tool set {entry} --enabled` shows it again")),
        ),
        Absence::Quarantined { server, reason } => {
            ("quarantined", format!("MCP server '{server}' has it, but {reason}"), None)
        }
        Absence::NotListed { server } => (
            "not_listed",
            format!("`tool_allowlist` or `tool_denylist` of MCP server '{server}' leaves it out"),
            Some(format!("`switchboard server show {server}` shows both lists")),
        ),
        Absence::NotAdmitted { server } => (
            "not_admitted",
            format!("MCP server '{server}' is strict, and toolbox.tools has no entry for it"),
            Some(format!("`switchboard tool set {name}` adds an entry")),
        ),
        Absence::NotChosen => (
            "not_chosen",
            "it is a built-in tool that the configuration does not choose".to_owned(),
            Some("add an entry for it to toolbox.tools, or its name to `local_tools`".to_owned()),
        ),
        Absence::ServerUnavailable { server } => {
            let servers = board.servers();
            let status = servers.iter().map(|(_, status)| status).find(|it| it.name == server);
            let state = status.map_or("unavailable", |status| status.state.as_str());
            let error = status.and_then(|status| status.error.as_ref());
            let why = error.map(|error| format!(": {}", error.message)).unwrap_or_default();
            (
                "server_unavailable",
                format!("MCP server '{server}' is {state}{why}"),
                error.and_then(ConnectError::hint),
            )
        }
        Absence::NotOffered { server: Some(server) } => (
            "not_offered",
            format!("MCP server '{server}' does not offer the tool"),
            Some(format!("`switchboard tool list --server {server}` shows its tools")),
        ),
        Absence::NotOffered { server: None } => (
            "not_offered",
            "no MCP server offers it".to_owned(),
            Some("`switchboard tool list` shows the tools that there are".to_owned()),
        ),
    };
    AbsentTool { reason: reason.to_owned(), message, hint }
}
