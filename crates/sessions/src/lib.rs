//! Sessions: every chat and every MCP client has its own live, revisioned view of the tools.
//!
//! The MCP server, the HTTP API and turns use [`SessionService`]: it creates, changes and ends sessions, attaches servers,
//! computes views, runs calls and meta-tools, and follows the board's snapshots. [`Sessions`] is the table behind it. A
//! [`Session`] holds its selection of tools, its revision and its view ([`CachedView`](switchboard_runtime::CachedView)).
//! The revision increases by one when the tools of the session change, through a change of the session or of the catalog.

mod agents;
mod call_check;
mod calls;
mod change;
mod client_session;
mod error;
mod follow_store;
mod lifecycle;
mod meta_tools;
mod owner_access;
mod refused_calls;
mod service;
mod session;
mod session_clients;
mod session_notice;
mod session_rows;
mod session_writer;
mod sessions;
mod startup;
mod stored_sessions;
mod unknown_tools;
mod write_queue;

pub use agents::{Agent, AgentServer, AgentUser};
pub use call_check::Reached;
pub use calls::{SessionCall, SessionReply};
pub use change::Change;
pub use client_session::recorded_session_ids;
pub use error::SessionError;
pub use lifecycle::ATTACH_WAIT;
pub use meta_tools::{MetaCaller, MetaOutcome};
pub use service::{SessionObserver, SessionService};
pub use session::{About, Cause, Draft, OwnServer, Session, SessionKind, SessionState, Step};
pub use session_clients::{SessionClient, StatelessClients};
pub use session_notice::{SessionNotice, SessionStage};
pub use sessions::{Sessions, Summary, random_text};
pub use startup::StartFailed;
pub use stored_sessions::Compared;
pub use unknown_tools::{ApiTools, is_listed};
pub use write_queue::{Round, WriteQueue, now_ms};
