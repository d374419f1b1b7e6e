//! Converts a server's JSON Schema of any draft into one that a provider accepts.
//!
//! The result accepts at least what the original accepts, because the arguments are validated against the original
//! before a call: a keyword that a provider does not know is dropped, never guessed. There are two exceptions that
//! models need: variants are merged into one object with the parameters of all of them, and the positions of a tuple
//! become one union.
//!
//! A schema may be hostile. References are resolved within the document only, cycles are cut, and all work is limited
//! by a [`Budget`]: if it is exceeded, the conversion is repeated with less depth, and finally the tool is quarantined.

mod budget;
mod gemini_schema;
mod keywords;
mod merge;
mod older_drafts;
mod open;
mod references;
mod variants;
mod vocabulary;

use serde_json::{Map, Value};
use switchboard_protocol::{MAX_DEPTH, is_too_deep};

use crate::Quarantine;
use crate::arguments::{KeyRule, Shape};
use crate::rewrite::{Journal, SchemaPath};
use budget::{Budget, ConversionEffort, EFFORTS};

pub(crate) use vocabulary::Vocabulary;

/// Maximum size of a server's schema; a larger one is not parsed.
pub(crate) const MAX_SCHEMA_BYTES: usize = 1 << 20;
/// Maximum size of a converted schema; a larger one is simplified, because every request carries it.
pub(crate) const MAX_DECLARED_BYTES: usize = 64 << 10;

/// The schema rules of a provider.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) vocabulary: Vocabulary,
    pub(crate) keys: KeyRule,
    pub(crate) keys_apply: KeysApply,
}

/// Which property keys the key rule applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeysApply {
    ToParameters,
    Everywhere,
}

/// A converted schema.
#[derive(Debug)]
pub(crate) struct Converted {
    pub(crate) schema: Map<String, Value>,
    pub(crate) text: String,
    pub(crate) shape: Shape,
    pub(crate) journal: Journal,
    /// Constraints that the converted schema cannot express, as sentences for the description.
    pub(crate) notes: Vec<String>,
}

/// Whether a schema describes the arguments object itself or a value within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaLevel {
    Root,
    Below,
}

/// A schema during conversion, with the argument mapping collected so far.
#[derive(Debug, Default)]
struct Made {
    map: Map<String, Value>,
    shape: Shape,
}

/// The position of the conversion in the schema.
#[derive(Debug, Clone, Copy)]
struct SchemaPosition<'a> {
    at: SchemaPath<'a>,
    depth: usize,
    level: SchemaLevel,
}

/// The state of converting one schema.
#[derive(Debug)]
struct Walk<'s> {
    rules: Rules,
    effort: ConversionEffort,
    /// The whole document, for resolving references.
    source: &'s Value,
    active: Vec<references::Entered>,
    budget: Budget,
    journal: Journal,
    notes: Vec<String>,
}

/// Converts a server's schema for a provider, or returns why the tool cannot be declared.
pub(crate) fn convert_schema(text: &str, rules: Rules) -> Result<Converted, Quarantine> {
    if text.len() > MAX_SCHEMA_BYTES {
        return Err(Quarantine::new(format!(
            "its schema has {} KiB; the limit is {} KiB",
            text.len() >> 10,
            MAX_SCHEMA_BYTES >> 10
        )));
    }
    for effort in EFFORTS {
        if let Some(converted) = attempt(text, rules, effort)? {
            return Ok(converted);
        }
    }
    Err(Quarantine::new(format!(
        "its schema is larger than {} KiB or {} subschemas, even if only the names and types of its arguments are kept",
        MAX_DECLARED_BYTES >> 10,
        budget::MAX_NODES
    )))
}

/// One conversion attempt; `None` if its budget is exceeded.
fn attempt(
    text: &str,
    rules: Rules,
    effort: ConversionEffort,
) -> Result<Option<Converted>, Quarantine> {
    let root = read_root(text)?;
    let has_references = ["$ref\"", "$dynamicRef\"", "$recursiveRef\""];
    let source = if has_references.iter().any(|key| text.contains(key)) {
        Value::Object(root.clone())
    } else {
        Value::Null
    };
    let mut walk = Walk {
        rules,
        effort,
        source: &source,
        active: vec![references::Entered::root()],
        budget: Budget::default(),
        journal: Journal::default(),
        notes: Vec::new(),
    };
    if effort != EFFORTS[0] {
        let reason = "the whole would be too large to declare";
        walk.journal.note(&SchemaPath::ROOT, effort.to_string(), reason);
    }
    let made = walk.root(root)?;
    if walk.budget.is_exhausted() {
        return Ok(None);
    }
    let text = serde_json::to_string(&made.map).unwrap_or_default();
    if text.len() > MAX_DECLARED_BYTES {
        return Ok(None);
    }
    Ok(Some(Converted {
        schema: made.map,
        text,
        shape: made.shape,
        journal: walk.journal,
        notes: walk.notes,
    }))
}

