//! What a session has chosen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchboard_model::ExposureMode;
use wildmatch::WildMatch;

/// The choices of one session. Those that choose the same share a view.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// The servers that the session is bound to; `None` binds it to all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<BTreeSet<String>>,
    /// Toolsets that were switched by hand. The others are as the exposure has them: off in `dynamic`, else on.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub toolsets: BTreeMap<String, bool>,
    /// Tools that were switched by hand, by canonical name; they win over toolsets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, bool>,
    /// For each provider the only tools that it may be shown, by name or pattern.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub allow: BTreeMap<String, Vec<String>>,
    /// The session whose own servers are seen too.
    #[serde(skip)]
    pub owner: Option<Arc<str>>,
}

impl Selection {
    /// A choice of toolsets and nothing else.
    pub fn of_sets(sets: impl IntoIterator<Item = String>) -> Self {
        let toolsets = sets.into_iter().map(|set| (set, true)).collect();
        Self { toolsets, ..Self::default() }
    }

    /// Whether two sessions have chosen the same, whatever servers they brought.
    pub fn chooses_same(&self, other: &Self) -> bool {
        let Self { servers, toolsets, tools, allow, owner: _ } = self;
        (servers, toolsets, tools, allow)
            == (&other.servers, &other.toolsets, &other.tools, &other.allow)
    }

    /// The toolsets that were switched on by hand.
    pub fn switched_on(&self) -> impl Iterator<Item = &str> {
        self.toolsets.iter().filter(|(_, is_on)| **is_on).map(|(set, _)| set.as_str())
    }

    pub(crate) fn switched_off(&self) -> impl Iterator<Item = &str> {
        self.toolsets.iter().filter(|(_, is_on)| !**is_on).map(|(set, _)| set.as_str())
    }

    /// Whether a toolset counts as switched on.
    pub fn is_on(&self, set: &str, mode: ExposureMode) -> bool {
        self.toolsets.get(set).copied().unwrap_or(mode != ExposureMode::Dynamic)
    }

    /// Whether a provider may be shown a tool that has these names.
    pub fn allows(&self, provider: &str, names: &[&str]) -> bool {
        self.allow.get(provider).is_none_or(|patterns| {
            patterns.iter().any(|pattern| {
                let pattern = WildMatch::new(pattern);
                names.iter().any(|name| pattern.matches(name))
            })
        })
    }
}
