//! Calls of unknown tools: the servers that may have the tool list their tools again before the call is refused.
//!
//! MCP clients, calls in sessions and the HTTP API share this. A tool that policy hides gets the same response as one that
//! does not exist, after the same time.

use std::sync::Arc;

use switchboard_model::{LiveAccess, Naming, ServerName};
use switchboard_runtime::{CachedView, Snapshot};
use switchboard_view::{Found, Scope, View, sanitized};

use crate::service::SessionService;
use crate::session::Session;

/// The tools among which the HTTP API looks up a name.
#[derive(Debug, Clone, Copy)]
pub enum ApiTools<'a> {
    /// The tools that policy shows to clients, and that this access grants.
    Permitted(&'a LiveAccess),
    /// The whole catalog, for operators.
    All,
}

impl SessionService {
    /// The view of a caller that names a tool. If `is_known` does not find the tool in it, the servers that may have the
    /// tool list their tools again first.
    pub async fn view_with(
        &self,
        scope: &Arc<Scope>,
        session: Option<&Arc<Session>>,
        name: &str,
        is_known: impl Fn(&View) -> bool,
    ) -> Arc<CachedView> {
        self.snapshot_and_view_with(scope, session, name, is_known).await.1
    }

    /// Like [`Self::view_with`], together with the snapshot that the view was computed from.
    pub async fn snapshot_and_view_with(
        &self,
        scope: &Arc<Scope>,
        session: Option<&Arc<Session>>,
        name: &str,
        is_known: impl Fn(&View) -> bool,
    ) -> (Arc<Snapshot>, Arc<CachedView>) {
        let (mut snapshot, mut cached) = self.snapshot_and_view(scope, session);
        let is_callable = matches!(cached.view.find(name), Found::Tool(_));
        if let Some(session) = session.filter(|_| !is_callable && self.board.store().is_shared()) {
            // Nothing is refused, and no meta-tool is answered, before the session is compared with the store. One that
            // has ended refuses by what it saw last.
            let _ended = self.newest(session).await;
            (snapshot, cached) = self.snapshot_and_view(scope, Some(session));
        }
        if is_known(&cached.view) {
            return (snapshot, cached);
        }
        // Boxed: rarely needed, and otherwise part of the future of every call.
        Box::pin(async {
            let servers = self.servers_that_may_have(&cached.view, scope, session, name);
            let session_id = session.map(|session| &*session.id);
            if servers.is_empty() || !self.board.list_again(session_id, &servers).await {
                return (snapshot, cached);
            }
            self.snapshot_and_view(scope, session)
        })
        .await
    }

    /// Whether the HTTP API has a tool of this canonical or bare name. If it is unknown, configured servers that may have
    /// it list their tools again first.
    pub async fn finds_for_api(&self, name: &str, among: ApiTools<'_>) -> bool {
        let is_there = || match among {
            ApiTools::Permitted(access) => self.permits(name, access),
            ApiTools::All => self.board.snapshot().catalog().resolve(name).is_ok(),
        };
        if is_there() {
            return true;
        }
        let snapshot = self.board.snapshot();
        let servers: Vec<_> = match among {
            ApiTools::Permitted(access) => known_servers(&snapshot)
                .filter(|server| self.may_permit_server(server.as_str(), access))
                .collect(),
            ApiTools::All => {
                let plan = self.board.plan();
                plan.servers.iter().map(|server| server.spec.name.clone()).collect()
            }
        };
        let servers: Vec<_> =
            servers.into_iter().filter(|server| may_be_of(&snapshot, server, name)).collect();
        !servers.is_empty() && self.board.list_again(None, &servers).await && is_there()
    }

    /// The servers in this view whose tools could have this name: configured ones, and those that the session attached.
    fn servers_that_may_have(
        &self,
        view: &View,
        scope: &Scope,
        session: Option<&Arc<Session>>,
        name: &str,
    ) -> Vec<ServerName> {
        let snapshot = self.board.snapshot();
        let shared = known_servers(&snapshot)
            .filter(|server| view.reaches_server(server) || snapshot.serves(view, scope, server))
            .filter(|server| may_be_of(&snapshot, server, name));
        let own = session.map(|session| self.board.attached(&session.id)).unwrap_or_default();
        // A restricted scope reaches an attached server only through its known tools.
        let is_open = *scope == Scope::default();
        let own = own
            .into_iter()
            .filter(|(spec, _)| may_be_of(&snapshot, &spec.name, name))
            .map(|(_, status)| status.name)
            .filter(|server| is_open || view.reaches_server(server));
        shared.chain(own).collect()
    }
}

/// Whether the view lists a tool of this name, or could enable it.
pub fn is_listed(view: &View, name: &str) -> bool {
    !matches!(view.find(name), Found::Unknown { .. })
}

/// The configured servers that policy does not hide completely.
fn known_servers(snapshot: &Snapshot) -> impl Iterator<Item = ServerName> {
    snapshot.known_servers().iter().map(|server| ServerName::new(server.as_str()))
}

/// Whether a tool of this server may have this exposed or canonical name.
fn may_be_of(snapshot: &Snapshot, server: &ServerName, name: &str) -> bool {
    let begins = |separator: &str| {
        let rest = name
            .strip_prefix(server.as_str())
            .or_else(|| name.strip_prefix(sanitized(server.as_str()).as_str()));
        rest.is_some_and(|rest| rest.starts_with(separator))
    };
    match snapshot.index().naming() {
        Naming::Prefixed => begins("__") || begins("."),
        Naming::Bare => true,
    }
}
