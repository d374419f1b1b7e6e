//! The text of a configuration file as a tree in which every value has its exact range of bytes.
//!
//! The loader needs the beginning of a value for its messages. An edit needs its end as well, and the places of `:` and `-`.
//! The parser reports the end of quoted and bracketed values behind the comment that follows them, so this module
//! computes the ends itself.

use std::collections::HashMap;
use std::ops::Range;

use saphyr::Scalar;
use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Value as Json};

use super::lines::Lines;

/// A value, its bytes and its style.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    /// From the first to the last byte; a block scalar begins with its `|` or `>`, a block list with its first `-`.
    pub(super) span: Range<usize>,
    pub(super) kind: LayoutKind,
}

/// A text with a layout that is not understood here.
#[derive(Debug)]
pub(super) struct UnknownLayout;

#[derive(Debug, Clone)]
pub(super) enum LayoutKind {
    /// No text at all, which means null.
    Absent,
    Scalar(Json, ScalarStyle),
    /// `*name`, with the value of its anchor.
    Alias(Json),
    List(Vec<LayoutItem>, Form),
    Map(Vec<LayoutEntry>, Form),
}

/// How a list or a map is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One item or key per line.
    Block,
    /// With brackets.
    Flow,
}

/// An item of a list.
#[derive(Debug, Clone)]
pub(super) struct LayoutItem {
    /// The first byte: the `-` of a block list, else the value.
    pub(super) start: usize,
    pub(super) value: Layout,
}

/// A key of a map and its value.
#[derive(Debug, Clone)]
pub(super) struct LayoutEntry {
    pub(super) key: String,
    pub(super) key_span: Range<usize>,
    /// The byte after the colon; `None` for a key without one.
    pub(super) after_colon: Option<usize>,
    pub(super) value: Layout,
}

impl Layout {
    /// Finds where each key, list item and value of a YAML document stands. `None` for an empty document, and
    /// [`UnknownLayout`] for one that cannot be edited in place, although it may load.
    pub(super) fn of(lines: &Lines<'_>) -> Result<Option<Self>, UnknownLayout> {
        let mut builder =
            LayoutBuilder { lines, frames: Vec::new(), anchors: HashMap::new(), root: None };
        let mut parser = Parser::new_from_str(lines.text());
        while let Some(event) = parser.next_event() {
            let (event, span) = event.map_err(|_| UnknownLayout)?;
            builder.take(event, span).ok_or(UnknownLayout)?;
        }
        Ok(builder.root)
    }

