//! The client against real sockets.
#![expect(clippy::unwrap_used, reason = "a test program")]

mod chat_history;
mod gateway;
mod manifest;
mod official;
mod recorder;
mod token_isolation;
