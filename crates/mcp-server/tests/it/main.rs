//! The gateway without sockets before it: clients that read as slowly as they like, and hours that pass at once.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod call_records;
mod coming_back;
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
