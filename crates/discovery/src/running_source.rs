//! One source, fetched again and again for as long as it is configured.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_model::{FoundServer, SourceServers};
use switchboard_telemetry::source_fetched;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::backoff::FetchBackoff;
use crate::source::{FetchedServers, ServerSource, SourceError, UnusableEntry};
use crate::source_memory::SourceMemory;
use crate::source_spec::SourceSpec;
use crate::status::{SourceFailure, SourceStatus};

/// How long one fetch may take, however many requests it needs.
const FETCH_WITHIN: Duration = Duration::from_mins(2);
/// Maximum number of unusable entries that are kept for display.
const MOST_KEPT: usize = 1000;
/// Maximum number of unusable entries that are logged one by one for one fetch.
const MOST_LOGGED: usize = 10;

/// A source and its last known servers.
#[derive(Debug)]
pub(crate) struct RunningSource {
    pub(crate) spec: SourceSpec,
    source: Arc<dyn ServerSource>,
    status: Mutex<SourceStatus>,
    refresh_now: Notify,
    /// Where the servers are kept for the next run.
    memory: Option<SourceMemory>,
    stop: CancellationToken,
}

impl RunningSource {
    /// A source that is not fetched yet. It has the servers of its predecessor of the same name until then.
    pub(crate) fn new(
        spec: SourceSpec,
        source: Arc<dyn ServerSource>,
        predecessor: Option<&Self>,
        memory: Option<SourceMemory>,
        stop: CancellationToken,
    ) -> Self {
        let servers = predecessor.map(Self::servers).unwrap_or_default();
        let status = SourceStatus {
            name: spec.name.clone(),
            kind: spec.kind(),
            place: source.place(),
            chosen_because: spec.chosen_because.clone(),
            is_file: spec.is_file(),
            refresh: spec.refresh,
            servers,
            unusable: Vec::new(),
            warnings: Vec::new(),
            succeeded_at_ms: None,
            failure: None,
        };
        let (status, refresh_now) = (Mutex::new(status), Notify::new());
        Self { spec, source, status, refresh_now, memory, stop }
    }

    pub(crate) fn status(&self) -> SourceStatus {
        self.status.lock().clone()
    }

    fn servers(&self) -> Vec<FoundServer> {
        self.status.lock().servers.clone()
    }

    /// The last known servers.
    pub(crate) fn found(&self) -> SourceServers {
        let (source, is_file) = (self.spec.name.clone(), self.spec.is_file());
        SourceServers { source, is_file, servers: self.servers() }
    }

    /// Fetches now instead of at the next interval.
    pub(crate) fn refresh(&self) {
        self.refresh_now.notify_one();
    }

    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Fetches until it is stopped. `changes` is stepped when the servers differ from those before.
    pub(crate) async fn run(self: Arc<Self>, changes: watch::Sender<u64>) {
        let repeating = async {
            if self.restore().await {
                changes.send_modify(|count| *count += 1);
            }
            let mut backoff = FetchBackoff::new(self.spec.refresh);
            loop {
                let outcome = self.fetch().await;
                let pause = if outcome.is_ok() {
                    backoff = FetchBackoff::new(self.spec.refresh);
                    self.spec.refresh
                } else if self.spec.is_file() {
                    // Looking at a file again costs nothing that would have to be spared.
                    self.spec.refresh
                } else {
                    backoff.next_pause()
                };
                let is_answer = outcome.is_ok();
                if self.note(outcome) {
                    changes.send_modify(|count| *count += 1);
                }
                if is_answer {
                    self.keep().await;
                }
                // An error is the end of the time.
                let _refreshed = tokio::time::timeout(pause, self.refresh_now.notified()).await;
            }
        };
        self.stop.run_until_cancelled(repeating).await;
        // The stop may have come between an answer and its writing.
        if self.status().succeeded_at_ms.is_some() {
            self.keep().await;
        }
    }

    /// Takes the servers of an earlier run until the source answers. Returns whether there were any.
    async fn restore(&self) -> bool {
        let Some(memory) = &self.memory else { return false };
        let Some(kept) = memory.load().await else { return false };
        let servers = self.source.restored(kept);
        let mut status = self.status.lock();
        if servers.is_empty() || !status.servers.is_empty() {
            return false;
        }
        let (source, count) = (&self.spec.name, servers.len());
        tracing::info!(
            source,
            servers = count,
            "the servers of the last run stand in until the source answers"
        );
        status.servers = servers;
        true
    }

