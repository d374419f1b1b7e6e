//! The MCP face of the board: sessions, streams, bridges between the eras, meta-tools.
//!
//! One endpoint serves both eras. [`Gateway`] knows no sockets: [`Gateway::post`], [`Gateway::get`] and
//! [`Gateway::delete`] take what a transport has read and give back what it should write, and
//! [`Gateway::serve_lines`] does the same for standard input and output.

mod body;
mod client;
mod connection_config;
mod gateway;
mod http_answer;
mod http_endpoint;
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
mod session_era;
mod session_events;
mod startup;
mod state_signer;
mod stateless_era;
mod stdio;
mod upstream_exchange;

pub use body::{BodyChunk, GatewayBody};
pub use gateway::Gateway;
pub use http_endpoint::{HttpRequest, Route};
pub use lines::{BadLine, LineReader, WAITING_LINES, write_lines};
