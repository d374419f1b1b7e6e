//! Runs the built program in tests: a directory for each test, commands, a server with its HTTP API, and MCP clients of
//! both eras.
//!
//! Cargo builds the program only for the tests of `switchboard-cli`, so only those tests use this crate.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says so by ending"
)]
#![expect(missing_docs, reason = "for the tests of this workspace")]

pub mod accounts;
pub mod board;
pub mod chat;
pub mod events;
pub mod fixture;
pub mod hearing;
pub mod peer;
pub mod support;
