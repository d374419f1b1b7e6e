//! Converts agents to the types of the API. The CLI uses the same functions when it works without a server.

use serde_json::Value;
use switchboard_agent365::{Framework, FrameworkServer};
use switchboard_api::{
    AgentFrameworkView, AgentLimitsView, AgentList, AgentServerView, AgentSummary, AgentView,
};
use switchboard_model::{AgentLimits, LiveAccess, render_duration};
use switchboard_sessions::{Agent, AgentServer, AgentUser, SessionService};
use url::Url;

/// The profiles that the user may use.
pub fn agents(sessions: &SessionService, user: AgentUser<'_>) -> AgentList {
    let profiles = sessions.agent_profiles(user).into_iter().map(|profile| {
        let (name, description) = (profile.name.clone(), profile.description.clone());
        let servers = sessions.agent_servers(&Agent::Profile(Box::new(profile)), user.access);
        AgentSummary {
            name,
            description,
            tools: servers.iter().map(|server| server.tools).sum(),
            servers: servers.into_iter().map(|server| server.name).collect(),
        }
    });
    AgentList { agents: profiles.collect() }
}

/// One agent with its servers. `base` is the address under which the agent reaches this board.
pub fn agent(
    sessions: &SessionService,
    agent: &Agent,
    access: &LiveAccess,
    base: &Url,
) -> AgentView {
    let (kind, description, limits) = match agent {
        Agent::Profile(profile) => ("profile", profile.description.clone(), profile.limits),
        Agent::Session(session) => {
            ("session", session.now().draft.about.title, AgentLimits::default())
        }
    };
    let name = agent_name(agent);
    let servers = sessions.agent_servers(agent, access).into_iter().map(|server| AgentServerView {
        url: server_url(base, name, &server.name).into(),
        state: server.state.as_str().into(),
        connectivity: connectivity(&server).into(),
        tools: server.tools,
        name: server.name,
    });
    AgentView {
        name: name.to_owned(),
        kind: kind.into(),
        description,
        limits: AgentLimitsView {
            max_concurrent: limits.max_concurrent,
            timeout: limits.timeout.map(render_duration),
            queue_timeout: limits.queue_timeout.map(render_duration),
            max_result_bytes: limits.max_result_bytes,
        },
        platform_endpoint: base.as_str().trim_end_matches('/').into(),
        discovery_url: below(base, &["agents", "v2", name, "mcpServers"]).into(),
        servers: servers.collect(),
    }
}

/// The servers of an agent in the form of a framework.
pub fn agent_framework(view: &AgentView, framework: Framework) -> AgentFrameworkView {
    let servers = view.servers.iter();
    let servers: Vec<_> = servers
        .map(|server| FrameworkServer { name: server.name.clone(), url: server.url.clone() })
        .collect();
    AgentFrameworkView {
        framework: framework.as_str().into(),
        package: framework.package().into(),
        orchestrator_name: framework.orchestrator_name().into(),
        config: Value::Object(framework.config(&servers)),
    }
}

/// The name of the profile, or the id of the session.
pub(crate) fn agent_name(agent: &Agent) -> &str {
    match agent {
        Agent::Profile(profile) => &profile.name,
        Agent::Session(session) => &session.id,
    }
}

/// The word of Microsoft's SDK. A server that is down is `Ready`: the agent can do nothing about it, and its endpoint here
/// answers. `Pending` makes the SDK tell a person to connect an account.
pub(crate) fn connectivity(server: &AgentServer) -> &'static str {
    if server.needs_sign_in { "Pending" } else { "Ready" }
}

/// The MCP endpoint of one server of an agent.
pub(crate) fn server_url(base: &Url, agent: &str, server: &str) -> Url {
    below(base, &["mcp", "agents", agent, "servers", server])
}

/// An address below `base`, with each segment percent-encoded.
fn below(base: &Url, segments: &[&str]) -> Url {
    let mut url = base.clone();
    // An http or https URL always has segments.
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_encoded_and_lie_below_the_public_one() {
        for (base, agent, expected) in [
            ("http://127.0.0.1:8420", "bot", "http://127.0.0.1:8420/mcp/agents/bot/servers/crm"),
            (
                "https://x.example/board/",
                "bot",
                "https://x.example/board/mcp/agents/bot/servers/crm",
            ),
            (
                "https://x.example/board",
                "a b/ü%",
                "https://x.example/board/mcp/agents/a%20b%2F%C3%BC%25/servers/crm",
            ),
        ] {
            let base = Url::parse(base).unwrap();
            assert_eq!(server_url(&base, agent, "crm").as_str(), expected);
        }
    }
}
