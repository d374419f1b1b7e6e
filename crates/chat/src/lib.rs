//! Provider-independent conversations and the state machine of a turn. Pure: no network, no clock, no storage.
//!
//! A [`Message`] is a user's or system message, a model's answer ([`Reply`]) or the result of a tool call
//! ([`ToolReturn`]). These are what is stored. Provider requests are derived from them for each request and never
//! stored. Opaque provider data (encrypted thinking, signatures) is kept with the reply and sent back to the same
//! [`Source`] only.
//!
//! [`History`] is a whole, valid conversation, [`Overlay`] a set of edits that applies to one turn's requests only, and
//! [`Turn`] the state machine that continues a conversation: it takes inputs and returns actions.
//!
//! [`attachment`] and [`pieces`] say which parts of a message or result a provider can read.
//!
//! [`ModelEvent`] is an event of a model's streamed response, [`ModelFault`] the error of a failed request.

pub mod attachment;
mod event;
mod fault;
mod history;
mod history_v1;
mod message;
mod outcome;
mod overlay;
mod result_pieces;
mod retry;
mod turn;
mod turn_event;

pub use event::{ModelEvent, ReactStep};
pub use fault::{Blame, FaultKind, ModelFault};
pub use history::{Broken, HISTORY_VERSION, History, HistoryError, answer_dangling, check};
pub use message::{
    Block, CallOrigin, Media, Message, Part, Place, Reply, Said, Source, Stop, ToolCall,
    ToolReturn, Usage,
};
pub use outcome::read_arguments;
pub use overlay::{Edit, Overlay, OverlayError};
pub use result_pieces::pieces;
pub use retry::wait_before_next;
pub use turn::{Action, Turn, TurnInput, TurnLimits};
pub use turn_event::{TurnEvent, TurnProblem, TurnStatus};
