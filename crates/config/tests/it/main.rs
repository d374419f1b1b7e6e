//! Tests of the crate's public interface.

mod accounts;
mod agents;
mod arguments;
mod bad_input;
mod caller_headers;
mod defaults;
mod discovery;
mod effective;
mod environment;
mod gateway;
mod grants;
mod import;
mod keyring;
mod properties;
mod providers;
mod records;
mod secrets;
mod seed;
mod store;
mod support;
mod threat_protection;
mod tls;
mod warnings;
