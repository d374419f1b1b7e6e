//! Converts to the `Schema` of Gemini's `parameters`: a single type in capitals, `nullable` beside it, `enum` with
//! strings only, and no keyword beside `anyOf`.

use serde_json::{Map, Value};

use super::{Made, SchemaPosition, Walk};
use crate::arguments::Shape;
use crate::rewrite::SchemaPath;

const NOT_IN_SUBSET: &str = "`parameters` of Gemini does not take it";

/// The types that replace a missing one, because a schema must have a type.
const ANYTHING: [&str; 4] = ["string", "number", "boolean", "object"];

impl Walk<'_> {
    /// Converts a schema whose subschemas have been converted already.
    pub(super) fn subset(&mut self, made: Made, place: SchemaPosition<'_>) -> Made {
        let Made { mut map, mut shape } = made;
        let mut types = take_types(&mut map);
        let is_null = types == ["null"];
        let mut nullable = types.iter().any(|name| name == "null");
        types.retain(|name| name != "null");
        let variants = self.take_variants(&mut map, place);
        let has_properties =
            map.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
        let rewritten = if is_null {
            typed("NULL", &map)
        } else if let Some(variants) = variants.filter(|_| !has_properties) {
            self.any_of(variants, &map, nullable, place)
        } else if let Some(Value::Array(values)) = map.shift_remove("enum") {
            nullable |= values.contains(&Value::Null);
            let texts = self.texts(values, &mut shape, place);
            let mut rewritten = self.single("string", &mut map, place);
            rewritten.shift_remove("default");
            if !texts.is_empty() {
                rewritten.insert("enum".into(), texts.into());
            }
            with_null(rewritten, nullable)
        } else {
            if types.is_empty() {
                types = inferred(&map).map_or_else(
                    || ANYTHING.map(str::to_owned).to_vec(),
                    |name| vec![name.to_owned()],
                );
                let what = format!("type {} added", types.join(", "));
                self.journal.note(&place.at, what, "Gemini wants a type everywhere");
            }
            match types.as_slice() {
                [one] => with_null(self.single(one, &mut map, place), nullable),
                several => {
                    self.journal.note(&place.at, "types turned into `anyOf`", NOT_IN_SUBSET);
                    let branches = several.iter().map(|name| self.single(name, &mut map, place));
                    let mut branches: Vec<_> = branches.collect();
                    for branch in branches.iter_mut().skip(1) {
                        branch.retain(|keyword, _| {
                            !matches!(keyword.as_str(), "title" | "description")
                        });
                    }
                    any_of(branches, nullable)
                }
            }
        };
        Made { map: rewritten, shape }
    }

    fn take_variants(
        &mut self,
        map: &mut Map<String, Value>,
        place: SchemaPosition<'_>,
    ) -> Option<Vec<Map<String, Value>>> {
        let mut found: Option<Vec<Map<String, Value>>> = None;
        for keyword in ["anyOf", "oneOf"] {
            let Some(Value::Array(branches)) = map.shift_remove(keyword) else { continue };
            let has_other = found.is_some()
                || map
                    .get("properties")
                    .and_then(Value::as_object)
                    .is_some_and(|all| !all.is_empty());
            let here = SchemaPath::Key(&place.at, keyword);
            if has_other {
                let reason = "`anyOf` must stand alone in `parameters` of Gemini";
                self.journal.note(&here, format!("`{keyword}` dropped"), reason);
                continue;
            }
            if keyword == "oneOf" {
                self.journal.note(&here, "turned into `anyOf`", NOT_IN_SUBSET);
            }
            let maps = branches.into_iter().filter_map(|branch| match branch {
                Value::Object(map) => Some(map),
                _ => None,
            });
            found = Some(maps.collect());
        }
        found
    }

    /// Makes `anyOf` the only keyword: the others move into its branches or are dropped.
    fn any_of(
        &mut self,
        variants: Vec<Map<String, Value>>,
        beside: &Map<String, Value>,
        nullable: bool,
        place: SchemaPosition<'_>,
    ) -> Map<String, Value> {
        let mut nullable = nullable;
        let mut branches = Vec::new();
        for mut variant in variants {
            match variant.get_mut("anyOf").map(Value::take) {
                Some(Value::Array(inner)) => {
                    branches.extend(inner.into_iter().filter_map(|inner| match inner {
                        Value::Object(inner) => Some(inner),
                        _ => None,
                    }));
                }
                _ if variant.get("type") == Some(&"NULL".into()) => nullable = true,
                _ => branches.push(variant),
            }
        }
        for keyword in beside.keys() {
            if !matches!(keyword.as_str(), "description" | "title") {
                let reason = "`anyOf` must stand alone in `parameters` of Gemini";
                let here = SchemaPath::Key(&place.at, keyword);
                self.journal.note(&here, format!("`{keyword}` dropped"), reason);
            }
        }
        if branches.is_empty() {
            return typed("NULL", beside);
        }
        for text in ["description", "title"] {
            if let (Some(first), Some(value)) = (branches.first_mut(), beside.get(text)) {
                first.entry(text).or_insert_with(|| value.clone());
            }
        }
        any_of(branches, nullable)
    }

    /// Converts the values of an `enum` to strings. The original values are recorded, so that arguments can be mapped
    /// back.
    fn texts(
        &mut self,
        values: Vec<Value>,
        shape: &mut Shape,
        place: SchemaPosition<'_>,
    ) -> Vec<String> {
        let own: Vec<String> =
            values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect();
        let mut texts: Vec<String> = Vec::new();
        for value in values {
            let here = SchemaPath::Key(&place.at, "enum");
            let text = match value {
                Value::Null => continue,
                Value::String(text) if text.is_empty() => {
                    self.journal.note(&here, "empty string dropped", NOT_IN_SUBSET);
                    continue;
                }
                Value::String(text) => text,
                value => {
                    let text = value.to_string();
                    let what = format!("{text} written as a string");
                    self.journal.note(
                        &here,
                        what,
                        "`enum` accepts strings only; arguments are converted back",
                    );
                    if !own.contains(&text) {
                        shape.value(&text, value);
                    }
                    text
                }
            };
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        texts
    }

    /// A schema of one type, with the keywords that apply to that type.
    fn single(
        &mut self,
        name: &str,
        map: &mut Map<String, Value>,
        place: SchemaPosition<'_>,
    ) -> Map<String, Value> {
        let mut single = typed(&name.to_ascii_uppercase(), &Map::new());
        for (keyword, value) in map {
            let (kept, value) = match (name, keyword.as_str()) {
                ("integer" | "number", "exclusiveMinimum") => ("minimum", value),
                ("integer" | "number", "exclusiveMaximum") => ("maximum", value),
                (_, kept) => (kept, value),
            };
            if belongs(name, kept, value) {
                // Keywords with subschemas apply to one type only, so they are moved and not copied.
                let is_schema = matches!(kept, "properties" | "items" | "additionalProperties");
                let own = if is_schema { value.take() } else { value.clone() };
                single.entry(kept).or_insert(own);
            } else if !(kept == "properties" && value.as_object().is_some_and(Map::is_empty)) {
                let here = SchemaPath::Key(&place.at, keyword);
                self.journal.note(&here, format!("`{keyword}` dropped"), NOT_IN_SUBSET);
            }
        }
        single
    }
}

