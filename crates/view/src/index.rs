//! A catalog revision with exposed names, toolsets and policy applied.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use switchboard_model::{
    AccessRules, CanonicalName, NO_TOOLSET, Naming, Plan, ServerName, ServerPlan, denied_servers,
};
use switchboard_registry::{Catalog, CatalogTool};

use crate::access_tools::{
    AccessCache, AccessTools, grant_server, grant_unlisted, may_grant_of_server,
};
use crate::agent_tools::AgentTools;
use crate::names::{Named, expose_among, expose_names};
use crate::search::{Hit, Search};
use crate::toolset::{Toolset, membership};

/// A tool and the name that clients see.
#[derive(Debug, Clone)]
pub struct Entry {
    pub tool: Arc<CatalogTool>,
    /// The exposed name; `None` if policy hides the tool. With `naming: bare`, several tools can share a name; a view
    /// shows the last one that it can reach.
    pub name: Option<Arc<str>>,
    /// The server's `readOnlyHint`. It is a claim of the server, so it is only used to hide tools, never to permit one.
    pub is_read_only: bool,
}

impl Entry {
    /// `server.tool` for display. For a server that a session attached, the session's own name for it.
    pub fn shown_name(&self) -> CanonicalName {
        match &self.tool.alias {
            Some(alias) => CanonicalName::new(alias, self.tool.name.tool()),
            None => self.tool.name.clone(),
        }
    }

    /// Whether the tool belongs to a server that a session attached.
    pub(crate) fn is_owned(&self) -> bool {
        self.tool.owner.is_some()
    }
}

/// A catalog with its names and toolsets, ready for lookups. Immutable.
#[derive(Debug)]
pub struct Index {
    revision: u64,
    entries: Vec<Entry>,
    /// Position of the last tool of each exposed name.
    by_name: HashMap<Arc<str>, usize>,
    /// For names that several tools share: the positions of all of them, ascending, keyed by the last one.
    rivals: HashMap<usize, Vec<usize>>,
    by_canonical: HashMap<Arc<str>, usize>,
    toolsets: Vec<Toolset>,
    /// Toolsets that policy denies or does not allow. They are treated as if they did not exist.
    hidden_sets: HashSet<String>,
    /// Whether policy permits the tool, by position.
    is_permitted: Vec<bool>,
    naming: Naming,
    max_active_toolsets: Option<usize>,
    servers: HashSet<ServerName>,
    agents: Arc<[AgentTools]>,
    warnings: Vec<String>,
    search: OnceLock<Search>,
    /// What the access of callers grants.
    access: AccessCache,
}

impl Index {
    /// Combines a catalog with the toolsets, the policy and the naming of the plan.
    pub fn new(catalog: &Catalog, plan: &Plan) -> Self {
        let tools = catalog.tools();
        let toolsets = toolsets(tools, plan);
        let is_permitted = permitted(tools.len(), &toolsets, plan);
        // Names are assigned among permitted tools only, so a hidden tool never takes a name from a visible one.
        let seen = || tools.iter().zip(&is_permitted).filter(|(_, is_permitted)| **is_permitted);
        let named: Vec<_> = seen()
            .map(|(tool, _)| Named { name: &tool.name, expose_as: tool.expose_as.as_deref() })
            .collect();
        let mut names = expose_names(&named, plan.gateway.naming).into_iter();
        let entries: Vec<Entry> = tools
            .iter()
            .zip(&is_permitted)
            .map(|(tool, is_permitted)| Entry {
                tool: tool.clone(),
                name: is_permitted.then(|| names.next()).flatten(),
                is_read_only: read_only(tool),
            })
            .collect();
        let (by_name, rivals) = by_name(&entries);
        let mut warnings = shadowed(&entries, &rivals);
        warnings.extend(renamed(&entries));
        let by_canonical =
            tools.iter().enumerate().map(|(at, tool)| (tool.name.as_str().into(), at)).collect();
        let hidden_sets = hidden_sets(&toolsets, plan);
        let agents = AgentTools::all(plan, tools, &toolsets, &is_permitted);
        Self {
            revision: catalog.revision(),
            entries,
            by_name,
            rivals,
            by_canonical,
            toolsets,
            hidden_sets,
            is_permitted,
            naming: plan.gateway.naming,
            max_active_toolsets: plan.gateway.max_active_toolsets.map(|max| max as usize),
            servers: tools.iter().map(|tool| tool.name.server().clone()).collect(),
            agents,
            warnings,
            search: OnceLock::new(),
            access: AccessCache::default(),
        }
    }

