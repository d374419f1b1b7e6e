//! Has sessions and clients written down, so that they outlive this process.
//!
//! There are two kinds of writes. An acknowledged one ([`WriteQueue::put_client`] and those of sessions) returns when it is
//! committed, and changes nothing where it is not. A note is written in the background, and again after an outage:
//! nothing depends on it but what an idle client or a changed catalog would cause anyway.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use switchboard_store::{Store, StoreFailure, StoredClient};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::session::{Session, SessionState};
use crate::session_writer::SessionWriter;
use switchboard_runtime::PublishedSnapshot;

/// Writes that wait for their turn. One more is refused: the store is too far behind to be waited for.
const WAITING: usize = 16_384;
/// How often the store is told that a client still lives, and asked to drop those that do not.
const ROUND_EVERY_MS: i64 = 15_000;

pub(crate) type Changed = Arc<Mutex<HashMap<Arc<str>, Arc<Session>>>>;

pub(crate) enum Note {
    /// Somebody waits until this is committed.
    Wanted(AwaitedWrite),
    Put(StoredClient),
    Delete(String),
    DeleteSession(String),
    /// Who was seen when, and since when somebody must have been seen. One note: who lives is never forgotten because the
    /// rest of a round was lost.
    Round {
        seen: Vec<(String, i64)>,
        before_ms: i64,
    },
    /// Sessions have changed; which ones is noted elsewhere.
    Sessions,
    Flush(oneshot::Sender<()>),
}

/// A write that somebody waits for.
pub(crate) struct AwaitedWrite {
    pub(crate) write: Acknowledged,
    pub(crate) reply: oneshot::Sender<Result<(), StoreFailure>>,
    /// Held until the write has come to its end, whether anybody still waits or not.
    pub(crate) held: Box<dyn Any + Send>,
}

/// What is written before somebody is told that it was done.
pub(crate) enum Acknowledged {
    /// A session that nobody has seen yet, and the client that it belongs to.
    Begin {
        session: Arc<Session>,
        client: Option<StoredClient>,
    },
    /// What a session is to be; it comes into force when it is stored.
    Change {
        session: Arc<Session>,
        next: Box<SessionState>,
    },
    Client(StoredClient),
    /// A session, or only clients of one, that are to be gone.
    End {
        session: Option<Arc<Session>>,
        clients: Vec<String>,
    },
}

/// Hands writes to the task that makes them.
pub struct WriteQueue {
    inbox: mpsc::Sender<Note>,
    pub store: Store,
    /// Sessions that are to be written in the background. A session that changes a hundred times meanwhile is written
    /// once.
    changed: Changed,
    last_round: AtomicI64,
}

/// Who lives and who does not, told to the store. Who is in memory is not expired there: the two agree on who was seen.
#[derive(Debug)]
pub struct Round<'a> {
    writes: &'a WriteQueue,
    last_ms: i64,
    now_ms: i64,
    idle_ms: i64,
    seen: Vec<(String, i64)>,
}

impl Round<'_> {
    /// Notes that a client was last seen so long ago.
    pub fn touch_client(&mut self, id: &str, ago: Duration) {
        let ago_ms = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
        let seen_ms = self.now_ms.saturating_sub(ago_ms);
        // Else an earlier round has noted it; a little twice rather than not at all.
        if seen_ms >= self.last_ms.saturating_sub(ROUND_EVERY_MS) {
            self.seen.push((id.to_owned(), seen_ms));
        }
    }

    /// Forgets who was not seen.
    pub fn end(self) {
        let before_ms = self.now_ms.saturating_sub(self.idle_ms);
        self.writes.note(Note::Round { seen: self.seen, before_ms });
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

impl std::fmt::Debug for WriteQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteQueue").finish_non_exhaustive()
    }
}

impl WriteQueue {
    /// The task ends when the queue is dropped. Changes that are stored come into force on the snapshot in `published`.
    pub(crate) fn start(store: Store, published: PublishedSnapshot) -> Self {
        let (inbox, notes) = mpsc::channel(WAITING);
        let changed = Changed::default();
        // Not among the tasks that are waited for: this one ends with the last handle.
        let tasks = TaskTracker::new();
        let writer = SessionWriter::new(store.clone(), published, Arc::clone(&changed));
        tasks.spawn(writer.run(notes));
        Self { inbox, store, changed, last_round: AtomicI64::new(0) }
    }

    fn note(&self, note: Note) {
        if self.inbox.try_send(note).is_err() {
            tracing::warn!("the store is far behind; a client could not be written down");
        }
    }

    /// Returns when a write is committed, or has failed and changed nothing. Dropping the future does not undo the
    /// write. `held` is dropped when the write has come to its end.
    pub(crate) async fn write(
        &self,
        write: Acknowledged,
        held: Box<dyn Any + Send>,
    ) -> Result<(), StoreFailure> {
        let (reply, written) = oneshot::channel();
        let wanted = Note::Wanted(AwaitedWrite { write, reply, held });
        if self.inbox.try_send(wanted).is_err() {
            return Err(too_many_writes());
        }
        written.await.unwrap_or_else(|_| Err(too_many_writes()))
    }

    /// Writes a client down; returns when that is committed.
    pub async fn put_client(&self, client: StoredClient) -> Result<(), StoreFailure> {
        self.write(Acknowledged::Client(client), Box::new(())).await
    }

    /// Forgets a client; returns when that is committed.
    pub async fn delete_client(&self, id: &str) -> Result<(), StoreFailure> {
        let write = Acknowledged::End { session: None, clients: vec![id.to_owned()] };
        self.write(write, Box::new(())).await
    }

    /// Has a client written down in the background.
    pub fn note_client(&self, client: StoredClient) {
        self.note(Note::Put(client));
    }

    /// Has a client forgotten in the background.
    pub fn note_client_gone(&self, id: &str) {
        self.note(Note::Delete(id.to_owned()));
    }

    /// Has a session written down in the background, as it is when its turn comes.
    pub(crate) fn note_session(&self, session: &Arc<Session>) {
        let was_empty = {
            let mut changed = lock(&self.changed);
            let was_empty = changed.is_empty();
            changed.insert(session.id.clone(), session.clone());
            was_empty
        };
        if was_empty {
            // Where there is no room for the note the writer is at work, and looks here when it is done.
            let _full = self.inbox.try_send(Note::Sessions);
        }
    }

    /// Has a session forgotten in the background.
    pub(crate) fn note_session_gone(&self, id: &str) {
        lock(&self.changed).remove(id);
        self.note(Note::DeleteSession(id.to_owned()));
    }

    /// Begins a round, where it is time for one: everybody who was seen since the last one is touched, and who has not
    /// been seen for `idle` is forgotten when the round ends.
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

    /// Returns when every note so far is written, or the store has failed.
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

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
