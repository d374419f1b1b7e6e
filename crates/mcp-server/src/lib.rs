//! The MCP server side: serves the board's tools, prompts and resources to MCP clients of both protocol eras.
//!
//! One endpoint serves the session era (up to 2025-11-25) and the stateless era (from 2026-07-28). [`Gateway`] has no
//! sockets: [`Gateway::post`], [`Gateway::get`] and [`Gateway::delete`] take a request that a transport has read and
//! return the response to write; [`Gateway::serve_lines`] serves a pair of pipes such as standard input and output.

mod agent_endpoint;
mod body;
mod client;
mod connection_config;
mod follow_clients;
mod gateway;
mod http_answer;
mod http_endpoint;
mod http_request;
mod http_response;
mod http_scope;
mod instructions;
mod lines;
mod list_changed;
mod listener;
mod log_level;
mod meta_calls;
mod methods;
mod outcome;
mod pending_input;
mod refused_calls;
mod relist;
mod request_context;
mod scope_values;
mod session_era;
mod session_events;
mod startup;
mod state_signer;
mod stateless_era;
mod stdio;
mod stored_client;
mod upstream_exchange;

pub use body::{BodyChunk, GatewayBody};
pub use gateway::Gateway;
pub use http_request::{HttpRequest, Route};
pub use lines::{BadLine, LineReader, WAITING_LINES, write_lines};
