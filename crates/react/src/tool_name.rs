//! Reads the name of a tool in the line of an action.

use serde_json::{Map, Value};

use crate::arguments::{self, ReadArguments};

/// Labels of arguments within the line of an action, in lower case.
const INLINE_ARGS: [&str; 5] = ["args:", "arguments:", "action input:", "action_input:", "input:"];
/// Words that stand for no action.
const NO_ACTION: [&str; 8] =
    ["none", "n/a", "null", "nothing", "no action", "no action needed", "no tool", "-"];
const ANSWERS: [&str; 3] = ["final answer", "final_answer", "finalanswer"];
/// Characters around a name that are not part of it.
const AROUND: [char; 19] = [
    '*', '`', '"', '\'', '“', '”', '‘', '’', '<', '>', '[', ']', '(', ')', '{', ',', '.', ';', ':',
];

/// The keys of an action that is written as a JSON object.
const NAME_KEYS: [&str; 5] = ["action", "name", "tool", "tool_name", "function"];
const ARGUMENT_KEYS: [&str; 5] = ["action_input", "args", "arguments", "input", "parameters"];

/// What an action names.
#[derive(Debug, PartialEq)]
pub(crate) enum ActionTarget {
    Tool(String),
    /// A word such as `None`.
    NoAction,
    /// `Final Answer`: the arguments are the answer.
    Answer,
    /// Nothing was written.
    Nothing,
}

/// Splits the line of an action into the name and arguments that follow in the same line.
pub(crate) fn split(line: &str) -> (ActionTarget, Option<String>) {
    let lower = line.to_ascii_lowercase();
    let inline = INLINE_ARGS.iter().filter_map(|label| {
        let at = lower.find(label)?;
        let before = lower.get(..at)?;
        let stands_alone = before.ends_with([' ', '\t', ',', ';', '`', '"', '*']);
        stands_alone.then_some((at, at + label.len()))
    });
    match inline.min() {
        Some((at, end)) => {
            let rest = line.get(end..).unwrap_or_default();
            (named(line.get(..at).unwrap_or_default()), Some(rest.to_owned()))
        }
        None => (named(line), None),
    }
}

/// The name in a text, without quotes and emphasis.
pub(crate) fn named(text: &str) -> ActionTarget {
    let name = text.trim_matches(|c: char| c.is_whitespace() || AROUND.contains(&c));
    let is_one_of = |words: &[&str]| words.iter().any(|word| name.eq_ignore_ascii_case(word));
    if name.is_empty() {
        // A dash is a word for no action, and nothing is left of it in a line such as `Action: -.`.
        ActionTarget::Nothing
    } else if is_one_of(&NO_ACTION) {
        ActionTarget::NoAction
    } else if is_one_of(&ANSWERS) {
        ActionTarget::Answer
    } else {
        ActionTarget::Tool(name.to_owned())
    }
}

/// Reads an action that is written as one JSON object: `{"action": "add", "action_input": {...}}`.
pub(crate) fn from_object(text: &str) -> Option<(ActionTarget, ReadArguments)> {
    let Some(Value::Object(members)) = arguments::parse(text) else { return None };
    let member = |keys: &[&str]| keys.iter().find_map(|key| members.get(*key)).cloned();
    let name = member(&NAME_KEYS)?;
    let written = member(&ARGUMENT_KEYS);
    let arguments = match written {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(arguments)) => Ok(arguments),
        Some(Value::String(text)) => arguments::read(&text),
        Some(other) => Err(arguments::cut(&other.to_string())),
    };
    Some((named(name.as_str()?), arguments))
}

/// Reads a reply that is nothing but the JSON object of an action, in a code block or not: a name, an object of arguments, and
/// nothing else. Other objects are answers.
pub(crate) fn from_reply(text: &str) -> Option<(ActionTarget, ReadArguments)> {
    let text = text.trim();
    let text = match text.strip_prefix("```") {
        Some(fenced) => fenced.trim_start_matches(|c: char| c.is_ascii_alphabetic()),
        None => text,
    };
    let text = text.trim_end_matches('`').trim();
    if !text.starts_with('{') {
        return None;
    }
    let Some(Value::Object(members)) = arguments::parse(text) else { return None };
    let is_known =
        |key: &String| NAME_KEYS.contains(&key.as_str()) || ARGUMENT_KEYS.contains(&key.as_str());
    let (named, arguments) = from_object(text)?;
    let is_action = match &named {
        ActionTarget::Tool(name) => arguments.is_ok() && !name.contains(char::is_whitespace),
        ActionTarget::Answer => true,
        ActionTarget::NoAction | ActionTarget::Nothing => false,
    };
    (members.len() == 2 && members.keys().all(is_known) && is_action).then_some((named, arguments))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(line: &str, name: ActionTarget, rest: Option<&str>) {
        assert_eq!(split(line), (name, rest.map(str::to_owned)), "{line}");
    }

    #[test]
    fn names_are_read_without_what_is_around_them() {
        let tool = |name: &str| ActionTarget::Tool(name.into());
        check(" add", tool("add"), None);
        check("`files__read`", tool("files__read"), None);
        check("**add**.", tool("add"), None);
        check("[\"add\"]", tool("add"), None);
        check("_private", tool("_private"), None);
        check("add Args: ", tool("add"), Some(" "));
        check("add, Action Input: x", tool("add"), Some(" x"));
        check("inputs:x", tool("inputs:x"), None);
        check("I will use add", tool("I will use add"), None);
        check("None", ActionTarget::NoAction, None);
        check("-", ActionTarget::NoAction, None);
        check("Final Answer", ActionTarget::Answer, None);
        check(" ** ", ActionTarget::Nothing, None);
    }

    #[test]
    fn an_action_may_be_an_object() {
        let (name, arguments) =
            from_object(r#"{"action": "add", "action_input": {"a": 1}}"#).unwrap();
        assert_eq!(
            (name, arguments),
            (ActionTarget::Tool("add".into()), Ok(json!({"a": 1}).as_object().unwrap().clone()))
        );
        let (name, arguments) = from_object(r#"{"name": "Final Answer", "input": "42"}"#).unwrap();
        assert_eq!((name, arguments), (ActionTarget::Answer, Err("42".into())));
        assert_eq!(from_object(r#"{"a": 1}"#), None);
        assert_eq!(from_object("{"), None);
    }
}
