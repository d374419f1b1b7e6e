//! Adds imported servers to an existing configuration file.
//!
//! The text is edited, not rewritten: comments, order and spelling of the user's file stay byte for byte. The result is
//! parsed again before it is returned.

use std::path::Path;

use switchboard_model::{AdmissionMode, RootKey};

use crate::edit::{ConfigEdit, ConfigText, EditRefusal, EntryList};
use crate::emit::Doc;
use crate::import::{Imported, ImportedServer, ImportedTool};
use crate::load::{ConfigInput, SourceFile, load};
use crate::place::{Extent, ValueOrigin};
use crate::problem::{BoxedProblem, ConfigProblem, Problems};
use crate::source::SourceText;
use crate::tree::{Node, TreeEntry, Value};
use crate::yaml;

/// A file with the servers added.
#[derive(Clone)]
pub struct Merged {
    /// The whole text. May hold secrets.
    pub text: String,
    /// Names of the servers that were added.
    pub added: Vec<String>,
    /// Imported servers that were not added because the file already has their names.
    pub present: Vec<PresentServer>,
    /// Names of the tool entries that were added.
    pub added_tools: Vec<String>,
    /// Imported tool entries that were not added because the file already has their names.
    pub present_tools: Vec<String>,
}

/// An imported server whose name is already in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresentServer {
    pub name: String,
    /// Whether the existing server has the same command or address.
    pub is_same: bool,
}

impl Merged {
    fn of_servers(text: String, added: Vec<String>, present: Vec<PresentServer>) -> Self {
        Self { text, added, present, added_tools: Vec::new(), present_tools: Vec::new() }
    }

    /// Notes about servers that were not added.
    pub fn notes(&self) -> Vec<String> {
        let note = |server: &PresentServer| {
            format!("{}: left out: a server of this name is already there", server.name)
        };
        let tools = self
            .present_tools
            .iter()
            .map(|tool| format!("tool {tool}: left out: an entry of this name is already there"));
        self.present.iter().map(note).chain(tools).collect()
    }
}

/// Leaves out the text, which may hold secrets.
impl std::fmt::Debug for Merged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Merged").field("added", &self.added).finish_non_exhaustive()
    }
}

/// Appends the imported servers to `toolbox.mcps` and the imported tools to `toolbox.tools`. One whose name already
/// exists is skipped with a note.
pub fn merge_into(
    existing_name: &str,
    existing_text: &str,
    imported: &Imported,
    mode: AdmissionMode,
) -> Result<Merged, Problems> {
    let merged = merge_servers(existing_name, existing_text, imported, mode)?;
    merge_tools(existing_name, merged, imported)
}

fn merge_tools(
    existing_name: &str,
    merged: Merged,
    imported: &Imported,
) -> Result<Merged, Problems> {
    if imported.tools.is_empty() {
        return Ok(merged);
    }
    let existing = ConfigText::new(existing_name, &merged.text)?;
    let is_new = |tool: &&ImportedTool| existing.entry(EntryList::Tools, &tool.name).is_none();
    let (added, present): (Vec<_>, Vec<_>) = imported.tools.iter().partition(is_new);
    let edits: Vec<_> = added
        .iter()
        .map(|tool| ConfigEdit::Put {
            list: EntryList::Tools,
            name: tool.name.clone(),
            fields: tool.escaped_fields(),
        })
        .collect();
    let text = existing.edit(&edits).map_err(|refusal| match refusal {
        EditRefusal::Problems(problems) => problems,
        EditRefusal::UnknownEntry { .. } => {
            Problems::new(vec![ConfigProblem::error(refusal.to_string())])
        }
    })?;
    check_new_entries(existing_name, &merged.text, &text)?;
    let names = |tools: Vec<&ImportedTool>| tools.iter().map(|tool| tool.name.clone()).collect();
    let (added_tools, present_tools) = (names(added), names(present));
    Ok(Merged { text, added_tools, present_tools, ..merged })
}

