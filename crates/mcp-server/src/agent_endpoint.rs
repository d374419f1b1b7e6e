//! The endpoint of one server of an agent: what the profile or the session of the agent leaves of it.

use std::sync::Arc;

use http::StatusCode;
use switchboard_auth::Principal;
use switchboard_sessions::{Agent, AgentUser, Session, SessionError};
use switchboard_view::{Scope, ScopeFault};

use crate::client::Client;
use crate::gateway::Gateway;
use crate::http_answer::Refused;
use crate::http_request::HttpRequest;
use crate::http_scope::{check_scope, read_scope};

impl Gateway {
    /// The scope of a request to the endpoint of an agent, and the session that the agent is, if it is one.
    pub(crate) async fn agent_scope(
        &self,
        request: &HttpRequest,
        agent: &str,
        server: &str,
    ) -> Result<(Arc<Scope>, Option<Arc<Session>>), Refused> {
        let missing = |fault: ScopeFault| Refused(StatusCode::NOT_FOUND, fault.to_string());
        self.service.note_access(&request.principal.id, &request.principal.access);
        let found = self.service.agent(agent, user(&request.principal)).await;
        let found = found.map_err(|error| {
            if matches!(error, SessionError::Store(_)) {
                return Refused(StatusCode::SERVICE_UNAVAILABLE, error.to_string());
            }
            // A session that belongs to another owner is answered like one that does not exist.
            missing(ScopeFault::UnknownAgent(agent.to_owned()))
        })?;
        let asked = read_scope(request)?;
        let scope = Arc::new(narrowed(found.scope(Some(server)), asked));
        let access = &request.principal.access;
        let granted = self.service.scope_for(&scope, found.session(), access);
        match &found {
            Agent::Profile(_) => check_scope(&self.board.snapshot(), request, &granted)?,
            Agent::Session(_) => {
                // The servers that the session attached are known to it alone.
                let servers = self.service.agent_servers(&found, access);
                if !servers.iter().any(|known| known.name == server) {
                    return Err(missing(ScopeFault::UnknownServer(server.to_owned())));
                }
                let sets = Scope { server: None, ..Scope::clone(&granted) };
                check_scope(&self.board.snapshot(), request, &sets)?;
            }
        }
        Ok((scope, found.session().cloned()))
    }

    /// Whether the principal may no longer use the profile that its client began with. A profile that is gone denies
    /// nothing: its clients see no tools until it is back.
    pub(crate) fn is_denied_agent(&self, client: &Client, principal: &Principal) -> bool {
        let Some(agent) = &client.scope.agent else { return false };
        let snapshot = self.board.snapshot();
        let user = user(principal);
        let profile = snapshot.plan().agent(agent);
        profile.is_some_and(|profile| !profile.admits(user.principal, user.name, user.role))
    }
}

/// The scope of the agent, further narrowed by the query and the headers of a request.
fn narrowed(mut agent: Scope, asked: Scope) -> Scope {
    agent.toolsets.extend(asked.toolsets);
    agent.tools.extend(asked.tools);
    agent.read_only |= asked.read_only;
    agent.dynamic |= asked.dynamic;
    for lists in [&mut agent.toolsets, &mut agent.tools] {
        lists.sort_unstable();
        lists.dedup();
    }
    agent
}

fn user(principal: &Principal) -> AgentUser<'_> {
    AgentUser {
        principal: &principal.id,
        name: principal.name.as_deref(),
        role: principal.effective_role(),
        access: &principal.access,
    }
}
