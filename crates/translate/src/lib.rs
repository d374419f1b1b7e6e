//! Requests of one provider's API, answered by a provider of another kind.
//!
//! [`TranslatedRequest`] reads the body of a request into a conversation of no provider, which `switchboard-wire` can send to
//! every provider. [`AnswerWriter`] turns the model's events into the stream that the app's API has, or into its whole answer.
//! What the other provider cannot do is refused by name, never dropped silently.
//!
//! | API | request | answer |
//! |---|---|---|
//! | OpenAI Chat Completions | `chat/request.rs` | `chat/answer.rs` |
//! | OpenAI Responses | `responses/request.rs` | `responses/answer.rs` |
//! | Anthropic Messages | `messages/request.rs` | `messages/answer.rs` |
//! | Gemini | `gemini/request.rs` | `gemini/answer.rs` |
//!
//! Pure: no network, no clock, no randomness.

mod answer;
mod chat;
mod content;
mod conversation;
mod gemini;
mod members;
mod messages;
mod request;
mod responses;
mod sealed_reply;
#[cfg(test)]
mod test_requests;
mod tools;

pub use answer::{AnswerOptions, AnswerWriter};
pub use request::TranslatedRequest;