/// Refuses tool entries with which the file would not load, such as a second entry about a tool. Problems that the file
/// has already, and those of other parts, stay with it.
fn check_new_entries(name: &str, before: &str, after: &str) -> Result<(), Problems> {
    let problems_of_tools = |text: &str| {
        let file = SourceFile { name, directory: Path::new(""), text };
        // References are not resolved here: entries that are imported have none.
        let read_secret = |_: &Path| Ok(String::new());
        let loaded = load(&ConfigInput {
            file: Some(file),
            env: &[],
            read_secret: &read_secret,
            read_keyring: None,
        });
        let problems = loaded.err().map(|problems| problems.iter().cloned().collect::<Vec<_>>());
        let is_of_tools = |problem: &ConfigProblem| {
            problem.path.as_ref().is_some_and(|path| path.contains(".toolbox.tools["))
        };
        problems.unwrap_or_default().into_iter().filter(is_of_tools).collect::<Vec<_>>()
    };
    let known = problems_of_tools(before);
    let is_new = |problem: &ConfigProblem| {
        !known.iter().any(|it| (&it.path, &it.message) == (&problem.path, &problem.message))
    };
    let note = "nothing was written; the lines are those of the file with the imported entries";
    let new = problems_of_tools(after).into_iter().filter(is_new);
    let new: Vec<_> = new.map(|problem| problem.note(note)).collect();
    if new.is_empty() { Ok(()) } else { Err(Problems::new(new)) }
}

fn merge_servers(
    existing_name: &str,
    existing_text: &str,
    imported: &Imported,
    mode: AdmissionMode,
) -> Result<Merged, Problems> {
    let source = SourceText::new(existing_name, existing_text);
    let document = yaml::parse(&source, existing_text)?;
    let duplicates = document.problems(&source);
    if !duplicates.is_empty() {
        return Err(Problems::new(duplicates));
    }
    let root = document.root.filter(|root| root.value != Value::Null);
    let present = root.as_ref().map(names).unwrap_or_default();
    let (added, known): (Vec<_>, Vec<_>) =
        imported.servers.iter().partition(|server| !present.contains(&server.name));
    let is_same = |server: &ImportedServer| {
        root.as_ref().and_then(|root| server_node(root, &server.name)).is_some_and(|node| {
            ["command", "args", "url"]
                .iter()
                .all(|key| texts_of(node.get(key)) == server.texts(key))
        })
    };
    let present_servers = known
        .iter()
        .map(|server| PresentServer { name: server.name.clone(), is_same: is_same(server) })
        .collect();
    let added_names: Vec<_> = added.iter().map(|server| server.name.clone()).collect();
    if added.is_empty() {
        return Ok(Merged::of_servers(existing_text.into(), added_names, present_servers));
    }

    let edit = FileEdit { source: &source, text: existing_text, mode, added: &added };
    let text = edit.apply(root.as_ref())?;
    let expected: Vec<_> = present.into_iter().chain(added_names.iter().cloned()).collect();
    let again = yaml::parse(&SourceText::new(existing_name, &text), &text);
    let found = again.ok().and_then(|document| document.root).map(|root| names(&root));
    if found.as_ref() != Some(&expected) {
        return Err(edit.give_up(&ValueOrigin::Nowhere).into());
    }
    Ok(Merged::of_servers(text, added_names, present_servers))
}

fn root_entry(document: &Node) -> Option<&TreeEntry> {
    [RootKey::Switchboard, RootKey::Myai].iter().find_map(|key| document.entry(key.as_str()))
}

/// The server of this name.
fn server_node<'a>(document: &'a Node, name: &str) -> Option<&'a Node> {
    let mcps = root_entry(document)?.node.get("toolbox")?.get("mcps")?;
    mcps.items().iter().find(|server| texts_of(server.get("name")) == [name])
}

/// A string or a list of strings; empty for anything else.
fn texts_of(node: Option<&Node>) -> Vec<&str> {
    fn text(node: &Node) -> Option<&str> {
        match &node.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
    match node {
        Some(node) if matches!(node.value, Value::List(_)) => {
            node.items().iter().filter_map(text).collect()
        }
        node => node.and_then(text).into_iter().collect(),
    }
}

/// The names of the existing servers, in file order.
fn names(document: &Node) -> Vec<String> {
    let name = |server: &Node| match server.get("name").map(|name| &name.value) {
        Some(Value::Text(name)) => name.clone(),
        _ => String::new(),
    };
    root_entry(document)
        .and_then(|root| root.node.get("toolbox")?.get("mcps"))
        .map(|mcps| mcps.items().iter().map(name).collect())
        .unwrap_or_default()
}

/// The lines to add and the text to add them to.
struct FileEdit<'a> {
    source: &'a SourceText<'a>,
    text: &'a str,
    mode: AdmissionMode,
    added: &'a [&'a ImportedServer],
}

