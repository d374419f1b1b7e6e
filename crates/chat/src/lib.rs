//! Conversations as they are kept: the only truth about what was said, in no provider's words.
//!
//! A [`Message`] is what a person said, what a model answered ([`Reply`]) or what came of one of its calls
//! ([`ToolReturn`]). What a provider is sent is made from these for one request and never stored; what only a provider
//! understands (sealed thoughts, signatures) is kept beside it and goes back to the same [`Source`] only.
//!
//! [`History`] is a whole conversation, valid for every provider, [`Overlay`] what one request shows of it otherwise, and
//! [`Turn`] how it goes on: it is told what happened and says what is to be done.
//!
//! [`ModelEvent`] is what a provider says while it answers, [`ModelFault`] why it did not.

mod event;
mod fault;
mod history;
mod message;
mod outcome;
mod overlay;
mod retry;
mod seed;
mod turn;
mod turn_event;

pub use event::ModelEvent;
pub use fault::{Blame, FaultKind, ModelFault};
pub use history::{Broken, HISTORY_VERSION, History, HistoryError, answer_dangling, check};
pub use message::{
    Block, CallOrigin, Media, Message, Part, Place, Reply, Said, Source, Stop, ToolCall,
    ToolReturn, Usage,
};
pub use outcome::read_arguments;
pub use overlay::{Edit, Overlay, OverlayError};
pub use turn::{Action, Turn, TurnInput, TurnLimits};
pub use turn_event::{TurnEvent, TurnProblem, TurnStatus};
