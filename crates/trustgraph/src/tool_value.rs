//! Values of the type `tool`: entries of `toolbox.tools` that have a `type`.

use serde_json::{Value, json};
use switchboard_config::{ConfigEdit, EntryList, released_arguments};

use crate::error::TrustGraphError;
use crate::tool_arguments::{check_arguments, merged_arguments, shown_argument};
use crate::value_text::{
    ShownValue, WrittenFields, check_members, entry_of, read_object, shown, text_of, written,
};

/// The tool types of TrustGraph that need its own services.
const OTHER_TYPES: [&str; 5] = [
    "knowledge-query",
    "structured-query",
    "row-embeddings-query",
    "text-completion",
    "tool-service",
];
/// The members of a value.
const MEMBERS: [&str; 10] = [
    "name",
    "description",
    "type",
    "mcp-tool",
    "mcp_tool_id",
    "template",
    "arguments",
    "group",
    "state",
    "applicable-states",
];
/// The keys of an entry that a value sets. Others, such as limits, belong to the file alone and stay.
const OWN_KEYS: [&str; 9] = [
    "name",
    "type",
    "mcp-tool",
    "template",
    "description",
    "arguments",
    "group",
    "state",
    "applicable-states",
];

/// The tools as the clients read them, in file order.
pub fn shown_tools<'a>(entries: impl IntoIterator<Item = &'a WrittenFields>) -> Vec<ShownValue> {
    entries.into_iter().filter_map(shown_tool).collect()
}

fn shown_tool(entry: &WrittenFields) -> Option<ShownValue> {
    let kind = entry.get("type")?.as_str().filter(|kind| matches!(*kind, "mcp-tool" | "prompt"))?;
    let name = entry.get("name")?.as_str()?;
    let get = |key: &str| entry.get(key).filter(|value| !value.is_null()).map(shown);
    let mut value = WrittenFields::new();
    value.insert("name".into(), shown(&json!(name)));
    // The clients expect this member.
    value.insert("description".into(), get("description").unwrap_or_default());
    value.insert("type".into(), json!(kind));
    for key in ["mcp-tool", "template"] {
        value.extend(get(key).map(|it| (key.to_owned(), it)));
    }
    let arguments = entry.get("arguments").and_then(Value::as_array);
    let arguments =
        arguments.map(|arguments| arguments.iter().filter_map(shown_argument).collect());
    // The clients expect the arguments of a prompt.
    let arguments: Option<Value> = arguments.or((kind == "prompt").then(|| json!([])));
    value.extend(arguments.map(|arguments| ("arguments".to_owned(), arguments)));
    for key in ["group", "state"] {
        value.extend(get(key).map(|it| (key.to_owned(), it)));
    }
    let states = get("applicable-states").or_else(|| get("applicable_states"));
    value.extend(states.map(|states| ("applicable-states".to_owned(), states)));
    let key = entry.get("id").and_then(Value::as_str).unwrap_or(name);
    let key = shown(&json!(key)).as_str().unwrap_or_default().to_owned();
    Some(ShownValue { key, value, entry: name.to_owned() })
}

/// The edit that sets a tool.
pub fn put_tool(
    tools: &[&WrittenFields],
    key: &str,
    text: &str,
) -> Result<ConfigEdit, TrustGraphError> {
    let place = format!("tool '{key}'");
    if key.trim().is_empty() {
        return Err(TrustGraphError::config("the id of a tool must not be empty"));
    }
    let mut value = read_object(&place, text)?;
    if let Some(target) = value.shift_remove("mcp_tool_id") {
        value.entry("mcp-tool").or_insert(target);
    }
    check(&value, &place)?;
    let name = text_of(&value, &place, "name")?.unwrap_or_default();
    let known = shown_tools(tools.iter().copied());
    let existing = entry_of(&known, key);
    let rival = tools.iter().find(|entry| {
        let rival = entry.get("name").and_then(Value::as_str);
        rival == Some(name.as_str()) && rival != existing.map(|it| it.entry.as_str())
    });
    if let Some(rival) = rival {
        let other = known.iter().find(|it| rival.get("name") == Some(&json!(it.entry)));
        let other = other.map_or_else(
            || "an entry of the configuration file".to_owned(),
            |other| format!("the tool '{}'", other.key),
        );
        return Err(TrustGraphError::config(format!(
            "the name '{name}' of {place} is the name of {other}: choose another name"
        )));
    }
    let mut fields = WrittenFields::new();
    for member in OWN_KEYS {
        let new = value.get(member);
        let is_same =
            existing.is_some_and(|it| it.value.get(member).filter(|it| !it.is_null()) == new);
        // What the client did not change stays as it is written, with the keys that the client does not know.
        if !is_same {
            fields.insert(member.to_owned(), new.map(written).unwrap_or_default());
        }
    }
    if let Some(arguments) = fields.get_mut("arguments") {
        let entry = existing
            .and_then(|it| tools.iter().find(|entry| entry.get("name") == Some(&json!(it.entry))));
        let present = entry.and_then(|entry| entry.get("arguments"));
        *arguments = merged_arguments(arguments, present, &place)?;
    }
    if fields.contains_key("applicable-states") {
        fields.insert("applicable_states".into(), Value::Null);
    }
    let id = if key == name { Value::Null } else { written(&json!(key)) };
    fields.insert("id".into(), id);
    let entry = existing.map_or(name, |existing| existing.entry.clone());
    if existing.is_none() {
        fields.retain(|_, value| !value.is_null());
    }
    Ok(ConfigEdit::Patch { list: EntryList::Tools, name: entry, fields })
}

