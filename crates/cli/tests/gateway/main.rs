//! The gateway with MCP clients of both eras: switching toolsets, narrowing, notifications, and sessions that survive a
//! restart.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests, and what they are made of")]

mod bad_arguments;
mod batches;
mod bridge;
mod changes;
mod continuity;
mod instructions;
mod lines;
mod modern;
mod modes;
mod names;
mod narrowing;
mod pipe;
mod switching;

use switchboard_test_program::{board, fixture, hearing, peer, support};