impl FileEdit<'_> {
    fn apply(&self, document: Option<&Node>) -> Result<String, BoxedProblem> {
        let Some(document) = document else {
            let lines = self.nested(&["switchboard", "toolbox", "mcps"], 0);
            return Ok(self.insert_after(usize::MAX, &lines));
        };
        let Some(root) = root_entry(document) else {
            let problem = ConfigProblem::error(
                "the file has neither `switchboard` nor `myai` as its root key",
            );
            return Err(Box::new(self.source.locate(&document.origin, problem)));
        };
        let Some(toolbox) = root.node.entry("toolbox") else {
            return self.fill(root, &["toolbox", "mcps"]);
        };
        let Some(mcps) = toolbox.node.entry("mcps") else {
            return self.fill(toolbox, &["mcps"]);
        };
        match &mcps.node.value {
            Value::List(items) if !items.is_empty() => self.append(mcps, items),
            _ => self.fill(mcps, &[]),
        }
    }

    /// Adds servers after the last one.
    fn append(&self, mcps: &TreeEntry, items: &[Node]) -> Result<String, BoxedProblem> {
        let list = file_extent(&mcps.node.origin);
        let first = items.first().and_then(|item| file_extent(&item.origin));
        let (Some(list), Some(first)) = (list, first) else {
            return Err(self.give_up(&mcps.origin));
        };
        if list.bracketed {
            return Err(self.flow_style(mcps));
        }
        let dash = self.dash_column(first).ok_or_else(|| self.give_up(&mcps.origin))?;
        let last = self.last_line(&mcps.node);
        Ok(self.insert_after(last + self.comments_of_item(last, dash), &self.nested(&[], dash)))
    }

    /// Adds `keys` below `parent`, which is a map or empty.
    fn fill(&self, parent: &TreeEntry, keys: &[&str]) -> Result<String, BoxedProblem> {
        let (Some(key), Some(value)) =
            (file_extent(&parent.origin), file_extent(&parent.node.origin))
        else {
            return Err(self.give_up(&parent.origin));
        };
        let indented = self.nested(keys, key.column + 1);
        match &parent.node.value {
            Value::Map(entries) if !entries.is_empty() => {
                let first = entries.first().and_then(|entry| file_extent(&entry.origin));
                let first =
                    first.filter(|_| !value.bracketed).ok_or_else(|| self.flow_style(parent))?;
                let lines = self.nested(keys, first.column - 1);
                Ok(self.insert_after(self.last_line(&parent.node), &lines))
            }
            Value::Map(_) | Value::Null => self.replace_empty(parent, key, value, &indented),
            Value::List(_) if keys.is_empty() => self.replace_empty(parent, key, value, &indented),
            _ => Err(self.give_up(&parent.node.origin)),
        }
    }

    /// Replaces `[]`, `{}`, `null` or nothing after a key with `lines` below it.
    fn replace_empty(
        &self,
        parent: &TreeEntry,
        key: Extent,
        value: Extent,
        lines: &[String],
    ) -> Result<String, BoxedProblem> {
        let line = self.text.lines().nth(key.line - 1).unwrap_or_default();
        let split =
            line.char_indices().nth(value.column - 1).map_or(line.len(), |(index, _)| index);
        let (before, after) = line.split_at_checked(split).unwrap_or((line, ""));
        let word = ["null", "Null", "NULL", "~"].iter().find_map(|word| after.strip_prefix(word));
        let brackets = [('[', ']'), ('{', '}')]
            .iter()
            .find_map(|(open, close)| after.strip_prefix(*open)?.trim_start().strip_prefix(*close));
        let rest = match (value.line == key.line, brackets.or(word)) {
            (true, Some(rest)) => format!("{}{rest}", before.trim_end()),
            (true, None) if value.bracketed => return Err(self.flow_style(parent)),
            (true, None) => line.to_owned(),
            (false, _) => return Err(self.give_up(&parent.origin)),
        };
        let mut whole = vec![rest];
        whole.extend_from_slice(lines);
        let without: String = self
            .text
            .split_inclusive('\n')
            .enumerate()
            .filter(|(n, _)| n + 1 != key.line)
            .map(|(_, l)| l)
            .collect();
        Ok(insert(&without, key.line - 1, &whole, self.line_end()))
    }

    /// The servers below `keys`, each key indented below the one before.
    fn nested(&self, keys: &[&str], indent: usize) -> Vec<String> {
        let servers = self.added.iter().map(|server| server.to_doc(self.mode)).collect();
        let doc = keys
            .iter()
            .rev()
            .fold(Doc::List(servers), |doc, key| Doc::Map(vec![((*key).to_owned(), doc)]));
        doc.lines(indent)
    }

    fn insert_after(&self, line: usize, lines: &[String]) -> String {
        insert(self.text, line, lines, self.line_end())
    }

    fn line_end(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// The column of an item's `-`, from 0; the dash may be on a line of its own.
    fn dash_column(&self, item: Extent) -> Option<usize> {
        let lines: Vec<_> = self.text.lines().take(item.line).collect();
        let (last, above) = lines.split_last()?;
        let before: String = last.chars().take(item.column - 1).collect();
        let own_line = || above.iter().rev().find(|line| line.trim_start().starts_with('-'));
        let line = if before.trim() == "-" { before.as_str() } else { own_line()? };
        line.find('-')
    }

    /// The number of comment lines after `line` that still belong to the item whose dash is at column `dash`.
    fn comments_of_item(&self, line: usize, dash: usize) -> usize {
        let is_inside = |line: &&str| {
            let comment = line.trim_start();
            comment.starts_with('#') && line.len() - comment.len() > dash
        };
        self.text.lines().skip(line).take_while(is_inside).count()
    }

    /// The last line of a node, without comments and blank lines after it.
    fn last_line(&self, node: &Node) -> usize {
        let own = file_extent(&node.origin).map_or(0, |at| self.last_content_line(at));
        let items = node.items().iter().map(|item| self.last_line(item));
        let entries = node.entries().iter().map(|entry| {
            let key = file_extent(&entry.origin).map_or(0, |at| at.line);
            key.max(self.last_line(&entry.node))
        });
        items.chain(entries).max().unwrap_or(0).max(own)
    }

    /// The last line with content. The parser reports the end of a block scalar at the next token.
    fn last_content_line(&self, at: Extent) -> usize {
        let lines: Vec<_> = self.text.lines().take(at.end_line).collect();
        let is_content = |line: &&str| {
            let indent = line.chars().count() - line.trim_start().chars().count();
            !line.trim().is_empty()
                && (indent + 1 >= at.column || !line.trim_start().starts_with('#'))
        };
        let behind = lines.iter().rev().take_while(|line| !is_content(line)).count();
        lines.len().saturating_sub(behind).max(at.line)
    }

    fn flow_style(&self, entry: &TreeEntry) -> BoxedProblem {
        let problem = ConfigProblem::error(format!(
            "`{}` is written inline, in brackets, so no entry can be added to it",
            entry.key
        ));
        let help = "write it as a block, one `- name: ...` per server on lines of its own";
        Box::new(self.source.locate(&entry.origin, problem.help(help)))
    }

    fn give_up(&self, origin: &ValueOrigin) -> BoxedProblem {
        let problem = ConfigProblem::error("the file is laid out in a way that cannot be added to");
        let help =
            "write `toolbox.mcps` as a block, one `- name: ...` per server on lines of its own";
        Box::new(self.source.locate(origin, problem.help(help)))
    }
}

fn file_extent(origin: &ValueOrigin) -> Option<Extent> {
    match origin {
        ValueOrigin::File(extent) => Some(*extent),
        ValueOrigin::Environment(_) | ValueOrigin::Nowhere => None,
    }
}

/// Inserts `lines` after the first `after` lines of `text`.
fn insert(text: &str, after: usize, lines: &[String], line_end: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64 * lines.len());
    let mut rest = text.split_inclusive('\n');
    rest.by_ref().take(after).for_each(|line| out.push_str(line));
    if !out.is_empty() && !out.ends_with('\n') {
        out.push_str(line_end);
    }
    for line in lines {
        out.push_str(line.trim_end_matches('\r'));
        out.push_str(line_end);
    }
    rest.for_each(|line| out.push_str(line));
    out
}
