//! The tools and servers of each agent profile.

use std::collections::HashSet;
use std::sync::Arc;

use switchboard_model::{AgentPlan, Plan, ServerName, ToolsetPlan};
use switchboard_registry::CatalogTool;
use wildmatch::WildMatch;

use crate::toolset::{Toolset, matches};

/// What one profile of the configuration contains of a catalog.
#[derive(Debug, Clone)]
pub(crate) struct AgentTools {
    pub(crate) name: String,
    /// Whether the profile has the tool, by position. Tools of attached servers lie behind its end: no profile has them.
    has_tool: Vec<bool>,
    /// The servers of its tools that policy permits.
    servers: HashSet<ServerName>,
    /// Configured servers that belong to the profile as a whole, or of which later tools may belong to it.
    expected_servers: HashSet<ServerName>,
}

impl AgentTools {
    /// The profiles of a plan. `is_permitted` is the decision of policy about each of `tools`.
    pub(crate) fn all(
        plan: &Plan,
        tools: &[Arc<CatalogTool>],
        toolsets: &[Toolset],
        is_permitted: &[bool],
    ) -> Arc<[Self]> {
        let of = |agent: &AgentPlan| {
            let mut has_tool = has_tool(agent, tools, toolsets);
            for (flag, is_permitted) in has_tool.iter_mut().zip(is_permitted) {
                *flag &= is_permitted;
            }
            let own = tools.iter().zip(&has_tool).filter(|(_, has)| **has);
            Self {
                name: agent.name.clone(),
                servers: own.map(|(tool, _)| tool.name.server().clone()).collect(),
                expected_servers: expected_servers(agent, plan),
                has_tool,
            }
        };
        plan.agents.iter().map(of).collect()
    }

    pub(crate) fn has(&self, at: usize) -> bool {
        self.has_tool.get(at).copied().unwrap_or_default()
    }

    /// Whether it has a tool of the server.
    pub(crate) fn has_tools_of(&self, server: &ServerName) -> bool {
        self.servers.contains(server)
    }

    /// Whether a server without known tools belongs to the profile.
    pub(crate) fn expects(&self, server: &ServerName) -> bool {
        self.expected_servers.contains(server)
    }
}

fn has_tool(agent: &AgentPlan, tools: &[Arc<CatalogTool>], toolsets: &[Toolset]) -> Vec<bool> {
    let is_whole = agent.servers.is_none() && agent.toolsets.is_none();
    let is_of_server =
        |tool: &Arc<CatalogTool>| is_whole || names_server(agent, tool.name.server());
    let mut has: Vec<bool> = tools.iter().map(is_of_server).collect();
    let sets = agent.toolsets.iter().flatten();
    for set in sets.filter_map(|name| toolsets.iter().find(|set| set.name == *name)) {
        for at in &set.members {
            if let Some(flag) = has.get_mut(*at) {
                *flag = true;
            }
        }
    }
    let allow = agent.allow_tools.as_deref().map(patterns);
    let deny = patterns(&agent.deny_tools);
    for (flag, tool) in has.iter_mut().zip(tools) {
        let is_in = |patterns: &Vec<WildMatch>| patterns.iter().any(|it| matches(it, tool));
        *flag &= allow.as_ref().is_none_or(is_in) && !is_in(&deny);
    }
    has
}

/// The configured servers of a profile, whatever tools they have now. A server that was never reached has none, and
/// belongs to the agent all the same.
fn expected_servers(agent: &AgentPlan, plan: &Plan) -> HashSet<ServerName> {
    let sets = agent.toolsets.iter().flatten();
    let sets: Vec<&ToolsetPlan> =
        sets.filter_map(|name| plan.toolsets.iter().find(|set| set.name == *name)).collect();
    let is_whole = agent.servers.is_none() && agent.toolsets.is_none();
    let has = |server: &&ServerName| {
        let is_in_set = |set: &&ToolsetPlan| {
            set.has_all_of(server) || set.tools.iter().any(|it| may_match(it, server))
        };
        let is_listed = is_whole || names_server(agent, server) || sets.iter().any(is_in_set);
        let allow = agent.allow_tools.as_ref();
        let is_allowed = allow.is_none_or(|all| all.iter().any(|it| may_match(it, server)));
        let is_denied =
            agent.deny_tools.iter().any(|it| *it == "*" || *it == format!("{server}.*"));
        is_listed && is_allowed && !is_denied
    };
    plan.servers.iter().map(|server| &server.spec.name).filter(has).cloned().collect()
}

fn names_server(agent: &AgentPlan, server: &ServerName) -> bool {
    agent.servers.as_ref().is_some_and(|servers| servers.contains(server))
}

fn patterns(texts: &[String]) -> Vec<WildMatch> {
    texts.iter().map(|text| WildMatch::new(text)).collect()
}

/// Whether some tool of the server could match: the pattern begins with the server, with a wildcard, or is a bare name.
fn may_match(pattern: &str, server: &ServerName) -> bool {
    let rest = pattern.strip_prefix(server.as_str());
    rest.is_some_and(|rest| rest.starts_with('.'))
        || pattern.starts_with(['*', '?'])
        || !pattern.contains('.')
}

#[cfg(test)]
#[path = "agent_tools_tests.rs"]
mod tests;
