//! Reads lists of tools again on behalf of callers.
//!
//! A list that changed without a notification is old until the next poll. A call of a tool that nobody knows is a sign of
//! that: the servers that may have it are asked once, and everybody who waits for the same list shares it.

use std::time::Duration;

use futures::future::join_all;
use switchboard_model::ServerName;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::board::Board;
use crate::catalog_reconciler::ReconcilerOrder;
use crate::supervisor::Server;

/// How long a caller waits for a list, and for the catalog that comes of it.
const PATIENCE: Duration = Duration::from_secs(3);
/// No server is asked more often than this on behalf of callers, whatever names they make up.
const PAUSE: Duration = Duration::from_secs(5);

/// How often a server's list was read, or could not be, and how often it was another one than before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ListsRead {
    pub(crate) reads: u64,
    pub(crate) changes: u64,
}

/// When a server was last asked on behalf of a caller, and what had been read then.
#[derive(Debug, Default)]
pub(crate) struct AskedByCaller(Option<(Instant, ListsRead)>);

impl Server {
    /// Has the list read now, unless that was done a moment ago; says whether it is another one. Callers of one moment
    /// share one listing. Dropping the future leaves the listing to the others.
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
                    // Read since then: another time would tell nothing new.
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
    /// Has these servers list their tools once more, within a bounded time; says whether any of them has others than
    /// before. The catalog has them then. Servers that a session brought are asked only for that session.
    pub async fn list_again(&self, session: Option<&str>, servers: &[ServerName]) -> bool {
        let published = self.published.load_full();
        let servers: Vec<_> =
            servers.iter().filter_map(|name| published.server_for(session, name)).collect();
        let listing = async {
            let listed = join_all(servers.iter().map(|server| server.list_again())).await;
            if !listed.contains(&true) {
                return false;
            }
            let (reply, answer) = oneshot::channel();
            // An error is a board that is shutting down.
            let Ok(place) = self.orders.reserve().await else { return false };
            place.send(ReconcilerOrder::Reconcile(reply));
            answer.await.is_ok()
        };
        tokio::time::timeout(PATIENCE, listing).await.unwrap_or_default()
    }
}
