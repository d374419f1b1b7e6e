//! Queues writes of sessions and clients to the store, so that they survive a restart.
//!
//! There are two kinds. An acknowledged write ([`WriteQueue::put_client`] and those of sessions) returns when it is
//! committed; if it fails, nothing has changed. A background write (`note_...`) is retried after an outage, but lost in
//! a crash: it only holds state that can be recomputed, or whose loss costs a client one redundant notification.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_store::{Store, StoreFailure, StoredClient};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::session::{Session, SessionState};
use crate::session_writer::SessionWriter;
use switchboard_runtime::PublishedSnapshot;

/// The maximum number of queued writes. Beyond it the store is too slow, and further writes are refused.
const WAITING: usize = 16_384;
/// How often the store records which clients were seen, and expires idle ones.
const ROUND_EVERY_MS: i64 = 15_000;

pub(crate) type Changed = Arc<Mutex<HashMap<Arc<str>, Arc<Session>>>>;

pub(crate) enum Note {
    /// A write whose caller waits until it is committed.
    Wanted(AwaitedWrite),
    Put(StoredClient),
    /// A client was seen at this time.
    Touch(String, i64),
    Delete(String),
    DeleteSession(String),
    /// When clients were seen, and before which time clients expire. One note for both, so that no active client expires
    /// because a part of the round was lost.
    Round {
        seen: Vec<(String, i64)>,
        before_ms: i64,
    },
    /// Sessions have changed; they are in [`Changed`].
    Sessions,
    Flush(oneshot::Sender<()>),
}

/// A write whose caller waits until it is committed.
pub(crate) struct AwaitedWrite {
    pub(crate) write: Acknowledged,
    pub(crate) reply: oneshot::Sender<Result<WriteOutcome, StoreFailure>>,
    /// Dropped when the write has ended, also if its caller no longer waits.
    pub(crate) held: Box<dyn Any + Send>,
}

/// What became of an acknowledged write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    Committed,
    /// Somebody else has written the session since its state was read: nothing was written.
    Superseded,
}

/// The content of an acknowledged write.
pub(crate) enum Acknowledged {
    /// A new session, and the client that it belongs to.
    Begin {
        session: Arc<Session>,
        client: Option<StoredClient>,
    },
    /// The next state of a session. It takes effect when it is stored.
    Change {
        session: Arc<Session>,
        next: Box<SessionState>,
    },
    Client(StoredClient),
    /// Removes a session with its clients.
    End {
        session: Arc<Session>,
        clients: Vec<String>,
    },
    /// Removes a client of a session that goes on.
    EndClient {
        session: Arc<str>,
        client: String,
    },
}

/// Passes writes to the task that commits them.
pub struct WriteQueue {
    inbox: mpsc::Sender<Note>,
    pub store: Store,
    /// Sessions to be written in the background. Several changes of a session while it waits are written once.
    changed: Changed,
    last_round: AtomicI64,
}

/// Records which clients were seen, so that the store expires only idle ones.
#[derive(Debug)]
pub struct Round<'a> {
    writes: &'a WriteQueue,
    last_ms: i64,
    now_ms: i64,
    idle_ms: i64,
    seen: Vec<(String, i64)>,
}

impl Round<'_> {
    /// Records that a client was seen this long ago.
    pub fn touch_client(&mut self, id: &str, ago: Duration) {
        let ago_ms = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
        let seen_ms = self.now_ms.saturating_sub(ago_ms);
        // Otherwise an earlier round has recorded it. The margin may record it twice, but never misses it.
        if seen_ms >= self.last_ms.saturating_sub(ROUND_EVERY_MS) {
            self.seen.push((id.to_owned(), seen_ms));
        }
    }

    /// Ends the round and expires the clients that were not seen for `idle`.
    pub fn end(self) {
        let before_ms = self.now_ms.saturating_sub(self.idle_ms);
        self.writes.note(Note::Round { seen: self.seen, before_ms });
    }
}

/// The current time in milliseconds since 1970.
pub fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

impl std::fmt::Debug for WriteQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteQueue").finish_non_exhaustive()
    }
}