    /// Keeps the servers for the next run.
    async fn keep(&self) {
        if let Some(memory) = &self.memory {
            memory.save(self.source.kept(&self.servers())).await;
        }
    }

    /// Fetches once.
    pub(crate) async fn fetch(&self) -> Result<FetchedServers, SourceError> {
        let seconds = FETCH_WITHIN.as_secs();
        let fetched = tokio::time::timeout(FETCH_WITHIN, self.source.fetch()).await;
        fetched.unwrap_or(Err(SourceError::Late { seconds }))
    }

    /// Notes the outcome of a fetch. Returns whether the servers have changed.
    pub(crate) fn note(&self, outcome: Result<FetchedServers, SourceError>) -> bool {
        let mut status = self.status.lock();
        let now = jiff::Timestamp::now().as_millisecond();
        match outcome {
            Ok(fetched) => {
                log_success(&status, &fetched);
                let is_changed = status.servers != fetched.servers;
                status.place = fetched.taken_from.unwrap_or_else(|| self.source.place());
                status.unusable = bounded(fetched.unusable);
                status.warnings = fetched.warnings;
                (status.succeeded_at_ms, status.failure) = (Some(now), None);
                if is_changed {
                    status.servers = fetched.servers;
                }
                source_fetched(&self.spec.name, Some(status.servers.len()));
                is_changed
            }
            Err(error) if self.is_merely_absent(&status, &error) => {
                tracing::debug!(source = self.spec.name, "{error}");
                false
            }
            Err(error) => {
                let (message, hint) = (error.to_string(), error.hint());
                log_failure(&status, &message, hint.as_deref());
                let count = status.failure.as_ref().map_or(0, |failure| failure.count) + 1;
                status.failure = Some(SourceFailure { message, hint, at_ms: now, count });
                source_fetched(&self.spec.name, None);
                false
            }
        }
    }
}

impl RunningSource {
    /// Whether there was never anything to read: nobody asked for the manifest that the environment would take.
    fn is_merely_absent(&self, status: &SourceStatus, error: &SourceError) -> bool {
        let is_absent = matches!(error, SourceError::NoManifest { .. });
        is_absent && self.spec.chosen_because.is_some() && status.succeeded_at_ms.is_none()
    }
}

/// The first entries, and how many there are besides.
fn bounded(mut entries: Vec<UnusableEntry>) -> Vec<UnusableEntry> {
    if let Some(more) = entries.len().checked_sub(MOST_KEPT).filter(|more| *more > 0) {
        entries.truncate(MOST_KEPT);
        let (name, reason) = (format!("({more} more)"), "not shown one by one".to_owned());
        entries.push(UnusableEntry { name, reason });
    }
    entries
}

fn log_success(before: &SourceStatus, fetched: &FetchedServers) {
    let source = &before.name;
    let count = fetched.servers.len();
    if before.succeeded_at_ms.is_none() || before.failure.is_some() {
        let place = fetched.taken_from.as_ref().unwrap_or(&before.place);
        tracing::info!(source, place, servers = count, "the source was read");
    }
    for warning in fetched.warnings.iter().filter(|it| !before.warnings.contains(it)) {
        tracing::warn!(source, "{warning}");
    }
    let known: HashSet<(&str, &str)> =
        before.unusable.iter().map(|it| (it.name.as_str(), it.reason.as_str())).collect();
    let is_new = |it: &&UnusableEntry| !known.contains(&(it.name.as_str(), it.reason.as_str()));
    let new: Vec<_> = fetched.unusable.iter().filter(is_new).collect();
    for entry in new.iter().take(MOST_LOGGED) {
        let (server, reason) = (&entry.name, &entry.reason);
        tracing::warn!(source, server, reason, "an entry of the source cannot be used");
    }
    if let Some(more) = new.len().checked_sub(MOST_LOGGED).filter(|more| *more > 0) {
        tracing::warn!(source, "{more} more entries of the source cannot be used");
    }
}

/// A failure is logged when it is new. While it lasts, it is only counted.
fn log_failure(before: &SourceStatus, message: &str, hint: Option<&str>) {
    let (source, kept) = (&before.name, before.servers.len());
    if before.failure.as_ref().is_some_and(|failure| failure.message == message) {
        tracing::debug!(source, error = message, "the source still fails");
    } else {
        tracing::warn!(
            source,
            error = message,
            hint,
            kept,
            "the source cannot be read; its last known servers stay, and it is tried again"
        );
    }
}
