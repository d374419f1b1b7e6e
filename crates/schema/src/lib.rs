//! JSON Schema of tools: checking arguments before a call is sent, applying declared arguments to a server's schema,
//! and preparing schemas for `tools/list`.

mod arguments;
mod check;
mod complexity;
mod convertible;
mod declaration;
mod json_kind;
mod listed;

pub use arguments::declare_arguments;
pub use check::{ArgumentChecker, Complaint, MAX_CHECKED_SCHEMA_BYTES, SchemaFault};
pub use declaration::{DeclarationFault, check_declaration};
pub use json_kind::kind_of;
pub use listed::prepare_for_lists;
