//! Converts sessions to the types of the API, and changes from them.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use axum::http::HeaderName;
use switchboard_api::{
    NewSession, NotShownView, OwnServerBody, OwnServerView, OwnTransport, RegistrySnapshot,
    RenderedToolView, RenderingView, RevisionEvent, RewriteView, SessionChange, SessionClientView,
    SessionList, SessionTool, SessionTools, SessionToolset, SessionToolsets, SessionView,
    TokenBasis, TokenCost, ToolsetList, ToolsetView,
};
use switchboard_model::{LOCAL_SERVER, LiveAccess, Secret, ServerState, redact_url};
use switchboard_render::{Delta, NotShown, Provider, RenderedTool};
use switchboard_runtime::{Board, ServerStatus};
use switchboard_sessions::{
    Change, OwnServer, Session, SessionClient, SessionService, SessionState, Step, Summary,
};
use switchboard_view::snapshot_tools;

use crate::present::unavailable_servers;

/// A session with the state of its attached servers, without their secrets.
pub fn session(sessions: &SessionService, session: Summary) -> SessionView {
    let has_own = !session.draft.servers.is_empty();
    let attached = if has_own { sessions.attached(&session.id) } else { Vec::new() };
    let status = |name: &str| {
        let found = attached.iter().find(|(server, _)| server.name.as_str() == name);
        found.map(|(_, status)| status)
    };
    let (about, selection) = (session.draft.about, session.draft.selection);
    let switched = |wanted: bool| {
        let sets = selection.toolsets.iter().filter(|(_, is_on)| **is_on == wanted);
        sets.map(|(set, _)| set.clone()).collect()
    };
    SessionView {
        path: format!("/mcp/sessions/{}", session.id),
        id: session.id,
        kind: session.kind.as_str().into(),
        owner: session.owner,
        title: about.title,
        provider: about.provider,
        model: about.model,
        credential: about.credential,
        strategy: about.strategy.map(|strategy| strategy.as_str().to_owned()),
        servers: selection.servers.as_ref().map(|servers| servers.iter().cloned().collect()),
        enabled_toolsets: switched(true),
        disabled_toolsets: switched(false),
        tools: selection.tools.clone(),
        allow: selection.allow.clone(),
        own_servers: session
            .draft
            .servers
            .iter()
            .map(|(name, own)| (name.clone(), own_view(own, status(name))))
            .collect(),
        tools_revision: session.revision,
        running_turn: None,
        clients: None,
        created_at_ms: session.created_at_ms,
        updated_at_ms: session.updated_at_ms,
    }
}

/// A list of sessions, with the clients of each.
pub fn sessions<S: BuildHasher>(
    service: &SessionService,
    sessions: Vec<Summary>,
    clients: &HashMap<String, Vec<SessionClient>, S>,
) -> SessionList {
    let sessions = sessions.into_iter().map(|it| session(service, it));
    SessionList { sessions: sessions.map(|session| with_clients(session, clients)).collect() }
}

/// A session with its MCP clients.
pub fn with_clients<S: BuildHasher>(
    session: SessionView,
    clients: &HashMap<String, Vec<SessionClient>, S>,
) -> SessionView {
    let clients = clients.get(&session.id).into_iter().flatten().map(|client| SessionClientView {
        name: client.info.name.as_deref().map(str::to_owned),
        version: client.info.version.as_deref().map(str::to_owned),
        protocol_version: client.protocol_version.clone(),
    });
    SessionView { clients: Some(clients.collect()), ..session }
}

fn own_view(own: &OwnServer, status: Option<&ServerStatus>) -> OwnServerView {
    let url = url::Url::parse(&own.url).map_or_else(|_| "***".into(), |url| redact_url(&url));
    OwnServerView {
        url,
        transport: if own.is_sse { OwnTransport::Sse } else { OwnTransport::StreamableHttp },
        headers: own.headers.keys().cloned().collect(),
        state: status.map(|status| status.state.as_str().to_owned()),
        error: status.and_then(|status| Some(status.error.as_ref()?.to_string())),
    }
}

fn own_server(body: OwnServerBody) -> OwnServer {
    let headers = body.headers.into_iter();
    OwnServer {
        url: body.url,
        is_sse: body.transport == OwnTransport::Sse,
        headers: headers.map(|(name, value)| (name, Secret::new(value))).collect(),
    }
}

