//! The tools that one scope and one selection see.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use switchboard_model::{AccessRules, CanonicalName, Exposure, ExposureMode, ServerName};
use switchboard_protocol::push_string;

use crate::bit_set::BitSet;
use crate::definition::{ListEra, render_tool};
use crate::index::{Entry, Index};
use crate::meta_tools::MetaTool;
use crate::past::{DeclaredTool, Past};
use crate::scope::Scope;
use crate::selection::Selection;
use crate::toolset::Toolset;

/// Names longer than this get no suggestions.
const MAX_COMPARED: usize = 256;

/// Everything that a view depends on besides the index and the exposure.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ViewKey {
    pub scope: Arc<Scope>,
    pub selection: Arc<Selection>,
    /// The tools declared earlier, which keep their order.
    pub past: Arc<Past>,
}

/// The tools that a client sees. Immutable; clients that see the same tools share it.
#[derive(Debug)]
pub struct View {
    index: Arc<Index>,
    mode: ExposureMode,
    access: Vec<Arc<AccessRules>>,
    selection: Arc<Selection>,
    before: Arc<Past>,
    /// Whether policy, scope and selection permit the tool, switched on or not, by position. Of tools with the same
    /// name, only the last permitted one.
    is_reachable: BitSet,
    is_shown: BitSet,
    /// Positions of the listed tools, in the order of the list.
    order: Box<[u32]>,
    /// Toolsets that can be switched in this view.
    sets: Vec<String>,
    legacy_list: OnceLock<Bytes>,
    modern_list: OnceLock<Bytes>,
    digest: OnceLock<u64>,
    servers: OnceLock<HashSet<ServerName>>,
    reachable_servers: OnceLock<HashSet<ServerName>>,
    past: OnceLock<Arc<Past>>,
}

/// The difference between two views, by exposed names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    pub added: Vec<Arc<str>>,
    pub removed: Vec<Arc<str>>,
    /// Tools whose definition changed.
    pub changed: Vec<Arc<str>>,
}

impl Difference {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// The result of looking up a tool name.
#[derive(Debug)]
pub enum Found<'a> {
    Tool(&'a Entry),
    Meta(MetaTool),
    /// The tool exists, but is switched off; `sets` are the disabled toolsets that contain it.
    Disabled {
        entry: &'a Entry,
        sets: Vec<&'a str>,
    },
    Unknown {
        nearest: Vec<&'a str>,
    },
}

/// Whether a toolset may have members that the view does not reach, other than by the toolsets themselves.
fn is_narrowed(scope: &Scope, selection: &Selection) -> bool {
    scope.server.is_some()
        || scope.agent.is_some()
        || !scope.access.is_empty()
        || selection.servers.is_some()
        || scope.toolsets.len() > 1
}

impl View {
    /// Computes a view. `key.scope` must have been checked with [`Scope::check`].
    pub fn new(index: Arc<Index>, exposure: &Exposure, key: &ViewKey) -> Self {
        let (scope, selection) = (&key.scope, &key.selection);
        let mode = scope.mode(exposure);
        let agent = scope.agent.as_deref().map(|name| index.agent(name));
        let access: Vec<_> = scope.access.iter().map(|rules| index.access(rules)).collect();
        let mut is_reachable: Vec<bool> = index
            .entries()
            .iter()
            .enumerate()
            .map(|(at, entry)| {
                entry.name.is_some()
                    && index.is_permitted(at)
                    && agent.is_none_or(|agent| agent.is_some_and(|agent| agent.has(at)))
                    && access.iter().all(|granted| granted.has(at))
                    && scope_has(scope, entry)
                    && is_bound(selection, entry)
            })
            .collect();
        let statics = (exposure.mode == ExposureMode::Static).then_some(&exposure.tool_sets);
        for sets in &scope.toolsets {
            keep_members(&mut is_reachable, &index, sets.iter().map(String::as_str), |_| false);
        }
        if let Some(sets) = statics {
            // The `static` exposure does not restrict the servers that a session attached itself.
            keep_members(
                &mut is_reachable,
                &index,
                sets.iter().map(String::as_str),
                Entry::is_owned,
            );
        }
        keep_last_of_each_name(&mut is_reachable, &index);
        let is_shown = shown(&index, &is_reachable, mode, selection);
        let can_switch = |set: &Toolset| {
            let is_named = |sets: &Vec<String>| sets.contains(&set.name);
            let reaches = |at: &usize| is_reachable.get(*at).copied().unwrap_or_default();
            // A server without tools may have prompts and resources, whose visibility depends on its toolsets.
            let has_server = |server: &ServerName| {
                !index.has_server(server)
                    && scope.access.iter().all(|rules| index.grants_server(rules, server))
                    && agent.is_none_or(|agent| agent.is_some_and(|agent| agent.expects(server)))
                    && scope.server.as_deref().is_none_or(|only| only == server.as_str())
                    && selection
                        .servers
                        .as_ref()
                        .is_none_or(|bound| bound.contains(server.as_str()))
            };
            (scope.toolsets.is_empty() || scope.toolsets.iter().any(is_named))
                && statics.is_none_or(is_named)
                && (!is_narrowed(scope, selection)
                    || set.members.iter().any(reaches)
                    || set.servers.iter().any(has_server))
        };
        let sets = index.toolsets_for(&scope.access).filter(|set| can_switch(set));
        let sets = sets.map(|set| set.name.clone());
        Self {
            sets: sets.collect(),
            mode,
            access: scope.access.clone(),
            selection: selection.clone(),
            before: key.past.clone(),
            order: ordered(&index, &is_shown, &key.past),
            is_reachable: BitSet::of(&is_reachable),
            is_shown: BitSet::of(&is_shown),
            legacy_list: OnceLock::new(),
            modern_list: OnceLock::new(),
            digest: OnceLock::new(),
            servers: OnceLock::new(),
            reachable_servers: OnceLock::new(),
            past: OnceLock::new(),
            index,
        }
    }

