//! Connections to real sockets and real children, most of which misbehave.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests, and what they are made of")]

mod bearer_file;
mod calls;
mod changes;
mod egress;
mod exchange;
mod guarded;
mod http_eras;
mod http_faults;
mod oauth;
mod slow_start;
mod stdio;
mod support;
mod talker;
mod typed_call;
