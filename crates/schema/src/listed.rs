//! Prepares the schemas of a tool for `tools/list`.
//!
//! The official SDKs validate a whole `tools/list` at once: one invalid tool schema makes the client lose all tools. A
//! schema that they would reject is therefore repaired if its meaning can be kept, and is an error otherwise. Arguments
//! are still checked against the schema that the server gave.

mod output;

use serde_json::{Map, Value, json};
use switchboard_model::{JsonText, ToolDescriptor};

use output::check_compilable;

use crate::json_kind::kind_of;

/// Brings the schemas of a tool into a form that strict clients accept, and records each repair. The error says why the
/// tool cannot be listed.
pub fn prepare_for_lists(tool: &mut ToolDescriptor) -> Result<(), String> {
    let listed = listed_input_schema(&tool.input_schema)?;
    tool.listed_schema = listed.map(|(schema, repairs)| {
        tool.repairs.extend(repairs);
        schema
    });
    if let Some(schema) = &tool.output_schema {
        match listed_output_schema(schema) {
            Ok(None) => {}
            Ok(Some((schema, repairs))) => {
                tool.output_schema = Some(schema);
                tool.repairs.extend(repairs);
            }
            // Without `outputSchema` clients do not check results; the tool works otherwise.
            Err(reason) => {
                tool.output_schema = None;
                tool.repairs.push(format!("outputSchema was left out: {reason}"));
            }
        }
    }
    Ok(())
}

/// A schema and the descriptions of its repairs.
type Repaired = (JsonText, Vec<String>);

/// The input schema for lists; `None` if the server's own can be listed unchanged.
fn listed_input_schema(schema: &JsonText) -> Result<Option<Repaired>, String> {
    let mut object = match read(schema).map_err(|error| format!("its inputSchema {error}"))? {
        Value::Object(object) => object,
        Value::Bool(true) => {
            let repair = "inputSchema `true` became {\"type\":\"object\"}".to_owned();
            return Ok(Some((JsonText::from(&json!({"type": "object"})), vec![repair])));
        }
        other => return Err(format!("its inputSchema is {}, not an object", kind_of(&other))),
    };
    let mut repairs = Repairs::of("inputSchema");
    repairs.root_type(&mut object)?;
    repairs.members(&mut object)?;
    Ok(repairs.finish(object))
}

/// The output schema for lists; an error if it has to be left out.
fn listed_output_schema(schema: &JsonText) -> Result<Option<Repaired>, String> {
    let mut object = match read(schema)? {
        Value::Object(object) => object,
        other => return Err(format!("it is {}, not an object", kind_of(&other))),
    };
    let mut repairs = Repairs::of("outputSchema");
    repairs.members(&mut object)?;
    let schema = Value::Object(object);
    check_compilable(&schema)?;
    let Value::Object(object) = schema else { return Ok(None) };
    Ok(repairs.finish(object))
}

/// Parses a schema. An error makes the schema unusable: a text that this parser rejects, such as half of a surrogate
/// pair or a number out of range, may be rejected by clients too.
fn read(schema: &JsonText) -> Result<Value, String> {
    serde_json::from_str(schema.as_str()).map_err(|error| format!("cannot be read: {error}"))
}

/// Repairs at the root of one schema.
struct Repairs {
    of: &'static str,
    made: Vec<String>,
}

impl Repairs {
    fn of(of: &'static str) -> Self {
        Self { of, made: Vec::new() }
    }

    fn note(&mut self, repair: impl std::fmt::Display) {
        self.made.push(format!("{}: {repair}", self.of));
    }

    fn finish(self, object: Map<String, Value>) -> Option<Repaired> {
        let schema = JsonText::from(&Value::Object(object));
        (!self.made.is_empty()).then_some((schema, self.made))
    }

    /// Adds `type: object` at the root. Arguments are always an object, so this keeps the meaning of a schema that
    /// allows objects.
    fn root_type(&mut self, schema: &mut Map<String, Value>) -> Result<(), String> {
        let is_object = |kind: &Value| kind.as_str() == Some("object");
        match schema.get("type") {
            Some(kind) if is_object(kind) => return Ok(()),
            None | Some(Value::Null) => self.note("`type: object` was added"),
            Some(Value::Array(kinds)) if kinds.iter().any(is_object) => {
                self.note("`type` became `object`: arguments are always one");
            }
            Some(Value::String(kind)) if kind.eq_ignore_ascii_case("object") => {
                self.note("`type` is written `object`");
            }
            Some(kind) => {
                let kind = shortened(kind);
                let of = self.of;
                return Err(format!(
                    "its {of} is of type {kind}, and arguments are always an object"
                ));
            }
        }
        schema.insert("type".into(), json!("object"));
        Ok(())
    }

    fn members(&mut self, schema: &mut Map<String, Value>) -> Result<(), String> {
        if schema.get("$schema").is_some_and(|dialect| !dialect.is_string()) {
            schema.shift_remove("$schema");
            self.note("`$schema` was left out: it is not a string");
        }
        self.properties(schema)?;
        self.required(schema)
    }

    fn properties(&mut self, schema: &mut Map<String, Value>) -> Result<(), String> {
        let of = self.of;
        match schema.get_mut("properties") {
            None => {}
            Some(Value::Object(properties)) => {
                for (name, property) in properties {
                    let repaired = match property {
                        Value::Object(_) => continue,
                        Value::Bool(true) | Value::Null => json!({}),
                        Value::Bool(false) => json!({"not": {}}),
                        other => {
                            let kind = kind_of(other);
                            return Err(format!(
                                "`properties.{name}` of its {of} is {kind}, not a schema"
                            ));
                        }
                    };
                    self.made
                        .push(format!("{of}: `properties.{name}`: `{property}` became {repaired}"));
                    *property = repaired;
                }
            }
            // Languages that do not distinguish an empty map from an empty list serialize `{}` as `[]`.
            Some(empty) if is_empty(empty) => {
                *empty = json!({});
                self.note("`properties` became {}");
            }
            Some(other) => {
                return Err(format!(
                    "`properties` of its {of} is {}, not an object",
                    kind_of(other)
                ));
            }
        }
        Ok(())
    }

    fn required(&mut self, schema: &mut Map<String, Value>) -> Result<(), String> {
        match schema.get("required") {
            None => return Ok(()),
            Some(Value::Array(names)) if names.iter().all(Value::is_string) => return Ok(()),
            // Draft 3 had a boolean `required` per property; at this place it says nothing about members.
            Some(Value::Bool(_)) => {}
            Some(empty) if is_empty(empty) => {}
            Some(other) => {
                let (of, other) = (self.of, shortened(other));
                return Err(format!("`required` of its {of} is {other}, not a list of names"));
            }
        }
        schema.shift_remove("required");
        self.note("`required` was left out: it is not a list of property names");
        Ok(())
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// A value for an error message; long ones are truncated.
fn shortened(value: &Value) -> String {
    const MOST: usize = 60;
    let text = value.to_string();
    let mut short: String = text.chars().take(MOST).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
#[path = "listed/tests.rs"]
mod tests;
