//! The client against real sockets.

mod chat_history;
mod gateway;
mod manifest;
mod official;
mod recorder;
mod token_isolation;
