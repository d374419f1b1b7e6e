//! Validates the `agents` section.

use serde_json::Value as Json;
use switchboard_model::{AgentLimits, AgentPlan, ServerName};

use super::names::Names;
use super::toolset::{Member, Toolsets, may_discover, server_names};
use super::{At, Planner, entries};
use crate::raw_agent::{RawAgent, RawAgentLimits};

impl Planner<'_> {
    pub(super) fn agents(
        &mut self,
        config: &At<'_>,
        sound: &Json,
        members: &[Member],
        sets: &Toolsets,
    ) -> Vec<AgentPlan> {
        let written = entries::<RawAgent>(config, "agents", sound);
        self.refuse_duplicates(&written, "agents", |raw| raw.name.as_deref());
        let servers = server_names(members, may_discover(config));
        let agents = written.into_iter();
        agents.filter_map(|(at, raw)| self.agent(&at, raw, &servers, &sets.names)).collect()
    }

    fn agent(
        &mut self,
        at: &At<'_>,
        raw: RawAgent,
        servers: &Names,
        sets: &Names,
    ) -> Option<AgentPlan> {
        self.refuse_unknown(at, "servers", servers);
        self.refuse_unknown(at, "toolsets", sets);
        if let Some(tools) = at.get("tools") {
            for key in ["allow", "deny"] {
                self.check_patterns(&tools, key, servers);
            }
        }
        for item in at.items("keys") {
            if item.text().is_some_and(|key| key.trim().is_empty()) {
                self.refuse(&item, "names no key", "`switchboard key list` shows the names");
            }
        }
        let tools = raw.tools.unwrap_or_default();
        let limits = raw.limits.unwrap_or_default();
        let limits = at.get("limits").map(|at| self.agent_limits(&at, limits));
        let names = |names: Vec<String>| names.into_iter().map(ServerName::new).collect();
        Some(AgentPlan {
            name: raw.name?,
            description: raw.description,
            servers: raw.servers.map(names),
            toolsets: raw.toolsets,
            allow_tools: tools.allow,
            deny_tools: tools.deny.unwrap_or_default(),
            limits: limits.unwrap_or_default(),
            keys: raw.keys,
        })
    }

    fn agent_limits(&mut self, at: &At<'_>, raw: RawAgentLimits) -> AgentLimits {
        AgentLimits {
            max_concurrent: raw.max_concurrent,
            timeout: self.duration(at, "timeout", raw.timeout),
            queue_timeout: self.duration(at, "queue_timeout", raw.queue_timeout),
            max_result_bytes: raw.max_result_bytes,
        }
    }
}