    /// The index of the catalog (its tools and toolsets by name) that the view was computed from.
    pub fn index(&self) -> &Arc<Index> {
        &self.index
    }

    pub fn mode(&self) -> ExposureMode {
        self.mode
    }

    /// The session's selection.
    pub fn selection(&self) -> &Arc<Selection> {
        &self.selection
    }

    /// Whether a toolset is switched on.
    pub fn is_on(&self, set: &str) -> bool {
        self.selection.is_on(set, self.mode)
    }

    /// The declared tools including this view; the next view of the same session must keep their order.
    pub fn past(&self) -> &Arc<Past> {
        self.past.get_or_init(|| {
            let declared = |entry: &Entry| {
                Some(DeclaredTool { name: entry.name.clone()?, tool: entry.shown_name() })
            };
            Arc::new(self.before.followed_by(self.tools().filter_map(declared).collect()))
        })
    }

    /// Names of the toolsets that can be switched in this view, in the order of the configuration.
    pub fn set_names(&self) -> &[String] {
        &self.sets
    }

    /// A toolset that can be switched in this view.
    pub fn toolset(&self, name: &str) -> Option<&Toolset> {
        self.sets.iter().any(|set| set == name).then(|| self.index.toolset(name))?
    }

    /// The listed tools, in their order, without the meta-tools.
    pub fn tools(&self) -> impl Iterator<Item = &Entry> {
        let order = self.order.iter().filter_map(|at| usize::try_from(*at).ok());
        order.filter_map(|at| self.index.entries().get(at))
    }

    /// Whether a tool is listed.
    pub fn shows(&self, entry: &Entry) -> bool {
        let place = self.index.canonical(entry.tool.name.as_str());
        place.is_some_and(|at| self.is_shown.has(at))
    }

    /// The members of a toolset that this view can reach, switched on or not.
    pub fn members<'a>(&'a self, set: &'a Toolset) -> impl Iterator<Item = &'a Entry> {
        let reachable = set.members.iter().filter(|at| self.reaches(**at));
        reachable.filter_map(|at| self.index.entries().get(*at))
    }

    /// Whether a tool of the server is listed; its prompts and resources are visible then too.
    pub fn has_server(&self, server: &ServerName) -> bool {
        let servers = self
            .servers
            .get_or_init(|| self.tools().map(|entry| entry.tool.name.server().clone()).collect());
        servers.contains(server)
    }

    /// Whether this view can reach a tool of the server, switched on or not.
    pub fn reaches_server(&self, server: &ServerName) -> bool {
        let servers = self.reachable_servers.get_or_init(|| {
            let entries = self.index.entries().iter().enumerate();
            let reachable = entries.filter(|(at, _)| self.is_reachable.has(*at));
            reachable.map(|(_, entry)| entry.tool.name.server().clone()).collect()
        });
        servers.contains(server)
    }

