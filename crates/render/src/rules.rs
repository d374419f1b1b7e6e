//! Validates converted declarations against the rules of the providers.
//!
//! The conversion already follows these rules. This is an independent second check: a declaration that breaks a rule
//! removes its tool only, where sending it would make the provider reject all tools.

use serde_json::{Map, Value};

use crate::Provider;
use crate::arguments::KeyRule;

type Schema = Map<String, Value>;

/// The first rule of the provider that a schema breaks, as a short text that names the place: "the array `/a` has no
/// `items`".
pub(crate) fn broken_rule(provider: Provider, schema: &Schema) -> Option<String> {
    let rules = match provider {
        Provider::Mcp => return None,
        Provider::Anthropic => Check { dialect: Dialect::Full, keys: KeyRule::Wide, deep: false },
        Provider::OpenAi | Provider::OpenAiChat | Provider::LangChain | Provider::React => {
            Check { dialect: Dialect::Portable, keys: KeyRule::Wide, deep: true }
        }
        Provider::Gemini => Check { dialect: Dialect::Portable, keys: KeyRule::Narrow, deep: true },
        Provider::GeminiParameters => {
            Check { dialect: Dialect::Subset, keys: KeyRule::Narrow, deep: true }
        }
        Provider::SemanticKernel => {
            Check { dialect: Dialect::Portable, keys: KeyRule::Narrow, deep: false }
        }
    };
    rules.root(schema).err()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Full,
    Portable,
    Subset,
}

struct Check {
    dialect: Dialect,
    keys: KeyRule,
    /// Whether the key rule also applies below the parameters.
    deep: bool,
}

impl Check {
    fn root(&self, schema: &Schema) -> Result<(), String> {
        let object = if self.dialect == Dialect::Subset { "OBJECT" } else { "object" };
        if schema.get("type") != Some(&Value::from(object)) {
            return Err("the root is not an object".into());
        }
        if self.dialect != Dialect::Subset
            && !schema.get("properties").is_some_and(Value::is_object)
        {
            return Err("the root has no properties".into());
        }
        for keyword in ["anyOf", "oneOf", "allOf", "enum", "const", "not"] {
            if schema.contains_key(keyword) {
                return Err(format!("the root has `{keyword}`"));
            }
        }
        self.schema(schema, "", true)
    }

    fn schema(&self, schema: &Schema, at: &str, is_root: bool) -> Result<(), String> {
        match self.dialect {
            Dialect::Full => {}
            Dialect::Portable => portable(schema, at)?,
            Dialect::Subset => subset(schema, at)?,
        }
        self.complete(schema, at)?;
        self.properties(schema, at, is_root)?;
        for (keyword, value) in schema {
            match (keyword.as_str(), value) {
                (
                    "items"
                    | "additionalProperties"
                    | "not"
                    | "if"
                    | "then"
                    | "else"
                    | "contains"
                    | "propertyNames",
                    Value::Object(below),
                ) => self.schema(below, keyword, false)?,
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(branches)) => {
                    for branch in branches {
                        let Value::Object(branch) = branch else {
                            return Err(format!("`{keyword}` of `{at}` holds no schema"));
                        };
                        self.schema(branch, at, false)?;
                    }
                }
                ("$ref" | "$dynamicRef" | "$recursiveRef", _) => {
                    return Err(format!("`{at}` has a reference"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn complete(&self, schema: &Schema, at: &str) -> Result<(), String> {
        let is = |name: &str| match schema.get("type") {
            Some(Value::String(kind)) => kind.eq_ignore_ascii_case(name),
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == name),
            _ => false,
        };
        if is("array")
            && !schema.get("items").is_some_and(|items| items.is_object() || items.is_boolean())
        {
            return Err(format!("the array `{at}` has no `items`"));
        }
        if self.dialect != Dialect::Subset && is("object") && !schema.contains_key("properties") {
            return Err(format!("the object `{at}` has no `properties`"));
        }
        Ok(())
    }

    fn properties(&self, schema: &Schema, at: &str, is_root: bool) -> Result<(), String> {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (key, value) in properties.into_iter().flatten() {
            if (is_root || self.deep) && !self.keys.takes(key) {
                return Err(format!("no key may be {key:?}"));
            }
            let Value::Object(value) = value else {
                return Err(format!("the property `{key}` has no schema"));
            };
            self.schema(value, key, false)?;
        }
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten() {
            let is_declared = name
                .as_str()
                .is_some_and(|name| properties.is_some_and(|all| all.contains_key(name)));
            if !is_declared {
                return Err(format!("`{at}` requires {name}, which it does not declare"));
            }
        }
        Ok(())
    }
}

/// Only keywords that every JSON Schema provider accepts.
fn portable(schema: &Schema, at: &str) -> Result<(), String> {
    const TAKEN: [&str; 28] = [
        "type",
        "title",
        "description",
        "enum",
        "default",
        "format",
        "pattern",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
        "oneOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "nullable",
        "propertyOrdering",
        "example",
    ];
    match schema.keys().find(|keyword| !TAKEN.contains(&keyword.as_str())) {
        Some(keyword) => Err(format!("`{at}` has `{keyword}`")),
        None => Ok(()),
    }
}

/// The rules of Gemini's `Schema`.
fn subset(schema: &Schema, at: &str) -> Result<(), String> {
    const TAKEN: [&str; 19] = [
        "type",
        "title",
        "description",
        "enum",
        "default",
        "format",
        "pattern",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
    ];
    const TYPES: [&str; 7] = ["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"];
    if schema.contains_key("anyOf") {
        return if schema.len() == 1 {
            Ok(())
        } else {
            Err(format!("`anyOf` of `{at}` is not alone"))
        };
    }
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    if !TYPES.contains(&kind) {
        return Err(format!("`{at}` has no type"));
    }
    let is_taken = |keyword: &str| TAKEN.contains(&keyword) || keyword == "nullable";
    if let Some(keyword) = schema.keys().find(|keyword| !is_taken(keyword)) {
        return Err(format!("`{at}` has `{keyword}`"));
    }
    let texts = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    let mut texts = texts.map(|value| value.as_str().unwrap_or_default());
    if texts.any(str::is_empty) {
        return Err(format!("`enum` of `{at}` holds something else than texts"));
    }
    Ok(())
}
