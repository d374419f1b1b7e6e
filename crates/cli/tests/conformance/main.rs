//! The official conformance suite against the built program: as a server with our fixture behind it, and as
//! a client of the suite's own servers.
//!
//! There is no list of expected failures. What the suite only warns about counts as a failure, too.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests, and what they are made of")]

mod client_mode;
mod fixture;
mod server_mode;
mod suite;
#[path = "../it/support.rs"]
#[allow(dead_code, unused_macros, unused_imports, reason = "shared with the other tests")]
mod support;
