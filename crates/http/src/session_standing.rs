//! All tools that a session could have, with what decides whether it does.

use switchboard_api::{SessionTool, SessionTools, ToolStandingView};
use switchboard_render::Provider;
use switchboard_runtime::Board;
use switchboard_sessions::{Session, SessionState};
use switchboard_view::{Entry, Selection, Standing, View};

use crate::present::unavailable_servers;

/// The tools of a session with those that it could have. `sees_policy` also shows what the configuration hides from clients.
pub(crate) fn all_session_tools(
    board: &Board,
    session: &Session,
    now: &SessionState,
    sees_policy: bool,
) -> SessionTools {
    let away = unavailable_servers(board);
    let view = &now.cached.view;
    // What a binding to servers leaves out is reachable in the view without it.
    let unbound = view.selection().servers.is_some().then(|| {
        let selection = Selection { servers: None, ..Selection::clone(view.selection()) };
        board.snapshot().view(&session.scope(), &selection.into(), view.past())
    });
    let tools = view.standings().into_iter().filter_map(|(entry, standing)| {
        let is_bound_elsewhere = || {
            let reaches = |view: &View| view.reaches_tool(&entry.tool.name);
            unbound.as_ref().is_some_and(|unbound| reaches(&unbound.view))
        };
        let (enabled, (reason, toolsets)) = match standing {
            Standing::Unreachable if is_bound_elsewhere() => (false, ("binding", Vec::new())),
            Standing::Unreachable
                if sees_policy && !view.index().permits(entry.tool.name.as_str()) =>
            {
                (false, ("policy", Vec::new()))
            }
            Standing::Unreachable => return None,
            standing => (standing.is_shown(), because(standing)),
        };
        let because =
            ToolStandingView { reason: reason.into(), toolsets, not_for: not_for(view, entry) };
        let shown = entry.shown_name();
        Some(SessionTool {
            name: entry.name.as_deref().unwrap_or_default().to_owned(),
            canonical_name: shown.to_string(),
            available: !away.iter().any(|server| server == entry.tool.name.server().as_str()),
            server: shown.server().to_string(),
            tool: entry.tool.name.tool().to_owned(),
            description: entry.tool.descriptor.description.clone(),
            input_schema: entry.tool.descriptor.input_schema.parse(),
            enabled: Some(enabled),
            because: Some(because),
        })
    });
    SessionTools { tools_revision: now.revision, tools: tools.collect() }
}

fn because(standing: Standing) -> (&'static str, Vec<String>) {
    match standing {
        Standing::SwitchedOn | Standing::SwitchedOff => ("tool", Vec::new()),
        Standing::InToolsets(sets) | Standing::ToolsetsOff(sets) => ("toolset", sets),
        Standing::Default | Standing::InNoToolset | Standing::Unreachable => {
            ("default", Vec::new())
        }
    }
}

/// The providers whose list of tools in the session leaves the tool out.
fn not_for(view: &View, entry: &Entry) -> Vec<String> {
    let shown = entry.shown_name();
    let names = [entry.name.as_deref().unwrap_or_default(), shown.as_str(), entry.tool.name.tool()];
    let allows = |provider: &Provider| view.selection().allows(provider.as_str(), &names);
    let providers = Provider::ALL.into_iter().filter(|provider| !allows(provider));
    providers.map(|provider| provider.as_str().to_owned()).collect()
}
