//! Turns in the built program, between real MCP servers and model backends that check every request. After each turn no
//! backend has found a violation, and the stored conversation is valid.
#![expect(clippy::unwrap_used, reason = "tests, and what they are made of")]

mod app;
mod apps;
mod bad_input;
mod calls;
mod injection;
mod lab;
mod official;
mod overlays;
mod prompt_cache;
mod react;
mod restarts;
mod switching;
mod talk;
mod thinking;
mod tool_arguments;

use switchboard_test_program::{chat, events, peer, support};