/// The settings of a new session.
pub fn beginning(wanted: NewSession) -> Change {
    Change {
        title: wanted.title.map(Some),
        provider: wanted.provider.map(Some),
        model: wanted.model.map(Some),
        credential: wanted.credential.map(Some),
        strategy: wanted.strategy.map(Some),
        servers: wanted.servers.map(|servers| Some(servers.into_iter().collect())),
        toolsets: wanted.toolsets,
        tools: wanted.tools.into_iter().map(|(tool, is_on)| (tool, Some(is_on))).collect(),
        allow: wanted.allow.into_iter().map(|(to, tools)| (to, Some(tools))).collect(),
        own_servers: wanted
            .own_servers
            .into_iter()
            .map(|(name, body)| (name, Some(own_server(body))))
            .collect(),
    }
}

/// A change of a session, and the revision that the caller expects.
pub fn change(wanted: SessionChange) -> (Option<u64>, Change) {
    let own = wanted.own_servers.into_iter();
    let change = Change {
        title: wanted.title,
        provider: wanted.provider,
        model: wanted.model,
        credential: wanted.credential,
        strategy: wanted.strategy,
        servers: wanted.servers.map(|servers| servers.map(|list| list.into_iter().collect())),
        toolsets: wanted.toolsets,
        tools: wanted.tools,
        allow: wanted.allow,
        own_servers: own.map(|(name, body)| (name, body.map(own_server))).collect(),
    };
    (wanted.tools_revision, change)
}

/// The tools that a session sees.
pub fn session_tools(board: &Board, session: &str, now: &SessionState) -> SessionTools {
    let away = unavailable_servers(board);
    let own_away: Vec<_> = board
        .attached(session)
        .into_iter()
        .filter(|(_, status)| status.state != ServerState::Ready)
        .map(|(server, _)| server.name)
        .collect();
    let tools = now.cached.view.tools().map(|entry| {
        let (tool, shown) = (&entry.tool, entry.shown_name());
        let server = tool.name.server().to_string();
        SessionTool {
            name: entry.name.as_deref().unwrap_or_default().to_owned(),
            canonical_name: shown.to_string(),
            available: match &tool.alias {
                Some(alias) => !own_away.contains(alias),
                None => !away.contains(&server),
            },
            server: shown.server().to_string(),
            tool: tool.name.tool().to_owned(),
            description: tool.descriptor.description.clone(),
            input_schema: tool.descriptor.input_schema.parse(),
            enabled: None,
            because: None,
        }
    });
    SessionTools { tools_revision: now.revision, tools: tools.collect() }
}

/// The toolsets that a session can enable and disable.
pub fn session_toolsets(now: &SessionState) -> SessionToolsets {
    let view = &now.cached.view;
    let sets = view.set_names().iter().filter_map(|name| view.toolset(name));
    let sets = sets.map(|set| SessionToolset {
        name: set.name.clone(),
        description: set.description.clone(),
        when_to_use: set.when_to_use.clone(),
        enabled: view.is_on(&set.name),
        tools: view.members(set).count(),
    });
    SessionToolsets {
        tools_revision: now.revision,
        exposure: view.mode().as_str().into(),
        toolsets: sets.collect(),
    }
}

/// The toolsets that clients can enable and disable, and the default exposure.
pub fn toolsets(sessions: &SessionService, access: &LiveAccess) -> ToolsetList {
    let exposure = sessions.board().snapshot().exposure().clone();
    let toolsets = sessions.toolsets(access).into_iter().map(|(set, members)| ToolsetView {
        name: set.name,
        description: set.description,
        tools: members.len(),
        when_to_use: set.when_to_use,
        members: members.iter().map(ToString::to_string).collect(),
    });
    ToolsetList {
        exposure: exposure.mode.as_str().into(),
        reason: exposure.reason,
        toolsets: toolsets.collect(),
    }
}