fn take_types(map: &mut Map<String, Value>) -> Vec<String> {
    match map.shift_remove("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => {
            names.into_iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}

fn typed(name: &str, texts: &Map<String, Value>) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("type".into(), name.into());
    for text in ["title", "description"] {
        if let Some(value) = texts.get(text) {
            map.insert(text.into(), value.clone());
        }
    }
    map
}

fn with_null(mut map: Map<String, Value>, nullable: bool) -> Map<String, Value> {
    if nullable {
        map.insert("nullable".into(), Value::Bool(true));
    }
    map
}

fn any_of(mut branches: Vec<Map<String, Value>>, nullable: bool) -> Map<String, Value> {
    if branches.len() == 1 {
        return with_null(branches.swap_remove(0), nullable);
    }
    let branches = branches.into_iter().map(|branch| Value::Object(with_null(branch, nullable)));
    let mut map = Map::new();
    map.insert("anyOf".into(), branches.collect());
    map
}

fn inferred(map: &Map<String, Value>) -> Option<&'static str> {
    let has = |keys: &[&str]| keys.iter().any(|key| map.contains_key(*key));
    if has(&["properties", "additionalProperties", "required", "minProperties", "maxProperties"]) {
        Some("object")
    } else if has(&["items", "minItems", "maxItems", "uniqueItems"]) {
        Some("array")
    } else if has(&["pattern", "minLength", "maxLength", "format"]) {
        Some("string")
    } else if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
        Some("number")
    } else {
        None
    }
}

fn belongs(name: &str, keyword: &str, value: &Value) -> bool {
    match keyword {
        "title" | "description" => true,
        "default" => match name {
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => false,
        },
        "minLength" | "maxLength" | "pattern" => name == "string",
        "minimum" | "maximum" => matches!(name, "integer" | "number"),
        "items" | "minItems" | "maxItems" => name == "array",
        "properties" => name == "object" && value.as_object().is_some_and(|all| !all.is_empty()),
        "required" | "minProperties" | "maxProperties" | "additionalProperties" => name == "object",
        "format" => matches!(
            (name, value.as_str()),
            ("string", Some("date-time" | "enum"))
                | ("number", Some("float" | "double"))
                | ("integer", Some("int32" | "int64"))
        ),
        _ => false,
    }
}
