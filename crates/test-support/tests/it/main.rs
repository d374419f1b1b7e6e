//! The scripted peers behave as their scripts say, seen from the other end of the socket or pipe.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::needless_pass_by_value,
    reason = "tests, with JSON literals as arguments"
)]

mod calls;
mod client;
mod eras;
mod faults;
mod model_backends;
mod official;
mod stdio;
