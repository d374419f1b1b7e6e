//! The Gemini format, with an API key or with a Google account (Code Assist), which adds an envelope.
//!
//! Signatures are sent back on exactly the part that had them. Newer models require a signature on calls; a call that
//! Gemini did not make gets the placeholder that skips the validation.

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
