//! The OpenAI formats: Responses, with a key or with a ChatGPT account, and Chat Completions, which many other servers
//! support too.
//!
//! Code that both formats share (tool results, errors) has files of its own; the rest is one file per direction and
//! format.

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
