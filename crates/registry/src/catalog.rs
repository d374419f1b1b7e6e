//! The catalog: all admitted tools, immutable, with a revision.

use std::collections::HashMap;
use std::sync::Arc;

use switchboard_model::{
    AdmissionMode, ArgumentSpec, BUILT_IN_LIMITS, CanonicalName, ContentCheckModes, JsonText,
    PromptToolPlan, RecordedContents, ServerName, ToolDescriptor, ToolGrouping, ToolLimits,
};

/// Longest requested name for which similar names are searched.
const MAX_COMPARED: usize = 256;

/// Which parts of the configuration set a tool's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Configured {
    /// An entry of `toolbox.tools` alone.
    Explicit,
    /// An entry laid over the server's defaults.
    Merged,
    /// The server's defaults alone.
    Default,
}

impl Configured {
    /// The word that tables and JSON show.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Explicit => "explicit",
            Self::Merged => "merged",
            Self::Default => "default",
        }
    }
}

/// One admitted tool.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogTool {
    pub name: CanonicalName,
    /// The server's definition with the configured description and arguments applied.
    pub descriptor: ToolDescriptor,
    pub limits: ToolLimits,
    pub configured: Configured,
    pub mode: AdmissionMode,
    /// The toolset of its server.
    pub toolset: String,
    pub expose_as: Option<String>,
    /// Declared arguments; in a published catalog the descriptor's schema already includes them.
    pub arguments: Option<Vec<ArgumentSpec>>,
    /// The parts of the server's definition that the configuration replaces; `None` if it replaces nothing.
    pub offered: Option<OfferedDefinition>,
    /// Whether arguments are checked before a call is sent.
    pub validates_arguments: bool,
    /// The checks of its calls, whoever makes them.
    pub content_check: ContentCheckModes,
    /// Which contents of its calls are recorded.
    pub record: RecordedContents,
    /// The groups and states in which a turn may use it.
    pub grouping: ToolGrouping,
    /// What makes it a prompt tool.
    pub prompt: Option<Arc<PromptToolPlan>>,
    /// The only session that may see and call it; `None` for a tool of all sessions.
    pub owner: Option<Arc<str>>,
    /// The name that the owner gave the server, for exposed names and messages. The server in `name` is the internal
    /// one.
    pub alias: Option<ServerName>,
}

/// What the server itself says about a tool whose entry has a description or arguments of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedDefinition {
    pub description: Option<String>,
    pub input_schema: JsonText,
}

impl CatalogTool {
    /// A tool of all sessions, admitted as its server defines it, with the built-in limits.
    pub fn new(name: CanonicalName, descriptor: ToolDescriptor) -> Self {
        Self {
            toolset: name.server().to_string(),
            name,
            descriptor,
            limits: BUILT_IN_LIMITS,
            configured: Configured::Default,
            mode: AdmissionMode::Dynamic,
            expose_as: None,
            arguments: None,
            offered: None,
            validates_arguments: true,
            content_check: ContentCheckModes::default(),
            record: RecordedContents::default(),
            grouping: ToolGrouping::default(),
            prompt: None,
            owner: None,
            alias: None,
        }
    }

    /// The server's own schema of the arguments.
    pub fn server_schema(&self) -> &JsonText {
        self.offered.as_ref().map_or(&self.descriptor.input_schema, |offered| &offered.input_schema)
    }

    /// The server's name for display: the owner's name of it, or the configured one.
    pub fn shown_server(&self) -> &ServerName {
        self.alias.as_ref().unwrap_or_else(|| self.name.server())
    }
}

/// An immutable snapshot of all admitted tools. Holders of an old snapshot keep seeing it unchanged.
///
/// Tools with an owner are kept apart from shared ones: a lookup without an owner neither lists nor finds them.
#[derive(Debug, Default)]
pub struct Catalog {
    revision: u64,
    /// The revision of the last change of the shared tools.
    shared_since: u64,
    registered: Vec<Arc<CatalogTool>>,
    tools: Vec<Arc<CatalogTool>>,
    by_canonical: HashMap<Arc<str>, usize>,
    by_bare: HashMap<Arc<str>, usize>,
    owned: HashMap<Arc<str>, Owned>,
}

