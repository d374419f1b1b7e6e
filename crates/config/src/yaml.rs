//! Parses YAML into a tree with locations.
//!
//! It uses parser events instead of a finished document, because only events carry the location of every key and allow
//! limits on size, depth and alias expansion during parsing.

use std::collections::{HashMap, HashSet};

use saphyr::Scalar;
use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use crate::place::{Extent, ValueOrigin};
use crate::problem::{BoxedProblem, ConfigProblem};
use crate::source::SourceText;
use crate::tree::{Node, TreeEntry, Value};

/// The largest file that is read.
const MAX_BYTES: usize = 4 << 20;
/// Maximum nesting of lists and maps; the schema needs 7.
const MAX_DEPTH: usize = 64;
/// Maximum number of values after aliases are expanded.
const MAX_NODES: usize = 100_000;

/// Maximum number of reported duplicate keys; finding the first of each takes a search.
const MAX_DUPLICATES: usize = 100;

/// A parsed text. Duplicate keys do not stop the parser; the first one counts.
#[derive(Debug)]
pub(crate) struct YamlDocument {
    /// `None` for an empty document.
    pub(crate) root: Option<Node>,
    duplicates: Vec<(String, ValueOrigin, ValueOrigin)>,
}

impl YamlDocument {
    /// Renders the duplicate keys, once it is known which lines may be shown.
    pub(crate) fn problems(&self, source: &SourceText<'_>) -> Vec<ConfigProblem> {
        let draw = |(key, first, second): &(String, ValueOrigin, ValueOrigin)| {
            let problem = ConfigProblem::error(format!("the key `{key}` is written twice"))
                .note(format!("it was first written at {}", source.place(first)))
                .help("remove one of the two");
            source.locate(second, problem)
        };
        self.duplicates.iter().map(draw).collect()
    }
}

/// Reads a text.
pub(crate) fn parse(source: &SourceText<'_>, text: &str) -> Result<YamlDocument, BoxedProblem> {
    if text.len() > MAX_BYTES {
        return Err(Box::new(ConfigProblem::error(format!(
            "the file is larger than {} MiB, the limit of a configuration file",
            MAX_BYTES >> 20
        ))));
    }
    let mut builder = Builder::default();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let step = event
            .map_err(|error| {
                let at = error.marker();
                let extent = Extent::point(at.line(), at.col() + 1);
                (extent, format!("not valid YAML: {}", error.info()))
            })
            .and_then(|(event, span)| builder.take(event, span));
        if let Err((at, message)) = step {
            return Err(Box::new(
                source.locate(&ValueOrigin::File(at), ConfigProblem::error(message)),
            ));
        }
    }
    Ok(YamlDocument { root: builder.root, duplicates: builder.duplicates })
}

type YamlError = (Extent, String);

/// A list or map whose end has not been read yet.
struct Frame {
    extent: Extent,
    anchor: usize,
    content: YamlContent,
}

enum YamlContent {
    List(Vec<Node>),
    Map { entries: Vec<TreeEntry>, keys: HashSet<String>, key: Option<(String, Extent)> },
}

