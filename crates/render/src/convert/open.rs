//! Resolves references in a schema and merges `allOf`.

use serde_json::{Map, Value};

use super::merge::{is_only_annotated, mark, merge, take_origin};
use super::older_drafts::modernise;
use super::references::{Joined, shallow, take_reference};
use super::{SchemaLevel, Vocabulary, Walk};
use crate::rewrite::SchemaPath;

/// Maximum length of a chain of references.
const MAX_HOPS: usize = 32;
/// Maximum nesting of `allOf` in `allOf`.
const MAX_NESTING: usize = 12;

impl Walk<'_> {
    /// Resolves the references of a schema and merges its `allOf` where the provider requires it. Returns the schema
    /// and its new path if it was moved. The references stay in `active` until the caller has finished the schema.
    pub(super) fn open(
        &mut self,
        mut map: Map<String, Value>,
        at: &SchemaPath<'_>,
        level: SchemaLevel,
        joined: Joined,
        nesting: usize,
    ) -> (Map<String, Value>, Option<String>) {
        modernise(&mut map, at, &mut self.journal);
        let mut moved = None;
        let mut hops = 0;
        while let Some(reference) = take_reference(&mut map) {
            hops += 1;
            if hops > MAX_HOPS {
                let what = format!(
                    "reference to `{reference}` replaced by a schema that accepts anything"
                );
                self.journal.note(at, what, "the chain of references is too long");
                break;
            }
            if !self.follow(&mut map, &reference, at, level, joined, &mut moved) {
                break;
            }
        }
        self.open_all_of(&mut map, at, level, joined, nesting);
        self.hoist_conditions(&mut map, at);
        self.single_value(&mut map, at);
        (map, moved)
    }

    /// Replaces a reference by its target; `false` if it cannot be resolved or would be a cycle.
    fn follow(
        &mut self,
        map: &mut Map<String, Value>,
        reference: &str,
        at: &SchemaPath<'_>,
        level: SchemaLevel,
        joined: Joined,
        moved: &mut Option<String>,
    ) -> bool {
        let here = SchemaPath::Key(at, "$ref");
        let (pointer, target) = match self.resolve(reference) {
            Ok(found) => found,
            Err(reason) => {
                let what = format!(
                    "reference to `{reference}` replaced by a schema that accepts anything"
                );
                self.journal.note(&here, what, reason);
                return false;
            }
        };
        let Value::Object(target) = target else {
            let what =
                format!("reference to `{reference}` replaced by a schema that accepts anything");
            if *target != Value::Bool(true) {
                self.journal.note(&here, what, "nothing could match it");
            }
            return false;
        };
        if self.is_cycle(&pointer, joined) {
            merge(map, shallow(target));
            let what = format!("`{reference}` cut to its type");
            self.journal.note(&here, what, "the schema refers to itself");
            return false;
        }
        if !self.budget.copy_of(&Value::Null) || !self.pay_for(target) {
            return false;
        }
        let mut target = target.clone();
        self.journal.mention(&here, format!("`{reference}` inlined"), INLINED);
        modernise(&mut target, &SchemaPath::At(&pointer), &mut self.journal);
        if is_only_annotated(map) {
            *moved = Some(pointer.clone());
        }
        mark(&mut target, &pointer);
        self.join(map, target, at, level);
        self.enter(pointer, joined);
        true
    }

    fn pay_for(&mut self, map: &Map<String, Value>) -> bool {
        map.values().all(|value| self.budget.copy_of(value))
    }

    /// Handles keywords that could not be merged: they become a schema in `allOf` where the provider allows it, else
    /// they are dropped with a note.
    fn keep_or_note(
        &mut self,
        map: &mut Map<String, Value>,
        left: Map<String, Value>,
        at: &SchemaPath<'_>,
        level: SchemaLevel,
    ) {
        if left.is_empty() {
            return;
        }
        let is_kept = self.rules.vocabulary == Vocabulary::Full && level == SchemaLevel::Below;
        if is_kept {
            let all = map.entry("allOf").or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(all) = all {
                all.push(Value::Object(left));
            }
            return;
        }
        for keyword in left.keys() {
            let what = format!("second `{keyword}` dropped");
            self.journal.note(at, what, "the merged schema already has one");
        }
    }

    fn open_all_of(
        &mut self,
        map: &mut Map<String, Value>,
        at: &SchemaPath<'_>,
        level: SchemaLevel,
        joined: Joined,
        nesting: usize,
    ) {
        let Some(Value::Array(branches)) = map.get("allOf") else { return };
        let is_kept = self.rules.vocabulary == Vocabulary::Full
            && level == SchemaLevel::Below
            && branches.len() != 1;
        if is_kept {
            return;
        }
        let Some(Value::Array(branches)) = map.shift_remove("allOf") else { return };
        let joined = if branches.len() == 1 { joined } else { Joined::Beside };
        let here = SchemaPath::Key(at, "allOf");
        self.journal.mention(&here, "merged into one schema", "not every provider takes `allOf`");
        for (index, branch) in branches.into_iter().enumerate() {
            let Value::Object(mut branch) = branch else {
                if branch != Value::Bool(true) {
                    self.journal.note(
                        &SchemaPath::Index(&here, index),
                        "dropped",
                        "nothing could match it",
                    );
                }
                continue;
            };
            let origin = take_origin(&mut branch).unwrap_or_else(|| format!("{here}/{index}"));
            if nesting >= MAX_NESTING || !self.budget.node() {
                self.journal.note(
                    &SchemaPath::At(&origin),
                    "dropped",
                    "`allOf` is nested too deep",
                );
                continue;
            }
            let place = SchemaPath::At(&origin);
            let (mut branch, moved) = self.open(branch, &place, level, joined, nesting + 1);
            mark(&mut branch, moved.as_deref().unwrap_or(&origin));
            self.join(map, branch, at, level);
        }
    }

    /// Merges a schema into another one and notes what is lost.
    fn join(
        &mut self,
        map: &mut Map<String, Value>,
        other: Map<String, Value>,
        at: &SchemaPath<'_>,
        level: SchemaLevel,
    ) {
        let closes = |map: &Map<String, Value>| {
            map.get("additionalProperties").is_some_and(|others| *others != Value::Bool(true))
        };
        if (closes(map) && other.contains_key("properties"))
            || (closes(&other) && map.contains_key("properties"))
        {
            let here = SchemaPath::Key(at, "additionalProperties");
            self.journal.note(
                &here,
                "now applies to all properties",
                "the schemas around it are merged",
            );
        }
        let left = merge(map, other);
        self.keep_or_note(map, left, at, level);
    }

    /// Adds parameters that occur only in conditions (`then`, `else`, `dependentSchemas`) as optional properties,
    /// because the conditions are dropped.
    fn hoist_conditions(&mut self, map: &mut Map<String, Value>, at: &SchemaPath<'_>) {
        if self.rules.vocabulary == Vocabulary::Full {
            return;
        }
        let mut found = Vec::new();
        for keyword in ["then", "else"] {
            found.extend(
                map.get_mut(keyword)
                    .map(|branch| (format!("{at}/{keyword}"), branch))
                    .map(|(origin, branch)| (origin, properties_of(branch))),
            );
        }
        if let Some(Value::Object(schemas)) = map.get_mut("dependentSchemas") {
            for (key, branch) in schemas {
                let key = key.replace('~', "~0").replace('/', "~1");
                found.push((format!("{at}/dependentSchemas/{key}"), properties_of(branch)));
            }
        }
        for (origin, properties) in found {
            if properties.is_empty() {
                continue;
            }
            let mut branch = Map::new();
            branch.insert("properties".into(), Value::Object(properties));
            mark(&mut branch, &origin);
            let known = map.entry("properties").or_insert_with(|| Value::Object(Map::new()));
            let (Some(known), Some(Value::Object(more))) =
                (known.as_object_mut(), branch.shift_remove("properties"))
            else {
                continue;
            };
            for (key, schema) in more {
                known.entry(key).or_insert(schema);
            }
            let place = SchemaPath::At(&origin);
            self.journal.note(
                &place,
                "its properties shown as optional",
                "this provider does not accept conditions",
            );
        }
    }

    /// Replaces `const` by an `enum` with one value.
    fn single_value(&mut self, map: &mut Map<String, Value>, at: &SchemaPath<'_>) {
        if self.rules.vocabulary == Vocabulary::Full {
            return;
        }
        let Some(value) = map.shift_remove("const") else { return };
        map.insert("enum".into(), Value::Array(vec![value]));
        let here = SchemaPath::Key(at, "const");
        self.journal.mention(&here, "turned into an `enum`", "not every provider takes `const`");
    }
}

const INLINED: &str = "not every provider follows references";

fn properties_of(schema: &mut Value) -> Map<String, Value> {
    match schema.get_mut("properties").map(Value::take) {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    }
}