/// The tools of one owner.
#[derive(Debug, Default)]
struct Owned {
    since: u64,
    tools: Vec<Arc<CatalogTool>>,
    by_canonical: HashMap<Arc<str>, usize>,
    /// Keyed by the owner's name for them, `alias.tool`.
    by_alias: HashMap<Arc<str>, usize>,
    by_bare: HashMap<Arc<str>, usize>,
}

/// A name that matches no tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolved {
    /// Similar names, best match first.
    pub nearest: Vec<CanonicalName>,
}

impl Catalog {
    /// Makes a snapshot from tools in the order of their registration.
    pub fn new(revision: u64, registered: Vec<Arc<CatalogTool>>) -> Self {
        let (owned, tools): (Vec<_>, Vec<_>) =
            registered.iter().cloned().partition(|tool| tool.owner.is_some());
        let by_canonical = index(&tools, |tool| tool.name.as_str().into());
        let by_bare = index(&tools, |tool| tool.name.tool().into());
        let mut by_owner: HashMap<Arc<str>, Vec<Arc<CatalogTool>>> = HashMap::new();
        for tool in owned {
            let Some(owner) = &tool.owner else { continue };
            by_owner.entry(owner.clone()).or_default().push(tool);
        }
        let owned = by_owner.into_iter().map(|(owner, tools)| (owner, Owned::new(revision, tools)));
        let owned = owned.collect();
        let shared_since = revision;
        Self { revision, shared_since, registered, tools, by_canonical, by_bare, owned }
    }

    /// Compares with the previous snapshot, so that [`Catalog::key_for`] stays the same for owners whose tools did not
    /// change.
    #[must_use]
    pub fn after(self, older: &Self) -> Self {
        let mut next = self;
        if next.tools == older.tools {
            next.shared_since = older.shared_since;
        }
        for (owner, owned) in &mut next.owned {
            if let Some(before) = older.owned.get(owner).filter(|it| it.tools == owned.tools) {
                owned.since = before.since;
            }
        }
        next
    }

    /// Increases with every change of any tool, across restarts too.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// A key for caching views: two catalogs of one run with the same key show this owner (`None`: a caller without an
    /// owner) the same tools. It does not change when only other owners' tools change.
    pub fn key_for(&self, owner: Option<&str>) -> (u64, u64) {
        let owned = owner.and_then(|owner| self.owned.get(owner));
        (self.shared_since, owned.map_or(0, |owned| owned.since))
    }

    /// The shared tools in the order of their registration.
    pub fn tools(&self) -> &[Arc<CatalogTool>] {
        &self.tools
    }

    /// The tools that belong to one owner, in the order of their registration.
    pub fn owned_by(&self, owner: &str) -> &[Arc<CatalogTool>] {
        self.owned.get(owner).map(|owned| owned.tools.as_slice()).unwrap_or_default()
    }

    /// All tools, also those that belong to single sessions, in the order of their registration. For storage and
    /// bookkeeping only: a client must not see the tools of other sessions.
    pub fn of_all_owners(&self) -> &[Arc<CatalogTool>] {
        &self.registered
    }