    /// The index for a session with attached servers of its own. The names of all other tools stay the same.
    #[must_use]
    pub fn with_owned(&self, owned: &[Arc<CatalogTool>]) -> Self {
        let shown: Vec<_> = owned
            .iter()
            .map(|tool| CanonicalName::new(tool.shown_server(), tool.name.tool()))
            .collect();
        let names = expose_among(&shown, |name| self.by_name.contains_key(name));
        let mut entries = self.entries.clone();
        let (mut by_name, mut by_canonical) = (self.by_name.clone(), self.by_canonical.clone());
        for ((tool, shown), name) in owned.iter().zip(&shown).zip(names) {
            let at = entries.len();
            by_canonical.insert(tool.name.as_str().into(), at);
            by_canonical.entry(shown.as_str().into()).or_insert(at);
            by_name.insert(name.clone(), at);
            let is_read_only = read_only(tool);
            entries.push(Entry { tool: tool.clone(), name: Some(name), is_read_only });
        }
        let mut is_permitted = self.is_permitted.clone();
        is_permitted.resize(entries.len(), true);
        Self {
            revision: self.revision,
            toolsets: self.toolsets.clone(),
            hidden_sets: self.hidden_sets.clone(),
            rivals: self.rivals.clone(),
            naming: self.naming,
            max_active_toolsets: self.max_active_toolsets,
            servers: self.servers.clone(),
            agents: self.agents.clone(),
            warnings: Vec::new(),
            search: OnceLock::new(),
            access: AccessCache::default(),
            entries,
            by_name,
            by_canonical,
            is_permitted,
        }
    }

    /// Whether a tool has groups or states, so that turns may see different tools.
    pub fn has_groups(&self) -> bool {
        let is_grouped = |entry: &Entry| {
            let grouping = &entry.tool.grouping;
            grouping.group.is_some() || grouping.applicable_states.is_some()
        };
        self.entries.iter().any(is_grouped)
    }

    /// The revision of the catalog.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// All tools, in the order of registration.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether the catalog has a tool of this server, including tools that no session may see.
    pub fn has_server(&self, server: &ServerName) -> bool {
        self.servers.contains(server)
    }

    /// Whether the configuration has an agent profile of this name.
    pub fn has_agent(&self, name: &str) -> bool {
        self.agent(name).is_some()
    }

    /// Whether something of a server belongs to an agent profile and is permitted: one of its tools, or, while none is
    /// known, the server as the profile names it.
    pub fn agent_has_server(&self, agent: &str, server: &ServerName) -> bool {
        let Some(agent) = self.agent(agent) else { return false };
        if self.has_server(server) { agent.has_tools_of(server) } else { agent.expects(server) }
    }

    pub(crate) fn agent(&self, name: &str) -> Option<&AgentTools> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// What rules grant of this index.
    pub(crate) fn access(&self, rules: &Arc<AccessRules>) -> Arc<AccessTools> {
        self.access.get(rules, &self.entries, &self.toolsets)
    }

    /// Whether rules grant a tool of the catalog, or one of a server that a session attached.
    pub fn grants(&self, rules: &Arc<AccessRules>, tool: &CatalogTool) -> bool {
        match self.canonical(tool.name.as_str()) {
            Some(at) => self.access(rules).has(at),
            None => grant_unlisted(rules, tool, read_only(tool)),
        }
    }

    /// Whether rules grant something of a server: one of its tools, or, while none is known, the server as a whole.
    pub fn grants_server(&self, rules: &Arc<AccessRules>, server: &ServerName) -> bool {
        if self.has_server(server) {
            let granted = self.access(rules);
            let mut entries = self.entries.iter().enumerate();
            return entries
                .any(|(at, entry)| entry.tool.name.server() == server && granted.has(at));
        }
        grant_server(rules, server, &self.sets_of(server))
    }

    /// Whether rules grant a tool of a server, or, while none is known, may grant one.
    pub fn may_grant_of_server(&self, rules: &Arc<AccessRules>, server: &ServerName) -> bool {
        if self.has_server(server) {
            return self.grants_server(rules, server);
        }
        may_grant_of_server(rules, server, &self.sets_of(server))
    }

    /// The names of the toolsets that a server belongs to.
    fn sets_of(&self, server: &ServerName) -> Vec<&str> {
        let has_it = |set: &&Toolset| set.servers.contains(server);
        self.toolsets.iter().filter(has_it).map(|set| set.name.as_str()).collect()
    }