#[derive(Default)]
struct Builder {
    frames: Vec<Frame>,
    anchors: HashMap<usize, Node>,
    root: Option<Node>,
    nodes: usize,
    documents: usize,
    duplicates: Vec<(String, ValueOrigin, ValueOrigin)>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        let at = extent(span);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                let message = "a second document starts here; a configuration is one document";
                if self.documents > 1 { Err((at, message.into())) } else { Ok(()) }
            }
            Event::Scalar(text, style, anchor, tag) => {
                if let Some(key @ None) = self.open_key() {
                    *key = Some((text.into_owned(), at));
                    return Ok(());
                }
                let scalar = Scalar::parse_from_cow_and_metadata(text, style, tag.as_ref())
                    .ok_or_else(|| (at, "the value does not fit its YAML tag".to_owned()))?;
                let at = if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) {
                    block_extent(at, span)
                } else {
                    at
                };
                self.add(Node::new(scalar_value(scalar), ValueOrigin::File(at)), anchor, at)
            }
            Event::SequenceStart(anchor, _) => {
                let extent = Extent { bracketed: !span.is_empty(), ..at };
                self.open(Frame { extent, anchor, content: YamlContent::List(Vec::new()) })
            }
            Event::MappingStart(anchor, _) => {
                let content =
                    YamlContent::Map { entries: Vec::new(), keys: HashSet::new(), key: None };
                let extent = Extent { bracketed: !span.is_empty(), ..at };
                self.open(Frame { extent, anchor, content })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(at),
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).cloned();
                let node = node.ok_or((at, "an alias inside of its own anchor".to_owned()))?;
                let (nodes, depth) = measure(&node);
                self.nodes += nodes;
                self.check_size(at, depth)?;
                self.add(node, 0, at)
            }
        }
    }

    /// The key of the innermost map; `Some(None)` if the next event is a key.
    fn open_key(&mut self) -> Option<&mut Option<(String, Extent)>> {
        match self.frames.last_mut() {
            Some(Frame { content: YamlContent::Map { key, .. }, .. }) => Some(key),
            _ => None,
        }
    }

    fn open(&mut self, frame: Frame) -> Result<(), YamlError> {
        if let Some(None) = self.open_key() {
            return Err((frame.extent, "a key must be text, not a list or a map".into()));
        }
        self.check_size(frame.extent, 1)?;
        self.frames.push(frame);
        Ok(())
    }

    fn close(&mut self, end: Extent) -> Result<(), YamlError> {
        let Some(Frame { mut extent, anchor, content }) = self.frames.pop() else { return Ok(()) };
        if extent.bracketed {
            extent.end_line = end.end_line;
        }
        let value = match content {
            YamlContent::List(items) => Value::List(items),
            YamlContent::Map { entries, .. } => Value::Map(entries),
        };
        self.add(Node::new(value, ValueOrigin::File(extent)), anchor, extent)
    }

    fn add(&mut self, node: Node, anchor: usize, at: Extent) -> Result<(), YamlError> {
        self.nodes += 1;
        self.check_size(at, 0)?;
        if anchor != 0 {
            // Copies count as well: with an anchor at every level, expansion would be quadratic.
            self.nodes += measure(&node).0;
            self.check_size(at, 0)?;
            self.anchors.insert(anchor, node.clone());
        }
        match self.frames.last_mut().map(|frame| &mut frame.content) {
            None => self.root = Some(node),
            Some(YamlContent::List(items)) => items.push(node),
            Some(YamlContent::Map { entries, keys, key }) => {
                let Some((key, key_at)) = key.take() else {
                    return Err((at, "a key must be text, not an alias".into()));
                };
                let origin = ValueOrigin::File(key_at);
                if keys.insert(key.clone()) {
                    entries.push(TreeEntry { key, origin, node });
                } else if self.duplicates.len() < MAX_DUPLICATES
                    && let Some(first) = entries.iter().find(|entry| entry.key == key)
                {
                    self.duplicates.push((key, first.origin.clone(), origin));
                }
            }
        }
        Ok(())
    }

    fn check_size(&self, at: Extent, deeper: usize) -> Result<(), YamlError> {
        if self.frames.len() + deeper > MAX_DEPTH {
            return Err((at, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        if self.nodes > MAX_NODES {
            return Err((at, format!("more than {MAX_NODES} values, counting expanded aliases")));
        }
        Ok(())
    }
}

/// The number of values in a node and their maximum depth.
fn measure(node: &Node) -> (usize, usize) {
    let below = |parts: Vec<(usize, usize)>| {
        let nodes = parts.iter().map(|(nodes, _)| nodes).sum::<usize>();
        (nodes + 1, parts.iter().map(|(_, depth)| *depth).max().unwrap_or(0) + 1)
    };
    match &node.value {
        Value::List(items) => below(items.iter().map(measure).collect()),
        Value::Map(entries) => below(entries.iter().map(|entry| measure(&entry.node)).collect()),
        _ => (1, 0),
    }
}

fn scalar_value(scalar: Scalar<'_>) -> Value {
    match scalar {
        Scalar::Null => Value::Null,
        Scalar::Boolean(value) => Value::Bool(value),
        Scalar::Integer(value) => Value::Integer(value),
        Scalar::FloatingPoint(value) => Value::Float(value.into_inner()),
        Scalar::String(text) => Value::Text(text.into_owned()),
    }
}

fn extent(span: Span) -> Extent {
    let (start, end) = (span.start, span.end);
    let width = if start.line() == end.line() { end.col() - start.col() } else { usize::MAX };
    Extent {
        line: start.line(),
        column: start.col() + 1,
        end_line: end.line(),
        width: width.max(1),
        bracketed: false,
    }
}

/// The extent of a block scalar, whose end the parser reports at the next token on a later line.
fn block_extent(at: Extent, span: Span) -> Extent {
    if span.end.col() < span.start.col() {
        Extent { end_line: at.end_line.saturating_sub(1).max(at.line), ..at }
    } else {
        at
    }
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
