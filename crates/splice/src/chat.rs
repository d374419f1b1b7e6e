//! OpenAI Chat Completions.

mod call;
mod message;
mod request;
mod stream;

pub(crate) use request::ChatRequest;
pub(crate) use stream::ChatSplicer;
