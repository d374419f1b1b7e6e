//! ReACT turns: a conversation for models without native tool calls, and their text as events.
//!
//! [`react_messages`] replaces calls and results by text, and [`ReactReader`] finds the calls in the text of a reply. What
//! is stored is the same as for native tool calls, so a conversation can change its strategy with every request.

mod conversation;
mod reader;
mod stop_refused;
mod tools_refused;

pub use conversation::react_messages;
pub use reader::ReactReader;
pub use stop_refused::{REACT_STOP, refuses_stop};
pub use tools_refused::refuses_tools;