    /// The toolsets that policy permits and that all these rules show.
    pub fn toolsets_for<'a>(
        &'a self,
        access: &[Arc<AccessRules>],
    ) -> impl Iterator<Item = &'a Toolset> {
        let granted: Vec<_> = access.iter().map(|rules| self.access(rules)).collect();
        let sets = self.toolsets.iter().enumerate();
        let sets = sets.filter(move |(at, _)| granted.iter().all(|it| it.shows_toolset(*at)));
        sets.map(|(_, set)| set).filter(|set| !self.hidden_sets.contains(&set.name))
    }

    /// Warnings about exposed names, for the operator.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The toolsets that policy permits.
    pub fn toolsets(&self) -> impl Iterator<Item = &Toolset> {
        self.toolsets.iter().filter(|set| !self.hidden_sets.contains(&set.name))
    }

    /// All toolsets, also those that policy hides.
    pub fn all_toolsets(&self) -> impl Iterator<Item = &Toolset> {
        self.toolsets.iter()
    }

    /// A toolset that policy permits, by name.
    pub fn toolset(&self, name: &str) -> Option<&Toolset> {
        self.toolsets().find(|set| set.name == name)
    }

    /// Whether policy permits the tool with this canonical name.
    pub fn permits(&self, name: &str) -> bool {
        self.canonical(name).is_some_and(|at| self.is_permitted(at))
    }

    /// Whether policy permits the tool at this position, so that some view can show it.
    pub fn is_reachable(&self, at: usize) -> bool {
        self.is_permitted(at)
    }

    /// How exposed names are formed.
    pub fn naming(&self) -> Naming {
        self.naming
    }

    pub fn max_active_toolsets(&self) -> Option<usize> {
        self.max_active_toolsets
    }

    pub(crate) fn is_permitted(&self, at: usize) -> bool {
        self.is_permitted.get(at).copied().unwrap_or_default()
    }

    /// Position of the tool with this exposed name; the last one if several share it.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Positions of all tools that share the name of `last`, which is the last of them; empty if the name is unique.
    pub(crate) fn rivals_of(&self, last: usize) -> &[usize] {
        self.rivals.get(&last).map(Vec::as_slice).unwrap_or_default()
    }

    /// The positions of the tools of each shared name, ascending.
    pub(crate) fn rivals(&self) -> impl Iterator<Item = &[usize]> {
        self.rivals.values().map(Vec::as_slice)
    }

    /// Position of the tool with this canonical name.
    pub(crate) fn canonical(&self, name: &str) -> Option<usize> {
        self.by_canonical.get(name).copied()
    }

    pub(crate) fn search(
        &self,
        query: &str,
        limit: usize,
        is_visible: impl Fn(usize) -> bool,
    ) -> Vec<Hit> {
        let search = self.search.get_or_init(|| Search::new(self.entries.iter()));
        search.find(query, limit, is_visible)
    }
}

fn read_only(tool: &CatalogTool) -> bool {
    let annotations = tool.descriptor.annotations.as_ref().map(switchboard_model::JsonText::parse);
    annotations.is_some_and(|hints| hints.get("readOnlyHint") == Some(&true.into()))
}

type Rivals = HashMap<usize, Vec<usize>>;

/// The last tool of each name, and all tools of the names that several share.
fn by_name(entries: &[Entry]) -> (HashMap<Arc<str>, usize>, Rivals) {
    let (mut last, mut rivals) = (HashMap::new(), Rivals::new());
    for (at, entry) in entries.iter().enumerate() {
        let Some(name) = &entry.name else { continue };
        if let Some(before) = last.insert(name.clone(), at) {
            let mut all = rivals.remove(&before).unwrap_or_else(|| vec![before]);
            all.push(at);
            rivals.insert(at, all);
        }
    }
    (last, rivals)
}

/// Warnings about tools that are hidden behind a later tool of the same name.
fn shadowed(entries: &[Entry], rivals: &Rivals) -> Vec<String> {
    let mut hidden: Vec<(usize, usize)> = rivals
        .iter()
        .flat_map(|(last, all)| all.iter().filter(move |at| *at != last).map(|at| (*at, *last)))
        .collect();
    hidden.sort_unstable();
    let told = hidden.into_iter().filter_map(|(at, last)| {
        let (tool, other) = (&entries.get(at)?.tool.name, &entries.get(last)?.tool.name);
        Some(format!(
            "tool '{tool}' is hidden by '{other}': with `gateway.naming: bare` the last of one name wins; give one of \
             them an `expose_as`, or use `naming: prefixed`"
        ))
    });
    told.collect()
}

/// Warnings about tools whose `expose_as` is taken, so that they have another name.
fn renamed(entries: &[Entry]) -> impl Iterator<Item = String> {
    let wanted = |entry: &Entry| match (&entry.tool.expose_as, &entry.name) {
        (Some(wish), Some(name)) if **name != **wish => Some((wish.clone(), name.clone())),
        _ => None,
    };
    entries.iter().filter_map(move |entry| {
        let (wish, name) = wanted(entry)?;
        let tool = &entry.tool.name;
        let other = entries.iter().find(|other| {
            let plain = format!("{}__{}", other.tool.name.server(), other.tool.name.tool());
            other.name.is_some()
                && other.tool.name != *tool
                && (other.tool.expose_as.as_ref() == Some(&wish) || plain == *wish)
        });
        let other = &other?.tool.name;
        Some(format!(
            "tool '{tool}' is exposed as `{name}`: its `expose_as: {wish}` is also the name of '{other}', so neither \
             has it; choose another one"
        ))
    })
}

