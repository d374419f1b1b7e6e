//! What a caller may use: the tools that its key or token grants, and its own limits.
//!
//! Access only narrows what the configuration shows. A tool that is not granted does not exist for the caller.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::Rate;

/// What a key, or one rule for tokens, grants. What is `None` restricts nothing; an empty list grants nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct AccessRule {
    /// Toolsets whose tools are granted. A toolset that does not exist grants nothing.
    pub toolsets: Option<Vec<String>>,
    /// Tools that are granted in addition to those of `toolsets`: `tool` or `server.tool`, with `*` and `?`.
    pub tools: Option<Vec<String>>,
    /// Tools that are not granted, whatever the other fields say.
    pub deny_tools: Vec<String>,
    /// Whether only tools with a `readOnlyHint` are granted.
    pub read_only: bool,
}

impl AccessRule {
    /// Grants everything.
    pub const ALL: Self =
        Self { toolsets: None, tools: None, deny_tools: Vec::new(), read_only: false };

    /// Whether the rule grants everything.
    pub fn is_all(&self) -> bool {
        *self == Self::ALL
    }
}

/// Rules of which at least one must grant a tool. Compared by content, and cheap as a part of a key: the hash is made once.
#[derive(Debug, PartialEq, Eq)]
pub struct AccessRules {
    fingerprint: u64,
    rules: Box<[AccessRule]>,
}

impl AccessRules {
    /// Without rules, nothing is granted.
    pub fn new(mut rules: Vec<AccessRule>) -> Self {
        for rule in &mut rules {
            for list in [&mut rule.toolsets, &mut rule.tools].into_iter().flatten() {
                list.sort_unstable();
                list.dedup();
            }
            rule.deny_tools.sort_unstable();
            rule.deny_tools.dedup();
        }
        let mut hasher = DefaultHasher::new();
        rules.hash(&mut hasher);
        Self { fingerprint: hasher.finish(), rules: rules.into() }
    }

    pub fn iter(&self) -> impl Iterator<Item = &AccessRule> {
        self.rules.iter()
    }
}

impl Hash for AccessRules {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint.hash(state);
    }
}

/// Limits of a caller, beside those of the tools: the narrower one counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallerLimits {
    /// Maximum number of calls of one tool that the caller may run at the same time.
    pub max_instances: Option<u32>,
    /// How often the caller may call one tool.
    pub rate: Option<Rate>,
}

/// What a caller may use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// The tools; `None` for all that the configuration shows.
    pub tools: Option<Arc<AccessRules>>,
    pub limits: CallerLimits,
}

impl Access {
    /// Everything, without limits of its own.
    pub fn all() -> Self {
        Self::default()
    }

    /// Nothing.
    pub fn none() -> Self {
        let tools = Some(Arc::new(AccessRules::new(Vec::new())));
        Self { tools, limits: CallerLimits::default() }
    }

    /// What one rule grants.
    pub fn of(rule: AccessRule, limits: CallerLimits) -> Self {
        let tools = (!rule.is_all()).then(|| Arc::new(AccessRules::new(vec![rule])));
        Self { tools, limits }
    }

    /// What all these grant together: every tool that one of them grants, with the most generous of their limits.
    /// Nothing, if there are none.
    pub fn union(all: impl IntoIterator<Item = (AccessRule, CallerLimits)>) -> Self {
        let (rules, limits): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let is_all = rules.iter().any(AccessRule::is_all);
        // A rule without a limit permits any number.
        let most = limits.into_iter().reduce(|one, other| CallerLimits {
            max_instances: one.max_instances.zip(other.max_instances).map(|(a, b)| a.max(b)),
            rate: one.rate.zip(other.rate).map(|(a, b)| a.faster(b)),
        });
        Self {
            tools: (!is_all).then(|| Arc::new(AccessRules::new(rules))),
            limits: most.unwrap_or_default(),
        }
    }

    /// Whether no tool is withheld. Limits may still apply.
    pub fn has_all_tools(&self) -> bool {
        self.tools.is_none()
    }
}

