//! Waits for the first connection attempts: for every required server, and for the others up to a time limit.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use switchboard_model::{Plan, ServerName};
use tokio::time::{Instant, MissedTickBehavior};

use crate::memory::Memory;
use crate::server::{Server, ServerStatus, Servers};

/// How long a serving board, or a conversation, waits for servers that are not required. Their tools appear later, as any
/// change does.
pub const SERVING_WAIT: Duration = Duration::from_secs(3);
/// The same, if such a server replaces one that works: its tools cannot be called in the meantime.
const REPLACING: Duration = Duration::from_secs(30);
/// How long a single command waits for a server that is not required. It cannot pick up tools later, so it waits longer
/// than a serving board and reports what it waits for.
pub const COMMAND_WAIT: Duration = Duration::from_secs(30);

/// The interval between two progress reports while waiting.
const TELLING: Duration = Duration::from_secs(1);

/// Progress of a starting board.
#[derive(Debug)]
pub enum StartEvent {
    /// The first attempt to connect a server has succeeded or failed.
    Attempted(Box<ServerStatus>),
    /// A server is still connecting; sent about every second.
    Waiting(Box<ServerStatus>),
}

/// How long the start waits for servers that are not required.
pub(crate) fn grace_of_start(memory: Memory) -> Duration {
    match memory {
        Memory::Keep => SERVING_WAIT,
        Memory::ReadOnly => COMMAND_WAIT,
    }
}

/// How long a reload waits for servers that are not required.
pub(crate) fn grace_of_reload(
    present: &HashMap<ServerName, Arc<Server>>,
    started: &Servers,
) -> Duration {
    if started.keys().any(|name| present.contains_key(name)) { REPLACING } else { SERVING_WAIT }
}

/// Returns when the first attempt of every required server has ended, and those of the others have ended or `grace` is
/// over.
pub(crate) async fn wait_for_all(
    plan: &Plan,
    servers: &Servers,
    grace: Duration,
    mut on_event: impl FnMut(StartEvent),
) {
    let enough = Instant::now() + grace;
    let mut required: Vec<_> =
        plan.servers.iter().filter(|server| server.required).map(|s| &s.spec.name).collect();
    required.retain(|name| servers.contains_key(*name));
    let mut attempts: FuturesUnordered<_> = servers
        .values()
        .map(|server| async move {
            server.attempted().await;
            server.status()
        })
        .collect();
    let mut telling = tokio::time::interval(TELLING);
    telling.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            attempted = attempts.next() => {
                let Some(status) = attempted else { return };
                required.retain(|name| **name != status.name);
                on_event(StartEvent::Attempted(Box::new(status)));
            }
            () = tokio::time::sleep_until(enough), if required.is_empty() => break,
            _ = telling.tick() => {
                let waiting = servers.values().filter(|server| !server.is_attempted());
                for status in waiting.map(|server| server.status()) {
                    on_event(StartEvent::Waiting(Box::new(status)));
                }
            }
        }
    }
    for server in servers.values().filter(|server| !server.is_attempted()) {
        server.leave_behind();
    }
}
