//! The HTTP server in this process: real sockets, sessions and databases, scripted MCP servers, and the demo model.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by ending")]

mod accounts;
mod agents;
mod api_server;
mod board_events;
mod call_records;
mod call_streams;
mod config;
mod content_checks;
mod declarations;
mod dispatch;
mod event_reader;
mod failed_calls;
mod foreign_hosts;
mod keys;
mod limits;
mod me;
mod owners;
mod problems;
mod provider_accounts;
mod readiness;
mod recording_mcp;
mod redirected_values;
mod renderings;
mod roles;
mod server_entries;
mod session_choices;
mod session_events;
mod session_revisions;
mod sources;
mod store_outages;
mod trustgraph_socket;
mod turn_events;
mod turns;
