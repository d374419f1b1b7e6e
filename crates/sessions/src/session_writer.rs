//! The task that writes sessions and clients to the store: acknowledged writes first, then background writes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use switchboard_store::{
    ChangeHint, HintTopic, SessionBatch, Store, StoreError, StoreFailure, StoredClient,
};
use tokio::sync::mpsc;

use crate::session::{Session, SessionKind, SessionState};
use crate::session_rows::{snapshot, stored};
use crate::write_queue::{Acknowledged, AwaitedWrite, Changed, Note, WriteOutcome};
use switchboard_runtime::PublishedSnapshot;

const PER_WRITE: usize = 256;
/// The maximum number of background writes of each kind that wait for a retry. Further ones are lost: a client is then
/// restored with an earlier state, or gets a notification of a change that it knows.
const MOST_NOTED: usize = 16_384;

pub(crate) struct SessionWriter {
    store: Store,
    published: PublishedSnapshot,
    changed: Changed,
    noted: Noted,
    /// Digests of tool lists that are known to be in the store.
    written: HashSet<String>,
    /// Sessions that somebody else has written.
    superseded: mpsc::Sender<Arc<Session>>,
}

/// Background writes. They stay here until they are committed.
#[derive(Default)]
struct Noted {
    puts: HashMap<String, StoredClient>,
    touches: HashMap<String, i64>,
    deletes: HashSet<String>,
    deleted_sessions: HashSet<String>,
    expiry: Option<i64>,
}

impl SessionWriter {
    pub(crate) fn new(
        store: Store,
        published: PublishedSnapshot,
        changed: Changed,
        superseded: mpsc::Sender<Arc<Session>>,
    ) -> Self {
        let (noted, written) = (Noted::default(), HashSet::new());
        Self { store, published, changed, noted, written, superseded }
    }

    pub(crate) async fn run(mut self, mut inbox: mpsc::Receiver<Note>) {
        let mut notes = Vec::with_capacity(PER_WRITE);
        let mut outages = self.store.outages();
        loop {
            tokio::select! {
                count = inbox.recv_many(&mut notes, PER_WRITE) => if count == 0 { return },
                // Retry failed writes as soon as the store recovers.
                Ok(()) = outages.changed() => {}
            }
            let (mut wanted, mut flushes) = (Vec::new(), Vec::new());
            for note in notes.drain(..) {
                match note {
                    Note::Wanted(one) => wanted.push(one),
                    Note::Flush(done) => flushes.push(done),
                    note => self.noted.take(note),
                }
            }
            self.write_wanted(wanted).await;
            // During an outage, background writes would only delay the acknowledged ones.
            if self.store.outage().is_none() {
                self.write_noted().await;
            }
            for done in flushes {
                let _gone = done.send(());
            }
        }
    }

    /// Commits the acknowledged writes in one transaction, applies them in memory and reports the result.
    async fn write_wanted(&mut self, wanted: Vec<AwaitedWrite>) {
        if wanted.is_empty() {
            return;
        }
        let mut batch = SessionBatch::default();
        for one in &wanted {
            self.add(&mut batch, &one.write);
        }
        match self.store.write_sessions(&batch).await {
            Ok(superseded) => {
                self.written.extend(batch.snapshots.into_iter().map(|snapshot| snapshot.digest));
                for AwaitedWrite { write, reply, held } in wanted {
                    let is_superseded = match &write {
                        Acknowledged::Begin { session, .. }
                        | Acknowledged::Change { session, .. } => superseded.contains(&*session.id),
                        Acknowledged::Client(_)
                        | Acknowledged::End { .. }
                        | Acknowledged::EndClient { .. } => false,
                    };
                    let written = if is_superseded {
                        self.never_began(&write);
                        WriteOutcome::Superseded
                    } else {
                        self.bring_into_force(write);
                        WriteOutcome::Committed
                    };
                    drop(held);
                    let _gone = reply.send(Ok(written));
                }
            }
            Err(error) => {
                let failure = StoreFailure::from(error);
                for AwaitedWrite { write, reply, held } in wanted {
                    self.never_began(&write);
                    drop(held);
                    let _gone = reply.send(Err(failure.clone()));
                }
            }
        }
    }

    /// A session that could not be stored was never created.
    fn never_began(&self, write: &Acknowledged) {
        if let Acknowledged::Begin { session, .. } = write {
            self.changed.lock().remove(&session.id);
        }
    }

    /// Tells other boards of a session that was written, or, without a version, deleted or written in another way.
    fn tell(&self, session: &str, version: Option<u64>) {
        let version = version.and_then(|version| i64::try_from(version).ok()).unwrap_or(i64::MAX);
        let key = session.to_owned();
        self.store.hints().publish(ChangeHint { topic: HintTopic::Session, key, version });
    }

    fn add(&self, batch: &mut SessionBatch, write: &Acknowledged) {
        match write {
            Acknowledged::Begin { session, client } => {
                self.add_session(batch, session, &session.now());
                batch.clients.extend(client.clone());
            }
            Acknowledged::Change { session, next } => self.add_session(batch, session, next),
            Acknowledged::Client(client) => {
                batch.clients.push(client.clone());
                self.add_session_of_client(batch, client.session.as_deref());
            }
            Acknowledged::End { session, clients } => {
                batch.deleted_clients.extend(clients.iter().cloned());
                batch.deleted_sessions.push(session.id.to_string());
            }
            Acknowledged::EndClient { session, client } => {
                batch.deleted_clients.push(client.clone());
                self.add_session_of_client(batch, Some(session));
            }
        }
    }

