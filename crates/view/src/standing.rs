//! Why a view shows a tool, or does not.

use std::collections::HashMap;

use switchboard_model::CanonicalName;

use crate::index::Entry;
use crate::view::View;

/// Why a view shows a tool or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is shown because the session switched it on.
    SwitchedOn,
    /// It is shown because it belongs to these toolsets, which the session switched on.
    InToolsets(Vec<String>),
    /// It is shown because nothing switches it off.
    Default,
    /// It is not shown because the session switched it off.
    SwitchedOff,
    /// It is not shown because these of its toolsets are off.
    ToolsetsOff(Vec<String>),
    /// It is not shown, and no toolset of the view has it.
    InNoToolset,
    /// The view cannot reach it.
    Unreachable,
}

impl Standing {
    /// Whether the tool is shown.
    pub fn is_shown(&self) -> bool {
        match self {
            Self::SwitchedOn | Self::InToolsets(_) | Self::Default => true,
            Self::SwitchedOff | Self::ToolsetsOff(_) | Self::InNoToolset | Self::Unreachable => {
                false
            }
        }
    }
}

/// The toolsets of a view by the tools that they have.
type SetsByTool<'a> = HashMap<&'a CanonicalName, Vec<&'a str>>;

impl View {
    /// All tools of the index with their standing: those that are shown first, in the order of the list.
    pub fn standings(&self) -> Vec<(&Entry, Standing)> {
        let mut sets: SetsByTool<'_> = HashMap::new();
        for name in self.set_names() {
            for member in self.toolset(name).into_iter().flat_map(|set| self.members(set)) {
                sets.entry(&member.tool.name).or_default().push(name);
            }
        }
        let shown = self.tools().map(|entry| (entry, self.why_shown(entry, &sets)));
        let others = self.index().entries().iter().filter(|entry| !self.shows(entry));
        shown.chain(others.map(|entry| (entry, self.why_hidden(entry, &sets)))).collect()
    }

    fn why_shown(&self, entry: &Entry, sets: &SetsByTool<'_>) -> Standing {
        let selection = self.selection();
        if selection.tools.get(entry.shown_name().as_str()) == Some(&true) {
            return Standing::SwitchedOn;
        }
        let sets = those(entry, sets, |set| selection.toolsets.get(set) == Some(&true));
        if sets.is_empty() { Standing::Default } else { Standing::InToolsets(sets) }
    }

    fn why_hidden(&self, entry: &Entry, sets: &SetsByTool<'_>) -> Standing {
        if !self.reaches_tool(&entry.tool.name) {
            return Standing::Unreachable;
        }
        if self.is_switched_off(entry) {
            return Standing::SwitchedOff;
        }
        let sets = those(entry, sets, |set| !self.is_on(set));
        if sets.is_empty() { Standing::InNoToolset } else { Standing::ToolsetsOff(sets) }
    }
}

/// The toolsets of a tool for which this holds.
fn those(entry: &Entry, sets: &SetsByTool<'_>, holds: impl Fn(&str) -> bool) -> Vec<String> {
    let sets = sets.get(&entry.tool.name).into_iter().flatten();
    sets.filter(|set| holds(set)).map(|set| (*set).to_owned()).collect()
}
