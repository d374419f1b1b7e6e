//! The board over HTTP: health, metrics, a JSON API and a page for people.

mod answers;
mod calls;
mod connections;
#[cfg(test)]
mod connections_tests;
mod cross_origin;
mod doorman;
mod extract;
mod faces;
mod health;
mod history;
mod host_policy;
mod if_woken;
mod inspect;
mod leases;
mod mcp;
mod openapi;
mod openapi_unions;
mod page;
pub mod present;
pub mod present_sessions;
mod problem;
mod providers;
mod ready;
mod request_body;
mod same_host;
mod self_waking;
mod server;
pub mod session_call;
mod session_events;
mod session_render;
mod session_tools;
mod sessions;
mod turns;

pub use openapi::openapi_text;
pub use ready::BoardPlace;
pub use same_host::Doors;
pub use server::{ServeOptions, is_loopback, serve};
