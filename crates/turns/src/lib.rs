//! Turns: a session chats with a model, and the model calls the session's tools.
//!
//! [`Turns`] begins them, at most one per session at a time. Each turn runs independently of its listeners: its events
//! are recorded in its [`LiveTurn`], where they can be read from any position. The state machine of `switchboard-chat`
//! decides the next action; this crate performs it: it sends model requests, calls tools and stores messages.

mod calling;
mod checked_history;
mod conversation;
mod driver;
mod error;
mod live;
mod model_check;
mod new_turn;
mod observation;
mod prompt_tools;
mod prompt_turn;
mod react_prompt;
mod stop_sequence;
mod tool_epoch;
mod turn_problem;
mod turn_view;
mod turns;
mod words;

pub use error::TurnError;
pub use live::{LiveTurn, Recorded, TurnEnd, TurnRequest};
pub use new_turn::NewTurn;
pub use prompt_tools::PromptTools;
pub use turn_view::{TurnList, TurnStreamEvent, TurnView};
pub use turns::{TurnNotice, Turns};
pub use words::Words;
