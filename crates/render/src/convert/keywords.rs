//! Converts the keywords of one schema whose references and `allOf` have been resolved.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::budget::Texts;
use super::vocabulary::{
    KeywordKind, is_annotation, is_plumbing, is_well_formed, kind_of, type_name,
};
use super::{KeysApply, Made, SchemaLevel, SchemaPosition, Vocabulary, Walk, is_plain};
use crate::arguments::{KeyRule, Shape, shown_key};
use crate::rewrite::SchemaPath;
use crate::text::{Cleaned, clean};

const NOT_TAKEN: &str = "the provider does not take it here";
/// Maximum number of `enum` values: OpenAI's limit.
const MAX_CHOICES: usize = 1_000;
const SAYS_NOTHING: &str = "it says nothing to a model";

/// The property keys of one schema.
struct PropertyNames {
    /// Shown keys by original key.
    renamed: HashMap<String, String>,
}

impl PropertyNames {
    fn shown(&self, name: String) -> String {
        self.renamed.get(&name).cloned().unwrap_or(name)
    }
}

impl Walk<'_> {
    pub(super) fn keywords(
        &mut self,
        mut map: Map<String, Value>,
        place: SchemaPosition<'_>,
    ) -> Made {
        let names = self.names(&map, place.level);
        if !is_plain(&map) {
            self.loosen(&mut map, &names, place);
            self.join_positions(&mut map, place);
        }
        self.filter_required(&mut map, &names, place);
        let losses = self.journal.losses();
        let mut shape = Shape::default();
        let mut dropped = Vec::new();
        for (index, (keyword, slot)) in map.iter_mut().enumerate() {
            if self.budget.is_exhausted() {
                return Made::default();
            }
            match self.keyword(keyword, slot.take(), place, &names, &mut shape) {
                Some(value) => *slot = value,
                None => dropped.push(index),
            }
        }
        if !dropped.is_empty() {
            let mut index = 0..map.len();
            map.retain(|_, _| {
                index.next().is_none_or(|index| dropped.binary_search(&index).is_err())
            });
        }
        if self.journal.losses() > losses {
            self.loosen_counts(&mut map, place);
        }
        self.complete(Made { map, shape }, place)
    }

    /// The converted value of one keyword; `None` if it is dropped.
    fn keyword(
        &mut self,
        keyword: &str,
        value: Value,
        place: SchemaPosition<'_>,
        names: &PropertyNames,
        shape: &mut Shape,
    ) -> Option<Value> {
        let here = SchemaPath::Key(&place.at, keyword);
        let dropped = || format!("`{keyword}` dropped");
        let Some(kind) = kind_of(keyword) else {
            if !is_plumbing(keyword) {
                self.journal.mention(&here, dropped(), SAYS_NOTHING);
            }
            return None;
        };
        if !self.rules.vocabulary.keeps(keyword) {
            if is_annotation(keyword) {
                self.journal.mention(&here, dropped(), NOT_TAKEN);
            } else {
                self.journal.note(&here, dropped(), NOT_TAKEN);
            }
            return None;
        }
        if !is_well_formed(keyword, kind, &value) {
            let reason = "its value is not what JSON Schema allows there";
            self.journal.note(&here, dropped(), reason);
            return None;
        }
        self.value(keyword, kind, value, SchemaPosition { at: here, ..place }, names, shape)
    }

    /// Removes or weakens keywords that count matching schemas: since converted schemas accept more, such keywords
    /// would reject values that the original accepts.
    fn loosen_counts(&mut self, map: &mut Map<String, Value>, place: SchemaPosition<'_>) {
        const REASON: &str = "its schemas could not be converted exactly and may overlap now";
        for keyword in ["unevaluatedProperties", "unevaluatedItems", "maxContains"] {
            if map.shift_remove(keyword).is_some() {
                let here = SchemaPath::Key(&place.at, keyword);
                self.journal.note(&here, format!("`{keyword}` dropped"), REASON);
            }
        }
        if let Some(branches) = map.shift_remove("oneOf") {
            let here = SchemaPath::Key(&place.at, "oneOf");
            if map.contains_key("anyOf") {
                self.journal.note(&here, "`oneOf` dropped", REASON);
            } else {
                map.insert("anyOf".into(), branches);
                self.journal.note(&here, "turned into `anyOf`", REASON);
            }
        }
    }

    /// Adds empty `properties` to objects and empty `items` to arrays that have none.
    pub(super) fn complete(&mut self, mut made: Made, place: SchemaPosition<'_>) -> Made {
        let has = |name: &str| match made.map.get("type") {
            Some(Value::String(kind)) => kind == name,
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == name),
            _ => false,
        };
        let (is_object, is_array) = (has("object"), has("array"));
        for (is_missing, keyword) in [
            (is_object && !made.map.contains_key("properties"), "properties"),
            (is_array && !made.map.contains_key("items"), "items"),
        ] {
            if is_missing {
                made.map.insert(keyword.into(), Value::Object(Map::new()));
                let what = format!("empty `{keyword}` added");
                self.journal.mention(
                    &place.at,
                    what,
                    "written for every provider, because OpenAI refuses a schema without it",
                );
            }
        }
        if self.rules.vocabulary == Vocabulary::Subset
            && made.map.get("items") == Some(&Value::Object(Map::new()))
        {
            let any = self.finish(Made::default(), place);
            made.map.insert("items".into(), Value::Object(any.map));
        }
        self.finish(made, place)
    }

    fn rule(&self, level: SchemaLevel) -> KeyRule {
        match (self.rules.keys_apply, level) {
            (KeysApply::Everywhere, _) | (KeysApply::ToParameters, SchemaLevel::Root) => {
                self.rules.keys
            }
            (KeysApply::ToParameters, SchemaLevel::Below) => KeyRule::Visible,
        }
    }

    fn names(&self, map: &Map<String, Value>, level: SchemaLevel) -> PropertyNames {
        let rule = self.rule(level);
        let mut names = PropertyNames { renamed: HashMap::new() };
        let Some(Value::Object(properties)) = map.get("properties") else { return names };
        for key in properties.keys() {
            if let Some(shown) = shown_key(key, rule) {
                names.renamed.insert(key.clone(), shown);
            }
        }
        names
    }

    /// Removes keywords about property keys if keys were renamed or patterns were dropped, because they no longer
    /// apply.
    fn loosen(
        &mut self,
        map: &mut Map<String, Value>,
        names: &PropertyNames,
        place: SchemaPosition<'_>,
    ) {
        let keeps = self.rules.vocabulary.keeps("patternProperties");
        let about_keys = ["patternProperties", "propertyNames", "unevaluatedProperties"];
        let mut has_lost_patterns = false;
        for keyword in about_keys {
            if map.contains_key(keyword) && keeps && !names.renamed.is_empty() {
                map.shift_remove(keyword);
                let what = format!("`{keyword}` dropped");
                let here = SchemaPath::Key(&place.at, keyword);
                self.journal.note(&here, what, "properties are shown under other keys");
                has_lost_patterns |= keyword == "patternProperties";
            }
        }
        has_lost_patterns |= !keeps && map.contains_key("patternProperties");
        if has_lost_patterns && map.shift_remove("additionalProperties").is_some() {
            let here = SchemaPath::Key(&place.at, "additionalProperties");
            let reason = "the patterns of `patternProperties` are properties, too";
            self.journal.note(&here, "`additionalProperties` dropped", reason);
        }
    }

    /// Replaces the positions of a tuple with one `items` union of their schemas.
    fn join_positions(&mut self, map: &mut Map<String, Value>, place: SchemaPosition<'_>) {
        if self.rules.vocabulary == Vocabulary::Full {
            return;
        }
        let Some(Value::Array(mut schemas)) = map.shift_remove("prefixItems") else { return };
        if let Some(rest @ (Value::Object(_) | Value::Bool(true))) = map.shift_remove("items") {
            schemas.push(rest);
        }
        let mut union = Map::new();
        if schemas.len() == 1 {
            map.insert("items".into(), schemas.swap_remove(0));
        } else {
            super::merge::mark_positions(&mut schemas, &place.at.to_string());
            union.insert("anyOf".into(), Value::Array(schemas));
            map.insert("items".into(), Value::Object(union));
        }
        let here = SchemaPath::Key(&place.at, "prefixItems");
        self.journal.note(
            &here,
            "positions joined into one `items`",
            "this provider does not accept tuples",
        );
    }

    fn value(
        &mut self,
        keyword: &str,
        kind: KeywordKind,
        value: Value,
        place: SchemaPosition<'_>,
        names: &PropertyNames,
        shape: &mut Shape,
    ) -> Option<Value> {
        match kind {
            KeywordKind::Enum => self.choices(value, place),
            KeywordKind::Word
            | KeywordKind::Pattern
            | KeywordKind::Required
            | KeywordKind::Const
            | KeywordKind::Number
            | KeywordKind::Count
            | KeywordKind::Flag
            | KeywordKind::List
            | KeywordKind::Anything => Some(value),
            KeywordKind::Prose => self.prose(value, place),
            KeywordKind::Type => self.types(value, place),
            KeywordKind::NamesMap => names_map(value, names),
            KeywordKind::Properties => Some(self.properties(value, names, place, shape)),
            KeywordKind::Schema | KeywordKind::SchemaOrFlag => {
                Some(self.schema(keyword, kind, value, place, shape))
            }
            KeywordKind::SameSchema => self.same_schema(keyword, value, place, shape),
            KeywordKind::SameSchemas => self.branches(value, place, shape),
            KeywordKind::Schemas => self.positions(value, place, shape),
            KeywordKind::SchemaMap | KeywordKind::SameSchemaMap => {
                Some(self.schema_map(kind, value, names, place, shape))
            }
        }
    }

    fn choices(&mut self, value: Value, place: SchemaPosition<'_>) -> Option<Value> {
        if value.as_array().is_some_and(|values| values.len() <= MAX_CHOICES) {
            return Some(value);
        }
        self.journal.note(&place.at, "`enum` dropped", "it has more values than a model can use");
        None
    }

    fn prose(&mut self, value: Value, place: SchemaPosition<'_>) -> Option<Value> {
        let Value::String(text) = value else { return None };
        // Descriptions of parameters are one level below the arguments.
        if self.effort.texts == Texts::OfParameters && place.depth > 1 {
            return None;
        }
        match clean(&text) {
            Cleaned::AsItWas => Some(Value::String(text)),
            Cleaned::Changed { text, what } => {
                self.journal.mention(
                    &place.at,
                    what,
                    "a person must be able to read what a model reads",
                );
                Some(Value::String(text))
            }
        }
    }

    fn types(&mut self, value: Value, place: SchemaPosition<'_>) -> Option<Value> {
        let given = match value {
            Value::Array(names) => names,
            value => vec![value],
        };
        let mut known: Vec<&'static str> = Vec::new();
        for name in &given {
            let found = name.as_str().and_then(type_name);
            if found.is_none() || found != name.as_str() {
                let what = match found {
                    Some(found) => format!("type {name} written as `{found}`"),
                    None => format!("type {name} dropped"),
                };
                self.journal.note(&place.at, what, "JSON Schema has no such type");
            }
            known.extend(found.filter(|name| !known.contains(name)));
        }
        match known.as_slice() {
            [] => None,
            [one] => Some(Value::from(*one)),
            several => Some(Value::from(several)),
        }
    }

    /// Removes names from `required` that are not declared as properties.
    fn filter_required(
        &mut self,
        map: &mut Map<String, Value>,
        names: &PropertyNames,
        place: SchemaPosition<'_>,
    ) {
        let Some(Value::Array(given)) = map.get_mut("required").map(Value::take) else { return };
        let here = SchemaPath::Key(&place.at, "required");
        let declared = map.get("properties").and_then(Value::as_object);
        let mut seen = HashSet::new();
        let mut kept = Vec::with_capacity(given.len());
        for name in &given {
            let known = name.as_str().filter(|name| {
                declared
                    .is_some_and(|all| all.get(*name).is_some_and(|one| *one != Value::Bool(false)))
            });
            match known {
                Some(name) if seen.insert(name) => {
                    kept.push(Value::String(names.shown(name.to_owned())));
                }
                Some(_) => {}
                None => {
                    let what = format!("{name} dropped");
                    self.journal.note(&here, what, "no property of that name is declared");
                }
            }
        }
        if kept.is_empty() {
            map.shift_remove("required");
        } else {
            map.insert("required".into(), Value::Array(kept));
        }
    }

    fn properties(
        &mut self,
        value: Value,
        names: &PropertyNames,
        place: SchemaPosition<'_>,
        shape: &mut Shape,
    ) -> Value {
        let Value::Object(mut given) = value else { return Value::Object(Map::new()) };
        let mut forbidden = false;
        for (key, slot) in &mut given {
            let here = SchemaPath::Key(&place.at, key);
            if *slot == Value::Bool(false) && self.rules.vocabulary != Vocabulary::Full {
                self.journal.note(&here, "dropped", "the schema forbids it");
                forbidden = true;
                continue;
            }
            let there = below(SchemaPosition { at: here, ..place }, SchemaLevel::Below);
            let mut made = self.node(slot.take(), there);
            shape.property(key, made.shape);
            if let Some(new) = names.renamed.get(key) {
                shape.renamed(new, key);
                let reason = "the provider refuses the key; arguments are turned back";
                self.journal.mention(&here, format!("shown as `{new}`"), reason);
                self.name(&mut made.map, key);
            }
            *slot = Value::Object(made.map);
        }
        if forbidden {
            given.retain(|_, schema| schema.is_object());
        }
        if !names.renamed.is_empty() {
            given = given.into_iter().map(|(key, schema)| (names.shown(key), schema)).collect();
        }
        Value::Object(given)
    }

    /// Keeps the original key as the title, because it may be all that describes the property.
    fn name(&mut self, map: &mut Map<String, Value>, key: &str) {
        const MAX_TITLE: usize = 100;
        let is_alone = self.rules.vocabulary == Vocabulary::Subset && map.contains_key("anyOf");
        let visible =
            key.chars().filter(|c| !crate::text::is_hidden(*c) && !c.is_whitespace() || *c == ' ');
        let title: String = visible.take(MAX_TITLE).collect();
        if !title.trim().is_empty() && !is_alone {
            map.entry("title").or_insert(Value::String(title));
        }
    }

    fn schema(
        &mut self,
        keyword: &str,
        kind: KeywordKind,
        value: Value,
        place: SchemaPosition<'_>,
        shape: &mut Shape,
    ) -> Value {
        let is_plain_flag = kind == KeywordKind::SchemaOrFlag
            || (self.rules.vocabulary == Vocabulary::Full && value == Value::Bool(false));
        if value.is_boolean() && is_plain_flag {
            return value;
        }
        let made = self.node(value, below(place, SchemaLevel::Below));
        match keyword {
            "items" | "contains" | "unevaluatedItems" => shape.item(made.shape),
            "additionalProperties" | "unevaluatedProperties" => shape.other(made.shape),
            _ => {}
        }
        Value::Object(made.map)
    }

    /// Converts a schema that applies to the same value. Under `not` and `if`, an inexact conversion is dropped: a
    /// schema that accepts more makes the negated one accept less.
    fn same_schema(
        &mut self,
        keyword: &str,
        value: Value,
        place: SchemaPosition<'_>,
        shape: &mut Shape,
    ) -> Option<Value> {
        let before = self.journal.losses();
        let made = self.node(value, below(place, place.level));
        if matches!(keyword, "not" | "if") && self.journal.losses() > before {
            let what = format!("`{keyword}` dropped");
            self.journal.note(&place.at, what, "its schema could not be converted exactly");
            return None;
        }
        shape.absorb(made.shape);
        Some(Value::Object(made.map))
    }

    fn branches(
        &mut self,
        value: Value,
        place: SchemaPosition<'_>,
        shape: &mut Shape,
    ) -> Option<Value> {
        let Value::Array(given) = value else { return None };
        let mut kept = Vec::new();
        let mut shapes = Vec::new();
        let mut takes_texts = false;
        for (index, schema) in given.into_iter().enumerate() {
            let here = SchemaPath::Index(&place.at, index);
            if schema == Value::Bool(false) && self.rules.vocabulary != Vocabulary::Full {
                self.journal.note(&here, "dropped", "nothing can match it");
                continue;
            }
            let made = self.node(schema, below(SchemaPosition { at: here, ..place }, place.level));
            takes_texts |= !made.shape.has_values()
                && made.map.get("type").is_none_or(|kind| kind == "STRING");
            kept.push(Value::Object(made.map));
            shapes.push(made.shape);
        }
        for mut branch in shapes {
            if takes_texts {
                branch.forget_values();
            }
            shape.absorb(branch);
        }
        (!kept.is_empty()).then_some(Value::Array(kept))
    }

    fn positions(
        &mut self,
        value: Value,
        place: SchemaPosition<'_>,
        shape: &mut Shape,
    ) -> Option<Value> {
        let Value::Array(given) = value else { return None };
        let mut kept = Vec::new();
        for (index, schema) in given.into_iter().enumerate() {
            let here = SchemaPath::Index(&place.at, index);
            let made =
                self.node(schema, below(SchemaPosition { at: here, ..place }, SchemaLevel::Below));
            shape.item(made.shape);
            kept.push(Value::Object(made.map));
        }
        Some(Value::Array(kept))
    }

    fn schema_map(
        &mut self,
        kind: KeywordKind,
        value: Value,
        names: &PropertyNames,
        place: SchemaPosition<'_>,
        shape: &mut Shape,
    ) -> Value {
        let Value::Object(given) = value else { return Value::Object(Map::new()) };
        let mut kept = Map::new();
        for (key, schema) in given {
            let here = SchemaPath::Key(&place.at, &key);
            let at = SchemaPosition { at: here, ..place };
            if kind == KeywordKind::SameSchemaMap {
                let made = self.node(schema, below(at, place.level));
                shape.absorb(made.shape);
                kept.insert(names.shown(key), Value::Object(made.map));
            } else if fancy_regex::Expr::parse_tree(&key).is_ok() {
                let made = self.node(schema, below(at, SchemaLevel::Below));
                shape.other(made.shape);
                kept.insert(key, Value::Object(made.map));
            } else {
                self.journal.note(&here, "dropped", "its key is not a regular expression");
            }
        }
        Value::Object(kept)
    }
}

fn below(place: SchemaPosition<'_>, level: SchemaLevel) -> SchemaPosition<'_> {
    SchemaPosition { depth: place.depth + 1, level, ..place }
}

fn names_map(value: Value, names: &PropertyNames) -> Option<Value> {
    let Value::Object(given) = value else { return None };
    let mut kept = Map::new();
    for (key, value) in given {
        let Value::Array(list) = value else { continue };
        let mut seen = HashSet::new();
        let list = list.into_iter().filter_map(|name| match name {
            Value::String(name) if seen.insert(name.clone()) => Some(names.shown(name)),
            _ => None,
        });
        kept.insert(names.shown(key), list.collect());
    }
    Some(Value::Object(kept))
}