/// The present access of a credential. Clones share it: a change is in force for running sessions, turns and calls at
/// once.
#[derive(Clone)]
pub struct LiveAccess(Arc<ArcSwap<Access>>);

impl LiveAccess {
    pub fn new(access: Access) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(access)))
    }

    /// The access of this moment.
    pub fn load(&self) -> Arc<Access> {
        self.0.load_full()
    }

    /// The rules of this moment; `None` if no tool is withheld.
    pub fn tools(&self) -> Option<Arc<AccessRules>> {
        self.0.load().tools.clone()
    }

    /// The limits of this moment.
    pub fn limits(&self) -> CallerLimits {
        self.0.load().limits
    }

    /// Replaces the access. Returns whether it differs.
    pub fn set(&self, access: Access) -> bool {
        let differs = **self.0.load() != access;
        // Equal rules are replaced too, so that credentials with equal access share them.
        self.0.store(Arc::new(access));
        differs
    }

    /// Whether both belong to one credential.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether anything besides this handle uses the access.
    pub fn is_used_elsewhere(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// A handle that does not keep the access alive.
    pub fn downgrade(&self) -> WeakAccess {
        WeakAccess(Arc::downgrade(&self.0))
    }
}

impl Default for LiveAccess {
    fn default() -> Self {
        Self::new(Access::all())
    }
}

impl fmt::Debug for LiveAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.load().fmt(f)
    }
}

/// Equal if the access is equal at this moment.
impl PartialEq for LiveAccess {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || *self.load() == *other.load()
    }
}

impl Eq for LiveAccess {}

/// A handle on a [`LiveAccess`] that something else keeps alive.
#[derive(Debug, Clone)]
pub struct WeakAccess(std::sync::Weak<ArcSwap<Access>>);

impl WeakAccess {
    pub fn upgrade(&self) -> Option<LiveAccess> {
        self.0.upgrade().map(LiveAccess)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(names: &[&str]) -> AccessRule {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        AccessRule { toolsets: Some(names), ..AccessRule::ALL }
    }

    fn limits(max_instances: Option<u32>, rate: Option<&str>) -> CallerLimits {
        CallerLimits { max_instances, rate: rate.map(|text| text.parse().unwrap()) }
    }

    #[test]
    fn a_union_grants_what_one_of_its_rules_grants() {
        let none = CallerLimits::default();
        assert_eq!(Access::union([]), Access::none());
        assert_eq!(Access::union([(sets(&["a"]), none)]), Access::of(sets(&["a"]), none));
        let both = Access::union([(sets(&["a"]), none), (sets(&["b"]), none)]);
        assert_eq!(both.tools.unwrap().iter().count(), 2);
        assert!(Access::union([(sets(&["a"]), none), (AccessRule::ALL, none)]).has_all_tools());
    }

    #[test]
    fn the_most_generous_limit_of_a_union_counts() {
        let united =
            |one, other| Access::union([(AccessRule::ALL, one), (AccessRule::ALL, other)]).limits;
        let narrow = limits(Some(2), Some("5/s"));
        assert_eq!(united(narrow, limits(Some(3), Some("60/min"))), limits(Some(3), Some("5/s")));
        assert_eq!(united(narrow, limits(None, None)), limits(None, None));
    }

    #[test]
    fn rules_are_equal_in_every_order_of_their_names() {
        let rules = |names: &[&str]| AccessRules::new(vec![sets(names)]);
        assert_eq!(rules(&["a", "b"]), rules(&["b", "a", "b"]));
        assert_ne!(rules(&["a"]), rules(&["b"]));
        assert_ne!(rules(&[]), AccessRules::new(vec![AccessRule::ALL]), "nothing is not all");
    }

    #[test]
    fn a_change_is_seen_through_every_clone() {
        let live = LiveAccess::default();
        let held = live.clone();
        assert!(!live.set(Access::all()));
        assert!(live.set(Access::none()));
        assert_eq!(*held.load(), Access::none());
        let weak = live.downgrade();
        drop((live, held));
        assert!(weak.upgrade().is_none());
    }
}
