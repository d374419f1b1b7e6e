//! The crate through its front door.

mod bad_input;
mod defaults;
mod effective;
mod environment;
mod gateway;
mod import;
mod properties;
mod providers;
mod secrets;
mod seed;
mod support;
mod warnings;