    /// Whether the access of the caller grants something of a configured server, so that it may be named.
    pub fn grants_server(&self, server: &ServerName) -> bool {
        self.access.iter().all(|rules| self.index.grants_server(rules, server))
    }

    /// Looks up the tool name of a call.
    pub fn find(&self, name: &str) -> Found<'_> {
        if self.mode == ExposureMode::Dynamic
            && let Some(meta) = MetaTool::named(name)
        {
            return Found::Meta(meta);
        }
        let Some(at) = self.place(name).filter(|at| self.reaches(*at)) else {
            return Found::Unknown { nearest: self.nearest(name, &self.is_shown) };
        };
        let Some(entry) = self.index.entries().get(at) else {
            return Found::Unknown { nearest: Vec::new() };
        };
        if self.is_shown.has(at) {
            return Found::Tool(entry);
        }
        let has_it = |set: &&String| {
            !self.is_on(set) && self.index.toolset(set).is_some_and(|set| set.members.contains(&at))
        };
        let sets = self.sets.iter().filter(has_it);
        Found::Disabled { entry, sets: sets.map(String::as_str).collect() }
    }

    /// Looks up a tool by exposed or canonical name, switched on or not, as the meta-tools do. The error is a list of
    /// similar names.
    pub fn reach(&self, name: &str) -> Result<&Entry, Vec<&str>> {
        let at = self.holder(name).or_else(|| self.index.canonical(name));
        at.filter(|at| self.reaches(*at))
            .and_then(|at| self.index.entries().get(at))
            .ok_or_else(|| self.nearest(name, &self.is_reachable))
    }

    /// Whether this view can reach a tool, switched on or not.
    pub fn reaches_tool(&self, name: &CanonicalName) -> bool {
        self.index.canonical(name.as_str()).is_some_and(|at| self.reaches(at))
    }

    /// Whether the tool is switched off explicitly in the session. No toolset switches it on again.
    pub fn is_switched_off(&self, entry: &Entry) -> bool {
        let tools = &self.selection.tools;
        !tools.is_empty() && tools.get(entry.shown_name().as_str()) == Some(&false)
    }

    /// The listed tool with this bare name, if there is exactly one.
    pub fn only_one_called(&self, bare: &str) -> Option<&Entry> {
        let mut called = self.tools().filter(|entry| entry.tool.name.tool() == bare);
        called.next().filter(|_| called.next().is_none())
    }

    /// The best matches among all tools that this view can reach.
    pub fn search(&self, query: &str, limit: usize) -> Vec<(&Entry, f32)> {
        let hits = self.index.search(query, limit, |at| self.reaches(at));
        hits.into_iter()
            .filter_map(|hit| Some((self.index.entries().get(hit.tool)?, hit.score)))
            .collect()
    }

    /// Position of the tool with this name, else of the tool that was declared under it earlier.
    fn place(&self, name: &str) -> Option<usize> {
        self.holder(name).or_else(|| self.index.canonical(self.before.named(name)?.as_str()))
    }

    /// Position of the tool with this name, preferably one that this view can reach.
    fn holder(&self, name: &str) -> Option<usize> {
        let last = self.index.named(name)?;
        if self.reaches(last) {
            return Some(last);
        }
        let mut rivals = self.index.rivals_of(last).iter().copied();
        Some(rivals.find(|at| self.reaches(*at)).unwrap_or(last))
    }

    fn reaches(&self, at: usize) -> bool {
        self.is_reachable.has(at)
    }

