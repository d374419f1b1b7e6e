//! Writes call records and keeps the store from growing without end.

use std::sync::Arc;
use std::time::Duration;

use switchboard_model::CallRecord;
use switchboard_store::{Retention, Store};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::task::TaskTracker;

const WAITING_RECORDS: usize = 8192;
const RECORDS_PER_WRITE: usize = 1024;
/// How long records are gathered: a transaction costs as much as fifty of them.
const GATHER: Duration = Duration::from_millis(50);
const PRUNE_EVERY: Duration = Duration::from_mins(10);
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

enum Message {
    Record(Box<CallRecord>),
    Flush(oneshot::Sender<()>),
}

/// Takes records from callers without making them wait for the disk.
#[derive(Debug)]
pub(crate) struct Recorder {
    inbox: mpsc::Sender<Message>,
    /// Somebody does not want to wait until enough have gathered.
    is_wanted: Arc<Notify>,
    _writer: TaskTracker,
}

impl Recorder {
    /// Starts the task that writes. It ends when the recorder is dropped.
    pub(crate) fn start(store: Store) -> Self {
        let (inbox, records) = mpsc::channel(WAITING_RECORDS);
        let (writer, is_wanted) = (TaskTracker::new(), Arc::new(Notify::new()));
        writer.spawn(write(store, records, is_wanted.clone()));
        Self { inbox, is_wanted, _writer: writer }
    }

    /// Hands over a record; waits only when the store is far behind.
    pub(crate) async fn record(&self, record: CallRecord) {
        if self.inbox.send(Message::Record(Box::new(record))).await.is_err() {
            switchboard_telemetry::records_dropped(1);
        }
    }

    /// Hands over a record where nobody can wait, such as in a destructor.
    pub(crate) fn record_now(&self, record: CallRecord) {
        if self.inbox.try_send(Message::Record(Box::new(record))).is_err() {
            switchboard_telemetry::records_dropped(1);
        }
    }

    /// Returns when everything handed over before is written.
    pub(crate) async fn flush(&self) {
        let (done, written) = oneshot::channel();
        if self.inbox.send(Message::Flush(done)).await.is_ok() {
            self.is_wanted.notify_one();
            // The writer answers or is gone; either way there is nothing left to wait for.
            let _writer_gone = written.await;
        }
    }
}

async fn write(store: Store, mut inbox: mpsc::Receiver<Message>, is_wanted: Arc<Notify>) {
    // At once for the first time: a machine that only runs single commands prunes too.
    let mut prune_at = tokio::time::Instant::now();
    let mut messages = Vec::with_capacity(RECORDS_PER_WRITE);
    while inbox.recv_many(&mut messages, RECORDS_PER_WRITE).await > 0 {
        gather(&mut inbox, &mut messages, &is_wanted).await;
        let (mut records, mut flushed) = (Vec::new(), Vec::new());
        for message in messages.drain(..) {
            match message {
                Message::Record(record) => records.push(*record),
                Message::Flush(done) => flushed.push(done),
            }
        }
        if !records.is_empty()
            && let Err(error) = store.record_calls(&records).await
        {
            switchboard_telemetry::records_dropped(records.len() as u64);
            tracing::error!(
                error = error.in_full(),
                lost = records.len(),
                "call records could not be written"
            );
        }
        if tokio::time::Instant::now() >= prune_at {
            prune(&store).await;
            prune_at = tokio::time::Instant::now() + PRUNE_EVERY;
        }
        for done in flushed {
            // Whoever asked may have stopped waiting.
            let _gone = done.send(());
        }
    }
}

/// Waits a moment for more, unless somebody wants to see them written. The inbox is not looked at meanwhile: to be woken
/// for every record costs each call more than writing it does.
async fn gather(
    inbox: &mut mpsc::Receiver<Message>,
    messages: &mut Vec<Message>,
    is_wanted: &Notify,
) {
    if messages.iter().any(|message| matches!(message, Message::Flush(_))) {
        return;
    }
    // When enough are there already, the store is behind and must not be held up.
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

async fn prune(store: &Store) {
    let now = jiff::Timestamp::now().as_millisecond();
    let retention = Retention {
        calls_older_than_ms: now - 30 * DAY_MS,
        max_calls: 100_000,
        results_older_than_ms: now - DAY_MS,
        max_result_bytes_total: 256 << 20,
    };
    if let Err(error) = store.prune(&retention).await {
        tracing::warn!(error = error.in_full(), "old call records could not be removed");
    }
}
