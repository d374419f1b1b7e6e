//! Waits for a client to list its tools again before the call that changed them is answered.
//!
//! Agents query their model as soon as a call is answered. An agent that lists its tools only afterwards sends the model
//! the old tools, and a toolset that `enable_toolset` enabled is missing in that query.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// How long a notified client may take to request the list.
const LIST_WITHIN: Duration = Duration::from_millis(1_500);
/// How long the transfer of the list may take once the client has requested it.
const READ_WITHIN: Duration = Duration::from_millis(100);
/// After this many late lists in a row, the client is taken to list after the response or never, and is not waited for.
const MOST_LATE_LISTS: u8 = 2;

/// How a client reacts to `list_changed` notifications of its tools.
#[derive(Debug, Default)]
pub(crate) struct RelistHistory {
    /// Changes with each list of tools that the client receives.
    listed: watch::Sender<()>,
    /// The number of `list_changed` notifications for tools.
    told: AtomicU64,
    /// Changes in a row after which the client did not list its tools in time.
    late: AtomicU8,
}

impl RelistHistory {
    pub(crate) fn note_told(&self) {
        self.told.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_listed(&self) {
        self.listed.send_replace(());
    }
}

/// The state of a client before its tools change, to wait for its next list.
pub(crate) struct Relist {
    history: Arc<RelistHistory>,
    listed: watch::Receiver<()>,
    told: u64,
}

impl Relist {
    /// `None` for a client that does not list its tools after a notification.
    pub(crate) fn expected(history: &Arc<RelistHistory>) -> Option<Self> {
        let is_expected = history.late.load(Ordering::Relaxed) < MOST_LATE_LISTS;
        is_expected.then(|| Self {
            history: history.clone(),
            listed: history.listed.subscribe(),
            told: history.told.load(Ordering::Relaxed),
        })
    }

    /// Returns when the client has received its new list, or at the timeout.
    pub(crate) async fn done(mut self) {
        if self.history.told.load(Ordering::Relaxed) == self.told {
            return;
        }
        let late = &self.history.late;
        if tokio::time::timeout(LIST_WITHIN, self.listed.changed()).await.is_ok() {
            late.store(0, Ordering::Relaxed);
            tokio::time::sleep(READ_WITHIN).await;
        } else {
            // Several changes may be waited for at the same time.
            let more = |late: u8| Some(late.saturating_add(1));
            late.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok();
        }
    }
}
