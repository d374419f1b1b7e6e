//! Anthropic Messages.

mod block;
mod cache_marks;
mod identity;
mod request;
mod stream;
mod tool_result;
mod usage;

pub(crate) use request::MessagesRequest;
pub(crate) use stream::MessagesSplicer;
