//! Converts between stored conversations and the wire formats of the model providers. Pure: sending and receiving
//! happens elsewhere.
//!
//! [`request`] builds an HTTP request, [`Parser`] turns the bytes of a response stream, in chunks of any size, into
//! [`switchboard_chat::ModelEvent`]s, and [`fault`] parses an error response. Each wire format has its own module,
//! which alone knows the rules of its providers.

mod accumulator;
mod anthropic;
mod borrowed;
mod call_ids;
mod demo;
mod dispatch;
#[cfg(test)]
mod dispatch_tests;
mod gemini;
mod model_list;
mod model_request;
mod name;
#[cfg(test)]
mod official;
mod openai;
mod parser;
mod react;
mod refusal;
mod restored_arguments;
mod retry_after;
#[cfg(test)]
mod samples;
mod scan;
mod secrets;
mod sse;
mod tool_results;
#[cfg(test)]
mod tool_results_tests;

use switchboard_chat::{ModelFault, Source};
use switchboard_model::ProviderKind;

pub use demo::{Beat, demo};
pub use dispatch::{fault, request};
pub use model_list::{ListedModel, models, models_path};
pub use model_request::{Answer, ModelRequest, ToolChange, Tools, WireRequest};
pub use parser::{Limits, Parser};
pub use react::{REACT_STOP, ReactReader, react_messages, refuses_stop, refuses_tools};
pub use restored_arguments::restore_arguments;
pub use sse::{SseDecoder, TooLarge};

/// Whether the model binds its encrypted thinking to everything before it. If an earlier message changes, the thinking
/// must not be sent back.
pub fn binds_thoughts(source: &Source) -> bool {
    source.kind == ProviderKind::Anthropic && anthropic::binds_thoughts(&source.model)
}

/// Whether the model accepts changes of its tools within the conversation.
pub fn takes_tool_changes(source: &Source) -> bool {
    source.kind == ProviderKind::Anthropic && anthropic::takes_tool_changes(&source.model)
}

/// Whether a Gemini backend rejected the request because of the newer schema field of tools, so that the request can be
/// repeated with the older one.
pub fn refuses_json_schema(source: &Source, fault: &ModelFault) -> bool {
    matches!(source.kind, ProviderKind::Gemini | ProviderKind::CodeAssist)
        && gemini::refuses_json_schema(fault)
}
