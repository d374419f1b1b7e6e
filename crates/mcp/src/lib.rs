//! Upstream MCP servers: reaching them, listing their tools, calling them. The only crate that names `rmcp`.
//!
//! rmcp owns the protocol: framing, sessions, version negotiation, subscriptions. What stands here beside it
//! is what rmcp leaves open: which era to speak (`probe`), bounded bodies (`http_client`), the HTTP+SSE
//! transport that it no longer has (`sse`), children that cannot outlive us (`stdio`, `guard`), and
//! listings that cannot run away (`listing`).

mod bounds;
mod call;
mod connection;
pub mod demo;
mod error;
mod guard;
mod handler;
mod http_client;
mod listing;
mod probe;
mod sse;
mod stdio;

pub use bounds::{MAX_LIST_PAGES, MAX_MESSAGE_BYTES, MAX_TOOLS_PER_SERVER};
pub use call::{CallFailure, Progress};
pub use connection::{ConnectOptions, Connection, ServerInfo};
pub use error::{ConnectError, ConnectErrorKind};
pub use guard::run_guard;
pub use http_client::HttpPool;
