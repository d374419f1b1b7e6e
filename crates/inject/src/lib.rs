//! Injection: an app that speaks the API of a model provider gets the tools of a session.
//!
//! [`Injection`] takes an app's request, adds the session's tools, sends it to the provider, runs the calls of the session's
//! tools, and asks again until the model has answered. The app sees one answer in the format of its own API.
//! `switchboard-splice` decides what is sent and what the app sees; this crate performs it: it chooses the provider, sends
//! requests, calls tools, repeats what failed, and keeps hidden rounds before an answer ends.

mod answer_stream;
mod app_request;
mod app_turn;
mod demo_answer;
mod failure;
mod injection;
mod model_check;
mod passed_through;
mod provider_choice;
mod repeated_requests;
mod round;
mod route;
mod session_calls;
mod stored_answers;
mod translated_answer;
mod turn_log;
mod turn_records;

pub use answer_stream::AnswerStream;
pub use app_request::{AppCall, AppCredential};
pub use failure::Failure;
pub use injection::{AnswerBody, AppAnswer, Injection};
pub use route::{ApiFamily, AppRoute, Operation};
pub use turn_log::{AppTurnState, AppTurnSummary};
