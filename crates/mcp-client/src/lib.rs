//! Connections to upstream MCP servers: connecting, listing tools, calling them.
//!
//! rmcp performs the handshake and version negotiation and owns sessions and subscriptions. Requests of callers bypass
//! its types, as raw JSON: over HTTP in `http_transport`; over a child's streams in `stdio_messages` and over HTTP+SSE
//! in `sse`, which separate callers' messages from rmcp's. `exchange` chooses between them; `pending_requests` matches responses with requests and
//! attributes the server's own requests to callers.
//!
//! The other modules do what rmcp does not: choosing the era (`probe`, `stdio_handshake`), bounding bodies
//! (`http_client`), the HTTP+SSE transport of 2024-11-05 (`sse`), ending child processes reliably (`stdio`, `guard`)
//! and bounding listings (`listing`). OAuth tokens come from `switchboard-oauth`; HTTP clients, the egress check and the
//! redaction of secrets from `switchboard-outbound`.

mod bearer;
mod bounds;
mod challenge_request;
mod connect;
mod connect_progress;
mod connection;
mod envelope;
mod events;
mod exchange;
mod flow_limit;
mod guard;
mod handler;
mod http_client;
mod http_faults;
mod http_sender;
mod http_transport;
mod listing;
mod message_sink;
mod pending_requests;
mod probe;
mod process_error;
mod request;
mod request_ids;
mod sse;
mod stdio;
mod stdio_handshake;
mod stdio_messages;
mod subscriptions;
mod upstream_session;

pub use bounds::{ListBounds, MAX_LIST_PAGES, MAX_MESSAGE_BYTES, MAX_TOOLS_PER_SERVER};
pub use challenge_request::challenge_request;
pub use connect_progress::ConnectProgress;
pub use connection::{ConnectOptions, Connection, ConnectionClient, ServerInfo};
pub use events::{Activity, EventReceiver, EventSender, event_channel};
pub use guard::run_guard;
pub use request::{
    CallerHeaders, Features, Listed, ListedEntries, RawResult, RequestFailure, RpcError,
    UpstreamEvent, UpstreamNews, UpstreamRequest,
};
pub use stdio_handshake::ProbeTimes;
