//! Agent profiles: the part of the board that one agent may use.

use std::time::Duration;

use crate::{Role, ServerName, ToolLimits};

/// One entry of `agents`: which servers and tools an agent may use, within which limits, and with which API keys.
///
/// A profile only narrows: what policy hides from clients stays hidden, whatever the profile lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentPlan {
    /// The agent id of discovery requests, and a segment of the URLs of its endpoints.
    pub name: String,
    /// For people who list the agents.
    pub description: Option<String>,
    /// Servers whose tools all belong to the agent. Without `servers` and `toolsets` every tool does.
    pub servers: Option<Vec<ServerName>>,
    /// Toolsets whose tools belong to the agent, in addition to `servers`.
    pub toolsets: Option<Vec<String>>,
    /// If set, only tools that match one of these patterns: `tool` or `server.tool`, with `*` and `?`.
    pub allow_tools: Option<Vec<String>>,
    /// Tools that match one of these patterns do not belong to the agent, even if `allow_tools` matches.
    pub deny_tools: Vec<String>,
    /// Limits of its calls, beside those of the tools.
    pub limits: AgentLimits,
    /// The names or ids of the API keys, or whole principals, that may use the profile; `None` means everyone.
    pub keys: Option<Vec<String>>,
}

/// Limits of an agent's calls. They apply in addition to the limits of each tool: the narrower one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AgentLimits {
    /// Maximum number of calls of the agent that run at the same time, over all its clients and tools.
    pub max_concurrent: Option<u32>,
    /// The longest duration of one call, whatever progress it reports.
    pub timeout: Option<Duration>,
    /// How long a call may wait for its slots.
    pub queue_timeout: Option<Duration>,
    /// The largest result that is returned inline.
    pub max_result_bytes: Option<u64>,
}

impl AgentPlan {
    /// Whether a principal may use the profile. Operators and administrators may use every profile.
    pub fn admits(&self, principal: &str, name: Option<&str>, role: Role) -> bool {
        let Some(keys) = &self.keys else { return true };
        // Only a key has a name that this installation gave it: the name in a token is a claim of its issuer.
        let key = principal.strip_prefix("key:");
        let is_it = |listed: &String| {
            listed == principal
                || key.is_some_and(|id| listed == id || Some(listed.as_str()) == name)
        };
        role >= Role::Operator || keys.iter().any(is_it)
    }
}

impl AgentLimits {
    /// The limits of a tool when this agent calls it; `None` if they are the tool's own.
    pub fn narrow(&self, tool: &ToolLimits) -> Option<ToolLimits> {
        let least =
            |own: Duration, agent: Option<Duration>| agent.map_or(own, |most| own.min(most));
        let narrowed = ToolLimits {
            timeout: least(tool.timeout, self.timeout),
            max_timeout: least(tool.max_timeout, self.timeout),
            queue_timeout: least(tool.queue_timeout, self.queue_timeout),
            max_result_bytes: tool.max_result_bytes.min(self.max_result_bytes.unwrap_or(u64::MAX)),
            ..*tool
        };
        (narrowed != *tool).then_some(narrowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BUILT_IN_LIMITS;

    #[test]
    fn a_profile_with_keys_admits_those_keys_and_operators() {
        let keys = ["bot", "0123456789abcdef", "jwt:https://issuer|app|user"];
        let agent =
            AgentPlan { keys: Some(keys.map(str::to_owned).to_vec()), ..AgentPlan::default() };
        let open = AgentPlan::default();
        for (principal, name, role, expected) in [
            ("key:ffff", Some("bot"), Role::Client, true),
            ("key:0123456789abcdef", Some("other"), Role::Client, true),
            ("key:ffff", Some("other"), Role::Client, false),
            ("key:ffff", None, Role::Client, false),
            ("key:ffff", Some("other"), Role::Operator, true),
            ("jwt:https://issuer|app|user", None, Role::Client, true),
            ("jwt:https://issuer|app|thief", Some("bot"), Role::Client, false),
            ("local", None, Role::Admin, true),
        ] {
            assert_eq!(agent.admits(principal, name, role), expected, "{principal} {name:?}");
            assert!(open.admits(principal, name, role), "{principal} {name:?}");
        }
        let nobody = AgentPlan { keys: Some(Vec::new()), ..AgentPlan::default() };
        assert!(!nobody.admits("key:ffff", Some("bot"), Role::Client));
    }

    #[test]
    fn the_narrower_limit_counts() {
        let second = Duration::from_secs(1);
        assert_eq!(AgentLimits::default().narrow(&BUILT_IN_LIMITS), None);
        let wide = AgentLimits { timeout: Some(second * 3600), ..AgentLimits::default() };
        assert_eq!(wide.narrow(&BUILT_IN_LIMITS), None);
        let narrow = AgentLimits {
            max_concurrent: Some(1),
            timeout: Some(second * 2),
            queue_timeout: Some(second),
            max_result_bytes: Some(2048),
        };
        let limits = narrow.narrow(&BUILT_IN_LIMITS).unwrap();
        assert_eq!((limits.timeout, limits.max_timeout), (second * 2, second * 2));
        assert_eq!((limits.queue_timeout, limits.max_result_bytes), (second, 2048));
        assert_eq!(limits.max_instances, BUILT_IN_LIMITS.max_instances);
    }
}
