//! Declared arguments of a tool entry.

use std::collections::HashMap;

use serde_json::Value as Json;
use switchboard_model::{ArgumentSource, ArgumentSpec, ArgumentType, FixedValue};

use super::{At, Planner, shown_name};
use crate::problem::ConfigProblem;
use crate::raw::{RawArgument, RawArgumentType};

impl Planner<'_> {
    pub(super) fn arguments(&mut self, at: &At<'_>, raw: Vec<RawArgument>) -> Vec<ArgumentSpec> {
        let places = at.items("arguments");
        let mut seen = HashMap::new();
        let mut arguments = Vec::with_capacity(raw.len());
        for (at, raw) in places.iter().zip(raw) {
            let Some(name) = raw.name.clone() else { continue };
            let origin = at.value_origin("name");
            if let Some(first) = seen.insert(name.clone(), origin) {
                let shown = shown_name(at, &name);
                let problem = ConfigProblem::error(format!("two arguments are named `{shown}`"))
                    .about(&at.path.key("name"))
                    .note(format!("the first is at {}", self.source.place(first)));
                self.push(origin, problem);
            }
            arguments.push(self.argument(at, name, raw));
        }
        arguments
    }

    fn argument(&mut self, at: &At<'_>, name: String, raw: RawArgument) -> ArgumentSpec {
        let kind = raw.kind.map(argument_type);
        self.check_nested(at, "items", kind, ArgumentType::Array);
        self.check_nested(at, "properties", kind, ArgumentType::Object);
        let value = self.typed(at, "value", kind, raw.choices.as_deref(), raw.value);
        let default = self.typed(at, "default", kind, raw.choices.as_deref(), raw.default);
        self.check_schema(at, "items", raw.items.as_ref());
        for (name, schema) in raw.properties.iter().filter_map(Json::as_object).flatten() {
            if let Some(at) = at.get("properties") {
                self.check_schema(&at, name, Some(schema));
            }
        }
        let is_hidden = raw.hidden.unwrap_or(false);
        if value.is_some() {
            self.refuse_beside_value(at, is_hidden);
        }
        if is_hidden
            && raw.required == Some(true)
            && let Some(at) = at.get("required")
        {
            let help = "callers cannot give a hidden argument: remove `required`, or `hidden`";
            self.refuse(&at, "contradicts `hidden: true`", help);
        }
        if !is_hidden
            && value.is_none()
            && default.is_some()
            && raw.required == Some(true)
            && let Some(at) = at.get("required")
        {
            let help =
                "an argument with a default need not be given: remove `required`, or `default`";
            self.refuse(&at, "contradicts `default`", help);
        }
        let (source, default) = match (value, is_hidden, default) {
            (Some(value), _, _) => (ArgumentSource::Fixed(FixedValue::new(value)), None),
            (None, true, Some(value)) => {
                (ArgumentSource::HiddenDefault(FixedValue::new(value)), None)
            }
            (None, true, None) => (ArgumentSource::Withheld, None),
            (None, false, default) => (ArgumentSource::Caller, default),
        };
        ArgumentSpec {
            name,
            kind,
            description: raw.description.filter(|text| !text.is_empty()),
            required: raw.required,
            choices: raw.choices,
            default,
            items: raw.items,
            properties: raw.properties,
            source,
        }
    }

    /// A value that must have the declared type and be one of the declared choices. Text from a variable is converted.
    fn typed(
        &mut self,
        at: &At<'_>,
        key: &str,
        kind: Option<ArgumentType>,
        choices: Option<&[Json]>,
        value: Option<Json>,
    ) -> Option<Json> {
        let (value, at) = (value?, at.get(key)?);
        let read = |value: Json| match (&value, kind) {
            (Json::String(text), Some(kind)) if at.node.loose => {
                from_text(text, kind).unwrap_or(value)
            }
            _ => value,
        };
        let value = read(value);
        if let Some(kind) = kind.filter(|kind| !kind.accepts(&value)) {
            let why = format!("is not of the declared type `{}`", kind.as_str());
            self.refuse(&at, &why, "change the value, or the `type` of the argument");
        } else if choices.is_some_and(|choices| !choices.contains(&value)) {
            self.refuse(&at, "is not one of the values of `enum`", "add it there, or change it");
        }
        Some(value)
    }

    /// Reports a nested schema of an argument that is not of the type that has one.
    fn check_nested(
        &mut self,
        at: &At<'_>,
        key: &str,
        kind: Option<ArgumentType>,
        wanted: ArgumentType,
    ) {
        let Some(at) = at.get(key).filter(|_| kind != Some(wanted)) else { return };
        let help = format!("write `type: {}` beside it, or remove it", wanted.as_str());
        let why = format!("is for an argument of the type `{}`", wanted.as_str());
        self.refuse(&at, &why, &help);
    }

    /// Reports a nested schema that is not a JSON Schema.
    fn check_schema(&mut self, at: &At<'_>, key: &str, schema: Option<&Json>) {
        let (Some(schema), Some(mut at)) = (schema, at.get(key)) else { return };
        let Err(error) = jsonschema::draft202012::meta::validate(schema) else { return };
        for segment in error.instance_path().to_string().split('/').skip(1) {
            let below = match segment.parse() {
                Ok(index) => at.element(index),
                Err(_) => at.get(&segment.replace("~1", "/").replace("~0", "~")),
            };
            let Some(below) = below else { break };
            at = below;
        }
        let help = if at.path.to_string().rsplit('.').next() == Some("type") {
            "use one of string, number, integer, boolean, object, array, null"
        } else {
            "see https://json-schema.org/understanding-json-schema"
        };
        self.refuse(&at, "is not valid in a JSON Schema", help);
    }

    /// Reports keys that mean nothing for a fixed value.
    fn refuse_beside_value(&mut self, at: &At<'_>, is_hidden: bool) {
        for key in ["default", "required"] {
            let Some(at) = at.get(key) else { continue };
            let help = "a fixed value is always sent and never asked for: remove this key";
            self.refuse(&at, "has no effect beside `value`", help);
        }
        if is_hidden && let Some(at) = at.get("hidden") {
            let help = "an argument with a `value` is always hidden: remove this key";
            self.warn_about(&at, "has no effect beside `value`", help);
        }
    }

    fn warn_about(&mut self, at: &At<'_>, why: &str, help: &str) {
        let problem = ConfigProblem::error(format!("{}: {why}", at.path));
        self.warn_at(&at.node.origin, problem.about(&at.path).help(help));
    }
}

/// The value of a text from a variable, read as the declared type.
fn from_text(text: &str, kind: ArgumentType) -> Option<Json> {
    match kind {
        ArgumentType::String => None,
        ArgumentType::Number
        | ArgumentType::Integer
        | ArgumentType::Boolean
        | ArgumentType::Object
        | ArgumentType::Array => {
            serde_json::from_str(text.trim()).ok().filter(|value| kind.accepts(value))
        }
    }
}

fn argument_type(raw: RawArgumentType) -> ArgumentType {
    match raw {
        RawArgumentType::String => ArgumentType::String,
        RawArgumentType::Number => ArgumentType::Number,
        RawArgumentType::Integer => ArgumentType::Integer,
        RawArgumentType::Boolean => ArgumentType::Boolean,
        RawArgumentType::Object => ArgumentType::Object,
        RawArgumentType::Array => ArgumentType::Array,
    }
}
