//! Changes a text, one elementary change at a time, until it holds a wanted value.
//!
//! Each step finds the first difference between the text and the wanted value, and changes only the bytes of that
//! difference. The text is parsed again after each step, so the last step proves that the text holds the wanted value and
//! nothing else. A layout that a step does not understand ends the edit.

use std::collections::HashSet;
use std::ops::Range;

use saphyr_parser::ScalarStyle;
use serde_json::Value as Json;

use super::layout::{Form, Layout, LayoutEntry, LayoutItem, LayoutKind, skip_trivia};
use super::lines::Lines;
use super::style::{FileStyle, FlowStyle, inline, is_inline, like};

/// Maximum number of elementary changes of one edit.
const MAX_STEPS: usize = 1000;

/// Why a text cannot be changed: the place of the value whose layout is not understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stuck {
    /// The line and the column, both from 1.
    At(usize, usize, StuckReason),
    /// The changed text does not hold the wanted value.
    Nowhere,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum StuckReason {
    /// An alias stands for the value, and the value belongs to its anchor.
    Alias,
    Layout,
}

/// Returns `text` with the changes that make it hold `wanted`.
pub(super) fn rewrite(text: &str, wanted: &Json) -> Result<String, Stuck> {
    let (mark, text) = match text.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    };
    let mut text = text.to_owned();
    for _ in 0..MAX_STEPS {
        let lines = Lines::new(&text);
        let root = Layout::of(&lines).map_err(|_| Stuck::Nowhere)?;
        let rewriter = Rewriter { lines: &lines, style: FileStyle::of(root.as_ref(), &lines) };
        let step = match &root {
            Some(root) if root.to_json() == *wanted => return Ok(format!("{mark}{text}")),
            Some(root) if !matches!(root.kind, LayoutKind::Absent) => {
                rewriter.change(root, wanted, &ValuePlace::Root)?
            }
            Some(_) | None => rewriter.append_document(wanted),
        };
        text = step.apply(&text).ok_or(Stuck::Nowhere)?;
    }
    Err(Stuck::Nowhere)
}

/// Replacements of disjoint ranges, in the order of the text.
struct TextChange(Vec<(Range<usize>, String)>);

impl TextChange {
    fn one(range: Range<usize>, text: impl Into<String>) -> Self {
        Self(vec![(range, text.into())])
    }

    fn apply(self, text: &str) -> Option<String> {
        let mut out = String::with_capacity(text.len() + 256);
        let mut at = 0;
        for (range, replacement) in self.0 {
            out.push_str(text.get(at..range.start)?);
            out.push_str(&replacement);
            at = range.end;
        }
        out.push_str(text.get(at..)?);
        Some(out)
    }
}

/// Where a value stands.
enum ValuePlace<'a> {
    Root,
    /// The value of a key of a block map.
    Block(&'a LayoutEntry),
    /// An item of a block list.
    Item,
    /// Inside of brackets.
    Flow(FlowStyle),
}

struct Rewriter<'a> {
    lines: &'a Lines<'a>,
    style: FileStyle,
}

