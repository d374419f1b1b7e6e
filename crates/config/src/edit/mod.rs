//! Edits the text of a configuration file.
//!
//! Only the bytes of what changes are replaced: comments, order, blank lines, quotes, line breaks and indentation of
//! everything else stay. An edited text is parsed again and must hold the old values with exactly the edits applied; a
//! file whose layout does not allow that is refused with the place to edit by hand.

mod diff;
mod kept_arguments;
mod layout;
mod lines;
mod overridden;
mod rewrite;
mod style;

use serde_json::{Map, Value as Json};
use switchboard_model::RootKey;

use self::layout::Layout;
use self::lines::Lines;
use self::rewrite::{Stuck, StuckReason, rewrite};
use crate::place::{Extent, SourceLocation, ValueOrigin};
use crate::problem::{ConfigProblem, Problems};
use crate::source::SourceText;
use crate::yaml;

pub use diff::unified_diff;
pub use kept_arguments::{is_fixed_or_hidden, released_arguments};
pub use overridden::overriding_variable;

/// A list of named entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryList {
    /// `toolbox.tools`.
    Tools,
    /// `toolbox.mcps`.
    Servers,
    /// `toolsets`.
    Toolsets,
}

impl EntryList {
    /// The path of the list below the root key, such as `toolbox.tools`.
    pub fn path(self) -> &'static str {
        match self {
            Self::Tools => "toolbox.tools",
            Self::Servers => "toolbox.mcps",
            Self::Toolsets => "toolsets",
        }
    }

    /// The keys of the path.
    pub(crate) fn keys(self) -> impl Iterator<Item = &'static str> {
        self.path().split('.')
    }

    /// What one entry is called in messages.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Tools => "entry for the tool",
            Self::Servers => "server",
            Self::Toolsets => "toolset",
        }
    }
}

/// One change of a configuration file.
#[derive(Debug, Clone, PartialEq)]
pub enum ConfigEdit {
    /// Makes the entry of this name hold exactly these fields, besides its name.
    Put { list: EntryList, name: String, fields: Map<String, Json> },
    /// Sets these fields of the entry of this name and keeps its others; `null` removes a field.
    Patch { list: EntryList, name: String, fields: Map<String, Json> },
    /// Removes the entry of this name.
    Remove { list: EntryList, name: String },
    /// Sets the value at a path of keys below the root key; `null` removes it.
    Set { path: Vec<String>, value: Json },
}

/// Why a file was not edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditRefusal {
    /// There is no entry of this name to remove.
    #[error("the file has no {} '{name}'", .list.noun())]
    UnknownEntry { list: EntryList, name: String },
    /// The file is malformed, or laid out in a way that cannot be edited.
    #[error("{0}")]
    Problems(Problems),
}

/// A configuration file that can be edited. May hold secrets.
pub struct ConfigText<'a> {
    name: &'a str,
    text: &'a str,
    root: RootKey,
    whole: Json,
}

