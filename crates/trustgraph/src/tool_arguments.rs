//! The arguments of a tool: as the clients read them, and as the file has them after a client wrote them.

use serde_json::{Value, json};
use switchboard_config::is_fixed_or_hidden;

use crate::error::TrustGraphError;
use crate::value_text::{WrittenFields, shown};

/// The members of an argument.
const ARGUMENT_MEMBERS: [&str; 4] = ["name", "type", "description", "required"];

/// An argument as the clients read it. One that callers do not give is left out: its value may be a secret.
pub(crate) fn shown_argument(argument: &Value) -> Option<Value> {
    if is_fixed_or_hidden(argument) {
        return None;
    }
    let argument = argument.as_object()?;
    let text = |key: &str, default: &str| argument.get(key).map_or_else(|| json!(default), shown);
    Some(json!({
        "name": argument.get("name").map(shown)?,
        "type": text("type", "string"),
        "description": text("description", ""),
    }))
}

/// Checks the shape of `arguments` as a client gives them.
pub(crate) fn check_arguments(value: &WrittenFields, place: &str) -> Result<(), TrustGraphError> {
    let refuse = |message: String| Err(TrustGraphError::config(message));
    let Some(arguments) = value.get("arguments") else { return Ok(()) };
    let Some(arguments) = arguments.as_array() else {
        return refuse(format!("`arguments` of {place} must be a list"));
    };
    for (index, argument) in arguments.iter().enumerate() {
        let members = argument.as_object();
        let unknown = members.and_then(|members| {
            members.keys().find(|key| !ARGUMENT_MEMBERS.contains(&key.as_str()))
        });
        match (members, unknown) {
            (None, _) => {
                return refuse(format!(
                    "argument {} of {place} must be an object with `name`, `type` and `description`",
                    index + 1
                ));
            }
            (Some(_), Some(key)) => {
                return refuse(format!(
                    "argument {} of {place} has `{key}`; it can have {}",
                    index + 1,
                    ARGUMENT_MEMBERS.join(", ")
                ));
            }
            (Some(_), None) => {}
        }
    }
    Ok(())
}

/// The arguments of the file after a client wrote `new`.
///
/// The clients do not see fixed and hidden arguments: these stay, and a client cannot declare one of their names. Of an
/// argument whose type stays, what the clients do not see stays too, such as its `enum`.
pub(crate) fn merged_arguments(
    new: &Value,
    present: Option<&Value>,
    place: &str,
) -> Result<Value, TrustGraphError> {
    let present = present.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut merged = Vec::new();
    for argument in new.as_array().into_iter().flatten() {
        let name = argument.get("name");
        let same = present.iter().find(|it| name.is_some() && it.get("name") == name);
        if same.is_some_and(is_fixed_or_hidden) {
            return Err(TrustGraphError::config(format!(
                "the argument {} of {place} is fixed or hidden in the configuration file and cannot be declared here",
                name.unwrap_or_default()
            )));
        }
        merged.push(merged_argument(argument, same));
    }
    merged.extend(present.iter().filter(|argument| is_fixed_or_hidden(argument)).cloned());
    Ok(if merged.is_empty() && !new.is_array() { Value::Null } else { merged.into() })
}

fn merged_argument(new: &Value, same: Option<&Value>) -> Value {
    let shown_type = same.and_then(shown_argument).map(|shown| shown["type"].clone());
    let (Some(present), Some(members)) = (same.and_then(Value::as_object), new.as_object()) else {
        return new.clone();
    };
    let mut argument = WrittenFields::new();
    if members.get("type").is_none_or(|kind| shown_type.as_ref() == Some(kind)) {
        argument.clone_from(present);
    } else if let Some(required) = present.get("required") {
        argument.insert("required".into(), required.clone());
    }
    argument.extend(members.clone());
    argument.into()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn check(new: &Value, present: &Value, expected: Result<Value, &str>) {
        let merged = merged_arguments(new, Some(present), "tool 'x'");
        let merged = merged.map_err(|error| error.message);
        assert_eq!(merged, expected.map_err(str::to_owned));
    }

    #[test]
    fn fixed_and_hidden_arguments_stay_and_cannot_be_declared() {
        let (key, region) =
            (json!({"name": "key", "value": "secret"}), json!({"name": "region", "hidden": true}));
        let present = json!([key, {"name": "text"}, region]);
        let new = json!({"name": "n", "type": "number", "description": ""});
        check(&json!([new]), &present, Ok(json!([new, key, region])));
        check(&json!([]), &present, Ok(json!([key, region])));
        check(&Value::Null, &present, Ok(json!([key, region])));
        check(&Value::Null, &json!([{"name": "text"}]), Ok(Value::Null));
        check(&json!([]), &json!([{"name": "text"}]), Ok(json!([])));
        let taken = json!([{"name": "key", "type": "string", "description": ""}]);
        let said = "the argument \"key\" of tool 'x' is fixed or hidden in the configuration file and cannot be declared here";
        check(&taken, &present, Err(said));
    }

    #[test]
    fn an_argument_keeps_what_the_clients_do_not_see() {
        let present =
            json!([{"name": "unit", "required": true, "enum": ["c", "f"], "description": "Unit"}]);
        let new = |kind: &str| json!([{"name": "unit", "type": kind, "description": "The unit"}]);
        let kept = json!([{"name": "unit", "required": true, "enum": ["c", "f"], "description": "The unit", "type": "string"}]);
        check(&new("string"), &present, Ok(kept));
        let retyped = json!([{"required": true, "name": "unit", "type": "number", "description": "The unit"}]);
        check(&new("number"), &present, Ok(retyped));
    }
}
