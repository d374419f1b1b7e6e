//! Writes call records and keeps the store from growing without bound.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use switchboard_model::{CallRecord, RecordsPlan, render_duration};
use switchboard_store::{Pruned, Retention, Store};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::result_cap::KEPT_RESULTS;
use crate::snapshot::PublishedSnapshot;

/// Capacity of the writer's inbox, and of the records that it could not write yet. When both are full, further records
/// are dropped and counted.
const WAITING_RECORDS: usize = 8192;
const RECORDS_PER_WRITE: usize = 1024;
/// How long records are collected before they are written: a transaction costs as much as fifty records.
const GATHER: Duration = Duration::from_millis(50);
/// How long a call waits for a slow store before its record is dropped.
const PATIENCE: Duration = Duration::from_secs(1);
const PRUNE_EVERY: Duration = Duration::from_mins(10);
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Prunes also after this many records, so that a busy board exceeds the configured number by little.
const PRUNE_AFTER: u64 = 10_000;

enum RecorderCommand {
    Record(Box<CallRecord>),
    Flush(oneshot::Sender<()>),
}

/// Accepts records from calls without making them wait for the disk.
#[derive(Debug)]
pub(crate) struct Recorder {
    inbox: mpsc::Sender<RecorderCommand>,
    store: Store,
    /// Wakes the writer before enough records are collected.
    is_wanted: Arc<Notify>,
    _writer: TaskTracker,
}

impl Recorder {
    /// Starts the writer task. It ends when the recorder is dropped. The retention is that of the published configuration.
    pub(crate) fn start(store: Store, published: PublishedSnapshot) -> Self {
        let (inbox, records) = mpsc::channel(WAITING_RECORDS);
        let (writer, is_wanted) = (TaskTracker::new(), Arc::new(Notify::new()));
        let (pending, since_pruning) = (VecDeque::new(), 0);
        let writing = Writer { store: store.clone(), published, pending, since_pruning };
        writer.spawn(writing.run(records, is_wanted.clone()));
        Self { inbox, store, is_wanted, _writer: writer }
    }

    /// Hands over a record. Waits briefly while the store is slow, and not at all while it fails, so that calls go on.
    pub(crate) async fn record(&self, record: CallRecord) {
        let Err(TrySendError::Full(message)) =
            self.inbox.try_send(RecorderCommand::Record(Box::new(record)))
        else {
            return;
        };
        let is_taken = self.store.outage().is_none()
            && tokio::time::timeout(PATIENCE, self.inbox.send(message)).await.is_ok();
        if !is_taken {
            switchboard_telemetry::records_dropped(1);
        }
    }

    /// Hands over a record without waiting, such as in a destructor.
    pub(crate) fn record_now(&self, record: CallRecord) {
        if self.inbox.try_send(RecorderCommand::Record(Box::new(record))).is_err() {
            switchboard_telemetry::records_dropped(1);
        }
    }

    /// Returns when everything handed over before is written, or the store accepts nothing.
    pub(crate) async fn flush(&self) {
        let (done, written) = oneshot::channel();
        if self.store.outage().is_none()
            && self.inbox.send(RecorderCommand::Flush(done)).await.is_ok()
        {
            self.is_wanted.notify_one();
            // The writer replies or is gone; either way the wait is over.
            let _writer_gone = written.await;
        }
    }
}

struct Writer {
    store: Store,
    published: PublishedSnapshot,
    /// Records that were written since the last pruning.
    since_pruning: u64,
    /// Records that are not written yet, oldest first.
    pending: VecDeque<CallRecord>,
}