/// Leaves out the text, which may hold secrets.
impl std::fmt::Debug for ConfigText<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfigText").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> ConfigText<'a> {
    /// Reads a file. It need not be a valid configuration, but YAML with one root key, or empty.
    pub fn new(name: &'a str, text: &'a str) -> Result<Self, Problems> {
        let source = SourceText::new(name, text);
        let document = yaml::parse(&source, text)?;
        let duplicates = document.problems(&source);
        if !duplicates.is_empty() {
            return Err(Problems::new(duplicates));
        }
        let lines = Lines::new(without_mark(text));
        let layout = Layout::of(&lines);
        let whole = match layout {
            Ok(layout) if !has_bare_returns(text) => {
                layout.map_or(Json::Null, |layout| layout.to_json())
            }
            Ok(_) | Err(_) => return Err(refuse(&source, "", &Stuck::Nowhere)),
        };
        let root = [RootKey::Switchboard, RootKey::Myai]
            .into_iter()
            .find(|root| whole.get(root.as_str()).is_some());
        if root.is_none() && !whole.is_null() {
            let problem = ConfigProblem::error(
                "the file has neither `switchboard` nor `myai` as its root key",
            );
            let at = ValueOrigin::File(Extent::point(1, 1));
            let help = "start the file with `switchboard:` and put `toolbox:` below it";
            return Err(Problems::new(vec![source.locate(&at, problem.help(help))]));
        }
        Ok(Self { name, text, root: root.unwrap_or_default(), whole })
    }

    /// The entry of this name as it is written, references not expanded.
    pub fn entry(&self, list: EntryList, name: &str) -> Option<&Map<String, Json>> {
        let entries = self.entries(list).iter();
        entries.filter_map(Json::as_object).find(|entry| is_named(entry, name))
    }

    /// All entries of a list, as they are written.
    pub fn entries(&self, list: EntryList) -> &[Json] {
        let entries = list.keys().fold(self.config(), |at, key| at?.get(key));
        entries.and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// The index of the entry of this name; the number of entries if there is none.
    pub fn index(&self, list: EntryList, name: &str) -> usize {
        let entries = self.entries(list);
        let found =
            entries.iter().position(|it| it.as_object().is_some_and(|it| is_named(it, name)));
        found.unwrap_or(entries.len())
    }

    /// The places of all scalars in an entry, each with its JSON pointer from the entry.
    pub fn places(&self, list: EntryList, name: &str) -> Vec<(String, SourceLocation)> {
        let lines = Lines::new(without_mark(self.text));
        let root = Layout::of(&lines).ok().flatten();
        let index = self.index(list, name);
        let config = root.as_ref().and_then(|root| root.entry(self.root.as_str()));
        let entries = list.keys().fold(config, |at, key| at?.value.entry(key));
        let entry = entries.and_then(|entries| entries.value.items().get(index));
        let mut places = Vec::new();
        if let Some(entry) = entry {
            self.collect_places(&entry.value, String::new(), &lines, &mut places);
        }
        places
    }

    fn collect_places(
        &self,
        node: &Layout,
        pointer: String,
        lines: &Lines<'_>,
        places: &mut Vec<(String, SourceLocation)>,
    ) {
        match &node.kind {
            layout::LayoutKind::Map(entries, _) => {
                for entry in entries {
                    let key = entry.key.replace('~', "~0").replace('/', "~1");
                    self.collect_places(&entry.value, format!("{pointer}/{key}"), lines, places);
                }
            }
            layout::LayoutKind::List(items, _) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    self.collect_places(&item.value, format!("{pointer}/{index}"), lines, places);
                }
            }
            layout::LayoutKind::Absent
            | layout::LayoutKind::Scalar(..)
            | layout::LayoutKind::Alias(_)
            | layout::LayoutKind::List(..) => {
                let (line, column) = lines.position(node.span.start);
                let name = self.name.to_owned();
                places.push((pointer, SourceLocation::File { name, line, column }));
            }
        }
    }

    /// The text with these edits.
    pub fn edit(&self, edits: &[ConfigEdit]) -> Result<String, EditRefusal> {
        let mut wanted = self.whole.clone();
        for edit in edits {
            self.apply(&mut wanted, edit)?;
        }
        if wanted == self.whole {
            return Ok(self.text.to_owned());
        }
        let refuse = |stuck| {
            let source = SourceText::new(self.name, self.text);
            let path = edits.first().map(|edit| self.path_of(edit)).unwrap_or_default();
            EditRefusal::Problems(refuse(&source, &path, &stuck))
        };
        let text = rewrite(self.text, &wanted).map_err(refuse)?;
        // The loader's own parser must accept the text too.
        let source = SourceText::new(self.name, &text);
        let again = yaml::parse(&source, &text);
        let is_sound = again.is_ok_and(|document| document.problems(&source).is_empty());
        if is_sound { Ok(text) } else { Err(refuse(Stuck::Nowhere)) }
    }

    fn config(&self) -> Option<&Json> {
        self.whole.get(self.root.as_str())
    }

    fn path_of(&self, edit: &ConfigEdit) -> String {
        match edit {
            ConfigEdit::Put { list, name, .. }
            | ConfigEdit::Patch { list, name, .. }
            | ConfigEdit::Remove { list, name } => {
                let index = self.index(*list, name);
                format!("{}.{}[{index}]", self.root.as_str(), list.path())
            }
            ConfigEdit::Set { path, .. } => format!("{}.{}", self.root.as_str(), path.join(".")),
        }
    }

    fn apply(&self, whole: &mut Json, edit: &ConfigEdit) -> Result<(), EditRefusal> {
        let config = below(whole, self.root.as_str(), || Json::Object(Map::new()));
        match edit {
            ConfigEdit::Set { path, value } => {
                set_at(config, path, value);
                Ok(())
            }
            ConfigEdit::Put { list, name, fields } => {
                let entry = self.entry_to_change(config, *list, name)?;
                entry.retain(|key, _| key == "name" || fields.contains_key(key));
                entry.extend(fields.iter().map(|(key, value)| (key.clone(), value.clone())));
                Ok(())
            }
            ConfigEdit::Patch { list, name, fields } => {
                let entry = self.entry_to_change(config, *list, name)?;
                for (key, value) in fields {
                    if value.is_null() {
                        entry.shift_remove(key);
                    } else {
                        entry.insert(key.clone(), value.clone());
                    }
                }
                Ok(())
            }
            ConfigEdit::Remove { list, name } => {
                let unknown = || EditRefusal::UnknownEntry { list: *list, name: name.clone() };
                let entries = list.keys().try_fold(config, |at, key| at.get_mut(key));
                let entries = entries.and_then(Json::as_array_mut).ok_or_else(unknown)?;
                let before = entries.len();
                entries.retain(|entry| !entry.as_object().is_some_and(|it| is_named(it, name)));
                if entries.len() == before { Err(unknown()) } else { Ok(()) }
            }
        }
    }

    /// The entry of this name, added at the end of its list if it is new.
    fn entry_to_change<'v>(
        &self,
        config: &'v mut Json,
        list: EntryList,
        name: &str,
    ) -> Result<&'v mut Map<String, Json>, EditRefusal> {
        let mut entries = config;
        let mut keys = list.keys().peekable();
        while let Some(key) = keys.next() {
            let is_list = keys.peek().is_none();
            let empty = || if is_list { Json::Array(Vec::new()) } else { Json::Object(Map::new()) };
            entries = below(entries, key, empty);
        }
        let path = format!("{}.{}", self.root.as_str(), list.path());
        let stuck = || {
            let problem = ConfigProblem::error(format!("{path} is not a list of named entries"));
            let help = "nothing was changed: write it as a list, one `- name: ...` per entry";
            let problem = ConfigProblem { path: Some(path.clone()), ..problem.help(help) };
            EditRefusal::Problems(Problems::new(vec![problem]))
        };
        let Json::Array(entries) = entries else { return Err(stuck()) };
        let found =
            entries.iter().position(|it| it.as_object().is_some_and(|it| is_named(it, name)));
        let index = found.unwrap_or(entries.len());
        if found.is_none() {
            entries.push(Json::Object(Map::from_iter([("name".to_owned(), name.into())])));
        }
        entries.get_mut(index).and_then(Json::as_object_mut).ok_or_else(stuck)
    }
}

