//! The choices of a session: servers, toolsets and tools that are switched on or off.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchboard_model::ExposureMode;
use wildmatch::WildMatch;

/// The choices of one session. Sessions with equal choices share a view.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// The servers whose tools the session sees; `None` means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<BTreeSet<String>>,
    /// Toolsets that were switched explicitly. All others follow the exposure mode: off in `dynamic`, else on.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub toolsets: BTreeMap<String, bool>,
    /// Tools that were switched explicitly, by canonical name. They take precedence over toolsets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, bool>,
    /// For each provider, the only tools that it may be shown, by name or pattern. Providers that are not listed are
    /// shown all.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub allow: BTreeMap<String, Vec<String>>,
    /// The session whose attached servers are visible too.
    #[serde(skip)]
    pub owner: Option<Arc<str>>,
}

impl Selection {
    /// A selection that switches these toolsets on and nothing else.
    pub fn of_sets(sets: impl IntoIterator<Item = String>) -> Self {
        let toolsets = sets.into_iter().map(|set| (set, true)).collect();
        Self { toolsets, ..Self::default() }
    }

    /// Whether two sessions made the same choices; attached servers are not compared.
    pub fn chooses_same(&self, other: &Self) -> bool {
        let Self { servers, toolsets, tools, allow, owner: _ } = self;
        (servers, toolsets, tools, allow)
            == (&other.servers, &other.toolsets, &other.tools, &other.allow)
    }

    /// The toolsets that were switched on explicitly.
    pub fn switched_on(&self) -> impl Iterator<Item = &str> {
        self.toolsets.iter().filter(|(_, is_on)| **is_on).map(|(set, _)| set.as_str())
    }

    pub(crate) fn switched_off(&self) -> impl Iterator<Item = &str> {
        self.toolsets.iter().filter(|(_, is_on)| !**is_on).map(|(set, _)| set.as_str())
    }

    /// Whether a toolset is switched on.
    pub fn is_on(&self, set: &str, mode: ExposureMode) -> bool {
        self.toolsets.get(set).copied().unwrap_or(mode != ExposureMode::Dynamic)
    }

    /// Whether a provider may be shown a tool with these names.
    pub fn allows(&self, provider: &str, names: &[&str]) -> bool {
        self.allow.get(provider).is_none_or(|patterns| {
            patterns.iter().any(|pattern| {
                let pattern = WildMatch::new(pattern);
                names.iter().any(|name| pattern.matches(name))
            })
        })
    }
}
