//! Converts sessions to and from their rows in the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_model::{CanonicalName, Secret, ServerName, ToolStrategy};
use switchboard_store::{SessionSnapshot, StoredSession};
use switchboard_view::{DeclaredTool, Past, Scope, Selection, read_declared, snapshot_tools};

use crate::owner_access::OwnerAccess;
use crate::session::{About, Beginning, Draft, OwnServer, Session, SessionKind, SessionState};
use switchboard_runtime::CachedView;

/// The fields that have no column of their own, stored as JSON.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct KeptState {
    selection: Selection,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    servers: BTreeMap<String, KeptServer>,
    /// Earlier names: exposed name, server, tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retired: Vec<(String, String, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<Scope>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy: Option<ToolStrategy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credential: Option<String>,
    /// The toolsets, as earlier versions of the program stored them.
    #[serde(skip_serializing)]
    enabled: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptServer {
    url: String,
    #[serde(default)]
    sse: bool,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

pub(crate) fn stored(session: &Session, now: &SessionState) -> StoredSession {
    let draft = &now.draft;
    let retired = now.cached.view.past().retired().iter().map(|one| {
        let (server, tool) = (one.tool.server().to_string(), one.tool.tool().to_owned());
        (one.name.to_string(), server, tool)
    });
    let state = KeptState {
        selection: draft.selection.clone(),
        servers: draft.servers.iter().map(|(name, own)| (name.clone(), kept_server(own))).collect(),
        retired: retired.collect(),
        scope: (*session.own_scope != Scope::default()).then(|| Scope::clone(&session.own_scope)),
        strategy: draft.about.strategy,
        credential: draft.about.credential.clone(),
        enabled: Vec::new(),
    };
    StoredSession {
        id: session.id.to_string(),
        kind: session.kind.as_str().into(),
        owner: session.owner.to_string(),
        title: draft.about.title.clone(),
        provider: draft.about.provider.clone(),
        model: draft.about.model.clone(),
        state: serde_json::to_string(&state).unwrap_or_default(),
        tools_revision: now.revision,
        snapshot: Some(now.cached.digest().to_owned()),
        created_at_ms: session.created_at_ms,
        updated_at_ms: now.updated_at_ms,
        version: now.version,
    }
}

pub(crate) fn snapshot(cached: &CachedView) -> SessionSnapshot {
    let tools = snapshot_tools(&cached.view).to_string();
    SessionSnapshot { digest: cached.digest().to_owned(), tools }
}

/// The stored fields of a session that a change can modify.
pub(crate) fn draft_of(stored: &StoredSession) -> Draft {
    let state: KeptState = serde_json::from_str(&stored.state).unwrap_or_default();
    draft(stored, state).0
}

fn draft(stored: &StoredSession, state: KeptState) -> (Draft, Vec<DeclaredTool>, Scope) {
    let mut selection = state.selection;
    selection.toolsets.extend(state.enabled.into_iter().map(|set| (set, true)));
    let servers: BTreeMap<_, _> =
        state.servers.into_iter().map(|(name, kept)| (name, own_server(kept))).collect();
    if !servers.is_empty() {
        selection.owner = Some(stored.id.as_str().into());
    }
    let retired = state.retired.into_iter().map(|(name, server, tool)| DeclaredTool {
        name: name.into(),
        tool: CanonicalName::new(&ServerName::new(server), &tool),
    });
    let about = About {
        title: stored.title.clone(),
        provider: stored.provider.clone(),
        model: stored.model.clone(),
        credential: state.credential,
        strategy: state.strategy,
    };
    (Draft { about, selection, servers }, retired.collect(), state.scope.unwrap_or_default())
}

/// The initial state of a stored session, with the tools that it saw last.
pub(crate) fn revived(
    stored: &StoredSession,
    tools: Option<&str>,
    owners: Arc<OwnerAccess>,
) -> Beginning {
    let state: KeptState = serde_json::from_str(&stored.state).unwrap_or_default();
    let (draft, retired, scope) = draft(stored, state);
    let tools: Value = tools.and_then(|tools| serde_json::from_str(tools).ok()).unwrap_or_default();
    let declared = read_declared(&tools);
    // New sessions share one empty `Past`, so that they can share cached views.
    let is_new = declared.is_empty() && retired.is_empty();
    let past = if is_new { Past::default() } else { Past::new(declared, retired) };
    Beginning {
        id: stored.id.as_str().into(),
        kind: SessionKind::read(&stored.kind),
        owner: stored.owner.as_str().into(),
        scope: Arc::new(scope),
        owners,
        draft,
        past: Arc::new(past),
        revision: stored.tools_revision.max(1),
        created_at_ms: stored.created_at_ms,
        updated_at_ms: stored.updated_at_ms,
        version: stored.version,
    }
}

fn kept_server(own: &OwnServer) -> KeptServer {
    let headers = own.headers.iter();
    KeptServer {
        url: own.url.clone(),
        sse: own.is_sse,
        headers: headers.map(|(name, value)| (name.clone(), value.expose().to_owned())).collect(),
    }
}

fn own_server(kept: KeptServer) -> OwnServer {
    let headers = kept.headers.into_iter();
    OwnServer {
        url: kept.url,
        is_sse: kept.sse,
        headers: headers.map(|(name, value)| (name, Secret::new(value))).collect(),
    }
}
