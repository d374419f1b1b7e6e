//! `chat` with and without an instance, in a terminal and in a pipe, interrupted and disconnected.
#![expect(clippy::unwrap_used, reason = "tests, and what they are made of")]

mod answers;
mod conversations;
mod interrupted;
mod late_servers;
mod lost;
mod program;

use switchboard_test_program::support;
