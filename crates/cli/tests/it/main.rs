//! The built program, as its users run it.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests, and what they are made of")]

mod auth;
mod bad_input;
mod commands;
mod connect;
mod exposure;
mod http;
mod key;
mod load;
mod output;
mod peers;
mod seed;
mod serve;
#[allow(dead_code, reason = "shared with the other tests")]
mod support;
mod telemetry;
