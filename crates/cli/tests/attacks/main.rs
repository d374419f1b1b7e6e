//! Attacks on the gateway and faults around it, against the built program. Each test is named after its row in
//! `docs/security.md`: `a1` is a foreign host, `f5` a client that disconnects, and so on.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests, and what they are made of")]

mod a01_hosts;
mod a05_credentials;
mod a07_headers;
mod a08_sessions;
mod a09_proxy_headers;
mod a12_names;
mod a13_hidden;
mod a19_sizes;
mod a20_injection;
mod a21_caches;
mod a22_secret_scan;
mod client;
mod f1_upstreams;
mod f2_restarts;
mod f4_changes;
mod f5_clients;
mod f9_eras;
mod f9_tasks;
mod world;

use switchboard_test_program::{fixture, support};
