//! Conversations in the words of each provider: a canonical history becomes the body of a request, and the bytes of a
//! stream become canonical events. All of it is pure; who sends and reads the bytes is elsewhere.
//!
//! [`request`] makes what is sent, [`Parser`] reads what comes back, in pieces of any size, and [`fault`] reads an answer
//! that is no stream. One module for each wire format knows what its providers want; nobody else does.

mod accumulator;
mod anthropic;
mod attachment;
mod borrowed;
mod call_ids;
mod demo;
mod dispatch;
#[cfg(test)]
mod dispatch_tests;
mod gemini;
mod model_request;
mod name;
#[cfg(test)]
mod official;
mod openai;
mod outcome;
mod parser;
mod refusal;
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
pub use model_request::{Answer, ModelRequest, ToolChange, Tools, WireRequest};
pub use parser::{Limits, Parser};

/// Whether this model seals its thoughts to all that stands before them: whoever changes that must not give them back.
pub fn binds_thoughts(source: &Source) -> bool {
    source.kind == ProviderKind::Anthropic && anthropic::binds_thoughts(&source.model)
}

/// Whether this model takes changes of its tools within the conversation.
pub fn takes_tool_changes(source: &Source) -> bool {
    source.kind == ProviderKind::Anthropic && anthropic::takes_tool_changes(&source.model)
}

/// Whether a backend of Gemini refused a request because of the newer field for what a tool takes, so that the same
/// request with the older one may be taken.
pub fn refuses_json_schema(source: &Source, fault: &ModelFault) -> bool {
    matches!(source.kind, ProviderKind::Gemini | ProviderKind::CodeAssist)
        && gemini::refuses_json_schema(fault)
}
