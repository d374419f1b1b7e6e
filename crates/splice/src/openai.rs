//! What Chat Completions and Responses have in common.

mod calls;
mod stream_error;
mod tools;
mod usage;

pub(crate) use calls::{not_shown, readable_arguments, result_text, url};
pub(crate) use stream_error::stream_error;
pub(crate) use tools::{is_forced, tool_names};
pub(crate) use usage::add_usage;
