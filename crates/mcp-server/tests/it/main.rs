//! Tests of the gateway without sockets: clients that read arbitrarily slowly, and simulated time.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod access;
mod accounts;
mod agents;
mod call_records;
mod coming_back;
mod content_checks;
mod exactness;
mod limits;
mod own_connections;
mod patience;
mod queued;
mod quiet_calls;
mod relisting;
mod reloads;
mod slow_readers;
mod starting;
mod support;
mod unknown_tools;
mod whose;
mod wishes;
