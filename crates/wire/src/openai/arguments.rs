//! The arguments of calls: a text of JSON there, an object here.

use serde_json::{Map, Value};
use switchboard_chat::ToolCall;

use crate::Ask;

/// What a model gave a tool, and its text where that is no object. No text at all means no arguments.
pub(super) fn read(text: &str) -> (Value, Option<String>) {
    let nothing = || Value::Object(Map::new());
    if text.trim().is_empty() {
        return (nothing(), None);
    }
    match object(text) {
        Some(object) => (object, None),
        None => (nothing(), Some(text.to_owned())),
    }
}

/// A text as an object, if it is one and whole.
pub(super) fn object(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(Value::is_object)
}

/// The arguments of a call as the model is to read them: in its own words where it wrote them, else under the names that
/// its tool is declared with now.
pub(super) fn write(ask: &Ask<'_>, call: &ToolCall, is_own: bool) -> String {
    let origin = call.origin.as_ref().and_then(|origin| origin.arguments.as_ref());
    let written = match origin.filter(|_| is_own) {
        Some(own) => own.clone(),
        None if is_own => call.arguments.clone(),
        None => {
            let tool = ask.tools.newest.tool(&call.name);
            let names = tool.and_then(|tool| tool.arguments.as_ref());
            let arguments = call.arguments.clone();
            names.map_or_else(|| arguments.clone(), |names| names.rename(arguments.clone()))
        }
    };
    // An imported call may have anything, and servers that read it again fail on what is no object.
    if written.is_object() { written.to_string() } else { "{}".to_owned() }
}
