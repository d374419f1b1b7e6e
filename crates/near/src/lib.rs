//! HTTP to what runs on this machine: MCP servers and models of one's own.

mod lines;

pub use lines::{LONGEST_CONNECT, LineError, Lines, Rest, Stage, target};
