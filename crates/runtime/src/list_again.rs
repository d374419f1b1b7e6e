//! Lists the tools of servers again on behalf of callers.
//!
//! A list that changed without a notification is outdated until the next poll. A call of an unknown tool hints at that:
//! the servers that may have the tool are asked once, and concurrent callers share the answer.

use std::time::Duration;

use futures::future::join_all;
use switchboard_model::ServerName;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::board::Board;
use crate::catalog_reconciler::ReconcilerOrder;
use crate::server::Server;

/// How long a caller waits for a new list and the resulting catalog.
const PATIENCE: Duration = Duration::from_secs(3);
/// Minimum time between two listings of a server on behalf of callers, however many unknown names they use.
const PAUSE: Duration = Duration::from_secs(5);

/// Counts how often a server's list was read or failed to be read, and how often it had changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ListsRead {
    pub(crate) reads: u64,
    pub(crate) changes: u64,
}

/// The time of the last listing on behalf of a caller, and the counts at that time.
#[derive(Debug, Default)]
pub(crate) struct AskedByCaller(Option<(Instant, ListsRead)>);

impl Server {
    /// Lists the tools now, unless a caller's listing ended a moment ago. Returns whether the list has changed.
    /// Concurrent callers share one listing; dropping the future does not cancel it.
    async fn list_again(&self) -> bool {
        let mut read: watch::Receiver<ListsRead> = self.lists_read.subscribe();
        let so_far = *read.borrow_and_update();
        if self.connection().is_none() {
            return false;
        }
        {
            let mut asked = self.asked_by_caller.lock();
            match asked.0 {
                Some((at, before)) if at.elapsed() < PAUSE => {
                    // The list was read since then; reading it again would give nothing new.
                    if before.reads != so_far.reads {
                        return before.changes != so_far.changes;
                    }
                }
                _ => {
                    asked.0 = Some((Instant::now(), so_far));
                    self.suspect();
                }
            }
        }
        let now = read.wait_for(|now| now.reads != so_far.reads).await;
        now.is_ok_and(|now| now.changes != so_far.changes)
    }
}

impl Board {
    /// Lists the tools of these servers again, within a bounded time. Returns whether any list has changed; the catalog
    /// is up to date then. Attached servers are asked only for the session that attached them.
    pub async fn list_again(&self, session: Option<&str>, servers: &[ServerName]) -> bool {
        let published = self.published.load_full();
        let servers: Vec<_> =
            servers.iter().filter_map(|name| published.server_for(session, name)).collect();
        let listing = async {
            let listed = join_all(servers.iter().map(|server| server.list_again())).await;
            if !listed.contains(&true) {
                return false;
            }
            self.reconcile().await
        };
        tokio::time::timeout(PATIENCE, listing).await.unwrap_or_default()
    }

    /// Returns when the catalog has what the servers have listed until now; `false` if the board is shutting down.
    pub(crate) async fn reconcile(&self) -> bool {
        let (reply, answer) = oneshot::channel();
        let Ok(place) = self.orders.reserve().await else { return false };
        place.send(ReconcilerOrder::Reconcile(reply));
        answer.await.is_ok()
    }
}
