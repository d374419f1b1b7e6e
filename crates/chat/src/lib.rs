//! Conversations as they are kept: the only truth about what was said, in no provider's words.
//!
//! A [`Message`] is what a person said, what a model answered ([`Reply`]) or what came of one of its calls
//! ([`ToolReturn`]). What a provider is sent is made from these for one request and never stored; what only a provider
//! understands (sealed thoughts, signatures) is kept beside it and goes back to the same [`Source`] only.
//!
//! [`ModelEvent`] is what a provider says while it answers, [`ModelFault`] why it did not.

mod event;
mod fault;
mod message;

pub use event::ModelEvent;
pub use fault::{Blame, FaultKind, ModelFault};
pub use message::{
    Block, CallOrigin, Media, Message, Part, Place, Reply, Said, Source, Stop, ToolCall,
    ToolReturn, Usage,
};
