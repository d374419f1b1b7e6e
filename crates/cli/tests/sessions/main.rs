//! Sessions in the built program: a change on one interface is visible on the others, increments the revision once,
//! sends one event, and survives a restart.
#![expect(clippy::unwrap_used, reason = "tests, and what they are made of")]

mod boards;
mod changes;
mod commands;
mod faces;
mod horrors;
mod order;
mod outages;
mod own_servers;
mod reach;
mod restarts;

use switchboard_test_program::{board, chat, events, peer, support};
