//! Provider-independent events of a model's streamed response.

use crate::{ModelFault, Reply, Usage};

/// A complete step of a ReACT reply. Actions are tool calls and have events of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReactStep {
    Thought(String),
    Answer(String),
    /// The observation for a reply that has neither an action nor an answer.
    Problem(String),
}

/// One event of a response stream. Every stream ends with exactly one [`ModelEvent::Finished`] or
/// [`ModelEvent::Failed`], and no event follows it.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// More text of the answer.
    Text(String),
    /// More text of the model's thinking.
    Thinking(String),
    /// A tool call begins. This event is for display; the complete call is in the reply.
    CallBegun {
        /// Position of the call in the reply, counted from 0.
        index: usize,
        name: String,
    },
    /// More of the arguments of a call, for display.
    CallArguments { index: usize, delta: String },
    /// A step of a ReACT reply is complete. Its text came before in [`ModelEvent::Thinking`] or [`ModelEvent::Text`].
    Step(ReactStep),
    /// Token usage so far; a later event replaces an earlier one.
    Usage(Usage),
    /// The complete reply. The ids of its calls are empty: [`crate::Turn`] assigns them.
    Finished(Box<Reply>),
    /// The request failed; there is no reply.
    Failed(Box<ModelFault>),
}
