//! The gateway as MCP clients of both eras meet it: toolsets that really switch, narrowing, notifications, and
//! sessions that outlive the process (seed 003).
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests, and what they are made of")]

mod bad_arguments;
mod batches;
mod board;
mod bridge;
mod changes;
mod continuity;
#[path = "../conformance/fixture.rs"]
mod fixture;
mod hearing;
mod instructions;
mod lines;
mod modern;
mod modes;
mod names;
mod narrowing;
mod peer;
mod pipe;
#[path = "../it/support.rs"]
#[allow(dead_code, unused_macros, unused_imports, reason = "shared with the other tests")]
mod support;
mod switching;
