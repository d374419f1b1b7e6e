//! Validates a configuration against the schema and explains errors in plain words.
//!
//! Each finding of the validator is mapped to the location of the value, reworded, and reduced to one per cause.

use std::collections::HashSet;
use std::sync::LazyLock;

use jsonschema::paths::Location;
use jsonschema::{ValidationError, Validator, error::ValidationErrorKind as Kind};
use serde_json::{Value as Json, json};

use crate::path::Path;
use crate::problem::ConfigProblem;
use crate::schema::{SchemaAt, nearest};
use crate::shape_words::{expected, found, listed, pattern_in_words};
use crate::source::SourceText;
use crate::tree::{Node, TreeEntry, Value};

static VALIDATOR: LazyLock<Option<Validator>> =
    LazyLock::new(|| jsonschema::validator_for(SchemaAt::document()).ok());

/// Maximum number of reported findings.
const MAX_FINDINGS: usize = 200;

/// Validates `config` and returns it as JSON with every malformed value removed, so that the rest can still be checked.
pub(crate) fn check(
    config: &Node,
    root: &Path,
    source: &SourceText<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> Json {
    let mut sound = config.to_json();
    let Some(validator) = VALIDATOR.as_ref() else { return sound };
    let document = json!({ root.to_string(): sound.clone() });
    let mut findings = Findings { config, root, source, seen: HashSet::new(), problems };
    for error in validator.iter_errors(&document).take(MAX_FINDINGS) {
        findings.take(&error, &mut sound);
    }
    sound
}

struct Findings<'a> {
    config: &'a Node,
    root: &'a Path,
    source: &'a SourceText<'a>,
    /// A value is reported once, however many rules it breaks.
    seen: HashSet<Path>,
    problems: &'a mut Vec<ConfigProblem>,
}

impl Findings<'_> {
    fn take(&mut self, error: &ValidationError<'_>, sound: &mut Json) {
        // The first segment is the root key, which `config` represents.
        let segments =
            error.instance_path().segments().skip(1).map(|segment| segment.to_string().into());
        let (node, path) = self.config.follow(self.root.clone(), segments);
        if node.value == Value::Broken {
            return;
        }
        let schema = self.schema_at(error.instance_path());
        match error.kind() {
            Kind::AdditionalProperties { unexpected } => {
                for key in unexpected.iter().take(MAX_FINDINGS) {
                    self.unknown_key(node, &path, key, schema);
                }
                for key in unexpected {
                    if let Some(map) =
                        at(sound, error.instance_path()).and_then(Json::as_object_mut)
                    {
                        map.remove(key);
                    }
                }
            }
            Kind::Required { property } => {
                self.missing_key(node, &path, property.as_str().unwrap_or_default(), schema);
            }
            kind => {
                if let Some(value) = at(sound, error.instance_path()) {
                    *value = Json::Null;
                }
                self.bad_value(node, &path, kind, schema);
            }
        }
    }

    fn unknown_key(&mut self, node: &Node, path: &Path, key: &str, schema: Option<SchemaAt>) {
        let Some(entry) = node.entry(key) else { return };
        let known: Vec<_> = schema.into_iter().flat_map(SchemaAt::keys).collect();
        let help = match nearest(key, known.iter().copied()) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("known keys: {}", known.join(", ")),
        };
        let problem = ConfigProblem::error(format!("unknown key `{key}` in {path}"));
        self.push(&entry.origin, problem.about(&path.key(key)).help(help));
    }

    fn missing_key(&mut self, node: &Node, path: &Path, key: &str, schema: Option<SchemaAt>) {
        let entry = node.entry(key);
        let known: Vec<_> = schema.into_iter().flat_map(SchemaAt::keys).collect();
        let is_misspelt = |entry: &TreeEntry| {
            !known.contains(&entry.key.as_str())
                && nearest(&entry.key, known.iter().copied()) == Some(key)
        };
        // A misspelt required key is reported once, as an unknown key with a suggestion.
        if node.entries().iter().any(is_misspelt) {
            return;
        }
        if entry.is_some_and(|entry| entry.node.value == Value::Broken) {
            return;
        }
        let problem =
            ConfigProblem::error(format!("missing key `{key}` in {path}")).about(&path.key(key));
        let problem = match key {
            "mode" => problem.help(
                "add `mode: strict` (keeps the old behaviour: every tool must be in toolbox.tools), \
                 or `mode: dynamic` together with `default_tool_config`",
            ),
            _ => problem.help(format!("add `{key}: ...`")),
        };
        self.push(entry.map_or(&node.origin, |entry| &entry.origin), problem);
    }

    fn bad_value(&mut self, node: &Node, path: &Path, kind: &Kind, schema: Option<SchemaAt>) {
        if !self.seen.insert(path.clone()) {
            return;
        }
        let is_wrong_type = schema.is_some_and(|schema| !fits_type(node, schema));
        let problem = match kind {
            _ if is_wrong_type && let Some(text) = grouping_text(path) => {
                ConfigProblem::error(format!("{path}: {text}; found {}", found(node)))
            }
            _ if is_wrong_type => {
                let wanted = schema.map(expected).unwrap_or_default();
                let problem = ConfigProblem::error(format!(
                    "{path}: expected {wanted}, found {}",
                    found(node)
                ));
                match (&node.value, wanted.as_str()) {
                    (Value::Bool(_) | Value::Integer(_) | Value::Float(_), "a string") => {
                        problem.help("put it in quotes")
                    }
                    (Value::Text(text), "an integer")
                        if !node.loose && text.parse::<i64>().is_ok() =>
                    {
                        problem.help("remove the quotes")
                    }
                    _ => problem,
                }
            }
            Kind::Enum { .. } => {
                let words = schema.map(SchemaAt::words).unwrap_or_default();
                let message = format!("{path}: {} is not one of {}", found(node), listed(&words));
                let problem = ConfigProblem::error(message);
                let meant = match &node.value {
                    Value::Text(text) if !node.sensitive => nearest(text, words),
                    _ => None,
                };
                match meant {
                    Some(word) => problem.help(format!("did you mean `{word}`?")),
                    None => problem,
                }
            }
            Kind::Minimum { limit } => ConfigProblem::error(format!(
                "{path}: {} is below the minimum of {limit}",
                found(node)
            )),
            Kind::Maximum { limit } => ConfigProblem::error(format!(
                "{path}: {} is above the maximum of {limit}",
                found(node)
            )),
            Kind::MinLength { .. } => ConfigProblem::error(format!("{path} must not be empty")),
            Kind::Pattern { .. } => ConfigProblem::error(format!(
                "{path}: {} is not allowed here; it must be {}",
                found(node),
                pattern_in_words(path.last_key())
            )),
            other => ConfigProblem::error(format!("{path} breaks the rule `{}`", other.keyword())),
        };
        self.push(&node.origin, problem.about(path));
    }

    fn push(&mut self, origin: &crate::place::ValueOrigin, problem: ConfigProblem) {
        self.problems.push(self.source.locate(origin, problem));
    }

    fn schema_at(&self, location: &Location) -> Option<SchemaAt> {
        let (mut node, mut schema) = (self.config, SchemaAt::config());
        for segment in location.segments().skip(1).map(|segment| segment.to_string()) {
            (node, schema) = match &node.value {
                Value::List(items) => (items.get(segment.parse::<usize>().ok()?)?, schema.items()?),
                _ => (&node.entry(&segment)?.node, schema.property(&segment)?),
            };
        }
        Some(schema)
    }
}

