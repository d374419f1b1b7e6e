//! Merges variants of the arguments (`anyOf`, `oneOf` at the root) into one object.
//!
//! Providers reject variants at the root. The merged object has the parameters of all variants; a parameter is required
//! if every variant requires it; a sentence in the description says which parameters belong together.

use serde_json::{Map, Value};

use super::merge::{all_of, is_same, mark, take_origin};
use super::references::Joined;
use super::vocabulary::type_name;
use super::{SchemaLevel, Walk};
use crate::rewrite::SchemaPath;

/// Maximum nesting of variants in variants.
const MAX_NESTING: usize = 4;
/// Maximum number of alternatives, and of names in one, in the sentence; longer ones are not added.
const MAX_TOLD: usize = 8;

/// Maximum number of required names that are kept, because they are compared with each other.
const MAX_NAMES: usize = 1_000;

/// The merged content of the variants.
#[derive(Default)]
struct Union {
    /// The schemas that the variants have for each property.
    properties: Map<String, Value>,
    /// The required names of each variant.
    required: Vec<Vec<String>>,
    /// Number of variants that allow additional properties.
    open: usize,
}

impl Walk<'_> {
    pub(super) fn merge_variants(
        &mut self,
        map: &mut Map<String, Value>,
        at: &SchemaPath<'_>,
        nesting: usize,
    ) {
        for keyword in ["anyOf", "oneOf"] {
            let Some(variants) = map.shift_remove(keyword) else { continue };
            let Value::Array(variants) = variants else { continue };
            let here = SchemaPath::Key(at, keyword);
            self.journal.note(
                &here,
                "variants merged into one object",
                "providers refuse variants at the root of the arguments",
            );
            let union = self.union(variants, &here, nesting);
            if nesting == 0 {
                self.tell(keyword, &union, map);
            }
            union.join(map);
        }
    }

    fn union(&mut self, variants: Vec<Value>, at: &SchemaPath<'_>, nesting: usize) -> Union {
        let mut union = Union::default();
        for (index, variant) in variants.into_iter().enumerate() {
            let place = SchemaPath::Index(at, index);
            let Value::Object(mut variant) = variant else { continue };
            let origin = take_origin(&mut variant).unwrap_or_else(|| place.to_string());
            if nesting >= MAX_NESTING || !self.budget.node() {
                continue;
            }
            let place = SchemaPath::At(&origin);
            let (mut variant, moved) =
                self.open(variant, &place, SchemaLevel::Root, Joined::Beside, 0);
            if !takes_objects(&variant) {
                self.journal.note(&place, "variant dropped", "arguments are always an object");
                continue;
            }
            mark(&mut variant, moved.as_deref().unwrap_or(&origin));
            self.merge_variants(&mut variant, &place, nesting + 1);
            union.add(variant);
        }
        union
    }

    /// Adds a sentence about the alternatives, which the merged schema cannot express.
    fn tell(&mut self, keyword: &str, union: &Union, map: &Map<String, Value>) {
        let always = names(map);
        let mut sets: Vec<Vec<&String>> = union
            .required
            .iter()
            .map(|names| names.iter().filter(|name| !always.contains(name)).collect())
            .collect();
        sets.dedup();
        if sets.len() < 2 || sets.len() > MAX_TOLD || sets.iter().any(|set| set.len() > MAX_TOLD) {
            return;
        }
        let shown = |name: &String| {
            let shown = crate::arguments::shown_key(name, self.rules.keys);
            format!("`{}`", shown.as_deref().unwrap_or(name))
        };
        let set = |names: &Vec<&String>| match names.as_slice() {
            [] => "none of these".to_owned(),
            names => names.iter().map(|name| shown(name)).collect::<Vec<_>>().join(" and "),
        };
        let sets: Vec<String> = sets.iter().map(set).collect();
        let how_many = if keyword == "oneOf" { "exactly one" } else { "at least one" };
        self.notes.push(format!("Give {how_many} of: {}.", sets.join("; or ")));
    }
}

fn takes_objects(variant: &Map<String, Value>) -> bool {
    match variant.get("type") {
        Some(Value::String(name)) => type_name(name).is_none_or(|name| name == "object"),
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        _ => true,
    }
}

fn names(map: &Map<String, Value>) -> Vec<String> {
    let names = map.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).take(MAX_NAMES).collect()
}

impl Union {
    fn add(&mut self, mut variant: Map<String, Value>) {
        self.required.push(names(&variant));
        if variant.get("additionalProperties") != Some(&Value::Bool(false)) {
            self.open += 1;
        }
        let Some(Value::Object(properties)) = variant.shift_remove("properties") else { return };
        for (key, schema) in properties {
            let schemas = self.properties.entry(key).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(schemas) = schemas {
                schemas.push(schema);
            }
        }
    }

    fn join(self, map: &mut Map<String, Value>) {
        let variants = self.required.len();
        if variants == 0 {
            return;
        }
        let mut shared = self.required.into_iter();
        let first = shared.next().unwrap_or_default();
        let rest: Vec<Vec<String>> = shared.collect();
        let mut required = names(map);
        for name in first {
            if rest.iter().all(|names| names.contains(&name)) && !required.contains(&name) {
                required.push(name);
            }
        }
        if !required.is_empty() {
            map.insert("required".into(), required.into());
        }
        if self.open == 0 && !map.contains_key("patternProperties") {
            map.entry("additionalProperties").or_insert(Value::Bool(false));
        }
        let known = map.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(known) = known else { return };
        for (key, schemas) in self.properties {
            let Value::Array(schemas) = schemas else { continue };
            let is_in_all = schemas.len() == variants;
            let joined = any_of(schemas);
            match known.get_mut(&key).map(Value::take) {
                None => {
                    known.insert(key, joined);
                }
                // Some variant does not restrict the property, so the schema of the whole object stays.
                Some(before) if !is_in_all || is_same(&before, &joined) => {
                    known.insert(key, before);
                }
                Some(before) => {
                    known.insert(key, all_of(before, joined));
                }
            }
        }
    }
}

/// A schema that accepts what any of `schemas` accepts. Constants, which often distinguish variants, become one `enum`.
fn any_of(schemas: Vec<Value>) -> Value {
    let mut distinct: Vec<Value> = Vec::new();
    for schema in schemas {
        if !distinct.iter().any(|known| is_same(known, &schema)) {
            distinct.push(schema);
        }
    }
    if distinct.len() == 1 {
        return distinct.swap_remove(0);
    }
    if let Some(values) = distinct.iter().map(single_values).collect::<Option<Vec<_>>>() {
        let mut joined: Vec<Value> = Vec::new();
        for value in values.into_iter().flatten() {
            if !joined.contains(&value) {
                joined.push(value);
            }
        }
        let mut map = Map::new();
        map.insert("enum".into(), Value::Array(joined));
        return Value::Object(map);
    }
    let mut map = Map::new();
    map.insert("anyOf".into(), Value::Array(distinct));
    Value::Object(map)
}

fn single_values(schema: &Value) -> Option<Vec<Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(vec![value.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        (None, _) => None,
    }
}