    pub(super) fn to_json(&self) -> Json {
        match &self.kind {
            LayoutKind::Absent => Json::Null,
            LayoutKind::Scalar(json, _) | LayoutKind::Alias(json) => json.clone(),
            LayoutKind::List(items, _) => items.iter().map(|item| item.value.to_json()).collect(),
            LayoutKind::Map(entries, _) => {
                let members =
                    entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json()));
                Json::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    /// The value below a key of a map.
    pub(super) fn entry(&self, key: &str) -> Option<&LayoutEntry> {
        match &self.kind {
            LayoutKind::Map(entries, _) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The first alias in this value.
    pub(super) fn first_alias(&self) -> Option<&Self> {
        match &self.kind {
            LayoutKind::Alias(_) => Some(self),
            LayoutKind::Absent | LayoutKind::Scalar(..) => None,
            LayoutKind::List(items, _) => items.iter().find_map(|item| item.value.first_alias()),
            LayoutKind::Map(entries, _) => {
                entries.iter().find_map(|entry| entry.value.first_alias())
            }
        }
    }

    /// The items of a list.
    pub(super) fn items(&self) -> &[LayoutItem] {
        match &self.kind {
            LayoutKind::List(items, _) => items,
            _ => &[],
        }
    }
}

impl LayoutEntry {
    /// The end of the value, or of the key where there is no value.
    pub(super) fn end(&self) -> usize {
        self.value.span.end.max(self.after_colon.unwrap_or(self.key_span.end))
    }
}

/// A list or map whose end has not been read yet.
struct LayoutFrame {
    /// Where its event begins: at a bracket, an anchor or its first value.
    start: usize,
    anchor: usize,
    form: Form,
    content: FrameContent,
}

enum FrameContent {
    List(Vec<LayoutItem>),
    Map { entries: Vec<LayoutEntry>, key: Option<(String, Range<usize>)> },
}

struct LayoutBuilder<'a> {
    lines: &'a Lines<'a>,
    frames: Vec<LayoutFrame>,
    anchors: HashMap<usize, Json>,
    root: Option<Layout>,
}

impl LayoutBuilder<'_> {
    fn take(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        // The parser may report the end of the text on a line that does not exist.
        let end_of_text = self.lines.text().len();
        let start = self.lines.offset(span.start.line(), span.start.col()).unwrap_or(end_of_text);
        match event {
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Some(()),
            Event::Scalar(text, style, anchor, tag) => {
                let end = self.lines.offset(span.end.line(), span.end.col())?;
                if let Some(FrameContent::Map { key: key @ None, .. }) =
                    self.frames.last_mut().map(|frame| &mut frame.content)
                {
                    let end = quoted_end(self.lines.text(), start, style).unwrap_or(end);
                    *key = Some((text.into_owned(), start..end));
                    return Some(());
                }
                let is_absent = text.is_empty() && style == ScalarStyle::Plain && tag.is_none();
                let is_blank = text.trim().is_empty();
                let scalar = Scalar::parse_from_cow_and_metadata(text, style, tag.as_ref())?;
                let json = scalar_json(scalar);
                if anchor != 0 {
                    self.anchors.insert(anchor, json.clone());
                }
                let lead = self.lead(start)?;
                let (span, kind) = match style {
                    ScalarStyle::Plain if is_absent => (lead..lead, LayoutKind::Absent),
                    ScalarStyle::Plain => (start..end, LayoutKind::Scalar(json, style)),
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
                        let end = quoted_end(self.lines.text(), start, style)?;
                        (start..end, LayoutKind::Scalar(json, style))
                    }
                    ScalarStyle::Literal | ScalarStyle::Folded => {
                        let column = (!is_blank).then(|| span.start.col());
                        let span = self.lines.block_scalar(lead, column)?;
                        (span, LayoutKind::Scalar(json, style))
                    }
                };
                self.add(Layout { span, kind }, lead)
            }
            Event::Alias(anchor) => {
                let json = self.anchors.get(&anchor)?.clone();
                let end = self.lines.offset(span.end.line(), span.end.col())?;
                let lead = self.lead(start)?;
                self.add(Layout { span: start..end, kind: LayoutKind::Alias(json) }, lead)
            }
            Event::SequenceStart(anchor, _) => {
                let content = FrameContent::List(Vec::new());
                self.open(start, anchor, !span.is_empty(), content)
            }
            Event::MappingStart(anchor, _) => {
                let content = FrameContent::Map { entries: Vec::new(), key: None };
                self.open(start, anchor, !span.is_empty(), content)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
        }
    }

    fn open(
        &mut self,
        start: usize,
        anchor: usize,
        has_text: bool,
        content: FrameContent,
    ) -> Option<()> {
        // An anchored block collection has text too: that of its anchor.
        let bracket = skip_properties(self.lines.text(), start);
        let is_bracket = self.lines.text().get(bracket..)?.starts_with(['[', '{']);
        let form = if has_text && is_bracket { Form::Flow } else { Form::Block };
        let start = if form == Form::Flow { bracket } else { start };
        self.frames.push(LayoutFrame { start, anchor, form, content });
        Some(())
    }

    fn close(&mut self) -> Option<()> {
        let LayoutFrame { start, anchor, form, content } = self.frames.pop()?;
        let (kind, first, last) = match content {
            FrameContent::List(items) => {
                let (first, last) = (
                    items.first().map(|item| item.start),
                    items.last().map(|it| it.value.span.end),
                );
                (LayoutKind::List(items, form), first, last)
            }
            FrameContent::Map { entries, .. } => {
                let first = entries.first().map(|entry| entry.key_span.start);
                let last = entries.last().map(LayoutEntry::end);
                (LayoutKind::Map(entries, form), first, last)
            }
        };
        let span = match form {
            Form::Block => first?..last?,
            Form::Flow => start..closing_bracket(self.lines.text(), last.unwrap_or(start + 1))?,
        };
        let node = Layout { span, kind };
        if anchor != 0 {
            self.anchors.insert(anchor, node.to_json());
        }
        let lead = self.lead(node.span.start)?;
        self.add(node, lead)
    }

    /// The position that a value at `start` follows: the colon of its key, the dash of its item, or itself.
    fn lead(&self, start: usize) -> Option<usize> {
        match self.frames.last() {
            None => Some(start),
            Some(LayoutFrame { form: Form::Flow, content: FrameContent::List(_), .. }) => {
                Some(start)
            }
            Some(LayoutFrame { content: FrameContent::List(_), .. }) => {
                self.lines.dash_before(start).map(|dash| dash + 1)
            }
            Some(LayoutFrame { content: FrameContent::Map { key, .. }, .. }) => {
                let (_, span) = key.as_ref()?;
                Some(colon_after(self.lines.text(), span.end).unwrap_or(span.end))
            }
        }
    }

    fn add(&mut self, node: Layout, lead: usize) -> Option<()> {
        let text = self.lines.text();
        match self.frames.last_mut() {
            None => self.root = Some(node),
            Some(LayoutFrame { content: FrameContent::List(items), form, .. }) => {
                let start = if *form == Form::Block { lead - 1 } else { node.span.start };
                items.push(LayoutItem { start, value: node });
            }
            Some(LayoutFrame { content: FrameContent::Map { entries, key }, .. }) => {
                let (key, key_span) = key.take()?;
                let after_colon = colon_after(text, key_span.end);
                entries.push(LayoutEntry { key, key_span, after_colon, value: node });
            }
        }
        Some(())
    }
}

fn scalar_json(scalar: Scalar<'_>) -> Json {
    match scalar {
        Scalar::Null => Json::Null,
        Scalar::Boolean(value) => Json::from(value),
        Scalar::Integer(value) => Json::from(value),
        Scalar::FloatingPoint(value) => {
            let value = value.into_inner();
            // JSON has no infinity. The text is never written back, only compared.
            serde_json::Number::from_f64(value)
                .map_or_else(|| value.to_string().into(), Json::Number)
        }
        Scalar::String(text) => Json::from(text.into_owned()),
    }
}

/// The first byte after anchors and tags.
fn skip_properties(text: &str, mut at: usize) -> usize {
    while text.get(at..).is_some_and(|rest| rest.starts_with(['&', '!'])) {
        let rest = text.get(at..).unwrap_or_default();
        let word = rest.find([' ', '\t', '\r', '\n']).unwrap_or(rest.len());
        let after = rest.get(word..).unwrap_or_default();
        at += word + (after.len() - after.trim_start().len());
    }
    at
}

/// The end of a quoted scalar that begins at `start`; `None` for other styles.
fn quoted_end(text: &str, start: usize, style: ScalarStyle) -> Option<usize> {
    let open = skip_properties(text, start);
    let inner = text.get(open..)?;
    let mut characters = inner.char_indices().skip(1).peekable();
    match style {
        ScalarStyle::DoubleQuoted => {
            while let Some((index, c)) = characters.next() {
                match c {
                    '\\' => drop(characters.next()),
                    '"' => return Some(open + index + 1),
                    _ => {}
                }
            }
            None
        }
        ScalarStyle::SingleQuoted => {
            while let Some((index, c)) = characters.next() {
                if c == '\'' && characters.next_if(|(_, next)| *next == '\'').is_none() {
                    return Some(open + index + 1);
                }
            }
            None
        }
        ScalarStyle::Plain | ScalarStyle::Literal | ScalarStyle::Folded => None,
    }
}

/// The byte after the colon that follows a key.
fn colon_after(text: &str, key_end: usize) -> Option<usize> {
    let rest = text.get(key_end..)?;
    let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    rest.get(blank..)?.starts_with(':').then_some(key_end + blank + 1)
}

/// The byte after the bracket that closes a flow collection whose last value ends at `from`.
fn closing_bracket(text: &str, from: usize) -> Option<usize> {
    let at = skip_trivia(text, from, &[',', ':']);
    text.get(at..)?.starts_with([']', '}']).then_some(at + 1)
}

/// The first byte at or after `from` that is neither blank, nor in a comment, nor one of `also`.
pub(super) fn skip_trivia(text: &str, from: usize, also: &[char]) -> usize {
    let mut in_comment = false;
    for (index, c) in text.get(from..).unwrap_or_default().char_indices() {
        match c {
            '\n' | '\r' => in_comment = false,
            _ if in_comment || c == ' ' || c == '\t' || also.contains(&c) => {}
            '#' => in_comment = true,
            _ => return from + index,
        }
    }
    text.len()
}