impl WriteQueue {
    /// Starts the task, which ends when the queue is dropped. Stored changes take effect on the snapshot in `published`.
    ///
    /// Sessions whose background write was superseded are sent to `superseded`.
    pub(crate) fn start(
        store: Store,
        published: PublishedSnapshot,
        superseded: mpsc::Sender<Arc<Session>>,
    ) -> Self {
        let (inbox, notes) = mpsc::channel(WAITING);
        let changed = Changed::default();
        // The task is not awaited at shutdown: it ends with the last handle of the queue.
        let tasks = TaskTracker::new();
        let writer = SessionWriter::new(store.clone(), published, Arc::clone(&changed), superseded);
        tasks.spawn(writer.run(notes));
        Self { inbox, store, changed, last_round: AtomicI64::new(0) }
    }

    fn note(&self, note: Note) {
        if self.inbox.try_send(note).is_err() {
            tracing::warn!("the store is far behind; the state of a client was not stored");
        }
    }

    /// Returns when a write is committed, or has failed without any change. Dropping the future does not undo the write.
    /// `held` is dropped when the write has ended.
    pub(crate) async fn write(
        &self,
        write: Acknowledged,
        held: Box<dyn Any + Send>,
    ) -> Result<WriteOutcome, StoreFailure> {
        let (reply, written) = oneshot::channel();
        let wanted = Note::Wanted(AwaitedWrite { write, reply, held });
        if self.inbox.try_send(wanted).is_err() {
            return Err(too_many_writes());
        }
        written.await.unwrap_or_else(|_| Err(too_many_writes()))
    }

    /// Stores a client; returns when that is committed.
    pub async fn put_client(&self, client: StoredClient) -> Result<(), StoreFailure> {
        self.write(Acknowledged::Client(client), Box::new(())).await.map(drop)
    }

    /// Deletes a client of a session that goes on; returns when that is committed.
    pub async fn delete_client(&self, id: &str, session: &Session) -> Result<(), StoreFailure> {
        let (session, client) = (session.id.clone(), id.to_owned());
        let write = Acknowledged::EndClient { session, client };
        self.write(write, Box::new(())).await.map(drop)
    }

    /// Stores a client in the background. Where boards share the store, only that it was seen: another board may have stored
    /// a later state of it, or ended it.
    pub fn note_client(&self, client: StoredClient) {
        if self.store.is_shared() {
            self.note(Note::Touch(client.id, client.last_seen_at_ms));
        } else {
            self.note(Note::Put(client));
        }
    }

    /// Stores a client in the background that is not in the store yet.
    pub(crate) fn note_new_client(&self, client: StoredClient) {
        self.note(Note::Put(client));
    }

    /// Deletes the stored row of an MCP client in the background. A write that fails is tried again.
    pub fn note_client_gone(&self, id: &str) {
        self.note(Note::Delete(id.to_owned()));
    }

    /// Stores a session in the background, in its state at the time of the write.
    pub(crate) fn note_session(&self, session: &Arc<Session>) {
        let was_empty = {
            let mut changed = self.changed.lock();
            let was_empty = changed.is_empty();
            changed.insert(session.id.clone(), session.clone());
            was_empty
        };
        if was_empty {
            // If the queue is full, the writer is busy and looks at `changed` afterwards.
            let _full = self.inbox.try_send(Note::Sessions);
        }
    }

    /// Deletes a session in the background.
    pub(crate) fn note_session_gone(&self, id: &str) {
        self.changed.lock().remove(id);
        self.note(Note::DeleteSession(id.to_owned()));
    }

    /// Begins a round if it is due. Clients that were seen since the last round are recorded in it; clients that were not
    /// seen for `idle` expire when it ends.
    pub fn begin_round(&self, idle: Duration) -> Option<Round<'_>> {
        let now_ms = now_ms();
        let idle_ms = i64::try_from(idle.as_millis()).unwrap_or(i64::MAX);
        let last_ms = self.last_round.load(Ordering::Relaxed);
        if now_ms - last_ms < (idle_ms / 4).min(ROUND_EVERY_MS) {
            return None;
        }
        self.last_round.store(now_ms, Ordering::Relaxed);
        Some(Round { writes: self, last_ms, now_ms, idle_ms, seen: Vec::new() })
    }

    /// Returns when every background write so far is committed, or has failed.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        if self.inbox.send(Note::Flush(done)).await.is_ok() {
            let _writer_gone = written.await;
        }
    }
}

fn too_many_writes() -> StoreFailure {
    let reason = "more writes wait for it than it can take";
    StoreFailure { reason, is_outage: true, in_full: reason.into() }
}