pub(crate) fn read_root(text: &str) -> Result<Map<String, Value>, Quarantine> {
    let root = serde_json::from_str(text).map_err(|error| {
        Quarantine::new(if is_too_deep(text.as_bytes()) {
            format!("its schema is nested deeper than {MAX_DEPTH} levels")
        } else {
            format!("its schema is not JSON: {error}")
        })
    })?;
    match root {
        Value::Object(map) => Ok(map),
        Value::Bool(true) | Value::Null => Ok(Map::new()),
        Value::Bool(false) => Err(Quarantine::new("its schema is `false`: it refuses every call")),
        Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Quarantine::new("its schema is neither an object nor a boolean"))
        }
    }
}

impl Walk<'_> {
    /// Converts the schema of the arguments: always an object, without variants.
    fn root(&mut self, map: Map<String, Value>) -> Result<Made, Quarantine> {
        let at = SchemaPath::ROOT;
        let (mut map, moved) =
            self.open(map, &at, SchemaLevel::Root, references::Joined::Directly, 0);
        let at = moved.as_deref().map_or(at, SchemaPath::At);
        check_root_type(&map)?;
        self.merge_variants(&mut map, &at, 0);
        for keyword in ["enum", "const", "not"] {
            if map.shift_remove(keyword).is_some() {
                let here = SchemaPath::Key(&at, keyword);
                self.journal.note(
                    &here,
                    format!("`{keyword}` dropped"),
                    "providers refuse it at the root of the arguments",
                );
            }
        }
        let old = map.insert("type".into(), Value::from("object"));
        if old.as_ref().and_then(Value::as_str) != Some("object") {
            let here = SchemaPath::Key(&at, "type");
            self.journal.note(&here, "set to `object`", "arguments are always an object");
        }
        map.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        let made = self.keywords(map, SchemaPosition { at, depth: 0, level: SchemaLevel::Root });
        Ok(made)
    }

    fn node(&mut self, schema: Value, place: SchemaPosition<'_>) -> Made {
        if !self.budget.node() {
            return Made::default();
        }
        let mut map = match schema {
            Value::Object(map) => map,
            Value::Bool(flag) => return self.of_flag(flag, place),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                self.journal.note(
                    &place.at,
                    "replaced by a schema that accepts anything",
                    "this is not a schema",
                );
                return self.finish(Made::default(), place);
            }
        };
        let is_plain = is_plain(&map);
        let origin = if is_plain { None } else { merge::take_origin(&mut map) };
        let at = origin.as_deref().map_or(place.at, SchemaPath::At);
        if place.depth > self.effort.depth {
            let made = Made { map: references::shallow(&map), shape: Shape::default() };
            self.journal.note(&at, "cut", "the schema exceeds the depth limit of declarations");
            return self.complete(made, place);
        }
        if is_plain {
            return self.keywords(map, SchemaPosition { at, ..place });
        }
        let before = self.active.len();
        let (map, moved) = self.open(map, &at, place.level, references::Joined::Directly, 0);
        let at = moved.as_deref().map_or(at, SchemaPath::At);
        let made = self.keywords(map, SchemaPosition { at, ..place });
        self.active.truncate(before);
        made
    }

    fn of_flag(&mut self, flag: bool, place: SchemaPosition<'_>) -> Made {
        let mut made = Made::default();
        if !flag && self.rules.vocabulary == Vocabulary::Full {
            made.map.insert("not".into(), Value::Object(Map::new()));
        }
        self.journal.mention(
            &place.at,
            format!("`{flag}` written as an object"),
            "not every provider takes boolean schemas",
        );
        self.finish(made, place)
    }

    /// The last conversion step of a schema, after the schemas below it.
    fn finish(&mut self, made: Made, place: SchemaPosition<'_>) -> Made {
        match self.rules.vocabulary {
            Vocabulary::Full | Vocabulary::Portable => made,
            Vocabulary::Subset => self.subset(made, place),
        }
    }
}

/// Whether a schema has only keywords that need no merging or rewriting, as most have. This saves a dozen lookups.
fn is_plain(map: &Map<String, Value>) -> bool {
    map.iter().all(|(keyword, value)| match keyword.as_str() {
        "type"
        | "description"
        | "title"
        | "properties"
        | "required"
        | "additionalProperties"
        | "enum"
        | "format"
        | "pattern"
        | "minimum"
        | "maximum"
        | "minLength"
        | "maxLength"
        | "minItems"
        | "maxItems"
        | "anyOf" => true,
        "items" => value.is_object(),
        "default" => !value.is_null(),
        _ => false,
    })
}

pub(crate) fn check_root_type(map: &Map<String, Value>) -> Result<(), Quarantine> {
    let is_object = match map.get("type") {
        Some(Value::String(name)) => {
            vocabulary::type_name(name).is_none_or(|name| name == "object")
        }
        Some(Value::Array(names)) => names.is_empty() || names.iter().any(|name| name == "object"),
        None | Some(_) => true,
    };
    if is_object {
        return Ok(());
    }
    Err(Quarantine::new(
        "its schema is not that of an object, but the arguments of a call are always an object",
    ))
}