impl Writer {
    async fn run(mut self, mut inbox: mpsc::Receiver<RecorderCommand>, is_wanted: Arc<Notify>) {
        // Prunes at once for the first time, so that machines that only run single commands prune too.
        let mut prune_at = tokio::time::Instant::now();
        let mut messages = Vec::with_capacity(RECORDS_PER_WRITE);
        let mut outages = self.store.outages();
        loop {
            tokio::select! {
                count = inbox.recv_many(&mut messages, RECORDS_PER_WRITE) => if count == 0 { return },
                // Retries failed writes when an outage ends.
                Ok(()) = outages.changed(), if !self.pending.is_empty() => {}
            }
            gather(&mut inbox, &mut messages, &is_wanted).await;
            let mut flushed = Vec::new();
            for message in messages.drain(..) {
                match message {
                    RecorderCommand::Record(record) => self.pending.push_back(*record),
                    RecorderCommand::Flush(done) => flushed.push(done),
                }
            }
            if self.store.outage().is_none() {
                self.write().await;
                let plan = self.published.load().plan().clone();
                let is_due = tokio::time::Instant::now() >= prune_at
                    || self.since_pruning >= PRUNE_AFTER.min(plan.records.max_count.max(100));
                if is_due && self.store.outage().is_none() {
                    prune(&self.store, &plan.records).await;
                    self.since_pruning = 0;
                    prune_at = tokio::time::Instant::now() + PRUNE_EVERY;
                }
            }
            self.bound();
            for done in flushed {
                // The receiver may have been dropped.
                let _gone = done.send(());
            }
        }
    }

    /// Writes the pending records. Records that were written before the store failed are not written twice.
    async fn write(&mut self) {
        while !self.pending.is_empty() {
            let count = self.pending.len().min(RECORDS_PER_WRITE);
            let some: Vec<_> = self.pending.drain(..count).collect();
            self.since_pruning += some.len() as u64;
            let Err(error) = self.store.record_calls(&some).await else { continue };
            if error.is_outage() {
                for record in some.into_iter().rev() {
                    self.pending.push_front(record);
                }
                return;
            }
            switchboard_telemetry::records_dropped(some.len() as u64);
            tracing::error!(
                error = error.in_full(),
                lost = some.len(),
                "the database refuses call records; they are lost"
            );
        }
    }

    /// Drops the oldest records above the limit.
    fn bound(&mut self) {
        let excess = self.pending.len().saturating_sub(WAITING_RECORDS);
        if excess > 0 {
            self.pending.drain(..excess);
            switchboard_telemetry::records_dropped(excess as u64);
        }
    }
}

/// Waits briefly for more records, unless a flush is requested. Does not poll the inbox in the meantime: waking up for
/// every record costs each call more than writing the record.
async fn gather(
    inbox: &mut mpsc::Receiver<RecorderCommand>,
    messages: &mut Vec<RecorderCommand>,
    is_wanted: &Notify,
) {
    if messages.iter().any(|message| matches!(message, RecorderCommand::Flush(_))) {
        return;
    }
    // With enough records already, the store is behind and must not be delayed.
    if messages.len() + inbox.len() < RECORDS_PER_WRITE {
        let _wanted_or_late = tokio::time::timeout(GATHER, is_wanted.notified()).await;
    }
    while messages.len() < RECORDS_PER_WRITE {
        match inbox.try_recv() {
            Ok(message) => messages.push(message),
            Err(_) => return,
        }
    }
}

async fn prune(store: &Store, records: &RecordsPlan) {
    let now = jiff::Timestamp::now().as_millisecond();
    let max_age = i64::try_from(records.max_age.as_millis()).unwrap_or(i64::MAX);
    let retention = Retention {
        calls_older_than_ms: now.saturating_sub(max_age),
        max_calls: records.max_count,
        max_content_bytes: records.max_content_bytes,
        results_older_than_ms: now - DAY_MS,
        max_result_bytes_total: KEPT_RESULTS.total_bytes,
    };
    match store.prune(&retention).await {
        Ok(Pruned { calls: 0, contents: 0, .. }) => {}
        Ok(Pruned { calls, contents, .. }) => {
            switchboard_telemetry::records_pruned(calls);
            tracing::info!(
                calls,
                contents,
                max_age = render_duration(records.max_age),
                max_count = records.max_count,
                "the oldest call records were deleted, as `records` says"
            );
        }
        Err(error) => {
            tracing::warn!(error = error.in_full(), "old call records could not be removed");
        }
    }
}
