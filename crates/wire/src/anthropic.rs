//! Anthropic Messages.
//!
//! Thoughts are sealed to all that stands before them, so what was sent once is sent again byte for byte: the tools of the
//! beginning stay, and changes of them are messages of their own.

mod content;
mod fault;
mod model;
mod request;
#[cfg(test)]
mod request_tests;
mod stream;
#[cfg(test)]
mod stream_tests;
mod turns;

pub(crate) use fault::fault;
pub(crate) use model::{binds_thoughts, takes_tool_changes};
pub(crate) use request::request;
pub(crate) use stream::MessagesWire;
