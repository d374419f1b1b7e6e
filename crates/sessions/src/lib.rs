//! Sessions: every chat and every MCP client has its own live, revisioned view of the tools.
//!
//! [`Stage`] is what there is to see, [`Session`] what one of them has chosen, [`Look`] what it sees then. A session
//! takes a step of its revision when its tools change, whether it was switched or a server changed its list. Who sees
//! the same shares one [`Look`] and everything that is made of it.

mod book;
mod change;
mod client_session;
mod error;
mod keeper;
mod kept;
mod session;
mod session_writer;
mod stage;

pub use book::{Sessions, Summary, random_text};
pub use change::Change;
pub use client_session::recorded_session_ids;
pub use error::SessionError;
pub use keeper::{Keeper, Round, now_ms};
pub use session::{About, Cause, Draft, Now, OwnServer, Session, SessionKind, Step};
pub use stage::{Look, Stage};