/// The value of a key; one that is absent or null is made first.
fn below<'v>(value: &'v mut Json, key: &str, new: impl Fn() -> Json) -> &'v mut Json {
    if value.is_null() {
        *value = Json::Object(Map::new());
    }
    // A scalar has no keys; the entry is then refused by its own type.
    let Json::Object(members) = value else { return value };
    let member = members.entry(key).or_insert(Json::Null);
    if member.is_null() {
        *member = new();
    }
    member
}

fn set_at(value: &mut Json, path: &[String], new: &Json) {
    match path {
        [] => *value = new.clone(),
        [last] if new.is_null() => {
            if let Json::Object(members) = value {
                members.shift_remove(last);
            }
        }
        [first, ..] if new.is_null() && value.get(first).is_none_or(Json::is_null) => {}
        [first, rest @ ..] => {
            let empty = || if rest.is_empty() { Json::Null } else { Json::Object(Map::new()) };
            set_at(below(value, first, empty), rest, new);
        }
    }
}

fn is_named(entry: &Map<String, Json>, name: &str) -> bool {
    entry.get("name").and_then(Json::as_str) == Some(name)
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Whether the text has carriage returns that are line breaks of their own: lines are then counted differently.
fn has_bare_returns(text: &str) -> bool {
    text.replace("\r\n", "").contains('\r')
}

fn refuse(source: &SourceText<'_>, path: &str, stuck: &Stuck) -> Problems {
    let (origin, message) = match stuck {
        Stuck::At(line, column, StuckReason::Alias) => (
            ValueOrigin::File(Extent::point(*line, *column)),
            "an alias stands here for a value that is written elsewhere in the file",
        ),
        Stuck::At(line, column, StuckReason::Layout) => (
            ValueOrigin::File(Extent::point(*line, *column)),
            "this part of the file is laid out in a way that cannot be edited safely",
        ),
        Stuck::Nowhere => (
            ValueOrigin::Nowhere,
            "the file is laid out in a way that cannot be edited safely: an edit would change other values too",
        ),
    };
    let problem = ConfigProblem::error(message).help("nothing was changed: edit the file by hand");
    let problem = ConfigProblem { path: (!path.is_empty()).then(|| path.to_owned()), ..problem };
    Problems::new(vec![source.locate(&origin, problem)])
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
