//! HTTP to what runs on this machine: MCP servers and models of one's own.

mod answer;
mod line;
mod lines;

pub use answer::Head;
pub use lines::{LONGEST_CONNECT, LineError, LineRequest, Lines, Repeat, Rest, Stage, target};
