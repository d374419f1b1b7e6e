//! The published JSON Schema of the configuration file, and navigation in it.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::raw::RawConfig;

static SCHEMA: LazyLock<Value> = LazyLock::new(build);

/// The JSON Schema (2020-12) of a configuration file, used by editors and by [`fn@crate::load`].
pub fn json_schema() -> Value {
    SCHEMA.clone()
}

/// A place in the schema, with references already followed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemaAt(&'static Value);

impl SchemaAt {
    /// The schema of the configuration below the root key.
    pub(crate) fn config() -> Self {
        Self::resolve(&SCHEMA["$defs"]["Switchboard"])
    }

    /// The whole document.
    pub(crate) fn document() -> &'static Value {
        &SCHEMA
    }

    /// The schema of a key: a known one, or any key of a free-form map.
    pub(crate) fn property(self, key: &str) -> Option<Self> {
        let known = self.0.get("properties").and_then(|all| all.get(key));
        known.map(Self::resolve).or_else(|| self.free_form())
    }

    /// The schema of the values of a map that takes any key.
    pub(crate) fn free_form(self) -> Option<Self> {
        self.0.get("additionalProperties").filter(|schema| schema.is_object()).map(Self::resolve)
    }

    /// The known keys.
    pub(crate) fn keys(self) -> impl Iterator<Item = &'static str> {
        self.0
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::keys)
            .map(String::as_str)
    }

    /// The schema of the items of a list.
    pub(crate) fn items(self) -> Option<Self> {
        self.0.get("items").map(Self::resolve)
    }

    /// The types that are accepted here, in the words of JSON Schema.
    pub(crate) fn types(self) -> impl Iterator<Item = &'static str> {
        let types = self.0.get("type");
        let many = types.and_then(Value::as_array).into_iter().flatten();
        types.filter(|types| types.is_string()).into_iter().chain(many).filter_map(Value::as_str)
    }

    /// The accepted words, if the value is an enumeration.
    pub(crate) fn words(self) -> Vec<&'static str> {
        self.0
            .get("enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    pub(crate) fn accepts(self, kind: &str) -> bool {
        self.types().any(|accepted| accepted == kind)
    }

    fn resolve(schema: &'static Value) -> Self {
        let name =
            schema.get("$ref").and_then(Value::as_str).and_then(|at| at.strip_prefix("#/$defs/"));
        Self(name.and_then(|name| SCHEMA.get("$defs")?.get(name)).unwrap_or(schema))
    }
}

/// The most similar of `candidates`, if one is similar enough.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&word, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

fn build() -> Value {
    let mut generator = schemars::generate::SchemaSettings::draft2020_12().into_generator();
    let config = generator.subschema_for::<RawConfig>();
    let mut definitions: Value = generator.take_definitions(true).into_iter().collect();
    without_null(&mut definitions);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Switchboard configuration",
        "description": "MCP servers, their tools and the limits under which they run.",
        "type": "object",
        "properties": {"switchboard": config, "myai": config},
        "oneOf": [{"required": ["switchboard"]}, {"required": ["myai"]}],
        "additionalProperties": false,
        "examples": [{"switchboard": {"toolbox": {"max_concurrent": 10, "mcps": [{
            "name": "customers",
            "url": "http://localhost:8180/mcp",
            "mode": "dynamic",
            "default_tool_config": {"max_instances": 10, "timeout": "30s"},
        }]}}}],
        "$defs": definitions,
    })
}

/// Removes `null` from the types. `Option` means "may be absent" here, and a key without a value counts as absent, so
/// editors should not offer `null`.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Object(map) => {
            map.values_mut().for_each(without_null);
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    map.insert("type".into(), only);
                }
            }
            if let Some(Value::Array(words)) = map.get_mut("enum") {
                words.retain(|word| !word.is_null());
            }
            if let Some(Value::Array(choices)) = map.remove("anyOf") {
                let real = choices.into_iter().find(|choice| choice["type"] != "null");
                if let Some(Value::Object(real)) = real {
                    real.into_iter().for_each(|(key, value)| {
                        map.entry(key).or_insert(value);
                    });
                }
            }
        }
        _ => {}
    }
}
