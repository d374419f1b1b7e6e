//! Tests of the built program from the command line.
#![expect(clippy::unwrap_used, reason = "tests, and what they are made of")]

mod agent;
mod auth;
mod auth_remote;
mod bad_input;
mod calls;
mod certificates;
mod config_show;
mod connect;
mod contradictions;
mod discover;
mod doctor;
mod exposure;
mod http;
mod import;
mod key;
mod keyring;
mod load;
mod manage;
mod monitoring;
mod output;
mod peers;
mod postgres;
mod secrets;
mod seed;
mod serve;
mod servers;
mod store;
mod telemetry;
mod tls;
mod tool;
mod toolset;

use switchboard_test_program::support;
