//! Agents: a profile of the configuration, or a session, as the part of the board that one agent uses.

use std::collections::HashMap;
use std::sync::Arc;

use switchboard_model::{AgentPlan, ConnectErrorKind, LiveAccess, Role, ServerName, ServerState};
use switchboard_runtime::ServerStatus;
use switchboard_view::Scope;

use crate::error::SessionError;
use crate::service::SessionService;
use crate::session::Session;

/// An agent that its user may use.
#[derive(Debug, Clone)]
pub enum Agent {
    /// An entry of `agents` in the configuration.
    Profile(Box<AgentPlan>),
    /// A session of the user.
    Session(Arc<Session>),
}

/// The credentials behind a request about an agent.
#[derive(Debug, Clone, Copy)]
pub struct AgentUser<'a> {
    /// The principal, such as `key:<id>`.
    pub principal: &'a str,
    /// The name of the principal, if it has one.
    pub name: Option<&'a str>,
    /// The role of the principal.
    pub role: Role,
    /// What the principal may use.
    pub access: &'a LiveAccess,
}

/// A server that an agent may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentServer {
    /// The name as the agent sees it: for a server that a session attached, the session's own name for it.
    pub name: String,
    /// `ready`, `connecting` or `unavailable`.
    pub state: ServerState,
    /// Whether a person must sign in before the server can be used.
    pub needs_sign_in: bool,
    /// The number of tools that the agent is shown.
    pub tools: usize,
}

impl Agent {
    /// The scope of the agent at the endpoint of one of its servers, or at all of them.
    pub fn scope(&self, server: Option<&str>) -> Scope {
        let server = server.map(str::to_owned);
        match self {
            Self::Profile(profile) => {
                Scope { agent: Some(profile.name.clone()), server, ..Scope::default() }
            }
            Self::Session(session) => {
                let scope = Scope::clone(&session.own_scope);
                Scope { server: server.or(scope.server), ..scope }
            }
        }
    }

    /// The session that the agent is.
    pub fn session(&self) -> Option<&Arc<Session>> {
        match self {
            Self::Profile(_) => None,
            Self::Session(session) => Some(session),
        }
    }
}

impl SessionService {
    /// The agent of this name: a profile that the user may use, else a session of the user. [`SessionError::Unknown`] if
    /// there is neither, or if the user may not use it.
    pub async fn agent(&self, name: &str, user: AgentUser<'_>) -> Result<Agent, SessionError> {
        if let Some(profile) = self.agent_profile(name, user) {
            return Ok(Agent::Profile(Box::new(profile)));
        }
        Box::pin(self.session(name, Some(user.principal))).await.map(Agent::Session)
    }

    /// The profile of this name, if the user may use it.
    pub fn agent_profile(&self, name: &str, user: AgentUser<'_>) -> Option<AgentPlan> {
        let snapshot = self.board.snapshot();
        let profile = snapshot.plan().agent(name)?;
        profile.admits(user.principal, user.name, user.role).then(|| profile.clone())
    }

    /// The profiles that the user may use, in the order of the configuration.
    pub fn agent_profiles(&self, user: AgentUser<'_>) -> Vec<AgentPlan> {
        let snapshot = self.board.snapshot();
        let may_use = |profile: &&AgentPlan| profile.admits(user.principal, user.name, user.role);
        snapshot.plan().agents.iter().filter(may_use).cloned().collect()
    }

    /// The servers of an agent: those of the configuration in its order, the built-in tools, then those that its session
    /// attached. A server that is down is one of them; a server of which policy or `access` hides everything is not.
    pub fn agent_servers(&self, agent: &Agent, access: &LiveAccess) -> Vec<AgentServer> {
        let session = agent.session();
        let scope = self.scope_for(&Arc::new(agent.scope(None)), session, access);
        let (snapshot, cached) = self.snapshot_and_view(&scope, session);
        let view = &cached.view;
        let mut tools: HashMap<&ServerName, usize> = HashMap::new();
        for entry in view.tools() {
            *tools.entry(entry.tool.name.server()).or_default() += 1;
        }
        let statuses = self.board.servers();
        let statuses: HashMap<&ServerName, &ServerStatus> =
            statuses.iter().map(|(_, status)| (&status.name, status)).collect();
        let has = |server: &ServerName| {
            view.reaches_server(server) || snapshot.serves(view, &scope, server)
        };
        let count = |server: &ServerName| tools.get(server).copied().unwrap_or_default();
        let configured = snapshot.known_servers().iter().map(|name| ServerName::new(name.as_str()));
        let configured = configured.filter(|server| has(server)).map(|server| {
            listed(server.to_string(), statuses.get(&server).copied(), count(&server))
        });
        let local = Some(ServerName::local()).filter(|local| view.reaches_server(local));
        let local = local.map(|local| AgentServer {
            name: local.to_string(),
            state: ServerState::Ready,
            needs_sign_in: false,
            tools: count(&local),
        });
        let attached = session.map(|session| self.board.attached(&session.id)).unwrap_or_default();
        let attached = attached.into_iter().map(|(spec, status)| {
            listed(spec.name.to_string(), Some(&status), count(&status.name))
        });
        configured.chain(local).chain(attached).collect()
    }
}

fn listed(name: String, status: Option<&ServerStatus>, tools: usize) -> AgentServer {
    let error = status.and_then(|status| status.error.as_ref());
    AgentServer {
        name,
        state: status.map_or(ServerState::Unavailable, |status| status.state),
        needs_sign_in: error.is_some_and(|error| error.kind == ConnectErrorKind::SignIn),
        tools,
    }
}
