//! Turns over the built program: real MCP servers on one side, model backends that check every request on the other, and
//! the API in between (issue 5). After each turn nobody has anything to complain of, and the stored conversation is valid.
#![expect(clippy::unwrap_used, reason = "tests, and what they are made of")]

mod apply_now;
mod bad_input;
mod calls;
mod face;
mod lab;
mod official;
mod overlays;
mod restarts;
mod switching;
mod talk;
mod thinking;
mod tool_changes;

use switchboard_test_program::{chat, events, support};
