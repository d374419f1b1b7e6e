//! Parts of a content. The API takes every name in camel case and in snake case.

use serde_json::value::RawValue;

use crate::raw_json::{Raw, RawObject, elements, to_raw};

/// Ids that were made here begin with this. The provider never sees them.
pub(super) const OWN_ID: &str = "switchboard_";

/// The value of a member under its name in camel case, or else in snake case.
pub(super) fn member<'a>(object: &'a RawObject, name: &str) -> Option<&'a RawValue> {
    let value = object.get(name).or_else(|| object.get(&snake_case(name)));
    value.filter(|value| value.get() != "null")
}

/// Sets a member under the name that it has, or else in camel case.
pub(super) fn set_member(object: &mut RawObject, name: &str, value: Raw) {
    let snake = snake_case(name);
    let name = if object.get(&snake).is_some() { &*snake } else { name };
    object.set(name, value);
}

pub(super) fn remove_member(object: &mut RawObject, name: &str) {
    object.remove(name);
    object.remove(&snake_case(name));
}

pub(super) fn parsed<T: serde::de::DeserializeOwned>(object: &RawObject, name: &str) -> Option<T> {
    serde_json::from_str(member(object, name)?.get()).ok()
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// The parts of a content.
pub(super) fn parts(content: &RawObject) -> Vec<Part> {
    let parts = content.get("parts").and_then(elements).unwrap_or_default();
    parts.into_iter().map(Part::new).collect()
}

#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) raw: Raw,
    object: RawObject,
}

/// A call in a part.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// Older models give none.
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl Part {
    pub(super) fn new(raw: Raw) -> Self {
        let object = RawObject::read(raw.get()).unwrap_or_default();
        Self { raw, object }
    }

    pub(super) fn of_text(text: &str, is_thought: bool) -> Self {
        let mut object = RawObject::default();
        object.set("text", to_raw(&text));
        if is_thought {
            object.set("thought", to_raw(&true));
        }
        Self { raw: object.to_raw(), object }
    }

    /// The text, of an answer or of a thought.
    pub(super) fn text(&self) -> Option<String> {
        self.object.parsed("text")
    }

    pub(super) fn is_thought(&self) -> bool {
        self.object.parsed("thought").unwrap_or_default()
    }

    /// Text of an answer.
    pub(super) fn is_answer(&self) -> bool {
        self.object.get("text").is_some() && !self.is_thought()
    }

    /// The same part with another text.
    pub(super) fn with_text(&self, text: &str) -> Self {
        let mut object = self.object.clone();
        object.set("text", to_raw(&text));
        Self { raw: object.to_raw(), object }
    }

    /// The same part with another signature, or without one.
    pub(super) fn with_signature(&self, signature: Option<&str>) -> Self {
        let mut object = self.object.clone();
        remove_member(&mut object, "thoughtSignature");
        if let Some(signature) = signature {
            object.set("thoughtSignature", to_raw(&signature));
        }
        Self { raw: object.to_raw(), object }
    }

    /// The same response without the id of its call.
    pub(super) fn without_id(&self) -> Self {
        let mut object = self.object.clone();
        if let Some(mut response) = parsed::<RawObject>(&object, "functionResponse") {
            response.remove("id");
            set_member(&mut object, "functionResponse", response.to_raw());
        }
        Self { raw: object.to_raw(), object }
    }

    /// Whether the part is a text without anything else, which can be joined with another one.
    pub(super) fn is_plain_text(&self) -> bool {
        self.object.get("text").is_some()
            && self.object.names().all(|name| matches!(name, "text" | "thought"))
    }

    /// Whether the part says nothing and seals nothing.
    pub(super) fn is_empty_text(&self) -> bool {
        self.is_plain_text() && self.text().is_some_and(|text| text.is_empty())
    }

    pub(super) fn call(&self) -> Option<Call> {
        let call = RawObject::read(member(&self.object, "functionCall")?.get()).ok()?;
        Some(Call {
            id: call.parsed("id"),
            name: call.parsed("name").unwrap_or_default(),
            arguments: member(&call, "args").map_or("{}", RawValue::get).to_owned(),
        })
    }

    /// The id and the name of the call that the part answers.
    pub(super) fn answered(&self) -> Option<(Option<String>, String)> {
        let response = RawObject::read(member(&self.object, "functionResponse")?.get()).ok()?;
        Some((response.parsed("id"), response.parsed("name").unwrap_or_default()))
    }

    /// Whether the part shows a call that ran here.
    pub(super) fn shows_session_call(&self) -> bool {
        ["toolCall", "toolResponse"].iter().any(|name| {
            let shown =
                member(&self.object, name).and_then(|part| RawObject::read(part.get()).ok());
            let id = shown.and_then(|shown| shown.parsed::<String>("id"));
            id.is_some_and(|id| id.starts_with(OWN_ID))
        })
    }
}

/// Joins texts that a stream took apart. Parts with a signature stay as they are.
pub(super) fn joined(parts: impl IntoIterator<Item = Part>) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::new();
    for part in parts {
        let last = joined.last_mut().filter(|last| {
            last.is_plain_text() && part.is_plain_text() && last.is_thought() == part.is_thought()
        });
        match last {
            Some(last) => {
                let text = last.text().unwrap_or_default() + &part.text().unwrap_or_default();
                *last = Part::of_text(&text, part.is_thought());
            }
            None => joined.push(part),
        }
    }
    joined.retain(|part| !part.is_empty_text());
    joined
}
