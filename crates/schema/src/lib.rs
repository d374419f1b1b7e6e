//! JSON Schema for tool arguments: checking a call before it is sent, and laying declared arguments over a
//! server's schema.

mod arguments;
mod check;
mod entangled;

pub use arguments::declare_arguments;
pub use check::{ArgumentChecker, Complaint, MAX_CHECKED_SCHEMA_BYTES, SchemaFault};
