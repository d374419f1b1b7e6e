//! Values as the clients read and write them, and the texts of the configuration file.

use serde_json::{Map, Value};
use switchboard_config::escape_references;

use crate::error::TrustGraphError;

/// One entry of the configuration file as it is written.
pub type WrittenFields = Map<String, Value>;

/// A value that a client reads.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownValue {
    /// The id that the client knows.
    pub key: String,
    pub value: WrittenFields,
    /// The `name` of the entry in the file.
    pub entry: String,
}

/// The entry that a client knows by this key.
pub fn entry_of<'a>(shown: &'a [ShownValue], key: &str) -> Option<&'a ShownValue> {
    shown.iter().find(|value| value.key == key)
}

/// Reads the text of a value, which is a JSON object. Members that are null count as absent.
pub(crate) fn read_object(place: &str, text: &str) -> Result<WrittenFields, TrustGraphError> {
    let unreadable = |why: String| {
        TrustGraphError::config(format!("the value of {place} is not a JSON object: {why}"))
    };
    let value: Value = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
    let Value::Object(mut object) = value else {
        return Err(unreadable("it is another JSON value".into()));
    };
    object.retain(|_, value| !value.is_null());
    Ok(object)
}

/// Refuses members that have no meaning here.
pub(crate) fn check_members(
    object: &WrittenFields,
    place: &str,
    members: &[&str],
) -> Result<(), TrustGraphError> {
    match object.keys().find(|key| !members.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(TrustGraphError::config(format!(
            "the value of {place} has `{key}`, which has no meaning here; it can have {}",
            members.join(", ")
        ))),
    }
}

/// The text of a member; an error if it is not a text.
pub(crate) fn text_of(
    object: &WrittenFields,
    place: &str,
    member: &str,
) -> Result<Option<String>, TrustGraphError> {
    match object.get(member) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(TrustGraphError::config(format!("`{member}` of {place} must be a text"))),
    }
}

/// Writes a value so that the configuration file means it literally: `${NAME}` must not read a variable of this machine.
pub(crate) fn written(value: &Value) -> Value {
    map_texts(value, &escape_references)
}

/// A value of the file as the clients see it. A reference stays a reference: its value is never shown.
pub(crate) fn shown(value: &Value) -> Value {
    map_texts(value, &|text| text.replace("$${", "${"))
}

fn map_texts(value: &Value, map: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(map(text)),
        Value::Array(items) => items.iter().map(|item| map_texts(item, map)).collect(),
        Value::Object(members) => Value::Object(
            members.iter().map(|(key, value)| (key.clone(), map_texts(value, map))).collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_that_looks_like_a_reference_stays_that_text() {
        for text in ["${HOME}", "$${HOME}", "a $ b", "{{x}} ${", "plain"] {
            let value = json!({"a": [text]});
            assert_eq!(shown(&written(&value)), value, "{text}");
        }
        assert_eq!(written(&json!("${HOME}")), json!("$${HOME}"));
    }
}
