//! Waits for a client to list its tools again, before the call that changed them is answered.
//!
//! Agents ask their model again as soon as a call is answered. One that lists its tools only then sends the model the old
//! ones, so that what `enable_toolset` brought is a request late.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// How long a client that heard of the change may take to ask for the list.
const LIST_WITHIN: Duration = Duration::from_millis(1_500);
/// How long the list may take to be read, once it was asked for.
const READ_WITHIN: Duration = Duration::from_millis(100);
/// A client that was this often too late lists after the answer, or never: later changes do not wait for it.
const MOST_LATE_LISTS: u8 = 2;

/// What a client does when it hears that its tools have changed.
#[derive(Debug, Default)]
pub(crate) struct RelistHistory {
    /// Changes with each list of tools that the client is given.
    listed: watch::Sender<()>,
    /// How often the client was told that its tools have changed.
    told: AtomicU64,
    /// Changes in a row after which the client did not list its tools while it was waited for.
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

/// A client as it was before its tools were changed.
pub(crate) struct Relist {
    history: Arc<RelistHistory>,
    listed: watch::Receiver<()>,
    told: u64,
}

impl Relist {
    /// `None` for a client that does not list its tools when it hears of a change.
    pub(crate) fn expected(history: &Arc<RelistHistory>) -> Option<Self> {
        let is_expected = history.late.load(Ordering::Relaxed) < MOST_LATE_LISTS;
        is_expected.then(|| Self {
            history: history.clone(),
            listed: history.listed.subscribe(),
            told: history.told.load(Ordering::Relaxed),
        })
    }

    /// Returns when the client has its new list, or has had the time to get it.
    pub(crate) async fn done(mut self) {
        if self.history.told.load(Ordering::Relaxed) == self.told {
            return;
        }
        let late = &self.history.late;
        if tokio::time::timeout(LIST_WITHIN, self.listed.changed()).await.is_ok() {
            late.store(0, Ordering::Relaxed);
            tokio::time::sleep(READ_WITHIN).await;
        } else {
            // Many changes may be waited for at the same time.
            let more = |late: u8| Some(late.saturating_add(1));
            late.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok();
        }
    }
}
