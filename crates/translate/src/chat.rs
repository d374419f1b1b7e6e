//! OpenAI Chat Completions.

mod answer;
mod request;

pub(crate) use answer::ChatAnswer;
pub(crate) use request::read;

/// The name of the API, for people.
const API: &str = "Chat Completions";
