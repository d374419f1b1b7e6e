//! Fakes of the model backends on one loopback port: `OpenAI` Responses (API key and ChatGPT), Chat Completions,
//! Anthropic Messages, Gemini and Code Assist.
//!
//! They are written from the vendors' documentation and from the requests of real clients, not from our converters, so
//! that a mistake in a converter is not repeated here. Every request is checked as the real backend checks it. A
//! violation is answered with that provider's error, and recorded for [`FakeBackends::violations`].
//!
//! Responses come from a script of [`Step`]s; without one, from the conversation: the lines `call NAME {json}` and
//! `think TEXT` of the last user text, `results: a | b` after results, and `echo: TEXT` otherwise.
//!
//! [`DrivenModel`] is for running whole agent programs: the test itself is the model, and nothing is checked.

mod account;
mod anthropic_check;
mod anthropic_events;
mod anthropic_model;
mod backend;
mod chat_check;
mod chat_events;
mod code_assist;
mod driven;
mod findings;
mod gemini_check;
mod gemini_events;
mod gemini_schema;
mod heard;
mod offered;
mod openai_tools;
mod rehearse;
mod responses_check;
mod responses_events;
mod script;
mod seal;
mod server;
mod service;
mod stamp;
mod state;
mod step;
mod stream;
#[cfg(test)]
mod tests;

pub use account::{Account, SECRET};
pub use backend::Backend;
pub use driven::{DrivenModel, ModelTurn};
pub use findings::Violation;
pub use offered::ToolOutcome;
pub use rehearse::{stream_of, violations_of};
pub use script::{Script, ScriptError};
pub use server::FakeBackends;
pub use stamp::{STAMP, nanoseconds, stamps};
pub use state::ModelRequest;
pub use step::{Quirk, Step, Usage};
