//! The MCP face of the board: sessions, streams, bridges between the eras, meta-tools.
//!
//! One endpoint serves both eras. [`Gateway`] knows no sockets: [`Gateway::post`], [`Gateway::get`] and
//! [`Gateway::delete`] take what a transport has read and give back what it should write, and
//! [`Gateway::serve_lines`] does the same for standard input and output.

mod asker;
mod body;
mod client;
mod connection_config;
mod conversation;
mod gateway;
mod http_answer;
mod http_face;
mod http_scope;
mod http_talk;
mod instructions;
mod legacy;
mod level;
mod line_face;
mod lines;
mod listener;
mod meta_calls;
mod methods;
mod modern;
mod outcome;
mod parked;
mod refused_calls;
mod relist;
mod seal;
mod seen_lists;
mod session_events;
mod startup;

pub use body::{GatewayBody, Piece};
pub use gateway::Gateway;
pub use http_face::{HttpRequest, Route};
pub use lines::{BadLine, Lines, WAITING_LINES, write_lines};
