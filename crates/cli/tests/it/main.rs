//! Tests of the built program from the command line.
#![expect(clippy::unwrap_used, reason = "tests, and what they are made of")]

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
mod telemetry;

use switchboard_test_program::support;
