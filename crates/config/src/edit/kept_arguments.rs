//! Arguments of a tool entry that callers do not give: fixed ones, and hidden ones.

use serde_json::{Map, Value as Json};

/// Whether an argument, as it is written, has a fixed `value` or is `hidden`. A client that does not see such an argument
/// must not remove it.
pub fn is_fixed_or_hidden(argument: &Json) -> bool {
    let is_fixed = argument.get("value").is_some_and(|value| !value.is_null());
    let is_hidden = match argument.get("hidden") {
        None | Some(Json::Null) => false,
        Some(Json::Bool(hidden)) => *hidden,
        // A reference to a variable may turn out to be `true`.
        Some(other) => other != "false",
    };
    is_fixed || is_hidden
}

/// The names of the arguments that are fixed or hidden in `present`, and are neither in `new`.
pub fn released_arguments(present: &Map<String, Json>, new: &Map<String, Json>) -> Vec<String> {
    let names = |entry: &Map<String, Json>| -> Vec<String> {
        let arguments = entry.get("arguments").and_then(Json::as_array).into_iter().flatten();
        let kept = arguments.filter(|argument| is_fixed_or_hidden(argument));
        kept.filter_map(|argument| argument["name"].as_str().map(str::to_owned)).collect()
    };
    let kept = names(new);
    names(present).into_iter().filter(|name| !kept.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_argument_that_callers_do_not_give_is_recognised() {
        for (argument, expected) in [
            (json!({"name": "a"}), false),
            (json!({"name": "a", "default": 1}), false),
            (json!({"name": "a", "value": null, "hidden": false}), false),
            (json!({"name": "a", "hidden": "false"}), false),
            (json!({"name": "a", "value": false}), true),
            (json!({"name": "a", "value": "${TENANT}"}), true),
            (json!({"name": "a", "hidden": true}), true),
            (json!({"name": "a", "hidden": "${HIDE}"}), true),
            (json!("a"), false),
        ] {
            assert_eq!(is_fixed_or_hidden(&argument), expected, "{argument}");
        }
    }

    #[test]
    fn an_argument_is_released_when_it_is_left_out_or_given_to_callers() {
        let entry = |arguments: Json| Map::from_iter([("arguments".to_owned(), arguments)]);
        let present = entry(json!([
            {"name": "text"}, {"name": "tenant", "value": 1}, {"name": "debug", "hidden": true},
        ]));
        let check = |new: Json, expected: &[&str]| {
            assert_eq!(released_arguments(&present, &entry(new)), expected);
        };
        check(json!([]), &["tenant", "debug"]);
        check(json!([{"name": "tenant"}, {"name": "debug", "value": 0}]), &["tenant"]);
        check(json!([{"name": "debug", "hidden": true}, {"name": "tenant", "value": 2}]), &[]);
        assert_eq!(released_arguments(&present, &Map::new()), ["tenant", "debug"]);
    }
}
