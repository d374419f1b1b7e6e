//! Calls of unknown tools: the servers that may have them list their tools again.

use std::sync::Arc;

use switchboard_model::{Naming, ServerName};
use switchboard_runtime::CachedView;
use switchboard_view::{Found, Scope, View, sanitized};

use crate::service::SessionService;
use crate::session::Session;

impl SessionService {
    /// The view of a caller that names this tool, by its exposed or canonical name. Where the tool is not there, the
    /// servers that may have it list their tools again first. A tool that policy hides is answered like one that does
    /// not exist, and takes as long.
    pub async fn view_with(
        &self,
        scope: &Arc<Scope>,
        session: Option<&Arc<Session>>,
        name: &str,
    ) -> Arc<CachedView> {
        let view = self.view_of(scope, session);
        let is_known =
            !matches!(view.view.find(name), Found::Unknown { .. }) || view.view.reach(name).is_ok();
        if is_known {
            return view;
        }
        Box::pin(self.listed_again(scope, session, view, name)).await
    }

    async fn listed_again(
        &self,
        scope: &Arc<Scope>,
        session: Option<&Arc<Session>>,
        view: Arc<CachedView>,
        name: &str,
    ) -> Arc<CachedView> {
        let servers = self.servers_that_may_have(&view.view, scope, name);
        if servers.is_empty() || !self.board.list_again(&servers).await {
            return view;
        }
        self.view_of(scope, session)
    }

    /// Servers that this view reaches and whose tools are named like this.
    fn servers_that_may_have(&self, view: &View, scope: &Scope, name: &str) -> Vec<ServerName> {
        let snapshot = self.board.snapshot();
        let begins = |server: &ServerName, separator: &str| {
            let rest = name
                .strip_prefix(server.as_str())
                .or_else(|| name.strip_prefix(sanitized(server.as_str()).as_str()));
            rest.is_some_and(|rest| rest.starts_with(separator))
        };
        let is_named = |server: &ServerName| match snapshot.index().naming() {
            Naming::Prefixed => begins(server, "__") || begins(server, "."),
            Naming::Bare => true,
        };
        let known = snapshot.known_servers().iter().map(|server| ServerName::new(server.as_str()));
        let seen = known
            .filter(|server| view.reaches_server(server) || snapshot.serves(view, scope, server));
        seen.filter(is_named).collect()
    }
}
