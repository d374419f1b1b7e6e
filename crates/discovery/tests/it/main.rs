//! Sources against real files and sockets.
#![expect(clippy::unwrap_used, reason = "tests, and what they are made of")]

mod bad_answers;
mod choice;
mod gateway;
mod kept;
mod logs;
mod manifest;
mod registry;
mod running;
mod support;
