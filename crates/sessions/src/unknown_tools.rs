//! Calls of tools that are in no list: the servers that may have them list their tools once more.
//!
//! MCP clients, calls in sessions and the HTTP API share this. What policy hides is answered like a tool that does not
//! exist, and takes as long.

use std::sync::Arc;

use switchboard_model::{Naming, ServerName};
use switchboard_runtime::{CachedView, Snapshot};
use switchboard_view::{Found, Scope, View, sanitized};

use crate::service::SessionService;
use crate::session::Session;

/// The tools among which the HTTP API looks up a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiTools {
    /// Those that policy shows to clients.
    Permitted,
    /// All of the catalog, for operators.
    All,
}

impl SessionService {
    /// What a caller sees who names a tool. Where `is_known` does not find the tool in it, what the caller sees after
    /// the servers that may have the tool have listed their tools once more.
    pub async fn view_with(
        &self,
        scope: &Arc<Scope>,
        session: Option<&Arc<Session>>,
        name: &str,
        is_known: impl Fn(&View) -> bool,
    ) -> Arc<CachedView> {
        let cached = self.view_of(scope, session);
        if is_known(&cached.view) {
            return cached;
        }
        // Boxed: it is rare, and every call has room for it.
        Box::pin(async {
            let servers = self.servers_that_may_have(&cached.view, scope, session, name);
            let session_id = session.map(|session| &*session.id);
            if servers.is_empty() || !self.board.list_again(session_id, &servers).await {
                return cached;
            }
            self.view_of(scope, session)
        })
        .await
    }

    /// Whether the HTTP API has a tool of this canonical or bare name. Where it is not known, the configured servers that
    /// may have it list their tools once more before this is answered.
    pub async fn finds_for_api(&self, name: &str, among: ApiTools) -> bool {
        let is_there = || match among {
            ApiTools::Permitted => self.permits(name),
            ApiTools::All => self.board.snapshot().catalog().resolve(name).is_ok(),
        };
        if is_there() {
            return true;
        }
        let snapshot = self.board.snapshot();
        let servers: Vec<_> = match among {
            ApiTools::Permitted => known_servers(&snapshot).collect(),
            ApiTools::All => {
                let plan = self.board.plan();
                plan.servers.iter().map(|server| server.spec.name.clone()).collect()
            }
        };
        let servers: Vec<_> =
            servers.into_iter().filter(|server| may_be_of(&snapshot, server, name)).collect();
        !servers.is_empty() && self.board.list_again(None, &servers).await && is_there()
    }

    /// Servers that this view reaches and whose tools are named like this: configured ones, and those of the session.
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
        // A scope that chooses servers or toolsets chooses among those that have tools.
        let is_open = *scope == Scope::default();
        let own = own
            .into_iter()
            .filter(|(spec, _)| may_be_of(&snapshot, &spec.name, name))
            .map(|(_, status)| status.name)
            .filter(|server| is_open || view.reaches_server(server));
        shared.chain(own).collect()
    }
}

/// Whether a client lists a tool of this name, or could switch it on.
pub fn is_listed(view: &View, name: &str) -> bool {
    !matches!(view.find(name), Found::Unknown { .. })
}

/// The configured servers of which policy leaves something.
fn known_servers(snapshot: &Snapshot) -> impl Iterator<Item = ServerName> {
    snapshot.known_servers().iter().map(|server| ServerName::new(server.as_str()))
}

/// Whether a tool of this server may have this name, exposed or canonical.
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
