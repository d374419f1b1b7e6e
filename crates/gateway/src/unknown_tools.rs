//! Calls of tools that nobody knows: the servers that may have them list their tools once more.

use std::sync::Arc;

use switchboard_model::{Naming, ServerName};
use switchboard_sessions::{Look, Session};
use switchboard_view::{Found, Scope, View, sanitized};

use crate::gateway::Gateway;

impl Gateway {
    /// What somebody sees who calls a tool of this name; where it is not there, what is seen after the servers that may
    /// have it were asked again. What policy hides is answered like a tool that never was, and takes as long.
    pub(crate) async fn look_for_call(
        &self,
        scope: &Arc<Scope>,
        session: Option<&Arc<Session>>,
        name: &str,
    ) -> Arc<Look> {
        let look = self.look_of(scope, session);
        match look.view.find(name) {
            Found::Unknown { .. } => {
                Box::pin(self.look_again_for(scope, session, look, name)).await
            }
            Found::Tool(_) | Found::Meta(_) | Found::Disabled { .. } => look,
        }
    }

    /// The same for a name that a meta-tool is given, exposed or canonical.
    pub(crate) async fn look_for_reach(
        &self,
        scope: &Arc<Scope>,
        session: Option<&Arc<Session>>,
        name: &str,
    ) -> Arc<Look> {
        let look = self.look_of(scope, session);
        if look.view.reach(name).is_ok() {
            return look;
        }
        Box::pin(self.look_again_for(scope, session, look, name)).await
    }

    async fn look_again_for(
        &self,
        scope: &Arc<Scope>,
        session: Option<&Arc<Session>>,
        look: Arc<Look>,
        name: &str,
    ) -> Arc<Look> {
        let servers = self.servers_that_may_have(&look.view, scope, name);
        if servers.is_empty() || !self.board.list_again(&servers).await {
            return look;
        }
        self.look_of(scope, session)
    }

    /// Servers that this view reaches and whose tools are named like this.
    fn servers_that_may_have(&self, view: &View, scope: &Scope, name: &str) -> Vec<ServerName> {
        let front = self.current();
        let begins = |server: &ServerName, separator: &str| {
            let rest = name
                .strip_prefix(server.as_str())
                .or_else(|| name.strip_prefix(sanitized(server.as_str()).as_str()));
            rest.is_some_and(|rest| rest.starts_with(separator))
        };
        let is_named = |server: &ServerName| match front.index().naming() {
            Naming::Prefixed => begins(server, "__") || begins(server, "."),
            Naming::Bare => true,
        };
        let known = front.stage.servers.iter().map(|server| ServerName::new(server.as_str()));
        let seen =
            known.filter(|server| view.reaches_server(server) || front.serves(view, scope, server));
        seen.filter(is_named).collect()
    }
}
