//! What a provider says while it answers, in no provider's words.

use crate::{ModelFault, Reply, Usage};

/// One thing that a stream brought. Every stream ends with exactly one [`ModelEvent::Finished`] or
/// [`ModelEvent::Failed`], and nothing comes after it.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// More text of the answer.
    Text(String),
    /// More of what the model thinks.
    Thinking(String),
    /// A call begins. It is complete only in the reply; this is for who watches.
    CallBegun {
        /// Which call of the reply it is, counted from 0.
        index: usize,
        name: String,
    },
    /// More of the arguments of a call, for who watches.
    CallArguments { index: usize, delta: String },
    /// What it costs so far; a later one replaces an earlier one.
    Usage(Usage),
    /// The whole answer. The ids of its calls are empty: who keeps it gives them.
    Finished(Box<Reply>),
    /// There is no answer, and why.
    Failed(Box<ModelFault>),
}
