//! Sessions over the built program: what is switched in one face shows in the others, each change is one step of the
//! revision and one event, and everything is as before after a restart (issue 4).
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests, and what they are made of")]

#[path = "../gateway/board.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod board;
mod changes;
mod chat;
mod commands;
mod concurrency;
mod events;
mod faces;
#[path = "../gateway/hearing.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod hearing;
mod horrors;
mod order;
mod outages;
mod own_servers;
#[path = "../gateway/peer.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod peer;
mod reach;
mod restarts;
#[path = "../it/support.rs"]
#[allow(dead_code, unused_macros, unused_imports, reason = "shared with the other tests")]
mod support;
