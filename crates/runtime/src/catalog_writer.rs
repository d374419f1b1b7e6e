//! Writes the catalog's revision and the servers' tools to the store, after they were published.
//!
//! Only the newest state is kept for writing, one entry for each server: a slow or locked store delays neither a
//! configuration nor a tool list, and nothing accumulates. A failed write is retried.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use switchboard_model::{ServerName, ToolDescriptor};
use switchboard_store::{Store, StoreError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::memory::Memory;

/// The pause before a write that failed is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// The newest state that is not written yet.
#[derive(Debug, Default)]
struct Pending {
    /// The fingerprint of a catalog and its revision.
    revision: Option<(String, u64)>,
    tools: HashMap<ServerName, Arc<Vec<ToolDescriptor>>>,
}

/// The only writer of a board's catalog.
#[derive(Debug)]
pub(crate) struct CatalogWriter {
    store: Store,
    pending: Mutex<Pending>,
    wake: Notify,
    /// The revision in the store. Another process on the same store may have increased it.
    stored: AtomicU64,
}

impl CatalogWriter {
    /// `None` for a board that stores nothing.
    pub(crate) fn of(store: &Store, memory: Memory) -> Option<Arc<Self>> {
        let writer = || {
            let (store, stored) = (store.clone(), AtomicU64::new(0));
            Arc::new(Self { store, pending: Mutex::default(), wake: Notify::new(), stored })
        };
        (memory == Memory::Keep).then(writer)
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock()
    }

    /// The revision of the catalog with this fingerprint at the start of a run; `None` if the store fails.
    pub(crate) async fn recall_revision(&self, fingerprint: &str) -> Option<u64> {
        let recalled = self.store.revision_for(fingerprint).await;
        let recalled = recalled.inspect_err(|error| {
            tracing::error!(error = error.in_full(), "the catalog revision could not be read");
        });
        recalled.inspect(|revision| self.stored.store(*revision, Ordering::Relaxed)).ok()
    }

    /// Queues the revision of a published catalog. Returns `next`, or a larger revision if another process has taken
    /// `next`.
    pub(crate) fn note_revision(&self, fingerprint: String, next: u64) -> u64 {
        let revision = next.max(self.stored.load(Ordering::Relaxed) + 1);
        self.pending().revision = Some((fingerprint, revision));
        self.wake.notify_one();
        revision
    }

    /// Queues the current tools of a server, for the next run.
    pub(crate) fn note_tools(&self, server: ServerName, tools: Arc<Vec<ToolDescriptor>>) {
        self.pending().tools.insert(server, tools);
        self.wake.notify_one();
    }

    /// Writes until it is stopped, and then writes the rest.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut is_failing = false;
        loop {
            let is_stopping = stop.run_until_cancelled(self.wake.notified()).await.is_none();
            let written = self.write().await;
            if let Some(error) = written.as_ref().err().filter(|_| !is_failing) {
                tracing::error!(
                    error = error.in_full(),
                    "the catalog could not be written to the store; it is in force, and written later"
                );
            }
            if is_stopping {
                return;
            }
            is_failing = written.is_err();
            if is_failing {
                stop.run_until_cancelled(tokio::time::sleep(RETRY_PAUSE)).await;
                self.wake.notify_one();
            }
        }
    }

    /// Writes the queued state. A failed write stays queued, unless newer state has replaced it.
    async fn write(&self) -> Result<(), StoreError> {
        let Pending { revision, tools } = std::mem::take(&mut *self.pending());
        let mut outcome = Ok(());
        if let Some((fingerprint, revision)) = revision {
            match self.store.advance_revision(&fingerprint, revision).await {
                Ok(stored) => self.stored.store(stored, Ordering::Relaxed),
                Err(error) => {
                    self.pending().revision.get_or_insert((fingerprint, revision));
                    outcome = Err(error);
                }
            }
        }
        let now = jiff::Timestamp::now().as_millisecond();
        for (server, tools) in tools {
            if let Err(error) = self.store.remember_tools(&server, &tools, now).await {
                self.pending().tools.entry(server).or_insert(tools);
                outcome = Err(error);
            }
        }
        outcome
    }
}
