//! Adds the tools of a session to the requests of an app, and joins several answers of a model into one.
//!
//! An app sends a request in the format of its provider. [`AppRequest`] reads it, [`InjectedTurn`] declares the session's
//! tools in it, and for each answer of the model says which calls run here. The answers of all rounds become one stream, or
//! one body, that the provider's own SDK accepts. Everything that Switchboard does not know passes unchanged.
//!
//! | API | request | stream |
//! |---|---|---|
//! | OpenAI Responses | `responses/request.rs` | `responses/stream.rs` |
//! | OpenAI Chat Completions | `chat/request.rs` | `chat/stream.rs` |
//! | Anthropic Messages | `messages/request.rs` | `messages/stream.rs` |
//! | Gemini | `gemini/request.rs` | `gemini/stream.rs` |
//!
//! Pure: no network, no clock, no randomness. Ids are made from a seed that the caller gives.

mod api;
mod app_request;
mod chat;
mod conversation_text;
mod dispatch;
mod frames;
mod gemini;
mod messages;
mod minted_ids;
mod openai;
mod provider_answer;
mod put_back;
mod raw_json;
mod refusal;
mod request_format;
mod responses;
mod session_tools;
mod splicer;
mod turn;

pub use api::Api;
pub use app_request::{AppRequest, RequestFacts, RequestTarget, with_model};
pub use conversation_text::{ConversationText, TextAuthor};
pub use provider_answer::{AnswerPart, ProviderAnswer};
pub use put_back::{RecordKey, TurnRecord};
pub use refusal::{Refusal, RefusalKind};
pub use session_tools::{LeftOut, SessionTools};
pub use turn::{InjectedTurn, NextStep, SessionCall, TurnOptions};
