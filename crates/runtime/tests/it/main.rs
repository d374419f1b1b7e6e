//! The board as its faces see it, against scripted servers on real sockets.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod attached;
mod call_records;
mod caller_headers;
mod calls;
mod children;
mod content_checks;
mod declared_arguments;
mod discovery;
mod edits;
mod floods;
mod further_connections;
mod lent_slots;
mod lent_slots_processes;
mod limits;
mod live;
mod logs;
mod many;
mod memory;
mod reconnect;
mod reload;
mod renewal_processes;
mod shutdown;
mod start;
mod support;
mod timeouts;
mod watch;