    fn nearest(&self, name: &str, among: &BitSet) -> Vec<&str> {
        // The cost of a comparison grows with both lengths, and is paid for each tool. No tool has a name this long.
        if name.len() > MAX_COMPARED {
            return Vec::new();
        }
        let mut scored: Vec<(f64, &str)> = self
            .index
            .entries()
            .iter()
            .enumerate()
            .filter(|(at, _)| among.has(*at))
            .filter_map(|(_, entry)| {
                let shown = entry.name.as_deref()?;
                let bare = strsim::jaro_winkler(name, entry.tool.name.tool());
                Some((bare.max(strsim::jaro_winkler(name, shown)), shown))
            })
            .filter(|(similarity, _)| *similarity > 0.8)
            .collect();
        scored.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.cmp(y)));
        scored.into_iter().take(3).map(|(_, name)| name).collect()
    }

    /// The result of `tools/list`, serialised once.
    pub fn list(&self, era: ListEra) -> &Bytes {
        let cell = match era {
            ListEra::Session => &self.legacy_list,
            ListEra::Stateless => &self.modern_list,
        };
        cell.get_or_init(|| self.render(era).into())
    }

    /// Whether a list was serialised, which takes far more memory than the rest of the view.
    pub fn has_lists(&self) -> bool {
        self.legacy_list.get().is_some() || self.modern_list.get().is_some()
    }

    /// A digest of the list that is stable across restarts.
    pub fn digest(&self) -> u64 {
        *self.digest.get_or_init(|| {
            let bytes = blake3::hash(self.list(ListEra::Session));
            bytes.as_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes)
        })
    }

    /// Whether two views have the same list, so that no `list_changed` notification is needed.
    pub fn lists_same(&self, other: &Self) -> bool {
        let is_same = |mine: &Entry, theirs: &Entry| {
            mine.name == theirs.name
                && (Arc::ptr_eq(&mine.tool, &theirs.tool)
                    || mine.tool.descriptor == theirs.tool.descriptor)
        };
        self.order.len() == other.order.len()
            && self.mode == other.mode
            && self.tools().zip(other.tools()).all(|(mine, theirs)| is_same(mine, theirs))
            && (self.mode != ExposureMode::Dynamic || self.meta_text() == other.meta_text())
    }

    /// How this view differs from an earlier one.
    pub fn since(&self, before: &Self) -> Difference {
        let named = |view: &'_ Self| -> Vec<(Arc<str>, Arc<_>)> {
            let tools = view.tools();
            tools.filter_map(|entry| Some((entry.name.clone()?, entry.tool.clone()))).collect()
        };
        let (now, then) = (named(self), named(before));
        let now_by: HashMap<_, _> = now.iter().map(|(name, tool)| (name, tool)).collect();
        let then_by: HashMap<_, _> = then.iter().map(|(name, tool)| (name, tool)).collect();
        let mut difference = Difference::default();
        for (name, tool) in &now {
            match then_by.get(name) {
                None => difference.added.push(name.clone()),
                Some(old) if Arc::ptr_eq(old, tool) || old.descriptor == tool.descriptor => {}
                Some(_) => difference.changed.push(name.clone()),
            }
        }
        let gone = then.iter().filter(|(name, _)| !now_by.contains_key(name));
        difference.removed = gone.map(|(name, _)| name.clone()).collect();
        difference
    }

    fn meta_text(&self) -> String {
        let mut text = String::new();
        for meta in MetaTool::ALL {
            meta.render(&mut text, self);
        }
        text
    }

    fn render(&self, era: ListEra) -> String {
        let mut json = String::with_capacity(4096);
        json.push('{');
        if era == ListEra::Stateless {
            json.push_str("\"resultType\":\"complete\",");
        }
        json.push_str("\"tools\":[");
        let start = json.len();
        if self.mode == ExposureMode::Dynamic {
            for meta in MetaTool::ALL {
                separate(&mut json, start);
                meta.render(&mut json, self);
            }
        }
        for entry in self.tools() {
            if let Some(name) = &entry.name {
                separate(&mut json, start);
                render_tool(&mut json, name, &entry.tool.descriptor, era);
            }
        }
        json.push(']');
        if era == ListEra::Stateless {
            // The list depends on headers, credentials and toolsets, so shared caches must not store it.
            let ttl = if self.mode == ExposureMode::Dynamic { 0 } else { 10_000 };
            let _infallible = write!(json, ",\"ttlMs\":{ttl},\"cacheScope\":\"private\"");
        }
        json.push('}');
        json.shrink_to_fit();
        json
    }
}

fn separate(json: &mut String, start: usize) {
    if json.len() > start {
        json.push(',');
    }
}

fn scope_has(scope: &Scope, entry: &Entry) -> bool {
    let is_named = |tools: &Vec<String>| {
        let shown = entry.name.as_deref();
        let canonical = entry.shown_name();
        tools.iter().any(|tool| Some(tool.as_str()) == shown || tool == canonical.as_str())
    };
    scope.server.as_deref().is_none_or(|server| entry.tool.shown_server().as_str() == server)
        && scope.tools.iter().all(is_named)
        && (!scope.read_only || entry.is_read_only)
        && scope.groups.as_ref().is_none_or(|groups| groups.allows(&entry.tool.grouping))
}

