//! Sessions over the built program: what is switched in one face shows in the others, each change is one step of the
//! revision and one event, and everything is as before after a restart (issue 4).
#![expect(clippy::unwrap_used, reason = "tests, and what they are made of")]

mod changes;
mod commands;
mod concurrency;
mod faces;
mod horrors;
mod order;
mod outages;
mod own_servers;
mod reach;
mod restarts;

use switchboard_test_program::{board, chat, events, peer, support};