    fn add_session_of_client(&self, batch: &mut SessionBatch, session: Option<&str>) {
        if self.store.is_shared() {
            batch.sessions_of_clients.extend(session.map(str::to_owned));
        }
    }

    fn add_session(&self, batch: &mut SessionBatch, session: &Session, now: &SessionState) {
        let digest = now.cached.digest();
        // Another board may have pruned a list that no session named for a while.
        let is_stored = !self.store.is_shared() && self.written.contains(digest);
        let is_known =
            is_stored || batch.snapshots.iter().any(|snapshot| snapshot.digest == digest);
        if !is_known {
            batch.snapshots.push(snapshot(&now.cached));
        }
        batch.sessions.push(stored(session, now));
    }

    fn bring_into_force(&mut self, write: Acknowledged) {
        match write {
            Acknowledged::Change { session, next } => {
                self.tell(&session.id, Some(next.version + 1));
                let (revision, digest) = (next.revision, next.cached.digest().to_owned());
                session.adopt(&self.published, *next);
                let now = session.now();
                // The catalog changed while the change was being stored: the session has taken a further step.
                if now.revision != revision || now.cached.digest() != digest {
                    self.changed.lock().insert(session.id.clone(), session);
                }
            }
            Acknowledged::End { session, clients } => {
                for client in &clients {
                    self.noted.forget_client(client);
                }
                self.tell(&session.id, None);
                session.end();
                self.changed.lock().remove(&session.id);
            }
            Acknowledged::EndClient { session, client } => {
                self.noted.forget_client(&client);
                self.tell(&session, None);
            }
            Acknowledged::Client(client) => {
                self.noted.puts.remove(&client.id);
                if let Some(session) = client.session {
                    self.tell(&session, None);
                }
            }
            Acknowledged::Begin { session, client } => {
                session.note_stored(0);
                self.noted.deleted_sessions.remove(&*session.id);
                if let Some(client) = client {
                    self.noted.deletes.remove(&client.id);
                }
            }
        }
    }

    /// Commits the background writes. Those that fail are kept for a retry.
    async fn write_noted(&mut self) {
        let sessions: Vec<_> = {
            let mut changed = self.changed.lock();
            changed.drain().map(|(_, session)| session).filter(|it| !it.is_ended()).collect()
        };
        if let Err(error) = self.try_noted(&sessions).await {
            tracing::debug!(
                error = error.in_full(),
                "sessions could not be stored yet; the write is retried"
            );
            let mut changed = self.changed.lock();
            for session in sessions {
                // A step that is lost here is detected when the session is loaded from the store.
                if changed.len() < MOST_NOTED {
                    changed.entry(session.id.clone()).or_insert(session);
                }
            }
        }
    }

    async fn try_noted(&mut self, sessions: &[Arc<Session>]) -> Result<(), StoreError> {
        let mut batch = self.noted.batch();
        for session in sessions {
            self.add_session(&mut batch, session, &session.now());
        }
        let superseded = self.store.write_sessions(&batch).await?;
        self.written.extend(batch.snapshots.into_iter().map(|snapshot| snapshot.digest));
        for (session, written) in sessions.iter().zip(&batch.sessions) {
            if superseded.contains(&written.id) {
                // If nobody takes it, the next comparison with the store notices it.
                let _full = self.superseded.try_send(session.clone());
            } else {
                session.note_stored(written.version);
                self.tell(&session.id, Some(written.version + 1));
            }
        }
        let Noted { expiry, .. } = std::mem::take(&mut self.noted);
        if let Some(before_ms) = expiry {
            self.expire(before_ms).await?;
        }
        Ok(())
    }

    async fn expire(&mut self, before_ms: i64) -> Result<(), StoreError> {
        let client = SessionKind::Client.as_str();
        self.store.expire_clients(client, before_ms).await?;
        self.store.expire_client_sessions(client, before_ms).await?;
        if self.store.prune_snapshots().await? > 0 {
            self.written.clear();
        }
        Ok(())
    }
}

impl Noted {
    /// Merges a background write with those that wait: the latest about a client wins.
    fn take(&mut self, note: Note) {
        match note {
            Note::Put(client) => {
                self.deletes.remove(&client.id);
                if self.puts.len() < MOST_NOTED || self.puts.contains_key(&client.id) {
                    self.puts.insert(client.id.clone(), client);
                }
            }
            Note::Delete(id) => {
                self.forget_client(&id);
                if self.deletes.len() < MOST_NOTED {
                    self.deletes.insert(id);
                }
            }
            Note::Touch(id, at_ms) => self.touch(id, at_ms),
            Note::Round { seen, before_ms } => {
                for (id, at_ms) in seen {
                    self.touch(id, at_ms);
                }
                self.expiry = Some(before_ms);
            }
            Note::DeleteSession(id) => {
                if self.deleted_sessions.len() < MOST_NOTED {
                    self.deleted_sessions.insert(id);
                }
            }
            Note::Sessions | Note::Wanted(_) | Note::Flush(_) => {}
        }
    }

    fn forget_client(&mut self, id: &str) {
        self.puts.remove(id);
        self.touches.remove(id);
    }

    fn touch(&mut self, id: String, at_ms: i64) {
        if self.touches.len() < MOST_NOTED || self.touches.contains_key(&id) {
            self.touches.insert(id, at_ms);
        }
    }

    fn batch(&self) -> SessionBatch {
        SessionBatch {
            clients: self.puts.values().cloned().collect(),
            touched_clients: self.touches.iter().map(|(id, at)| (id.clone(), *at)).collect(),
            deleted_clients: self.deletes.iter().cloned().collect(),
            deleted_sessions: self.deleted_sessions.iter().cloned().collect(),
            ..SessionBatch::default()
        }
    }
}
