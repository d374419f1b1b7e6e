//! The shapes that the HTTP API and `--json` speak. Types only: who fills them and who reads them is elsewhere.

mod call;
mod problem;
mod server;
mod session;
mod tool;

pub use call::{CallBody, CallView, RecordList, RecordView};
pub use problem::{PROBLEM_TYPE_BASE, Problem};
pub use server::{Readiness, ServerList, ServerView};
pub use session::{NewSession, SessionList, SessionView, ToolsetList, ToolsetView};
pub use tool::{LimitsView, ToolList, ToolView};
