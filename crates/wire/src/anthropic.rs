//! The Anthropic Messages format.
//!
//! Newer models bind encrypted thinking to everything before it, so what was sent once is sent again byte for byte: the
//! initial tools stay, and changes of tools are separate messages.

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
