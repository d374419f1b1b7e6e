//! Items of a conversation and of an answer.

use serde::Deserialize;
use serde_json::Value;

use crate::raw_json::{Raw, RawObject};

/// The members of an item that decide about it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Item {
    pub(super) r#type: String,
    pub(super) role: String,
    pub(super) id: Option<String>,
    pub(super) call_id: Option<String>,
    pub(super) name: Option<String>,
    /// The namespace of a function. The session's tools have none.
    pub(super) namespace: Option<String>,
    #[serde(alias = "input")]
    pub(super) arguments: Value,
    pub(super) content: Value,
    pub(super) output: Value,
    pub(super) error: Value,
    pub(super) server_label: Option<String>,
    pub(super) phase: Option<String>,
}

impl Item {
    pub(super) fn read(item: &str) -> Self {
        let mut item: Self = serde_json::from_str(item).unwrap_or_default();
        // A message may be written without its type.
        if item.r#type.is_empty() && !item.role.is_empty() {
            "message".clone_into(&mut item.r#type);
        }
        item
    }

    pub(super) fn is_message(&self) -> bool {
        self.r#type == "message"
    }

    /// Whether a model produces such items.
    pub(super) fn is_of_model(&self) -> bool {
        match &*self.r#type {
            "message" => self.role == "assistant",
            "reasoning" | "mcp_list_tools" | "mcp_approval_request" => true,
            kind => kind.ends_with("_call"),
        }
    }

    /// A call that the app answers: its name and its arguments.
    pub(super) fn as_app_call(&self) -> Option<(String, String)> {
        let is_call = matches!(&*self.r#type, "function_call" | "custom_tool_call");
        is_call.then(|| {
            let arguments = self.arguments.as_str().unwrap_or_default().to_owned();
            (self.name.clone().unwrap_or_default(), arguments)
        })
    }

    /// The text of a message.
    pub(super) fn text(&self) -> String {
        match &self.content {
            Value::String(text) => text.clone(),
            Value::Array(parts) => {
                parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
        }
    }
}

/// The prefix of ids of such items.
pub(super) fn id_prefix(kind: &str) -> &'static str {
    match kind {
        "message" => "msg_",
        "reasoning" => "rs_",
        "function_call" => "fc_",
        "custom_tool_call" => "ctc_",
        "mcp_call" => "mcp_",
        _ => "item_",
    }
}

/// An item as the provider takes it back: a reasoning item without members that are `null`, which are refused.
pub(super) fn to_replay(item: &Raw) -> Raw {
    let Some(object) = reasoning(item) else { return item.clone() };
    let mut kept = RawObject::default();
    for (name, value) in object.members().filter(|(_, value)| value.get() != "null") {
        kept.set(name, value.to_owned());
    }
    kept.to_raw()
}

/// Whether an item means something to the provider: not a reasoning item without content that it did not store.
pub(super) fn is_known_to_provider(item: &Raw, is_stored: bool) -> bool {
    let Some(object) = reasoning(item).filter(|_| !is_stored) else { return true };
    let is_filled =
        |name| object.get(name).is_some_and(|value| !matches!(value.get(), "null" | "[]"));
    is_filled("encrypted_content") || is_filled("content")
}

fn reasoning(item: &Raw) -> Option<RawObject> {
    let object = RawObject::read(item.get()).ok()?;
    (object.parsed::<String>("type")? == "reasoning").then_some(object)
}
