//! Turns: a session chats with a model, and the model calls the session's tools.
//!
//! [`Turns`] begins them, at most one for a session at a time. Each runs by itself, whoever listens: what happens is
//! written down in its [`LiveTurn`], where anybody may read it from any event on. What is to be done next the pure machine
//! of `switchboard-chat` says; this crate does it: asks providers, calls tools, keeps messages.

mod calling;
mod conversation;
mod driver;
mod error;
mod live;
mod new_turn;
mod tool_epoch;
mod turn_view;
mod turns;

pub use error::TurnError;
pub use live::{LiveTurn, Recorded, TurnEnd};
pub use new_turn::{NewTurn, Words};
pub use turn_view::{TurnList, TurnStreamEvent, TurnView};
pub use turns::Turns;
