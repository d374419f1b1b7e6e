//! The schemas of a tool as lists show them.
//!
//! The official SDKs check a whole `tools/list` at once: one tool whose schema they refuse takes away all of them. So
//! a schema that they would refuse is repaired for the list where its meaning stays, and is an error where it does not.
//! Arguments are still checked against the schema that the server gave.

mod output;

use serde_json::{Map, Value, json};
use switchboard_model::{JsonText, ToolDescriptor};

use output::check_compilable;

use crate::json_kind::kind_of;

/// Brings the schemas of a tool into a form that lists can show, and notes each repair. An error is the reason why
/// the tool cannot be listed.
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
            // Results are not checked without it, and everything else works as before.
            Err(reason) => {
                tool.output_schema = None;
                tool.repairs.push(format!("outputSchema was left out: {reason}"));
            }
        }
    }
    Ok(())
}

/// A schema and what was changed in it.
type Repaired = (JsonText, Vec<String>);

/// The schema of arguments that lists show; `None` where the server's own can be shown as it is.
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

/// The schema of results that lists show; an error where it has to be left out.
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

/// Clients read with parsers of their own: what ours does not take, such as half of a surrogate pair or a number that
/// is too large, others may not take either.
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

    /// Arguments are always an object, so a schema that allows one and says so in another way means the same.
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
            self.note("`$schema` was left out: it is no text");
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
            // How an empty map leaves a program that cannot tell it from an empty list.
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
            // Says nothing about members: draft 3 had a boolean of the schema's own in this place.
            Some(Value::Bool(_)) => {}
            Some(empty) if is_empty(empty) => {}
            Some(other) => {
                let (of, other) = (self.of, shortened(other));
                return Err(format!("`required` of its {of} is {other}, not a list of names"));
            }
        }
        schema.shift_remove("required");
        self.note("`required` was left out: it names nothing");
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

/// A value in a reason: long ones are cut.
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
