//! OpenAI Responses.

mod answer;
mod request;

pub(crate) use answer::ResponsesAnswer;
pub(crate) use request::read;

/// The name of the API, for people.
const API: &str = "OpenAI Responses";