/// Whether the session sees the tool's server. Attached servers are always included.
fn is_bound(selection: &Selection, entry: &Entry) -> bool {
    let server = entry.tool.name.server();
    let is_among = |bound: &BTreeSet<String>| bound.contains(server.as_str());
    entry.is_owned() || selection.servers.as_ref().is_none_or(is_among)
}

/// Which tools are switched on. An explicitly switched tool takes precedence, then toolsets that are switched on, then
/// toolsets that are switched off, then the default of the exposure mode.
fn shown(
    index: &Index,
    is_reachable: &[bool],
    mode: ExposureMode,
    selection: &Selection,
) -> Vec<bool> {
    // Tools of attached servers are on by default.
    let by_default = |entry: &Entry| mode != ExposureMode::Dynamic || entry.is_owned();
    let mut is_shown: Vec<bool> = index.entries().iter().map(by_default).collect();
    mark_members(&mut is_shown, index, selection.switched_off(), false);
    mark_members(&mut is_shown, index, selection.switched_on(), true);
    for (tool, is_on) in &selection.tools {
        if let Some(flag) = index.canonical(tool).and_then(|at| is_shown.get_mut(at)) {
            *flag = *is_on;
        }
    }
    is_shown.iter().zip(is_reachable).map(|(shown, reachable)| *shown && *reachable).collect()
}

/// Orders the listed tools: tools declared earlier keep their order; new ones follow in the order of the catalog.
fn ordered(index: &Index, is_shown: &[bool], past: &Past) -> Box<[u32]> {
    let is_still_there = |at: &usize, name: &str| {
        is_shown.get(*at) == Some(&true)
            && index.entries().get(*at).is_some_and(|entry| entry.name.as_deref() == Some(name))
    };
    let mut order: Vec<usize> = past
        .declared()
        .iter()
        .filter_map(|one| {
            index.canonical(one.tool.as_str()).filter(|at| is_still_there(at, &one.name))
        })
        .collect();
    let mut is_placed = vec![false; is_shown.len()];
    for at in &order {
        if let Some(flag) = is_placed.get_mut(*at) {
            *flag = true;
        }
    }
    let new = is_shown.iter().zip(&is_placed).enumerate();
    order.extend(new.filter(|(_, (shown, placed))| **shown && !**placed).map(|(at, _)| at));
    // A catalog has far fewer tools than that.
    order.into_iter().filter_map(|at| u32::try_from(at).ok()).collect()
}

fn mark_members<'a>(
    flags: &mut [bool],
    index: &Index,
    sets: impl Iterator<Item = &'a str>,
    value: bool,
) {
    for set in sets.filter_map(|name| index.toolset(name)) {
        for at in &set.members {
            if let Some(flag) = flags.get_mut(*at) {
                *flag = value;
            }
        }
    }
}

fn keep_members<'a>(
    flags: &mut [bool],
    index: &Index,
    sets: impl Iterator<Item = &'a str>,
    stays: impl Fn(&Entry) -> bool,
) {
    let mut is_member = vec![false; flags.len()];
    mark_members(&mut is_member, index, sets, true);
    for (flag, entry) in is_member.iter_mut().zip(index.entries()) {
        *flag |= stays(entry);
    }
    for (flag, is_member) in flags.iter_mut().zip(is_member) {
        *flag &= is_member;
    }
}

/// Of tools with the same name, only the last reachable one stays reachable. Tools that policy or scope hide never
/// shadow visible ones.
fn keep_last_of_each_name(is_reachable: &mut [bool], index: &Index) {
    for rivals in index.rivals() {
        let mut is_taken = false;
        for at in rivals.iter().rev() {
            if let Some(flag) = is_reachable.get_mut(*at) {
                let is_last = *flag && !is_taken;
                is_taken |= *flag;
                *flag = is_last;
            }
        }
    }
}

/// Appends names as a JSON list.
pub(crate) fn push_names<'a>(json: &mut String, names: impl Iterator<Item = &'a str>) {
    json.push('[');
    let start = json.len();
    for name in names {
        separate(json, start);
        push_string(json, name);
    }
    json.push(']');
}

#[cfg(test)]
#[path = "difference_tests.rs"]
mod difference_tests;
#[cfg(test)]
#[path = "meta_tools_tests.rs"]
mod meta_tools_tests;
#[cfg(test)]
#[path = "view_tests.rs"]
pub(crate) mod tests;
