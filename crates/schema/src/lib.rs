//! JSON Schema of tools: checking a call before it is sent, laying declared arguments over a server's schema, and the
//! schemas that lists show.

mod arguments;
mod check;
mod complexity;
mod convertible;
mod json_kind;
mod listed;

pub use arguments::declare_arguments;
pub use check::{ArgumentChecker, Complaint, MAX_CHECKED_SCHEMA_BYTES, SchemaFault};
pub use json_kind::kind_of;
pub use listed::prepare_for_lists;
