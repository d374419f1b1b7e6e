//! Runs the built program in tests, as its users do: a directory of its own for each test, commands, a server that is
//! asked over HTTP, and MCP clients of both eras.
//!
//! Cargo builds the program for the tests of `switchboard-cli` only, so these are the tests that use this crate.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says so by ending"
)]
#![expect(missing_docs, reason = "for the tests of this workspace")]

pub mod board;
pub mod chat;
pub mod events;
pub mod fixture;
pub mod hearing;
pub mod peer;
pub mod support;
