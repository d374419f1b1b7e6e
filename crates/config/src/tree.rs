//! The configuration as a tree in which every value has its location.

use std::path::PathBuf;

use serde_json::Value as Json;
use switchboard_model::{HeaderTemplate, Secret};

use crate::path::Path;
use crate::place::ValueOrigin;

/// A value with its location.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) origin: ValueOrigin,
    /// Whether the text came from the environment or an expansion. Such text is converted to the type that the schema
    /// wants; values in the file keep their YAML type.
    pub(crate) loose: bool,
    /// Whether the value must not be shown.
    pub(crate) sensitive: bool,
    /// The text before expansion, which may be shown.
    pub(crate) template: Option<String>,
    /// The file that the value was read from (`file:`).
    pub(crate) file: Option<PathBuf>,
    /// The values that references inserted into the text.
    pub(crate) referenced: Vec<Secret>,
    /// The text with its references to the caller, which each request resolves; the text itself is then empty.
    pub(crate) of_caller: Option<HeaderTemplate>,
}

/// What a node holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<TreeEntry>),
    /// Invalid and already reported; further checks skip it.
    Broken,
}

/// A key, its value, and the place of the key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TreeEntry {
    pub(crate) key: String,
    pub(crate) origin: ValueOrigin,
    pub(crate) node: Node,
}

impl Node {
    pub(crate) fn new(value: Value, origin: ValueOrigin) -> Self {
        Self {
            value,
            origin,
            loose: false,
            sensitive: false,
            template: None,
            file: None,
            referenced: Vec::new(),
            of_caller: None,
        }
    }

    /// The entry of a map.
    pub(crate) fn entry(&self, key: &str) -> Option<&TreeEntry> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The value of a key. `None` if it is absent or null, which mean the same.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.node).filter(|node| node.value != Value::Null)
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The entries of a map.
    pub(crate) fn entries(&self) -> &[TreeEntry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The values that references inserted here and below.
    pub(crate) fn all_referenced(&self) -> Vec<Secret> {
        let items = self.items().iter().chain(self.entries().iter().map(|entry| &entry.node));
        self.referenced.iter().cloned().chain(items.flat_map(Self::all_referenced)).collect()
    }

    /// Follows a JSON pointer of the validator. A segment such as `0` is an index in a list but a key in a map.
    pub(crate) fn follow<'a>(
        &self,
        root: Path,
        segments: impl Iterator<Item = std::borrow::Cow<'a, str>>,
    ) -> (&Self, Path) {
        let (mut node, mut path) = (self, root);
        for segment in segments {
            let next = match &node.value {
                Value::List(items) => segment.parse().ok().and_then(|index: usize| {
                    items.get(index).map(|item| (item, path.index(index)))
                }),
                _ => node.entry(&segment).map(|entry| (&entry.node, path.key(&segment))),
            };
            let Some((below, longer)) = next else { break };
            (node, path) = (below, longer);
        }
        (node, path)
    }

    /// The tree as JSON. Keys without a value are left out: `prompts:` is the same as no `prompts`.
    pub(crate) fn to_json(&self) -> Json {
        match &self.value {
            Value::Null | Value::Broken => Json::Null,
            Value::Bool(value) => Json::from(*value),
            Value::Integer(value) => Json::from(*value),
            Value::Float(value) => number(*value),
            Value::Text(text) => Json::from(text.as_str()),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(entries) => entries
                .iter()
                .filter(|entry| !matches!(entry.node.value, Value::Null | Value::Broken))
                .map(|entry| (entry.key.clone(), entry.node.to_json()))
                .collect(),
        }
    }

    /// Makes a tree from a JSON value; every node gets the same origin.
    pub(crate) fn from_json(json: Json, origin: &ValueOrigin) -> Self {
        let value = match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(value),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => Value::Integer(integer),
                (None, float) => Value::Float(float.unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::Text(text),
            Json::Array(items) => {
                Value::List(items.into_iter().map(|item| Self::from_json(item, origin)).collect())
            }
            Json::Object(map) => {
                let entry = |(key, json)| TreeEntry {
                    key,
                    origin: origin.clone(),
                    node: Self::from_json(json, origin),
                };
                Value::Map(map.into_iter().map(entry).collect())
            }
        };
        Self { loose: true, ..Self::new(value, origin.clone()) }
    }
}

/// JSON Schema accepts 5.0 as an integer and serde does not; converting it to 5 makes both accept it.
fn number(value: f64) -> Json {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "integral and below 2^53")]
        return Json::from(value as i64);
    }
    Json::from(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_round_trips_without_nulls() {
        let json = serde_json::json!({"a": [1, 2.5, "x", true], "b": {"c": 7.0}, "n": null});
        let node = Node::from_json(json, &ValueOrigin::Nowhere);
        assert_eq!(node.to_json(), serde_json::json!({"a": [1, 2.5, "x", true], "b": {"c": 7}}));
        assert!(node.get("n").is_none() && node.entry("n").is_some());
        assert!(node.items().is_empty());
    }
}