/// The stored form of the tools, and when each was last listed. That time is not stored: it changes with every list.
pub fn snapshot(board: &Board, session: &str, now: &SessionState) -> RegistrySnapshot {
    let mut tools = snapshot_tools(&now.cached.view);
    let listed = last_listed(board, session);
    for tool in tools.as_array_mut().into_iter().flatten() {
        let server = tool["server"].as_str().unwrap_or_default();
        let at = match server {
            LOCAL_SERVER => Some(jiff::Timestamp::now().as_millisecond()),
            server => listed.get(server).copied().flatten(),
        };
        tool["last_seen_at"] = at.map(rfc3339).into();
    }
    RegistrySnapshot { revision: now.revision, tools, updated_at: rfc3339(now.updated_at_ms) }
}

/// When each server last listed its tools, by the server's name in the session.
fn last_listed(board: &Board, session: &str) -> HashMap<String, Option<i64>> {
    let configured = board.servers().into_iter();
    let configured = configured.map(|(_, status)| (status.name.to_string(), status.listed_at_ms));
    let own = board.attached(session).into_iter();
    // An attached server takes precedence over a configured one of the same name.
    let own = own.map(|(server, status)| (server.name.to_string(), status.listed_at_ms));
    configured.chain(own).collect()
}

fn rfc3339(at_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(at_ms).unwrap_or_default().to_string()
}

/// One step of the revision.
pub fn step(step: &Step) -> RevisionEvent {
    let names = |names: &[Arc<str>]| names.iter().map(ToString::to_string).collect();
    RevisionEvent {
        tools_revision: step.revision,
        cause: step.cause.as_str().into(),
        added: names(&step.difference.added),
        removed: names(&step.difference.removed),
        changed: names(&step.difference.changed),
        at_ms: step.at_ms,
    }
}

/// The response header with the revision of a bare rendering.
pub const REVISION_HEADER: HeaderName = HeaderName::from_static("x-tools-revision");

/// The tools of a session in the format of a provider.
pub fn rendering(
    session: &Session,
    now: &SessionState,
    provider: Provider,
    explain: bool,
    since: Option<u64>,
) -> RenderingView {
    let rendering = now.cached.rendering(provider);
    let cost = rendering.cost();
    let view = &now.cached.view;
    let canonical = |name: &str| {
        let entry = view.reach(name).ok()?;
        Some(entry.shown_name().to_string())
    };
    let explained = || {
        let tools = rendering.tools.iter().zip(&cost.tools);
        tools.map(|(tool, tokens)| rendered_tool(tool, canonical(&tool.name), *tokens)).collect()
    };
    let delta = since.map(|since| {
        let before = session.view_at(since).map(|view| view.rendering(provider));
        let delta = before.map(|before| Delta::between(&before, &rendering));
        delta.and_then(|delta| serde_json::to_value(delta).ok()).unwrap_or_default()
    });
    RenderingView {
        provider: provider.as_str().into(),
        tools_revision: now.revision,
        tools: serde_json::from_slice(&rendering.json()).unwrap_or_default(),
        count: rendering.tools.len(),
        tokens: TokenCost { total: cost.total, basis: token_basis(provider) },
        quarantined: rendering.quarantined.iter().map(not_shown).collect(),
        left_out: rendering.left_out.iter().map(not_shown).collect(),
        explained: explain.then(explained),
        delta,
    }
}

/// How the tokens of a provider are counted.
pub fn token_basis(provider: Provider) -> TokenBasis {
    let basis = provider.basis();
    let precision = serde_json::to_value(basis.precision).unwrap_or_default();
    TokenBasis {
        tokenizer: basis.tokenizer.into(),
        precision: precision.as_str().unwrap_or_default().into(),
        note: basis.note.into(),
    }
}

fn rendered_tool(
    tool: &RenderedTool,
    canonical_name: Option<String>,
    tokens: usize,
) -> RenderedToolView {
    let rewrites = tool.rewrites.iter().map(|rewrite| RewriteView {
        path: rewrite.path.clone(),
        what: rewrite.what.clone(),
        reason: rewrite.reason.into(),
    });
    RenderedToolView {
        name: tool.name.to_string(),
        canonical_name,
        declaration: serde_json::from_str(&tool.json).unwrap_or_default(),
        tokens,
        rewrites: rewrites.collect(),
    }
}

fn not_shown(tool: &NotShown) -> NotShownView {
    NotShownView { name: tool.name.to_string(), reason: tool.reason.clone() }
}