/// The text about a malformed `group`, `state` or `applicable_states` of a tool entry. The texts are those of TrustGraph,
/// whose users know them.
fn grouping_text(path: &Path) -> Option<&'static str> {
    let path = path.to_string();
    let (_, tool) = path.split_once(".toolbox.tools[")?;
    let (_, field) = tool.split_once("].")?;
    match field.split_once('[') {
        None => match field {
            "group" => Some("Tool 'group' field must be a list of strings"),
            "state" => Some("Tool 'state' field must be a string"),
            "applicable-states" | "applicable_states" => {
                Some("Tool 'applicable-states' field must be a list of strings")
            }
            _ => None,
        },
        Some(("group", _)) => Some("All group names must be strings"),
        Some(("applicable-states" | "applicable_states", _)) => {
            Some("All state names must be strings")
        }
        Some(_) => None,
    }
}

fn fits_type(node: &Node, schema: SchemaAt) -> bool {
    let integral = |value: f64| value.fract() == 0.0;
    match &node.value {
        Value::Null => schema.accepts("null"),
        Value::Bool(_) => schema.accepts("boolean"),
        Value::Integer(_) => schema.accepts("integer") || schema.accepts("number"),
        Value::Float(value) => {
            schema.accepts("number") || (schema.accepts("integer") && integral(*value))
        }
        Value::Text(_) => schema.accepts("string"),
        Value::List(_) => schema.accepts("array"),
        Value::Map(_) => schema.accepts("object"),
        Value::Broken => true,
    }
}

/// The value at a place of the JSON, below the root key.
fn at<'a>(json: &'a mut Json, location: &Location) -> Option<&'a mut Json> {
    location.segments().skip(1).try_fold(json, |json, segment| {
        let segment = segment.to_string();
        match json {
            Json::Array(items) => items.get_mut(segment.parse::<usize>().ok()?),
            Json::Object(map) => map.get_mut(&segment),
            _ => None,
        }
    })
}
