//! OpenAI: Responses, with a key or behind a ChatGPT account, and Chat Completions, which many other servers speak too.
//!
//! What both formats share (results of calls, faults) has a file of its own; the rest is
//! one file for each direction of each format.

mod chat_request;
mod chat_stream;
mod content;
mod faults;
#[cfg(test)]
mod request_tests;
mod responses_request;
mod responses_stream;
#[cfg(test)]
mod stream_tests;

pub(crate) use chat_request::chat_request;
pub(crate) use chat_stream::ChatWire;
pub(crate) use faults::fault;
pub(crate) use responses_request::responses_request;
pub(crate) use responses_stream::ResponsesWire;