impl Rewriter<'_> {
    /// The first change of `node` towards `wanted`, which differs from it.
    fn change(
        &self,
        node: &Layout,
        wanted: &Json,
        place: &ValuePlace<'_>,
    ) -> Result<TextChange, Stuck> {
        match (&node.kind, wanted) {
            (LayoutKind::Map(entries, form), Json::Object(members))
                if !entries.is_empty() && !members.is_empty() =>
            {
                let style = flow_style(entries);
                for (index, entry) in entries.iter().enumerate() {
                    match members.get(&entry.key) {
                        // A map that loses all of its keys at once is replaced as a whole.
                        None if !entries.iter().any(|entry| members.contains_key(&entry.key)) => {
                            return self.replace(node, wanted, place);
                        }
                        None => return self.remove_entry(entries, index, *form),
                        Some(member) if entry.value.to_json() != *member => {
                            let place = match form {
                                Form::Block => ValuePlace::Block(entry),
                                Form::Flow => ValuePlace::Flow(style),
                            };
                            return self.change(&entry.value, member, &place);
                        }
                        Some(_) => {}
                    }
                }
                let is_missing = |(key, _): &(&String, &Json)| node.entry(key).is_none();
                let (key, value) =
                    members.iter().find(is_missing).ok_or_else(|| self.stuck(node))?;
                match form {
                    Form::Block => self.add_entry(entries, key, value),
                    Form::Flow => self.add_in_brackets(node, style, Some(key), value),
                }
            }
            (LayoutKind::List(items, form), Json::Array(wanted_items))
                if !items.is_empty() && !wanted_items.is_empty() =>
            {
                self.change_list(node, items, *form, wanted_items, wanted, place)
            }
            _ => self.replace(node, wanted, place),
        }
    }

    fn change_list(
        &self,
        node: &Layout,
        items: &[LayoutItem],
        form: Form,
        wanted_items: &[Json],
        wanted: &Json,
        place: &ValuePlace<'_>,
    ) -> Result<TextChange, Stuck> {
        let present: Vec<_> = items.iter().map(|item| identity(&item.value.to_json())).collect();
        let target: Vec<_> = wanted_items.iter().map(identity).collect();
        let is_distinct = |ids: &[String]| ids.iter().collect::<HashSet<_>>().len() == ids.len();
        let kept: Vec<_> = present.iter().filter(|id| target.contains(id)).collect();
        let in_order: Vec<_> = target.iter().filter(|id| present.contains(id)).collect();
        if !is_distinct(&present) || !is_distinct(&target) || kept != in_order || kept.is_empty() {
            return self.replace(node, wanted, place);
        }
        if let Some(index) = present.iter().position(|id| !target.contains(id)) {
            return self.remove_item(items, index, form);
        }
        let style = match place {
            ValuePlace::Flow(style) => *style,
            ValuePlace::Root | ValuePlace::Block(_) | ValuePlace::Item => {
                FlowStyle { quotes_keys: has_quoted_keys(node) }
            }
        };
        for (index, (id, value)) in target.iter().zip(wanted_items).enumerate() {
            match items.get(index) {
                Some(item) if present.get(index) == Some(id) => {
                    if item.value.to_json() != *value {
                        let place = if form == Form::Block {
                            ValuePlace::Item
                        } else {
                            ValuePlace::Flow(style)
                        };
                        return self.change(&item.value, value, &place);
                    }
                }
                following => {
                    return match (form, following) {
                        (Form::Block, following) => self.add_item(items, following, value),
                        (Form::Flow, None) => self.add_in_brackets(node, style, None, value),
                        (Form::Flow, Some(item)) => {
                            let text = format!("{}, ", style.value(value));
                            Ok(TextChange::one(item.start..item.start, text))
                        }
                    };
                }
            }
        }
        Err(self.stuck(node))
    }

    /// Replaces a whole value.
    fn replace(
        &self,
        node: &Layout,
        wanted: &Json,
        place: &ValuePlace<'_>,
    ) -> Result<TextChange, Stuck> {
        // A single value may take the place of an alias; in a list or a map the alias is what the user wants to keep.
        let is_single = matches!(node.kind, LayoutKind::Alias(_)) && is_inline(wanted);
        if let Some(alias) = node.first_alias().filter(|_| !is_single) {
            let (line, column) = self.lines.position(alias.span.start);
            return Err(Stuck::At(line, column, StuckReason::Alias));
        }
        match place {
            ValuePlace::Flow(style) => {
                let text = match &node.kind {
                    LayoutKind::Scalar(_, quotes) if is_inline(wanted) && !style.quotes_keys => {
                        let text = like(wanted, *quotes);
                        if matches!(quotes, ScalarStyle::Plain) {
                            style.value(wanted)
                        } else {
                            text
                        }
                    }
                    LayoutKind::Absent => format!(" {}", style.value(wanted)),
                    _ => style.value(wanted),
                };
                Ok(TextChange::one(node.span.clone(), text))
            }
            ValuePlace::Block(entry) => self.replace_value(entry, wanted),
            ValuePlace::Root | ValuePlace::Item => match &node.kind {
                LayoutKind::Scalar(_, style) if is_inline(wanted) => {
                    Ok(TextChange::one(node.span.clone(), like(wanted, *style)))
                }
                LayoutKind::Map(_, Form::Flow) | LayoutKind::List(_, Form::Flow) => {
                    let style = FlowStyle { quotes_keys: has_quoted_keys(node) };
                    Ok(TextChange::one(node.span.clone(), style.value(wanted)))
                }
                _ => Err(self.stuck(node)),
            },
        }
    }

    /// Replaces the value of a key in a block map.
    fn replace_value(&self, entry: &LayoutEntry, wanted: &Json) -> Result<TextChange, Stuck> {
        let node = &entry.value;
        let after_colon = entry.after_colon.ok_or_else(|| self.stuck(node))?;
        let column = self.lines.column(entry.key_span.start);
        let is_block = matches!(
            &node.kind,
            LayoutKind::List(_, Form::Block) | LayoutKind::Map(_, Form::Block)
        );
        if is_block {
            // The lines of the old value, which begins on a line of its own.
            let first = node.span.start;
            if !self.lines.is_first(first) || first < self.lines.end_of(after_colon) {
                return Err(self.stuck(node));
            }
            let lines = self.lines.start_of(first)..self.lines.end_of(node.span.end);
            if is_inline(wanted) {
                let value = format!(" {}", inline(wanted));
                return Ok(TextChange(vec![
                    (after_colon..after_colon, value),
                    (lines, String::new()),
                ]));
            }
            let column = match (&node.kind, wanted) {
                (LayoutKind::List(..), Json::Array(_)) | (LayoutKind::Map(..), Json::Object(_)) => {
                    self.lines.column(first)
                }
                _ => return Ok(self.new_lines(lines, &self.style.below_key(wanted, column))),
            };
            return Ok(self.new_lines(lines, &self.style.block(wanted, column)));
        }
        let keeps_brackets = matches!(&node.kind, LayoutKind::List(items, Form::Flow) if !items.is_empty())
            && wanted.as_array().is_some_and(|items| items.iter().all(is_inline));
        if is_inline(wanted) || keeps_brackets {
            let text = match &node.kind {
                LayoutKind::Scalar(_, style) => like(wanted, *style),
                LayoutKind::Absent => {
                    return Ok(TextChange::one(
                        after_colon..after_colon,
                        format!(" {}", inline(wanted)),
                    ));
                }
                _ if keeps_brackets => FlowStyle { quotes_keys: false }.value(wanted),
                _ => inline(wanted),
            };
            return Ok(TextChange::one(node.span.clone(), text));
        }
        // The rest of the line may be a comment, which stays beside the key.
        let (end, line_end) = (node.span.end.max(after_colon), self.lines.end_of(entry.end()));
        let rest = self.lines.text().get(end..line_end).ok_or_else(|| self.stuck(node))?;
        let lines = self.style.below_key(wanted, column);
        let head = rest.trim_end_matches(['\n', '\r']);
        let head = if head.trim().is_empty() { "" } else { head };
        let new = format!("{head}{}{}", self.style.line_break, self.style.join(&lines));
        let new = if rest.ends_with('\n') { &new } else { new.trim_end_matches(['\n', '\r']) };
        Ok(TextChange::one(after_colon..line_end, new))
    }

    fn remove_entry(
        &self,
        entries: &[LayoutEntry],
        index: usize,
        form: Form,
    ) -> Result<TextChange, Stuck> {
        let range = |entry: &LayoutEntry| entry.key_span.start..entry.end();
        let ranges: Vec<_> = entries.iter().map(range).collect();
        self.remove(&ranges, index, form)
    }

    fn remove_item(
        &self,
        items: &[LayoutItem],
        index: usize,
        form: Form,
    ) -> Result<TextChange, Stuck> {
        let ranges: Vec<_> =
            items.iter().map(|item| item.start..item.value.span.end.max(item.start + 1)).collect();
        self.remove(&ranges, index, form)
    }

    /// Removes one of several parts of a list or a map; at least one stays.
    fn remove(
        &self,
        parts: &[Range<usize>],
        index: usize,
        form: Form,
    ) -> Result<TextChange, Stuck> {
        let Some(part) = parts.get(index) else { return Err(Stuck::Nowhere) };
        let previous = index.checked_sub(1).and_then(|previous| parts.get(previous));
        let next = parts.get(index + 1);
        let range = match (form, previous, next) {
            (Form::Block, ..) if self.lines.is_first(part.start) => {
                self.lines.start_of(part.start)..self.lines.end_of(part.end)
            }
            (Form::Flow, Some(previous), _) => previous.end..part.end,
            // The next part takes its place, after a dash or a bracket.
            (Form::Block | Form::Flow, _, Some(next)) => part.start..next.start,
            (Form::Block | Form::Flow, _, None) => {
                let (line, column) = self.lines.position(part.start);
                return Err(Stuck::At(line, column, StuckReason::Layout));
            }
        };
        Ok(TextChange::one(range, ""))
    }

    /// Adds a key after the last one of a block map.
    fn add_entry(
        &self,
        entries: &[LayoutEntry],
        key: &str,
        value: &Json,
    ) -> Result<TextChange, Stuck> {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return Err(Stuck::Nowhere);
        };
        let column = self.lines.column(first.key_span.start);
        Ok(self.insert_after(last.end(), &self.style.entry(key, value, column)))
    }

    /// Adds an item before `following`, or after the last one of a block list.
    fn add_item(
        &self,
        items: &[LayoutItem],
        following: Option<&LayoutItem>,
        value: &Json,
    ) -> Result<TextChange, Stuck> {
        let (Some(first), Some(last)) = (items.first(), items.last()) else {
            return Err(Stuck::Nowhere);
        };
        let column = self.lines.column(first.start);
        let lines = self.style.item(value, column);
        let Some(following) = following else {
            let end = last.value.span.end.max(last.start + 1);
            return Ok(self.insert_after(self.after_own_comments(end, column), &lines));
        };
        let at = self.lines.start_of(following.start);
        if !self.lines.is_first(following.start) {
            return Err(self.stuck(&following.value));
        }
        Ok(TextChange::one(at..at, self.style.join(&lines)))
    }

    /// Adds a key or an item after the last one between brackets.
    fn add_in_brackets(
        &self,
        node: &Layout,
        style: FlowStyle,
        key: Option<&str>,
        value: &Json,
    ) -> Result<TextChange, Stuck> {
        let text = self.lines.text();
        let last = match &node.kind {
            LayoutKind::List(items, _) => items.last().map(|item| item.start..item.value.span.end),
            LayoutKind::Map(entries, _) => {
                entries.last().map(|entry| entry.key_span.start..entry.end())
            }
            LayoutKind::Absent | LayoutKind::Scalar(..) | LayoutKind::Alias(_) => None,
        };
        let last = last.ok_or_else(|| self.stuck(node))?;
        let is_on_own_line = self.lines.is_first(last.start);
        let margin = self.lines.before(last.start);
        let new = match (key, is_on_own_line) {
            (Some(key), true) => {
                let key = style.entry(key, &Json::Null);
                let key = key.strip_suffix("null").unwrap_or(&key).to_owned();
                format!("{key}{}", style.spread(value, margin, self.style.line_break))
            }
            (None, true) => style.spread(value, margin, self.style.line_break),
            (Some(key), false) => style.entry(key, value),
            (None, false) => style.value(value),
        };
        let gap = if is_on_own_line {
            format!("{}{margin}", self.style.line_break)
        } else {
            " ".to_owned()
        };
        let comma = skip_trivia(text, last.end, &[]);
        let has_comma = text.get(comma..).is_some_and(|rest| rest.starts_with(','));
        Ok(if has_comma {
            TextChange::one(comma + 1..comma + 1, format!("{gap}{new}"))
        } else {
            TextChange::one(last.end..last.end, format!(",{gap}{new}"))
        })
    }

    /// The end of the last comment that belongs to the item which ends at `end`: comments further in than its dash.
    fn after_own_comments(&self, end: usize, dash: usize) -> usize {
        let mut at = end;
        loop {
            let next = self.lines.end_of(at);
            let line = self.lines.text().get(next..self.lines.end_of(next)).unwrap_or_default();
            let comment = line.trim_start();
            if next == self.lines.text().len()
                || !comment.starts_with('#')
                || line.len() - comment.len() <= dash
            {
                return at;
            }
            at = next;
        }
    }

    /// Inserts lines after the line with this byte.
    fn insert_after(&self, offset: usize, lines: &[String]) -> TextChange {
        let at = self.lines.end_of(offset);
        let new = self.style.join(lines);
        let before = self.lines.text().get(..at).unwrap_or_default();
        if before.is_empty() || before.ends_with('\n') {
            return TextChange::one(at..at, new);
        }
        // The last line has no line break, and none is added after the new one.
        let new = format!("{}{}", self.style.line_break, new.trim_end_matches(['\n', '\r']));
        TextChange::one(at..at, new)
    }

    /// Replaces whole lines.
    fn new_lines(&self, range: Range<usize>, lines: &[String]) -> TextChange {
        let new = self.style.join(lines);
        let old = self.lines.text().get(range.clone()).unwrap_or_default();
        let new = if old.ends_with('\n') { &new } else { new.trim_end_matches(['\n', '\r']) };
        TextChange::one(range, new)
    }

    /// Writes the whole value into a text that holds nothing but comments.
    fn append_document(&self, wanted: &Json) -> TextChange {
        let text = self.lines.text();
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { self.style.line_break };
        let lines = self.style.join(&self.style.block(wanted, 0));
        TextChange::one(text.len()..text.len(), format!("{gap}{lines}"))
    }

    fn stuck(&self, node: &Layout) -> Stuck {
        let (line, column) = self.lines.position(node.span.start);
        Stuck::At(line, column, StuckReason::Layout)
    }
}

/// What an item of a list is recognised by: the `name` of a map, else its value.
fn identity(item: &Json) -> String {
    match item.get("name") {
        Some(Json::String(name)) => format!("named {name}"),
        _ => item.to_string(),
    }
}

fn flow_style(entries: &[LayoutEntry]) -> FlowStyle {
    let has_quotes = |entry: &LayoutEntry| entry.key_span.len() >= entry.key.len() + 2;
    FlowStyle { quotes_keys: entries.iter().any(has_quotes) }
}

/// Whether the first map between these brackets has quoted keys; a list of scalars counts by the quotes of its items.
fn has_quoted_keys(node: &Layout) -> bool {
    match &node.kind {
        LayoutKind::Map(entries, _) => flow_style(entries).quotes_keys,
        LayoutKind::List(items, _) => {
            items.first().is_some_and(|item| has_quoted_keys(&item.value))
        }
        LayoutKind::Scalar(_, style) => *style == ScalarStyle::DoubleQuoted,
        LayoutKind::Absent | LayoutKind::Alias(_) => false,
    }
}
