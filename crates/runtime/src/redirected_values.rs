//! Edits that would send values of the file to tools or hosts that they were not written for.

use switchboard_config::{ConfigEdit, ConfigText, EntryList};
use switchboard_model::Plan;
use switchboard_registry::{RedirectedValue, redirected_values};

use crate::config_edit::ProposedEdit;
use crate::config_source::ConfigSource;

impl ConfigSource {
    /// The fixed values and hidden defaults of the file that would go elsewhere after the edits. If the file as it is
    /// does not load, `in_force` stands for it.
    pub(crate) fn redirected(
        &self,
        proposed: &ProposedEdit,
        edits: &[ConfigEdit],
        in_force: &Plan,
    ) -> Vec<RedirectedValue> {
        let after = &proposed.loaded().plan;
        let Ok(before) = self.load_text(proposed.before()) else {
            return redirected_values(in_force, after, Some);
        };
        let (old, new) = (names(proposed.before()), names(proposed.after()));
        let earlier = |index: usize| {
            let name = new.get(index)?.as_deref()?;
            let name = earlier_name(edits, name);
            old.iter().position(|old| old.as_deref() == Some(name))
        };
        redirected_values(&before.plan, after, earlier)
    }
}

/// The names of the tool entries of a file, as they are written.
fn names(text: &str) -> Vec<Option<String>> {
    let Ok(text) = ConfigText::new("", text) else { return Vec::new() };
    let entries = text.entries(EntryList::Tools).iter();
    entries.map(|entry| entry.get("name")?.as_str().map(str::to_owned)).collect()
}

/// The name that an entry of this name had before the edits.
fn earlier_name<'a>(edits: &'a [ConfigEdit], name: &'a str) -> &'a str {
    let mut patches = edits.iter().filter_map(|edit| match edit {
        ConfigEdit::Patch { list: EntryList::Tools, name, fields } => {
            Some((name.as_str(), fields.get("name")?.as_str()?))
        }
        _ => None,
    });
    patches.find(|(_, new)| *new == name).map_or(name, |(old, _)| old)
}
