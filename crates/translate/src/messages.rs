//! Anthropic Messages.

mod answer;
mod request;
#[cfg(test)]
mod tests;

pub(crate) use answer::MessagesAnswer;
pub(crate) use request::read;

/// The name of the API, for people.
const API: &str = "Anthropic Messages";
