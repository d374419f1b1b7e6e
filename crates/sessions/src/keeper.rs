//! Writes sessions and clients down, so that they outlive this process.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard_store::{SessionSnapshot, Store, StoreError, StoredClient};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::kept::{snapshot, stored};
use crate::session::{Session, SessionKind};

const WAITING: usize = 16_384;
const PER_WRITE: usize = 256;
/// How often the store is told that a client still lives, and asked to drop those that do not.
const ROUND_EVERY_MS: i64 = 15_000;

enum Note {
    Put(StoredClient),
    Delete(String),
    /// Who was seen when, and since when somebody must have been seen. One note: who lives is never forgotten because the
    /// rest of a round was lost.
    Round {
        seen: Vec<(String, i64)>,
        before_ms: i64,
    },
    /// Sessions have changed; which ones is noted elsewhere.
    Sessions,
    DeleteSession(String),
    Flush(oneshot::Sender<()>),
}

/// Takes notes without making anybody wait for the disk.
pub struct Keeper {
    inbox: mpsc::Sender<Note>,
    pub store: Store,
    /// Sessions that are to be written. A session that changes a hundred times meanwhile is written once.
    changed: Arc<Mutex<HashMap<Arc<str>, Arc<Session>>>>,
    last_round: AtomicI64,
}

/// Who lives and who does not, told to the store. Who is in memory is not expired there: the two agree on who was seen.
#[derive(Debug)]
pub struct Round<'a> {
    keeper: &'a Keeper,
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
        self.keeper.note(Note::Round { seen: self.seen, before_ms });
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

impl Keeper {
    /// The task ends when the keeper is dropped.
    pub fn start(store: Store) -> Self {
        let (inbox, notes) = mpsc::channel(WAITING);
        let changed = Arc::default();
        // Not among the tasks that are waited for: this one ends with the last handle.
        let writer = TaskTracker::new();
        writer.spawn(write(store.clone(), notes, Arc::clone(&changed)));
        Self { inbox, store, changed, last_round: AtomicI64::new(0) }
    }

    fn note(&self, note: Note) {
        if self.inbox.try_send(note).is_err() {
            tracing::warn!("the store is far behind; a client could not be written down");
        }
    }

    /// Writes a client down.
    pub fn put_client(&self, client: StoredClient) {
        self.note(Note::Put(client));
    }

    /// Forgets a client.
    pub fn delete_client(&self, id: &str) {
        self.note(Note::Delete(id.to_owned()));
    }

    /// Writes a session down as it is when its turn comes.
    pub(crate) fn put_session(&self, session: &Arc<Session>) {
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

    pub(crate) fn delete_session(&self, id: &str) {
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
        Some(Round { keeper: self, last_ms, now_ms, idle_ms, seen: Vec::new() })
    }

    /// Returns when everything so far is written.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        if self.inbox.send(Note::Flush(done)).await.is_ok() {
            let _writer_gone = written.await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What one write is about.
#[derive(Default)]
struct Batch {
    puts: HashMap<String, StoredClient>,
    touches: HashMap<String, i64>,
    deletes: Vec<String>,
    deleted_sessions: Vec<String>,
    expiry: Option<i64>,
    flushes: Vec<oneshot::Sender<()>>,
}

impl Batch {
    /// What came last about a client is what counts.
    fn take(&mut self, note: Note) {
        match note {
            Note::Put(client) => {
                self.deletes.retain(|id| *id != client.id);
                self.puts.insert(client.id.clone(), client);
            }
            Note::Delete(id) => {
                self.puts.remove(&id);
                self.touches.remove(&id);
                self.deletes.push(id);
            }
            Note::Round { seen, before_ms } => {
                self.touches.extend(seen);
                self.expiry = Some(before_ms);
            }
            Note::DeleteSession(id) => self.deleted_sessions.push(id),
            Note::Flush(done) => self.flushes.push(done),
            Note::Sessions => {}
        }
    }
}

async fn write(
    store: Store,
    mut inbox: mpsc::Receiver<Note>,
    changed: Arc<Mutex<HashMap<Arc<str>, Arc<Session>>>>,
) {
    let mut notes = Vec::with_capacity(PER_WRITE);
    // Snapshots that are known to be in the store.
    let mut written: HashSet<String> = HashSet::new();
    while inbox.recv_many(&mut notes, PER_WRITE).await > 0 {
        let mut batch = Batch::default();
        for note in notes.drain(..) {
            batch.take(note);
        }
        let sessions: Vec<_> = lock(&changed).drain().map(|(_, session)| session).collect();
        if let Err(error) = keep_sessions(&store, &sessions, &batch, &mut written).await {
            tracing::error!(error = error.in_full(), "sessions could not be written down");
        }
        if let Err(error) = keep_clients(&store, &batch).await {
            tracing::error!(error = error.in_full(), "clients could not be written down");
        }
        if let Some(before_ms) = batch.expiry
            && let Err(error) = expire(&store, before_ms, &mut written).await
        {
            tracing::error!(error = error.in_full(), "what has expired could not be forgotten");
        }
        for done in batch.flushes {
            let _gone = done.send(());
        }
    }
}

async fn keep_sessions(
    store: &Store,
    sessions: &[Arc<Session>],
    batch: &Batch,
    written: &mut HashSet<String>,
) -> Result<(), StoreError> {
    let mut rows = Vec::with_capacity(sessions.len());
    let mut snapshots: Vec<SessionSnapshot> = Vec::new();
    for session in sessions {
        let now = session.now();
        if written.insert(now.look.digest().to_owned()) {
            snapshots.push(snapshot(&now.look));
        }
        rows.push(stored(session, &now));
    }
    if let Err(error) = store.put_sessions(&rows, &snapshots).await {
        for snapshot in snapshots {
            written.remove(&snapshot.digest);
        }
        return Err(error);
    }
    if !batch.deleted_sessions.is_empty() {
        store.delete_sessions(&batch.deleted_sessions).await?;
    }
    Ok(())
}

async fn expire(
    store: &Store,
    before_ms: i64,
    written: &mut HashSet<String>,
) -> Result<(), StoreError> {
    let client = SessionKind::Client.as_str();
    store.expire_clients(client, before_ms).await?;
    store.expire_client_sessions(client, before_ms).await?;
    if store.prune_snapshots().await? > 0 {
        written.clear();
    }
    Ok(())
}

async fn keep_clients(store: &Store, batch: &Batch) -> Result<(), StoreError> {
    let puts: Vec<_> = batch.puts.values().cloned().collect();
    let touches: Vec<_> = batch.touches.iter().map(|(id, at)| (id.clone(), *at)).collect();
    if !puts.is_empty() {
        store.put_clients(&puts).await?;
    }
    if !touches.is_empty() {
        store.touch_clients(&touches).await?;
    }
    if !batch.deletes.is_empty() {
        store.delete_clients(&batch.deletes).await?;
    }
    Ok(())
}
