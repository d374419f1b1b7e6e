//! The MCP face of the board: sessions, streams, bridges between the eras, meta-tools.
//!
//! One endpoint serves both eras. [`Gateway`] knows no sockets: [`Gateway::post`], [`Gateway::get`] and
//! [`Gateway::delete`] take what a transport has read and give back what it should write, and
//! [`Gateway::serve_lines`] does the same for standard input and output.

mod asker;
mod body;
mod call_check;
mod client;
mod client_info;
mod connection_config;
mod conversation;
mod extras;
mod front;
mod gateway;
mod gaze;
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
mod relist;
mod seal;
mod server_sets;
mod session_calls;
mod session_care;
mod session_clients;
mod session_events;
mod startup;
mod unknown_tools;

pub use body::{GatewayBody, Piece};
pub use client_info::ClientInfo;
pub use front::unmatched_toolset_patterns;
pub use gateway::{ExposureRule, Gateway, GatewayError};
pub use http_face::{HttpRequest, Route};
pub use lines::{BadLine, Lines, WAITING_LINES, write_lines};
pub use session_calls::{SessionCall, SessionReply};
pub use session_care::ATTACH_WAIT;
pub use session_clients::SessionClient;
