//! The HTTP server: MCP endpoints, the JSON API, health, metrics, and the web pages.

mod answers;
mod authorize;
mod board_place;
mod calls;
mod connections;
#[cfg(test)]
mod connections_tests;
mod cross_origin;
mod current_host_policy;
mod dispatch;
mod extract;
mod health;
mod history;
mod inspect;
mod mcp;
mod openapi;
mod openapi_unions;
mod origin_check;
mod page;
pub mod present;
pub mod present_sessions;
mod problem;
mod providers;
mod ready;
mod request_body;
mod self_waking;
mod server;
mod server_state;
pub mod session_call;
mod session_events;
mod session_render;
mod session_tools;
mod sessions;
mod stream_auth;
mod turns;
mod wake_filter;

pub use board_place::BoardPlace;
pub use mcp::{BodyChunk, McpEndpoint, McpRequest, McpRoute};
pub use openapi::openapi_text;
pub use origin_check::HostPolicy;
pub use server::{is_loopback, serve};
pub use server_state::ServeOptions;
