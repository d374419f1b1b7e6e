//! Gemini, with an API key and behind a Google account (Code Assist), which puts the same into an envelope.
//!
//! Signatures go back on exactly the part that had them. A call that Gemini did not make has none; where the newer models
//! want one, it gets the word by which they let it pass.

mod content;
mod contents;
mod fault;
mod model;
mod request;
#[cfg(test)]
mod request_tests;
mod stream;
#[cfg(test)]
mod stream_tests;

pub(crate) use fault::{fault, refuses_json_schema};
pub(crate) use request::request;
pub(crate) use stream::GeminiWire;