/// The edit that removes a tool. The clients do not see fixed and hidden arguments, and a tool that was removed and set again
/// would be without them, so a tool that has them is not theirs to remove.
pub fn delete_tool(
    tools: &[&WrittenFields],
    value: &ShownValue,
) -> Result<ConfigEdit, TrustGraphError> {
    let name = value.entry.clone();
    let entry = tools.iter().find(|entry| entry.get("name") == Some(&json!(name)));
    let released = entry.map(|entry| released_arguments(entry, &WrittenFields::new()));
    match released.unwrap_or_default().as_slice() {
        [] => Ok(ConfigEdit::Remove { list: EntryList::Tools, name }),
        released => Err(TrustGraphError::config(format!(
            "tool '{}' has arguments that are fixed or hidden in the configuration file ({}), which is for its owner to give up: `switchboard tool delete {name}`",
            value.key,
            released.join(", ")
        ))),
    }
}

/// Checks in the order in which TrustGraph does: the type, then what the type needs, then groups and states.
fn check(value: &WrittenFields, place: &str) -> Result<(), TrustGraphError> {
    let refuse = |message: String| Err(TrustGraphError::config(message));
    match text_of(value, place, "type")?.as_deref() {
        Some("mcp-tool" | "prompt") => {}
        None => return refuse(format!("{place} needs a `type`: mcp-tool or prompt")),
        Some(other) if OTHER_TYPES.contains(&other) => {
            return refuse(format!(
                "{place} has the type '{other}', which needs a service of TrustGraph; Switchboard has mcp-tool and prompt"
            ));
        }
        Some(other) => {
            return refuse(format!(
                "{place} has the unknown type '{other}'; use mcp-tool or prompt"
            ));
        }
    }
    check_members(value, place, &MEMBERS)?;
    for member in ["name", "description", "mcp-tool", "template"] {
        text_of(value, place, member)?;
    }
    if value.get("name").and_then(Value::as_str).is_none_or(|name| name.trim().is_empty()) {
        return refuse(format!("{place} needs a `name`"));
    }
    let is_prompt = value.get("type") == Some(&json!("prompt"));
    if is_prompt && !value.contains_key("template") {
        return refuse(format!("{place} needs a `template`, the text of the prompt"));
    }
    if !is_prompt && !value.contains_key("mcp-tool") {
        return refuse(format!("{place} needs `mcp-tool`, the id of an MCP tool"));
    }
    let all_texts = |list: &[Value]| list.iter().all(Value::is_string);
    match value.get("group").map(Value::as_array) {
        Some(None) => return refuse("Tool 'group' field must be a list of strings".into()),
        Some(Some(list)) if !all_texts(list) => {
            return refuse("All group names must be strings".into());
        }
        Some(Some(_)) | None => {}
    }
    if value.get("state").is_some_and(|state| !state.is_string()) {
        return refuse("Tool 'state' field must be a string".into());
    }
    match value.get("applicable-states").map(Value::as_array) {
        Some(None) => {
            return refuse("Tool 'applicable-states' field must be a list of strings".into());
        }
        Some(Some(list)) if !all_texts(list) => {
            return refuse("All state names must be strings".into());
        }
        Some(Some(_)) | None => {}
    }
    check_arguments(value, place)
}

#[cfg(test)]
#[path = "tool_value_tests.rs"]
mod tests;
