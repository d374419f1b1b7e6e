//! The app's tools, and its choice of them.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::raw_json::Raw;

/// The names of declared tools: `{type, name}` in Responses, `{type, function: {name}}` in Chat Completions. Tools that run
/// at the provider have no name there.
pub(crate) fn tool_names(tools: &[Raw]) -> Vec<String> {
    #[derive(Deserialize)]
    struct Named {
        name: Option<String>,
    }
    #[derive(Deserialize)]
    struct Tool {
        name: Option<String>,
        function: Option<Named>,
        custom: Option<Named>,
        /// The tools of a namespace.
        #[serde(default)]
        tools: Vec<Named>,
    }
    let names = tools.iter().filter_map(|tool| serde_json::from_str::<Tool>(tool.get()).ok());
    let names = names.flat_map(|tool| {
        let inner = [tool.function, tool.custom].into_iter().flatten();
        let named = inner.chain(tool.tools).filter_map(|named| named.name);
        tool.name.into_iter().chain(named).collect::<Vec<_>>()
    });
    names.collect()
}

/// Whether a `tool_choice` makes the model call a tool. A list of allowed tools is kept in all rounds: the session's tools are
/// not in it.
pub(crate) fn is_forced(choice: &RawValue) -> bool {
    match serde_json::from_str::<Value>(choice.get()) {
        Ok(Value::String(word)) => !matches!(&*word, "auto" | "none"),
        Ok(Value::Object(choice)) => choice.get("type").is_none_or(|kind| kind != "allowed_tools"),
        Ok(_) | Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::raw_json::raw;

    #[test]
    fn names_are_found_in_both_formats() {
        let tools = [
            r#"{"type":"function","function":{"name":"a"}}"#,
            r#"{"type":"custom","custom":{"name":"b"}}"#,
            r#"{"type":"function","name":"c"}"#,
            r#"{"type":"web_search"}"#,
            r#"{"type":"namespace","name":"d","tools":[{"type":"function","name":"e"}]}"#,
            "1",
        ];
        let tools: Vec<_> = tools.iter().map(|tool| raw((*tool).to_owned())).collect();
        assert_eq!(tool_names(&tools), ["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn a_choice_is_forced_if_the_model_must_call() {
        for (choice, expected) in [
            (r#""auto""#, false),
            (r#""none""#, false),
            (r#""required""#, true),
            (r#"{"type":"function","name":"a"}"#, true),
            (r#"{"type":"allowed_tools","mode":"required","tools":[]}"#, false),
            ("null", false),
        ] {
            assert_eq!(is_forced(&raw(choice.to_owned())), expected, "{choice}");
        }
    }
}