    /// The shared tools of one server.
    pub fn tools_of<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> impl Iterator<Item = &'a Arc<CatalogTool>> {
        self.tools.iter().filter(move |tool| tool.name.server() == server)
    }

    /// Finds the shared tool with this canonical name, else the last registered one with this bare name, else the one that
    /// the configuration exposes by this name.
    pub fn resolve(&self, name: &str) -> Result<&Arc<CatalogTool>, Unresolved> {
        self.shared(&self.by_canonical, name)
            .or_else(|| self.shared(&self.by_bare, name))
            .or_else(|| self.exposed_as(name))
            .ok_or_else(|| Unresolved { nearest: self.nearest(name) })
    }

    /// The shared tool that the configuration exposes by this name. `None` if several have it: lists show them by other
    /// names.
    fn exposed_as(&self, name: &str) -> Option<&Arc<CatalogTool>> {
        let mut exposed = self.tools.iter().filter(|tool| tool.expose_as.as_deref() == Some(name));
        exposed.next().filter(|_| exposed.next().is_none())
    }

    /// A tool that [`Catalog::resolve`] does not choose although it has this bare name (a name without its server).
    /// `None` if `name` is canonical, or if one tool alone has it.
    pub fn rival_of(&self, name: &str) -> Option<&CanonicalName> {
        let taken = self.shared(&self.by_bare, name)?;
        let mut others = self.tools.iter().filter(|tool| tool.name.tool() == name);
        if self.by_canonical.contains_key(name) {
            return None;
        }
        others.find(|tool| tool.name != taken.name).map(|tool| &tool.name)
    }

    /// Like [`Catalog::resolve`], for an owner with tools of its own. For canonical names shared tools win; for bare
    /// names the owner's tools win.
    pub fn resolve_for(&self, owner: &str, name: &str) -> Result<&Arc<CatalogTool>, Unresolved> {
        let Some(owned) = self.owned.get(owner) else { return self.resolve(name) };
        self.shared(&self.by_canonical, name)
            .or_else(|| owned.find(&owned.by_canonical, name))
            .or_else(|| owned.find(&owned.by_alias, name))
            .or_else(|| owned.find(&owned.by_bare, name))
            .map_or_else(|| self.resolve(name), Ok)
    }

    /// Finds the shared tool with exactly this canonical name.
    pub fn exactly(&self, name: &CanonicalName) -> Result<&Arc<CatalogTool>, Unresolved> {
        self.exactly_for(None, name)
    }

    /// Finds the tool with exactly this canonical name among the owner's and the shared tools.
    pub fn exactly_for(
        &self,
        owner: Option<&str>,
        name: &CanonicalName,
    ) -> Result<&Arc<CatalogTool>, Unresolved> {
        let owned = owner.and_then(|owner| self.owned.get(owner));
        self.shared(&self.by_canonical, name.as_str())
            .or_else(|| owned.and_then(|owned| owned.find(&owned.by_canonical, name.as_str())))
            .ok_or_else(|| Unresolved { nearest: self.nearest(name.as_str()) })
    }

    fn shared(&self, names: &HashMap<Arc<str>, usize>, name: &str) -> Option<&Arc<CatalogTool>> {
        self.tools.get(*names.get(name)?)
    }

    fn nearest(&self, name: &str) -> Vec<CanonicalName> {
        // The cost of a comparison grows with the lengths of both names, once per tool. No tool has such a long name.
        if name.len() > MAX_COMPARED {
            return Vec::new();
        }
        let mut scored: Vec<_> = self
            .tools
            .iter()
            .map(|tool| {
                let bare = strsim::jaro_winkler(name, tool.name.tool());
                (bare.max(strsim::jaro_winkler(name, tool.name.as_str())), &tool.name)
            })
            .filter(|(similarity, _)| *similarity > 0.75)
            .collect();
        scored.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.cmp(y)));
        scored.into_iter().take(3).map(|(_, name)| name.clone()).collect()
    }
}

impl Owned {
    fn new(since: u64, tools: Vec<Arc<CatalogTool>>) -> Self {
        let alias = |tool: &CatalogTool| {
            CanonicalName::new(tool.shown_server(), tool.name.tool()).as_str().into()
        };
        Self {
            since,
            by_canonical: index(&tools, |tool| tool.name.as_str().into()),
            by_alias: index(&tools, alias),
            by_bare: index(&tools, |tool| tool.name.tool().into()),
            tools,
        }
    }

    fn find(&self, names: &HashMap<Arc<str>, usize>, name: &str) -> Option<&Arc<CatalogTool>> {
        self.tools.get(*names.get(name)?)
    }
}

/// Indexes tools by name. If names collide, the last registered tool wins.
fn index(
    tools: &[Arc<CatalogTool>],
    name: impl Fn(&CatalogTool) -> Arc<str>,
) -> HashMap<Arc<str>, usize> {
    tools.iter().enumerate().map(|(at, tool)| (name(tool), at)).collect()
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
