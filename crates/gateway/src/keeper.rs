//! Writes sessions down, so that they outlive this process.

use std::collections::HashMap;

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use switchboard_store::{Store, StoredSession};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::client::Client;
use crate::session::{Session, SessionKind};

const WAITING: usize = 16_384;
const PER_WRITE: usize = 256;
/// How often the store is told that a session still lives, and asked to drop those that do not.
const TOUCH_EVERY_MS: i64 = 15_000;

enum Note {
    Put(StoredSession),
    Touch(String, i64),
    Delete(String),
    Expire { before_ms: i64 },
    Flush(oneshot::Sender<()>),
}

/// Takes notes without making anybody wait for the disk.
pub(crate) struct Keeper {
    inbox: mpsc::Sender<Note>,
    pub(crate) store: Store,
    last_touch: AtomicI64,
    last_expiry: AtomicI64,
}

pub(crate) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

impl Keeper {
    /// The task ends when the keeper is dropped.
    pub(crate) fn start(store: Store) -> Self {
        let (inbox, notes) = mpsc::channel(WAITING);
        // Not among the tasks of the gateway, which are waited for: this one ends with the last handle.
        let writer = TaskTracker::new();
        writer.spawn(write(store.clone(), notes));
        Self { inbox, store, last_touch: AtomicI64::new(0), last_expiry: AtomicI64::new(0) }
    }

    fn note(&self, note: Note) {
        if self.inbox.try_send(note).is_err() {
            tracing::warn!("the store is far behind; a session could not be written down");
        }
    }

    pub(crate) fn put(&self, session: StoredSession) {
        self.note(Note::Put(session));
    }

    pub(crate) fn put_session(&self, session: &Session) {
        let enabled: Vec<String> = session.enabled().iter().cloned().collect();
        self.note(Note::Put(StoredSession {
            id: session.id.to_string(),
            kind: session.kind.as_str().into(),
            owner: session.owner.to_string(),
            state: serde_json::json!({ "enabled": enabled }).to_string(),
            created_at_ms: session.created_at_ms,
            last_seen_at_ms: now_ms(),
        }));
    }

    pub(crate) fn delete(&self, id: &str) {
        self.note(Note::Delete(id.to_owned()));
    }

    /// Says that a client still lives, not too often.
    pub(crate) fn touch(&self, client: &Client) {
        let now = now_ms();
        if now - self.last_touch.load(Ordering::Relaxed) >= TOUCH_EVERY_MS {
            self.note(Note::Touch(client.id.to_string(), now));
        }
    }

    pub(crate) fn expire(&self, idle: Duration) {
        let now = now_ms();
        if now - self.last_touch.load(Ordering::Relaxed) >= TOUCH_EVERY_MS {
            self.last_touch.store(now, Ordering::Relaxed);
        }
        let idle_ms = i64::try_from(idle.as_millis()).unwrap_or(i64::MAX);
        if now - self.last_expiry.load(Ordering::Relaxed) >= (idle_ms / 4).min(TOUCH_EVERY_MS) {
            self.last_expiry.store(now, Ordering::Relaxed);
            self.note(Note::Expire { before_ms: now.saturating_sub(idle_ms) });
        }
    }

    /// Returns when everything so far is written.
    pub(crate) async fn flush(&self) {
        let (done, written) = oneshot::channel();
        if self.inbox.send(Note::Flush(done)).await.is_ok() {
            let _writer_gone = written.await;
        }
    }
}

async fn write(store: Store, mut inbox: mpsc::Receiver<Note>) {
    let mut notes = Vec::with_capacity(PER_WRITE);
    while inbox.recv_many(&mut notes, PER_WRITE).await > 0 {
        // What came last about a session is what counts.
        let mut puts: HashMap<String, StoredSession> = HashMap::new();
        let mut touches: HashMap<String, i64> = HashMap::new();
        let mut deletes: Vec<String> = Vec::new();
        let mut expiry = None;
        let mut flushes = Vec::new();
        for note in notes.drain(..) {
            match note {
                Note::Put(session) => {
                    deletes.retain(|id| *id != session.id);
                    puts.insert(session.id.clone(), session);
                }
                Note::Touch(id, now) => {
                    touches.insert(id, now);
                }
                Note::Delete(id) => {
                    puts.remove(&id);
                    touches.remove(&id);
                    deletes.push(id);
                }
                Note::Expire { before_ms } => expiry = Some(before_ms),
                Note::Flush(done) => flushes.push(done),
            }
        }
        let puts: Vec<_> = puts.into_values().collect();
        let touches: Vec<_> = touches.into_iter().collect();
        if let Err(error) = keep(&store, &puts, &touches, &deletes, expiry).await {
            tracing::error!(%error, "sessions could not be written down");
        }
        for done in flushes {
            let _gone = done.send(());
        }
    }
}

async fn keep(
    store: &Store,
    puts: &[StoredSession],
    touches: &[(String, i64)],
    deletes: &[String],
    expiry: Option<i64>,
) -> Result<(), switchboard_store::StoreError> {
    if !puts.is_empty() {
        store.put_sessions(puts).await?;
    }
    if !touches.is_empty() {
        store.touch_sessions(touches).await?;
    }
    if !deletes.is_empty() {
        store.delete_sessions(deletes).await?;
    }
    if let Some(before_ms) = expiry {
        store.expire_sessions(SessionKind::Client.as_str(), before_ms).await?;
    }
    Ok(())
}
