//! The official conformance suite against the built program: as a server with our fixture behind it, and as
//! a client of the suite's own servers.
//!
//! The suite itself is given no list of expected failures, and what it only warns about counts as a failure, too. What
//! cannot pass is in a table of the module, with a reason beside it. It is run all the same: when it passes or
//! is gone from the suite, the test fails until the table says so.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests, and what they are made of")]

mod client_mode;
mod server_mode;
mod suite;

use switchboard_test_program::{fixture, support};
