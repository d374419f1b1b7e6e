//! The restrictions of a connection or request. They only ever hide tools that the configuration exposes.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use switchboard_model::{AccessRules, Exposure, ExposureMode, ServerName};

use crate::{Index, ToolGroups};

/// The restrictions of one connection or request. A field that is `None`, empty or `false` restricts nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Scope {
    /// Only what this agent profile of the configuration contains. Once the profile is gone, that is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only this server.
    pub server: Option<String>,
    /// Only tools of these toolsets. Each inner list comes from one source (such as URL or header), and a tool must
    /// satisfy all of them.
    pub toolsets: Vec<Vec<String>>,
    /// Only these tools, by exposed or canonical name. Each inner list comes from one source, and a tool must be in all
    /// of them; an empty inner list hides every tool.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "lists_of_tools")]
    pub tools: Vec<Vec<String>>,
    /// Only tools with a `readOnlyHint`.
    pub read_only: bool,
    /// Use the dynamic exposure mode: start with the meta-tools.
    pub dynamic: bool,
    /// Only what the access of the caller grants: a tool must be granted by all of these. Never stored, because access
    /// changes while a session lasts.
    #[serde(skip)]
    pub access: Vec<Arc<AccessRules>>,
    /// Only tools that a turn with these groups and in this state may use. Never stored.
    #[serde(skip)]
    pub groups: Option<ToolGroups>,
}

/// Why a scope is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScopeFault {
    UnknownAgent(String),
    UnknownServer(String),
    UnknownToolset {
        name: String,
        known: Vec<String>,
    },
    /// The connection would start with more toolsets than `max_active_toolsets`.
    TooManyToolsets {
        max: usize,
        named: Vec<String>,
    },
}

impl std::fmt::Display for ScopeFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownAgent(name) => write!(f, "there is no agent '{name}' here"),
            Self::UnknownServer(name) => write!(f, "there is no MCP server '{name}' here"),
            Self::UnknownToolset { name, known } => {
                write!(f, "there is no toolset '{name}' here; there are: {}", known.join(", "))
            }
            Self::TooManyToolsets { max, named } => write!(
                f,
                "at most {max} toolsets may be active (max_active_toolsets), and this connection would begin with {}: {}; \
                 name fewer, and enable others when they are needed",
                named.len(),
                named.join(", ")
            ),
        }
    }
}

impl Scope {
    /// The same scope, narrowed to what these rules grant instead of those before.
    #[must_use]
    pub fn with_access(self: &Arc<Self>, access: &[Arc<AccessRules>]) -> Arc<Self> {
        if *self.access == *access {
            return self.clone();
        }
        Arc::new(Self { access: access.to_vec(), ..Self::clone(self) })
    }

    /// Whether nothing restricts the scope but the access of the caller, if anything does.
    pub fn is_access_alone(&self) -> bool {
        let Self { agent, server, toolsets, tools, read_only, dynamic, access: _, groups } = self;
        let is_named = agent.is_some() || server.is_some() || groups.is_some();
        !is_named && toolsets.is_empty() && tools.is_empty() && !read_only && !dynamic
    }

    /// Checks that the named server and toolsets exist and that the configuration exposes them.
    pub fn check(
        &self,
        index: &Index,
        exposure: &Exposure,
        servers: &[String],
    ) -> Result<(), ScopeFault> {
        if let Some(agent) = self.agent.as_ref().filter(|agent| !index.has_agent(agent)) {
            return Err(ScopeFault::UnknownAgent(agent.clone()));
        }
        let has_server = |server: &String| match &self.agent {
            // The built-in tools are a server of the agent too, although no entry of the configuration makes it one.
            Some(agent) => {
                let name = ServerName::new(server.as_str());
                (name.is_local() || servers.contains(server))
                    && index.agent_has_server(agent, &name)
            }
            None => servers.contains(server),
        };
        let is_granted = |server: &String| {
            let server = ServerName::new(server.as_str());
            self.access.iter().all(|rules| index.grants_server(rules, &server))
        };
        let has_server = |server: &String| has_server(server) && is_granted(server);
        if let Some(server) = self.server.as_ref().filter(|server| !has_server(server)) {
            return Err(ScopeFault::UnknownServer(server.clone()));
        }
        let known = || -> Vec<String> {
            let sets = index.toolsets_for(&self.access).map(|set| set.name.clone());
            let is_exposed = |name: &String| match exposure.mode {
                ExposureMode::Static => exposure.tool_sets.contains(name),
                ExposureMode::Legacy | ExposureMode::Dynamic => true,
            };
            sets.filter(is_exposed).collect()
        };
        for name in self.toolsets.iter().flatten() {
            let known = known();
            if !known.contains(name) {
                return Err(ScopeFault::UnknownToolset { name: name.clone(), known });
            }
        }
        Ok(())
    }

