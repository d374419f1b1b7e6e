//! Overrides from environment variables.
//!
//! `SWITCHBOARD__TOOLBOX__MCPS__0__MODE` and `APP_MYAI__TOOLBOX__MCPS__0__MODE` set the same value, whatever the root
//! key of the file is. Shorter paths are applied first, so a whole list and one of its elements can be set together.

use std::cmp::Ordering;

use serde_json::Value as Json;

use crate::path::Path;
use crate::place::ValueOrigin;
use crate::problem::{BoxedProblem, ConfigProblem};
use crate::schema::{SchemaAt, nearest};
use crate::tree::{Node, TreeEntry, Value};

/// The prefixes, in the order of increasing precedence.
const PREFIXES: [&str; 2] = ["APP_MYAI__", "SWITCHBOARD__"];

/// Applies the overrides to the tree.
pub(crate) fn apply(
    config: &mut Node,
    root: &Path,
    env: &[(String, String)],
    problems: &mut Vec<ConfigProblem>,
) {
    for variable in variables(env) {
        let step =
            OverlayPosition { schema: SchemaAt::config(), path: root.clone(), variable: &variable };
        if let Err(problem) = step.set(config, &variable.segments) {
            let origin =
                crate::place::SourceLocation::Environment { variable: variable.name.into() };
            problems.push(ConfigProblem { place: Some(origin), ..*problem });
        }
    }
}

/// One variable with one of the prefixes.
pub(crate) struct Variable<'a> {
    pub(crate) name: &'a str,
    pub(crate) segments: Vec<&'a str>,
    value: &'a str,
    origin: ValueOrigin,
    rank: usize,
}

pub(crate) fn variables(env: &[(String, String)]) -> Vec<Variable<'_>> {
    let mut all: Vec<_> = env.iter().filter_map(variable).collect();
    all.sort_by(|a, b| {
        let segments = a.segments.iter().zip(&b.segments).map(|(a, b)| compare(a, b));
        let first = segments.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal);
        first.then(a.segments.len().cmp(&b.segments.len())).then(a.rank.cmp(&b.rank))
    });
    all
}

fn variable((name, value): &(String, String)) -> Option<Variable<'_>> {
    PREFIXES.iter().enumerate().find_map(|(rank, prefix)| {
        let (head, rest) = name.split_at_checked(prefix.len())?;
        head.eq_ignore_ascii_case(prefix).then(|| Variable {
            name,
            segments: rest.split("__").collect(),
            value,
            origin: ValueOrigin::Environment(name.as_str().into()),
            rank,
        })
    })
}

/// Compares indices as numbers, so that element 10 is appended after element 9.
fn compare(a: &str, b: &str) -> Ordering {
    match (a.parse::<usize>(), b.parse::<usize>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        _ => a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase()),
    }
}

/// A position in the tree and the matching one in the schema.
struct OverlayPosition<'a> {
    schema: SchemaAt,
    path: Path,
    variable: &'a Variable<'a>,
}

