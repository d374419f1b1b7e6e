//! Validates `toolsets`, and adds the toolsets made from servers.

use std::collections::HashSet;

use switchboard_model::{
    LOCAL_SERVER, LocalToolChoice, NO_TOOLSET, ServerName, ToolsetPlan, denied_servers,
};

use super::names::Names;
use super::{At, Planner, entries, shown_name};
use crate::problem::ConfigProblem;
use crate::raw::{RawServer, RawToolset};

/// A server with its membership in toolsets, even if the rest of its entry is invalid.
pub(super) struct Member {
    name: String,
    /// The toolset that its entry names.
    toolset: Option<String>,
    name_is_shown: bool,
    toolset_is_shown: bool,
    /// Whether it makes a toolset that is not configured.
    makes_set: bool,
}

impl Member {
    fn of(at: &At<'_>, raw: &RawServer) -> Option<Self> {
        let is_shown = |key| at.get(key).is_none_or(|value| !value.node.sensitive);
        let name = raw.name.clone()?;
        // A server's own name is the default, so writing it changes nothing.
        let toolset = raw.toolset.clone().filter(|toolset| *toolset != name);
        Some(Self {
            name,
            toolset,
            name_is_shown: is_shown("name"),
            toolset_is_shown: is_shown("toolset"),
            makes_set: raw.toolset.as_deref() != Some(NO_TOOLSET),
        })
    }

    /// The built-in tools as a member. Whether there are any is known only if the file says so.
    fn local(choice: &LocalToolChoice) -> Self {
        let makes_set = match choice {
            LocalToolChoice::NamedInTools => false,
            LocalToolChoice::All => true,
            LocalToolChoice::Only(names) => !names.is_empty(),
        };
        Self {
            name: LOCAL_SERVER.into(),
            toolset: None,
            name_is_shown: true,
            toolset_is_shown: true,
            makes_set,
        }
    }

    /// The toolset that it belongs to by default.
    fn set(&self) -> &str {
        self.toolset.as_deref().unwrap_or(&self.name)
    }

    fn set_is_shown(&self) -> bool {
        if self.toolset.is_some() { self.toolset_is_shown } else { self.name_is_shown }
    }
}