/// The configured toolsets, then one for each server (or for the `toolset` that it names) that the configuration does
/// not define itself.
fn toolsets(tools: &[Arc<CatalogTool>], plan: &Plan) -> Vec<Toolset> {
    let servers = || plan.servers.iter().map(|server| &server.spec.name);
    let mut sets: Vec<Toolset> = plan
        .toolsets
        .iter()
        .map(|set| {
            let is_member = membership(set);
            Toolset {
                name: set.name.clone(),
                description: set.description.clone(),
                when_to_use: set.when_to_use.clone(),
                servers: servers().filter(|server| set.has_all_of(server)).cloned().collect(),
                members: places(tools, is_member),
            }
        })
        .collect();
    let local = ServerName::local();
    let makes_set = |server: &&ServerPlan| server.toolset.as_deref() != Some(NO_TOOLSET);
    let of_servers = plan.servers.iter().filter(makes_set).map(|server| {
        let name = &server.spec.name;
        (server.toolset.clone().unwrap_or_else(|| name.to_string()), name)
    });
    let has_local = tools.iter().any(|tool| tool.name.server().is_local());
    let of_local = has_local.then(|| (local.to_string(), &local));
    let mut servers_of: Vec<(String, Vec<String>)> = Vec::new();
    for (set, server) in of_servers.chain(of_local) {
        if sets.iter().any(|known| known.name == set) {
            continue;
        }
        match servers_of.iter_mut().find(|(name, _)| *name == set) {
            Some((_, servers)) => servers.push(server.to_string()),
            None => servers_of.push((set, vec![server.to_string()])),
        }
    }
    sets.extend(servers_of.into_iter().map(|(name, servers)| Toolset {
        description: match servers.as_slice() {
            [one] if one == switchboard_model::LOCAL_SERVER => "The built-in tools".into(),
            [one] => format!("All tools of the MCP server '{one}'"),
            many => format!("All tools of the MCP servers {}", many.join(", ")),
        },
        when_to_use: None,
        members: places(tools, |tool| tool.toolset == name),
        servers: servers.into_iter().map(ServerName::new).collect(),
        name,
    }));
    sets
}

fn places(tools: &[Arc<CatalogTool>], is_member: impl Fn(&CatalogTool) -> bool) -> Vec<usize> {
    let tools = tools.iter().enumerate();
    tools.filter(|(_, tool)| is_member(tool)).map(|(at, _)| at).collect()
}

/// The toolsets that clients must not learn of: those that policy denies or does not allow, and the default toolsets of
/// servers that policy hides.
fn hidden_sets(toolsets: &[Toolset], plan: &Plan) -> HashSet<String> {
    let gateway = &plan.gateway;
    let servers = plan.servers.iter().map(|server| &server.spec.name);
    let denied = denied_servers(servers, &plan.toolsets, &gateway.deny_toolsets);
    let has_only_denied = |name: &String| {
        let is_own = |server: &ServerPlan| {
            server.toolset.as_deref().unwrap_or(server.spec.name.as_str()) == name.as_str()
        };
        let set = plan.toolsets.iter().find(|set| set.name == *name);
        let is_of_denied = |pattern: &String| {
            denied.iter().any(|server| pattern.starts_with(&format!("{server}.")))
        };
        set.is_some_and(|set| {
            set.tools.iter().all(is_of_denied)
                && set.servers.iter().all(|server| denied.contains(server))
        }) && plan.servers.iter().any(is_own)
    };
    let is_hidden = |name: &String| {
        gateway.deny_toolsets.contains(name)
            || gateway.allow_toolsets.as_ref().is_some_and(|allowed| !allowed.contains(name))
            || has_only_denied(name)
    };
    toolsets.iter().map(|set| &set.name).filter(|name| is_hidden(name)).cloned().collect()
}

/// Whether policy permits each tool. A tool in a denied toolset is denied, whatever other toolsets it is in.
fn permitted(count: usize, toolsets: &[Toolset], plan: &Plan) -> Vec<bool> {
    let gateway = &plan.gateway;
    let mut is_permitted = vec![gateway.allow_toolsets.is_none(); count];
    let mut mark = |names: &[String], value: bool| {
        for set in toolsets.iter().filter(|set| names.contains(&set.name)) {
            for at in &set.members {
                if let Some(flag) = is_permitted.get_mut(*at) {
                    *flag = value;
                }
            }
        }
    };
    mark(gateway.allow_toolsets.as_deref().unwrap_or_default(), true);
    mark(&gateway.deny_toolsets, false);
    is_permitted
}
