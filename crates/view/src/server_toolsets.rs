//! Which toolsets contain a server as a whole, and whether policy permits it.
//!
//! The prompts and resources of a server are visible where its tools are. This module decides for servers without
//! tools, by the same rules, and decides which servers may be named to clients.

use std::collections::HashMap;

use crate::scope::Scope;
use crate::view::View;
use switchboard_model::{
    Exposure, ExposureMode, GatewayPlan, NO_TOOLSET, Plan, ServerName, ServerPlan,
};

/// The decision of the policy about a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    Permitted,
    /// The server itself is not permitted, but an allowed toolset has patterns that a later tool of the server could
    /// match.
    ByPattern,
    Denied,
}

/// One server.
#[derive(Debug, PartialEq, Eq)]
struct ServerPolicy {
    /// The permitted toolsets that contain the server.
    sets: Vec<String>,
    policy: Policy,
}

/// All configured servers.
#[derive(Debug)]
pub struct ServerToolsets(HashMap<ServerName, ServerPolicy>);

impl ServerToolsets {
    pub fn new(plan: &Plan) -> Self {
        let standings = plan.servers.iter().map(|server| {
            let sets = sets_of(server, plan);
            (server.spec.name.clone(), ServerPolicy::new(sets, plan))
        });
        Self(standings.collect())
    }

    /// Whether clients may learn that a server without tools exists: whether something of it is visible now or can
    /// become so.
    pub fn may_be_named(&self, server: &ServerName) -> bool {
        self.0.get(server).is_some_and(|standing| standing.policy != Policy::Denied)
    }

    /// Whether a server without tools belongs to a view: whether the view would show a tool that is in exactly the
    /// server's toolsets.
    pub fn shows(
        &self,
        server: &ServerName,
        view: &View,
        scope: &Scope,
        exposure: &Exposure,
    ) -> bool {
        let Some(ServerPolicy { sets, policy: Policy::Permitted }) = self.0.get(server) else {
            return false;
        };
        let has_set = |names: &Vec<String>| names.iter().any(|name| sets.contains(name));
        let statics = (exposure.mode == ExposureMode::Static).then_some(&exposure.tool_sets);
        let selection = view.selection();
        let switched =
            |is_on: bool| sets.iter().any(|set| selection.toolsets.get(set) == Some(&is_on));
        // Restrictions to named tools or to read-only tools exclude a server without tools.
        let has_agent = |agent: &String| view.index().agent_has_server(agent, server);
        scope.tools.is_empty()
            && !scope.read_only
            && scope.agent.as_ref().is_none_or(has_agent)
            && scope.access.iter().all(|rules| view.index().grants_server(rules, server))
            && scope.server.as_deref().is_none_or(|only| only == server.as_str())
            && selection.servers.as_ref().is_none_or(|bound| bound.contains(server.as_str()))
            && scope.toolsets.iter().all(has_set)
            && statics.is_none_or(has_set)
            && (switched(true) || (view.mode() != ExposureMode::Dynamic && !switched(false)))
    }
}

impl ServerPolicy {
    fn new(mut sets: Vec<String>, plan: &Plan) -> Self {
        let GatewayPlan { allow_toolsets, deny_toolsets, .. } = &plan.gateway;
        if sets.iter().any(|set| deny_toolsets.contains(set)) {
            return Self { sets: Vec::new(), policy: Policy::Denied };
        }
        let Some(allowed) = allow_toolsets else {
            return Self { sets, policy: Policy::Permitted };
        };
        sets.retain(|set| allowed.contains(set));
        let mut by_pattern = plan.toolsets.iter().filter(|set| allowed.contains(&set.name));
        let policy = if !sets.is_empty() {
            Policy::Permitted
        } else if by_pattern.any(|set| !set.tools.is_empty()) {
            Policy::ByPattern
        } else {
            Policy::Denied
        };
        Self { sets, policy }
    }
}

/// The server's own toolset, those that name it, and those with a pattern that matches all its tools.
fn sets_of(server: &ServerPlan, plan: &Plan) -> Vec<String> {
    let name = &server.spec.name;
    let own = server.toolset.clone().unwrap_or_else(|| name.to_string());
    let others = plan.toolsets.iter().filter(|set| set.name != own && set.has_all_of(name));
    let others: Vec<_> = others.map(|set| set.name.clone()).collect();
    let own = Some(own).filter(|own| own != NO_TOOLSET);
    own.into_iter().chain(others).collect()
}

#[cfg(test)]
#[path = "server_toolsets_tests.rs"]
mod tests;