/// The servers that can be members of toolsets.
pub(super) fn members(servers: &[(At<'_>, RawServer)], local: &LocalToolChoice) -> Vec<Member> {
    let servers = servers.iter().filter_map(|(at, raw)| Member::of(at, raw));
    servers.chain([Member::local(local)]).collect()
}

/// The names of the servers, for lists of names in other sections.
pub(super) fn server_names(members: &[Member], may_grow: bool) -> Names {
    let mut servers = Names::new("server", may_grow);
    for member in members {
        let is_listed = member.name_is_shown && member.name != LOCAL_SERVER;
        servers.add(&member.name, is_listed);
    }
    servers
}

/// Whether a source may add servers that the file does not have.
pub(super) fn may_discover(config: &At<'_>) -> bool {
    config.get("discovery").is_some_and(|at| !at.items("sources").is_empty())
}

/// Every toolset, and the names that the gateway section may use.
pub(super) struct Toolsets {
    pub(super) plans: Vec<ToolsetPlan>,
    pub(super) names: Names,
    /// How many of them are configured rather than made from servers.
    written: usize,
}

impl Toolsets {
    /// Removes servers of denied toolsets from the generated descriptions of other toolsets.
    pub(super) fn hide_denied_servers(&mut self, denied: &[String]) {
        let servers = self.plans.iter().flat_map(|set| &set.servers);
        let hidden: HashSet<ServerName> =
            denied_servers(servers, &self.plans, denied).into_iter().cloned().collect();
        for set in self.plans.iter_mut().skip(self.written) {
            let shown: Vec<_> =
                set.servers.iter().filter(|server| !hidden.contains(*server)).collect();
            set.description = implied_description(&shown);
        }
    }
}

impl Planner<'_> {
    /// The configured toolsets in file order, then those made from servers.
    pub(super) fn toolsets(
        &mut self,
        config: &At<'_>,
        sound: &serde_json::Value,
        members: &[Member],
    ) -> Toolsets {
        let written = entries::<RawToolset>(config, "toolsets", sound);
        self.refuse_duplicates(&written, "toolsets", |raw| raw.name.as_deref());
        let may_grow = may_discover(config);
        let servers = server_names(members, may_grow);
        let mut names = Names::new("toolset", may_grow);
        let mut plans = Vec::new();
        for (at, raw) in written {
            self.refuse_unknown(&at, "servers", &servers);
            self.check_patterns(&at, "tools", &servers);
            let Some(name) = raw.name.clone() else { continue };
            if name == NO_TOOLSET {
                let message = "no toolset can be called `none`: the word stands for no set";
                let problem = ConfigProblem::error(message).help("choose another name");
                self.push(at.value_origin("name"), problem.about(&at.path));
                continue;
            }
            names.add(&name, at.get("name").is_none_or(|name| !name.node.sensitive));
            self.check_members(&at, &name, &raw, members);
            plans.push(written_set(name, raw, members));
        }
        let written = plans.len();
        for member in members.iter().filter(|member| member.makes_set) {
            if !names.has(member.set()) {
                names.add(member.set(), member.set_is_shown());
                plans.push(implied_set(member.set(), members));
            }
        }
        Toolsets { plans, names, written }
    }

    fn check_members(&mut self, at: &At<'_>, name: &str, raw: &RawToolset, members: &[Member]) {
        // Malformed values were already reported.
        if ["servers", "tools"].iter().any(|key| at.has(key)) && is_unread(at, raw) {
            return;
        }
        let shown = shown_name(at, name);
        let is_bare = count(raw.servers.as_ref()) + count(raw.tools.as_ref()) == 0;
        let problem = if is_bare && members.iter().all(|member| member.set() != name) {
            ConfigProblem::error(format!("the toolset `{shown}` has no members")).help(
                "add `servers: [...]` or `tools: [...]`; only the entry of a server's own set needs neither",
            )
        } else if !is_bare
            && members.iter().any(|member| member.name == name)
            && !mentions(raw, name)
        {
            ConfigProblem::error(format!(
                "the toolset `{shown}` has the name of a server, but none of its tools"
            ))
            .help(format!(
                "rename the toolset, or include the server: add `{shown}` to its `servers`, or `{shown}.*` to its `tools`"
            ))
        } else {
            return;
        };
        self.push(at.value_origin("name"), problem.about(&at.path));
    }

    /// Warns about patterns with an unknown server. Not an error, because names of MCP tools may contain dots.
    pub(super) fn check_patterns(&mut self, at: &At<'_>, key: &str, servers: &Names) {
        for item in at.items(key) {
            let Some(pattern) = item.text() else { continue };
            if pattern.trim().is_empty() {
                self.refuse(&item, "matches no tool", "write `tool`, `server.tool` or a pattern");
            }
            let Some((server, _)) = pattern.split_once('.') else { continue };
            if server.contains(['*', '?']) || servers.has(server) || item.node.sensitive {
                continue;
            }
            let message = format!("{}: `{server}` is not the name of a server", item.path);
            let problem = ConfigProblem::error(message).about(&item.path).help(servers.listed());
            self.warn_at(&item.node.origin, problem);
        }
    }
}

fn is_unread(at: &At<'_>, raw: &RawToolset) -> bool {
    (at.has("servers") && raw.servers.is_none()) || (at.has("tools") && raw.tools.is_none())
}

fn count(list: Option<&Vec<String>>) -> usize {
    list.map_or(0, Vec::len)
}

/// Whether a toolset with the name of a server lists tools of that server.
fn mentions(raw: &RawToolset, server: &str) -> bool {
    let is_below =
        |pattern: &String| pattern.strip_prefix(server).is_some_and(|rest| rest.starts_with('.'));
    raw.servers.iter().flatten().any(|name| name == server)
        || raw.tools.iter().flatten().any(is_below)
}

/// A configured toolset. Servers whose `toolset` names it are members. The server of the same name is a member only if
/// the entry has neither `servers` nor `tools`.
fn written_set(name: String, raw: RawToolset, members: &[Member]) -> ToolsetPlan {
    let is_bare = count(raw.servers.as_ref()) + count(raw.tools.as_ref()) == 0;
    let mut servers: Vec<_> = raw.servers.into_iter().flatten().map(ServerName::new).collect();
    for member in members.iter().filter(|member| member.set() == name) {
        let server = ServerName::new(member.name.as_str());
        if (is_bare || member.toolset.is_some()) && !servers.contains(&server) {
            servers.push(server);
        }
    }
    ToolsetPlan {
        name,
        description: raw.description.unwrap_or_default(),
        when_to_use: raw.when_to_use,
        servers,
        tools: raw.tools.unwrap_or_default(),
    }
}

fn implied_set(name: &str, members: &[Member]) -> ToolsetPlan {
    let servers: Vec<_> = members
        .iter()
        .filter(|member| member.set() == name)
        .map(|member| ServerName::new(member.name.as_str()))
        .collect();
    ToolsetPlan {
        name: name.to_owned(),
        description: implied_description(&servers.iter().collect::<Vec<_>>()),
        when_to_use: None,
        servers,
        tools: Vec::new(),
    }
}

fn implied_description(servers: &[&ServerName]) -> String {
    match servers {
        [only] if only.is_local() => "The tools that are built into Switchboard".into(),
        [only] => format!("All tools of {only}"),
        [first @ .., last] => {
            let first: Vec<_> = first.iter().map(|server| server.as_str()).collect();
            format!("All tools of {} and {last}", first.join(", "))
        }
        [] => String::new(),
    }
}
