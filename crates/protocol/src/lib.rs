//! MCP messages of both protocol eras as borrowed JSON: parsing, validation, serialisation.
//!
//! Pure: no network, no clock, no sessions. A message is split into its members, each kept as JSON text; a member is
//! parsed only when its value is needed, and forwarded members keep their bytes.

mod client_info;
pub mod code;
mod depth;
mod era;
mod input_required;
mod listed_entry;
mod members;
mod message;
mod meta;
mod mirror;
mod modern;
mod result;
mod unique;
mod write;

pub use client_info::read_client_info;
pub use depth::{MAX_DEPTH, is_too_deep};
pub use era::{
    EraClaim, LATEST_LEGACY, LEGACY_VERSIONS, MODERN_VERSION, SUPPORTED_VERSIONS, claim,
    negotiate_legacy,
};
pub use input_required::needs_stateless_era;
pub use listed_entry::{
    CheckedEntry, EntryKind, check_entry, repair_tool_annotations, repair_tool_members,
};
pub use members::Members;
pub use message::{RpcMessage, Unreadable, is_valid_id, read_message};
pub use meta::{
    Capabilities, Elicitation, Meta, MetaFault, Need, TASKS_EXTENSION, foreign_members,
    without_tasks,
};
pub use mirror::{Mirrors, decode_header, encode_header};
pub use modern::{
    Headers, ModernFault, check_headers, check_notification, check_version, name_member,
};
pub use result::{
    ResultContent, ResultHead, ResultKind, read_result_head, with_members, without_member,
};
pub use unique::read_unique;
pub use write::{
    ErrorBody, error_response, notification, params_text, push_string, quoted, request, response,
    response_frame,
};
