//! Groups and states of tools: which tools a turn may use. They only ever hide tools.

use switchboard_model::ToolGrouping;

/// The group of tools that name none, and of turns that ask for none.
const DEFAULT_GROUP: &str = "default";
/// The state of a turn that names none.
const NO_STATE: &str = "undefined";
/// Stands for every group in a turn, and for every state in a tool.
const EVERY: &str = "*";

/// The groups that a turn asks for and the state that it is in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ToolGroups {
    groups: Vec<String>,
    state: String,
}

impl Default for ToolGroups {
    fn default() -> Self {
        Self { groups: vec![DEFAULT_GROUP.into()], state: NO_STATE.into() }
    }
}

impl ToolGroups {
    /// Without groups, the group `default`. Without a state, or with an empty one, the state `undefined`.
    pub fn new(groups: Option<Vec<String>>, state: Option<String>) -> Self {
        let default = Self::default();
        Self {
            groups: groups.unwrap_or(default.groups),
            state: state.filter(|state| !state.is_empty()).unwrap_or(default.state),
        }
    }

    pub fn state(&self) -> &str {
        &self.state
    }

    /// The same groups in another state.
    #[must_use]
    pub fn in_state(&self, state: impl Into<String>) -> Self {
        Self::new(Some(self.groups.clone()), Some(state.into()))
    }

    /// Whether a turn may use a tool: they share a group, or the turn asks for `*`, and the tool is available in the state.
    pub fn allows(&self, tool: &ToolGrouping) -> bool {
        let is_asked_for = |group: &str| self.groups.iter().any(|asked| asked == group);
        let has_group = is_asked_for(EVERY)
            || match &tool.group {
                Some(groups) => groups.iter().any(|group| is_asked_for(group)),
                None => is_asked_for(DEFAULT_GROUP),
            };
        let is_available = |states: &Vec<String>| {
            states.iter().any(|state| *state == self.state || state == EVERY)
        };
        has_group && tool.applicable_states.as_ref().is_none_or(is_available)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Words<'a> = Option<&'a [&'a str]>;

    fn owned(words: Words<'_>) -> Option<Vec<String>> {
        words.map(|words| words.iter().map(|word| (*word).to_owned()).collect())
    }

    /// One row: groups and state of the turn, groups and states of the tool, and whether the turn may use it.
    #[track_caller]
    fn check(groups: Words<'_>, state: Option<&str>, tool: (Words<'_>, Words<'_>), allowed: bool) {
        let turn = ToolGroups::new(owned(groups), state.map(str::to_owned));
        let (group, applicable_states) = (owned(tool.0), owned(tool.1));
        let tool = ToolGrouping { group, applicable_states, state: None };
        assert_eq!(turn.allows(&tool), allowed, "{turn:?} {tool:?}");
    }

    #[test]
    fn a_turn_uses_the_tools_of_its_groups() {
        check(None, None, (None, None), true);
        check(None, None, (Some(&["default"]), None), true);
        check(None, None, (Some(&["read"]), None), false);
        check(None, None, (Some(&[]), None), false);
        check(Some(&["read"]), None, (None, None), false);
        check(Some(&["read"]), None, (Some(&["write", "read"]), None), true);
        check(Some(&["read", "default"]), None, (None, None), true);
        check(Some(&["Read"]), None, (Some(&["read"]), None), false);
        check(Some(&["*"]), None, (None, None), true);
        check(Some(&["*"]), None, (Some(&["read"]), None), true);
        check(Some(&["*"]), None, (Some(&[]), None), true);
        check(Some(&[]), None, (None, None), false);
        check(Some(&[]), None, (Some(&["read"]), None), false);
        check(Some(&["read"]), None, (Some(&["*"]), None), false);
    }

    #[test]
    fn a_turn_uses_the_tools_of_its_state() {
        check(None, None, (None, Some(&["undefined"])), true);
        check(None, Some(""), (None, Some(&["undefined"])), true);
        check(None, Some("open"), (None, None), true);
        check(None, Some("open"), (None, Some(&["open", "shut"])), true);
        check(None, Some("open"), (None, Some(&["shut"])), false);
        check(None, None, (None, Some(&["open"])), false);
        check(None, Some("open"), (None, Some(&[])), false);
        check(None, Some("open"), (None, Some(&["*"])), true);
        check(Some(&["*"]), Some("open"), (Some(&["read"]), Some(&["shut"])), false);
    }

    #[test]
    fn a_state_follows_another() {
        let turn = ToolGroups::new(Some(vec!["read".into()]), None);
        assert_eq!(turn.state(), "undefined");
        let next = turn.in_state("open");
        assert_eq!((next.state(), &next.groups), ("open", &turn.groups));
    }
}