    /// Checks that a connection does not start with more toolsets than `max_active_toolsets`. The toolsets of the
    /// configuration are checked when it is loaded.
    pub fn check_first_sets(&self, index: &Index, exposure: &Exposure) -> Result<(), ScopeFault> {
        let Some(max) = index.max_active_toolsets() else { return Ok(()) };
        if self.toolsets.is_empty() || self.mode(exposure) != ExposureMode::Dynamic {
            return Ok(());
        }
        let named: BTreeSet<String> = self.first_sets(exposure).into_iter().collect();
        if named.len() > max {
            let named = named.into_iter().collect();
            return Err(ScopeFault::TooManyToolsets { max, named });
        }
        Ok(())
    }

    /// The exposure mode of a connection with this scope. The tools of an agent were chosen by its profile, so it gets
    /// them at once and not through meta-tools, unless it asks for those.
    pub fn mode(&self, exposure: &Exposure) -> ExposureMode {
        match exposure.mode {
            ExposureMode::Dynamic if self.agent.is_some() && !self.dynamic => ExposureMode::Legacy,
            ExposureMode::Dynamic => ExposureMode::Dynamic,
            ExposureMode::Legacy | ExposureMode::Static if self.dynamic => ExposureMode::Dynamic,
            ExposureMode::Legacy if !self.toolsets.is_empty() => ExposureMode::Static,
            mode => mode,
        }
    }

    /// The toolsets that are enabled when a dynamic connection starts: those that it names, else those of the
    /// configuration.
    pub fn first_sets(&self, exposure: &Exposure) -> Vec<String> {
        match self.toolsets.iter().min_by_key(|sets| sets.len()) {
            Some(fewest) => {
                let is_common =
                    |name: &&String| self.toolsets.iter().all(|sets| sets.contains(name));
                let common: Vec<String> = fewest.iter().filter(is_common).cloned().collect();
                // Without a common toolset, a tool can still be in one toolset of each list; the shortest list shows
                // it.
                if common.is_empty() { fewest.clone() } else { common }
            }
            None if exposure.mode == ExposureMode::Dynamic => exposure.tool_sets.clone(),
            None => Vec::new(),
        }
    }
}

/// Deserialises lists of tools. Earlier versions stored a single list: `[]` allowed no tool, and `null` meant no
/// restriction.
fn lists_of_tools<'de, D: Deserializer<'de>>(kept: D) -> Result<Vec<Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Kept {
        One(Vec<String>),
        Several(Vec<Vec<String>>),
    }
    Ok(match Option::<Kept>::deserialize(kept)? {
        None => Vec::new(),
        Some(Kept::One(list)) => vec![list],
        Some(Kept::Several(lists)) => lists,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kept_scope_is_read_as_it_was_meant() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (kept, tools) in [
            (json!({}), vec![]),
            (json!({"tools": null}), vec![]),
            (json!({"tools": []}), vec![vec![]]),
            (json!({"tools": ["a", "b"]}), vec![list(&["a", "b"])]),
            (json!({"tools": [["a"], []]}), vec![list(&["a"]), vec![]]),
        ] {
            let scope = Scope::deserialize(&kept).unwrap();
            assert_eq!(scope.tools, tools, "{kept}");
            let again = serde_json::to_value(&scope).unwrap();
            assert_eq!(Scope::deserialize(&again).unwrap(), scope, "{again}");
        }
    }
}
