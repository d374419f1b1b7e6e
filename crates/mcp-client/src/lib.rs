//! Upstream MCP servers: reaching them, listing their tools, calling them. The only crate that names `rmcp`.
//!
//! rmcp owns the handshake, sessions, version negotiation, subscriptions. Requests on behalf of callers go past
//! its types, as raw JSON: over HTTP by `http_wire`, over a child's streams and HTTP+SSE through a tap (`lines`,
//! `sse`). The `desk` knows who waits for what and whose a server's question is. The rest is what rmcp leaves
//! open: which era to speak (`probe`, `stdio_handshake`), bounded bodies (`http_client`), the HTTP+SSE transport that it no longer
//! has (`sse`), who signs in and which token a request carries (`oauth`), children that cannot outlive us (`stdio`, `guard`), and listings that cannot run away
//! (`listing`), where a server may be that the configuration does not name (`egress`), and what of its words is not
//! told (`redactor`).

mod bearer;
mod bounds;
mod connect;
mod connect_progress;
mod connection;
mod egress;
mod envelope;
mod error;
mod events;
mod flow_limit;
mod guard;
mod handler;
mod http_client;
mod http_faults;
mod http_pool;
mod http_sender;
mod http_transport;
mod listing;
mod oauth;
mod pending_requests;
mod probe;
mod redaction;
mod request;
mod request_ids;
mod secret_forms;
mod sse;
mod stdio;
mod stdio_handshake;
mod stdio_messages;
mod subscriptions;

pub use bounds::{ListBounds, MAX_LIST_PAGES, MAX_MESSAGE_BYTES, MAX_TOOLS_PER_SERVER};
pub use connect_progress::ConnectProgress;
pub use connection::{ConnectOptions, Connection, ConnectionClient, ServerInfo};
pub use error::{ConnectError, ConnectErrorKind};
pub use events::{Activity, EventReceiver, EventSender, event_channel};
pub use guard::run_guard;
pub use http_pool::HttpPool;
pub use oauth::{Kept, Renewal, SignIn, SignInState, SignIns, SignedIn, TokenStore};
pub use request::{
    Features, Listed, ListedEntries, RawResult, RequestFailure, RpcError, UpstreamEvent,
    UpstreamNews, UpstreamRequest,
};
pub use stdio_handshake::ProbeTimes;
