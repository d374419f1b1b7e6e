//! The last known servers of a source across runs of the program.

use parking_lot::Mutex;
use switchboard_model::FoundServer;
use switchboard_store::Store;

/// Where one source keeps its last known servers. A store that fails costs the next start these servers, and nothing else.
#[derive(Debug)]
pub(crate) struct SourceMemory {
    store: Store,
    source: String,
    /// Identifies the settings of the source: the servers of another gateway must not come back.
    fingerprint: String,
    /// What the store has.
    stored: Mutex<Option<Vec<FoundServer>>>,
    is_failing: Mutex<bool>,
}

impl SourceMemory {
    pub(crate) fn new(store: Store, source: String, fingerprint: String) -> Self {
        let (stored, is_failing) = (Mutex::default(), Mutex::default());
        Self { store, source, fingerprint, stored, is_failing }
    }

    /// The servers that were saved last.
    pub(crate) async fn load(&self) -> Option<Vec<FoundServer>> {
        let loaded = self.store.remembered_source_servers(&self.source, &self.fingerprint).await;
        let servers = loaded.unwrap_or_else(|error| {
            let (source, error) = (&self.source, error.in_full());
            tracing::warn!(source, error, "the servers of the last run cannot be read");
            None
        });
        self.stored.lock().clone_from(&servers);
        servers
    }

    /// Saves the servers, unless they are saved already. What could not be saved is tried again with the next answer of the
    /// source.
    pub(crate) async fn save(&self, servers: Vec<FoundServer>) {
        if self.stored.lock().as_ref() == Some(&servers) {
            return;
        }
        let now = jiff::Timestamp::now().as_millisecond();
        let (source, settings) = (&self.source, &self.fingerprint);
        let saved = self.store.remember_source_servers(source, settings, &servers, now).await;
        let was_failing = std::mem::replace(&mut *self.is_failing.lock(), saved.is_err());
        match saved {
            Ok(()) => *self.stored.lock() = Some(servers),
            Err(error) if !was_failing => {
                let error = error.in_full();
                tracing::warn!(
                    source,
                    error,
                    "the servers of the source cannot be kept for the next run"
                );
            }
            Err(_) => {}
        }
    }
}
