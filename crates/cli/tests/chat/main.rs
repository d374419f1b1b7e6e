//! `chat` as people and scripts use it: without an instance and at one, typed into and piped, interrupted and cut off.
#![expect(clippy::unwrap_used, reason = "tests, and what they are made of")]

mod answers;
mod conversations;
mod interrupted;
mod lost;
mod program;

use switchboard_test_program::support;
