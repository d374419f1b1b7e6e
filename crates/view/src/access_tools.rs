//! The tools, toolsets and servers that the access of a caller grants.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_model::{AccessRule, AccessRules, ServerName};
use switchboard_registry::CatalogTool;
use wildmatch::WildMatch;

use crate::bit_set::BitSet;
use crate::index::Entry;
use crate::toolset::{Toolset, matches};

/// The most different rules whose tools are cached; beyond it the cache begins anew.
const MAX_CACHED: usize = 4096;

/// What rules grant of one index, a bit for each tool and each toolset.
#[derive(Debug, Default)]
pub(crate) struct AccessTools {
    tools: BitSet,
    toolsets: BitSet,
}

/// The tools of each rules that were asked for, computed once for an index.
#[derive(Debug, Default)]
pub(crate) struct AccessCache(Mutex<HashMap<Arc<AccessRules>, Arc<AccessTools>>>);

impl AccessCache {
    pub(crate) fn get(
        &self,
        rules: &Arc<AccessRules>,
        entries: &[Entry],
        toolsets: &[Toolset],
    ) -> Arc<AccessTools> {
        let mut cached = self.0.lock();
        if let Some(known) = cached.get(rules) {
            return known.clone();
        }
        if cached.len() >= MAX_CACHED {
            cached.clear();
        }
        let made = Arc::new(AccessTools::new(rules, entries, toolsets));
        cached.insert(rules.clone(), made.clone());
        made
    }
}

impl AccessTools {
    fn new(rules: &AccessRules, entries: &[Entry], toolsets: &[Toolset]) -> Self {
        let (mut tools, mut is_named) = (vec![false; entries.len()], vec![false; entries.len()]);
        let mut shown = vec![false; toolsets.len()];
        for rule in rules.iter() {
            let names = |set: &Toolset| {
                rule.toolsets.as_ref().is_some_and(|names| names.contains(&set.name))
            };
            let mut in_sets = vec![false; entries.len()];
            for (set, flag) in toolsets.iter().zip(&mut shown).filter(|(set, _)| names(set)) {
                *flag = true;
                for at in &set.members {
                    for flags in [&mut in_sets, &mut is_named] {
                        if let Some(flag) = flags.get_mut(*at) {
                            *flag = true;
                        }
                    }
                }
            }
            let patterns = RulePatterns::of(rule);
            for ((flag, entry), is_member) in tools.iter_mut().zip(entries).zip(in_sets) {
                *flag |= patterns.grant(&entry.tool, entry.is_read_only, is_member);
            }
        }
        // A toolset that no rule names is shown for the sake of tools that are granted by name only, or with everything.
        for (set, flag) in toolsets.iter().zip(&mut shown) {
            let needs_it =
                |at: &usize| tools.get(*at) == Some(&true) && is_named.get(*at) == Some(&false);
            *flag |= set.members.iter().any(needs_it)
                || set.servers.iter().any(|server| grant_server(rules, server, &[]));
        }
        Self { tools: BitSet::of(&tools), toolsets: BitSet::of(&shown) }
    }

    /// Whether the tool at this position of the index is granted.
    pub(crate) fn has(&self, at: usize) -> bool {
        self.tools.has(at)
    }

    /// Whether the caller may know the toolset at this position of the index.
    pub(crate) fn shows_toolset(&self, at: usize) -> bool {
        self.toolsets.has(at)
    }
}

/// The patterns of a rule, compiled once for many tools.
struct RulePatterns<'a> {
    rule: &'a AccessRule,
    allow: Option<Vec<WildMatch>>,
    deny: Vec<WildMatch>,
}

impl<'a> RulePatterns<'a> {
    fn of(rule: &'a AccessRule) -> Self {
        let compiled =
            |texts: &Vec<String>| texts.iter().map(|text| WildMatch::new(text)).collect();
        Self { rule, allow: rule.tools.as_ref().map(compiled), deny: compiled(&rule.deny_tools) }
    }

    /// Whether the rule grants a tool. `is_member` says whether the tool is in one of the toolsets that the rule names.
    fn grant(&self, tool: &CatalogTool, is_read_only: bool, is_member: bool) -> bool {
        let is_in = |patterns: &[WildMatch]| patterns.iter().any(|it| matches(it, tool));
        let is_whole = self.rule.toolsets.is_none() && self.allow.is_none();
        let is_granted = is_whole || is_member || self.allow.as_deref().is_some_and(is_in);
        is_granted && (is_read_only || !self.rule.read_only) && !is_in(&self.deny)
    }
}

/// Whether rules grant a tool that is in no toolset, such as that of a server that a session attached.
pub(crate) fn grant_unlisted(rules: &AccessRules, tool: &CatalogTool, is_read_only: bool) -> bool {
    rules.iter().any(|rule| RulePatterns::of(rule).grant(tool, is_read_only, false))
}

/// Whether rules grant a server as a whole, whose tools are not known: `sets` are its toolsets. No server is known to be
/// read-only as a whole.
pub(crate) fn grant_server(rules: &AccessRules, server: &ServerName, sets: &[&str]) -> bool {
    rules.iter().any(|rule| has_server(rule, server, sets))
}

/// Whether rules may grant a tool of a server whose tools are not known: they grant the server as a whole, or one of its
/// tools by name.
pub(crate) fn may_grant_of_server(rules: &AccessRules, server: &ServerName, sets: &[&str]) -> bool {
    let names_tool = |pattern: &String| {
        let name = pattern.split_once('.').map(|(name, _)| name);
        name.is_some_and(|name| WildMatch::new(name).matches(server.as_str()))
    };
    rules.iter().any(|rule| {
        let is_granted =
            means_whole(rule, server, sets) || rule.tools.iter().flatten().any(names_tool);
        is_granted && !denies_whole(rule, server)
    })
}

fn has_server(rule: &AccessRule, server: &ServerName, sets: &[&str]) -> bool {
    means_whole(rule, server, sets) && !rule.read_only && !denies_whole(rule, server)
}

fn means_whole(rule: &AccessRule, server: &ServerName, sets: &[&str]) -> bool {
    match (&rule.toolsets, &rule.tools) {
        (None, None) => true,
        (named, tools) => {
            named.iter().flatten().any(|name| sets.contains(&name.as_str()))
                || tools.iter().flatten().any(|pattern| is_every_tool(pattern, server))
        }
    }
}

fn denies_whole(rule: &AccessRule, server: &ServerName) -> bool {
    rule.deny_tools.iter().any(|pattern| is_every_tool(pattern, server))
}

/// Whether a pattern means all tools of a server.
fn is_every_tool(pattern: &str, server: &ServerName) -> bool {
    let name = pattern.strip_suffix(".*");
    pattern == "*" || name.is_some_and(|name| name == server.as_str() || name == "*")
}

#[cfg(test)]
#[path = "access_tools_tests.rs"]
mod tests;