impl OverlayPosition<'_> {
    fn set(self, node: &mut Node, segments: &[&str]) -> Result<(), BoxedProblem> {
        let Some((segment, rest)) = segments.split_first() else {
            *node = self.read()?;
            return Ok(());
        };
        match (self.schema.accepts("object"), self.schema.items()) {
            (true, _) => self.set_key(node, segment, rest, segments),
            (false, Some(items)) => self.set_item(node, items, segment, rest),
            (false, None) => Err(self
                .refuse(format!("{} is a single value and has nothing below it", self.path), None)),
        }
    }

    fn set_key(
        self,
        node: &mut Node,
        segment: &str,
        rest: &[&str],
        all: &[&str],
    ) -> Result<(), BoxedProblem> {
        // Names of headers and of environment variables may contain `__`.
        let joined = all.join("__");
        let (key, rest) = match self.schema.free_form() {
            Some(_) if joined.is_empty() => return Err(self.unknown(segment)),
            Some(_) => (existing_key(node, &joined).unwrap_or(joined), [].as_slice()),
            None => {
                let known = self.schema.keys().find(|key| key.eq_ignore_ascii_case(segment));
                (known.ok_or_else(|| self.unknown(segment))?.to_owned(), rest)
            }
        };
        let Some(schema) = self.schema.property(&key) else { return Err(self.unknown(segment)) };
        let origin = self.variable.origin.clone();
        if !matches!(node.value, Value::Map(_)) {
            *node = Node::new(Value::Map(Vec::new()), origin.clone());
        }
        let Value::Map(entries) = &mut node.value else { return Ok(()) };
        let path = self.path.key(&key);
        let below = OverlayPosition { schema, path, variable: self.variable };
        if let Some(entry) = entries.iter_mut().find(|entry| entry.key == key) {
            return below.set(&mut entry.node, rest);
        }
        let mut node = Node::new(Value::Null, origin.clone());
        below.set(&mut node, rest)?;
        entries.push(TreeEntry { key, origin, node });
        Ok(())
    }

    fn set_item(
        self,
        node: &mut Node,
        schema: SchemaAt,
        segment: &str,
        rest: &[&str],
    ) -> Result<(), BoxedProblem> {
        let Ok(index) = segment.parse::<usize>() else {
            let message = format!("{} is a list, and `{segment}` is not an index", self.path);
            return Err(self.refuse(message, Some("elements are numbered from 0".into())));
        };
        let origin = self.variable.origin.clone();
        if !matches!(node.value, Value::List(_)) {
            *node = Node::new(Value::List(Vec::new()), origin.clone());
        }
        let Value::List(items) = &mut node.value else { return Ok(()) };
        let length = items.len();
        let below =
            OverlayPosition { schema, path: self.path.index(index), variable: self.variable };
        if let Some(item) = items.get_mut(index) {
            return below.set(item, rest);
        }
        if index > length {
            let message = format!("{} has no element [{index}]", self.path);
            return Err(self.refuse(message, Some(format!("the next free one is {length}"))));
        }
        let mut item = Node::new(Value::Null, origin);
        below.set(&mut item, rest)?;
        items.push(item);
        Ok(())
    }

    /// The value of the variable: a string for a scalar, JSON for a list or a map.
    fn read(&self) -> Result<Node, BoxedProblem> {
        let origin = &self.variable.origin;
        let text = self.variable.value;
        let takes_json = self.schema.accepts("array") || self.schema.accepts("object");
        let looks_like_json = text.trim_start().starts_with(['[', '{']);
        if takes_json && (looks_like_json || !self.schema.accepts("string")) {
            // The parser's message names a position and does not quote the text.
            let json: Json = serde_json::from_str(text).map_err(|error| {
                let message = format!("{} is not set to valid JSON: {error}", self.path);
                let shape = if self.schema.accepts("array") { "[...]" } else { "{...}" };
                self.refuse(message, Some(format!("a whole value is given as JSON, `{shape}`")))
            })?;
            return Ok(Node::from_json(json, origin));
        }
        Ok(Node { loose: true, ..Node::new(Value::Text(text.into()), origin.clone()) })
    }

    fn unknown(&self, segment: &str) -> BoxedProblem {
        let known = self.schema.keys().collect::<Vec<_>>();
        let help = match nearest(segment, known.iter().copied()) {
            Some(key) => Some(format!("did you mean `{}`?", key.to_ascii_uppercase())),
            None if known.is_empty() => None,
            None => Some(format!("known keys: {}", known.join(", "))),
        };
        let message = format!(
            "environment variable {} sets an unknown key: there is no `{}` in {}",
            self.variable.name,
            segment.to_ascii_lowercase(),
            self.path
        );
        self.refuse(message, help)
    }

    fn refuse(&self, message: String, help: Option<String>) -> BoxedProblem {
        Box::new(ConfigProblem { help, ..ConfigProblem::error(message).about(&self.path) })
    }
}

fn existing_key(node: &Node, key: &str) -> Option<String> {
    let same = |entry: &&TreeEntry| entry.key.eq_ignore_ascii_case(key);
    node.entries().iter().find(same).map(|entry| entry.key.clone())
}
