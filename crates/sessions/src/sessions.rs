//! The table of sessions: create, find, change, list and end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use base64::Engine;
use parking_lot::{Mutex, MutexGuard};
use switchboard_model::ServerName;
use switchboard_store::{Store, StoredClient, StoredSession};
use switchboard_view::{Scope, Switched, View};
use tokio::sync::{broadcast, mpsc};

use crate::change::Change;
use crate::client_session::{CLIENT_PREFIX, client_session_id};
use crate::error::SessionError;
use crate::owner_access::OwnerAccess;
use crate::session::{Beginning, Draft, OwnServer, Session, SessionKind, SessionState};
use crate::session_notice::{SessionNotice, SessionStage, WAITING_NOTICES};
use crate::session_rows;
use crate::write_queue::{Acknowledged, WriteOutcome, WriteQueue, now_ms};
use switchboard_runtime::{CachedView, PublishedSnapshot, Snapshot};

/// A session in a list of sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    pub id: String,
    pub kind: SessionKind,
    pub owner: String,
    pub draft: Draft,
    pub revision: u64,
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
}

impl Summary {
    /// The summary of a session in memory.
    pub fn of(session: &Session) -> Self {
        let now = session.now();
        Self {
            id: session.id.to_string(),
            kind: session.kind,
            owner: session.owner.to_string(),
            draft: now.draft,
            revision: now.revision,
            created_at_ms: session.created_at_ms,
            updated_at_ms: now.updated_at_ms,
        }
    }
}

type Reserved = Arc<Mutex<HashSet<String>>>;

/// Reserves a session id; no other session can be created with it while this is held.
struct Reservation(Reserved, String);

impl Drop for Reservation {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}

/// The sessions in memory and those in the store.
#[derive(Debug)]
pub struct Sessions {
    pub(crate) published: PublishedSnapshot,
    /// Sessions in memory.
    present: Mutex<HashMap<Arc<str>, Arc<Session>>>,
    /// Ids of sessions that are being created.
    reserved: Reserved,
    pub writes: WriteQueue,
    open_scope: Arc<Scope>,
    /// Announces sessions that are created, changed or ended. A slow receiver loses the oldest notices.
    notices: broadcast::Sender<SessionNotice>,
    pub(crate) owners: Arc<OwnerAccess>,
    /// Sessions that somebody else has written, until the task that follows the store takes them.
    pub(crate) superseded: Mutex<Option<mpsc::Receiver<Arc<Session>>>>,
}

/// Superseded sessions that may wait. Those beyond it are noticed by the next comparison with the store.
const WAITING_SUPERSEDED: usize = 4096;

impl Sessions {
    pub fn new(store: Store, published: PublishedSnapshot) -> Self {
        let (superseded, waiting) = mpsc::channel(WAITING_SUPERSEDED);
        Self {
            writes: WriteQueue::start(store, published.clone(), superseded),
            superseded: Mutex::new(Some(waiting)),
            published,
            present: Mutex::default(),
            reserved: Reserved::default(),
            open_scope: Arc::default(),
            notices: broadcast::Sender::new(WAITING_NOTICES),
            owners: Arc::default(),
        }
    }

    /// The published snapshots of the board.
    pub fn published(&self) -> &PublishedSnapshot {
        &self.published
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        self.published.load_full()
    }

    pub(crate) fn present(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Session>>> {
        self.present.lock()
    }

    /// Brings every session in memory to the current snapshot. The revision increases where the tools differ.
    pub fn refresh_all(&self) {
        let present: Vec<_> = self.present().values().cloned().collect();
        for session in present {
            self.view_of(&session);
        }
    }

    /// The view of a session at the current snapshot.
    pub fn view_of(&self, session: &Arc<Session>) -> Arc<CachedView> {
        self.refresh(&self.published.load(), session)
    }

    fn refresh(&self, snapshot: &Snapshot, session: &Arc<Session>) -> Arc<CachedView> {
        let (cached, is_new) = session.refresh(snapshot);
        if is_new {
            self.writes.note_session(session);
            self.notify(session, SessionStage::Changed);
        }
        cached
    }

    /// The view of a session through a scope, in the session's own order of tools. A session that has seen a newer snapshot
    /// than `snapshot` does not go back: if the scope is the session's own, the view is of the newer snapshot.
    pub fn view_through(
        &self,
        snapshot: &Snapshot,
        scope: &Arc<Scope>,
        session: &Arc<Session>,
    ) -> Arc<CachedView> {
        let cached = self.refresh(snapshot, session);
        let own = session.scope();
        if Arc::ptr_eq(scope, &own) || *scope == own {
            return cached;
        }
        let (selection, past) = session.seen();
        snapshot.view(scope, &selection, &past)
    }

    /// Creates a session. It is stored when this returns. Without a name, its id is random and cannot be guessed.
    pub async fn create(
        &self,
        name: Option<&str>,
        owner: &str,
        limit: usize,
        change: Change,
    ) -> Result<Arc<Session>, SessionError> {
        let id = name.map_or_else(random_text, str::to_owned);
        let is_reserved = id.starts_with(CLIENT_PREFIX);
        if name.is_some() && (!ServerName::is_valid(&id) || is_reserved) {
            return Err(SessionError::BadName(id));
        }
        let Some(reservation) = self.reserve(&id) else { return Err(SessionError::Taken(id)) };
        if self.find(&id).await?.is_some() {
            return Err(SessionError::Taken(id));
        }
        let kind = SessionKind::Endpoint.as_str();
        if self.writes.store.count_sessions(owner, kind).await? >= limit as u64 {
            return Err(SessionError::TooMany);
        }
        let snapshot = self.snapshot();
        let scope = self.open_scope.with_access(self.owners.rules_of(owner).as_slice());
        let mut draft = Draft { selection: snapshot.first_selection(&scope), ..Draft::default() };
        let whole = snapshot.view(&scope, &Arc::new(draft.selection.clone()), &Arc::default());
        change.apply(&snapshot, &whole.view, &mut draft)?;
        draft.selection.owner = (!draft.servers.is_empty()).then(|| id.as_str().into());
        let session = self.begin(&snapshot, &id, SessionKind::Endpoint, owner, None, draft);
        let write = Acknowledged::Begin { session: session.clone(), client: None };
        match self.writes.write(write, Box::new(reservation)).await? {
            WriteOutcome::Committed => Ok(self.enter(session)),
            WriteOutcome::Superseded => Err(SessionError::Taken(id)),
        }
    }

    /// Reserves the id of a session that is being created; `None` if another one is being created with it.
    fn reserve(&self, id: &str) -> Option<Reservation> {
        let is_free = self.reserved.lock().insert(id.to_owned());
        is_free.then(|| Reservation(Arc::clone(&self.reserved), id.to_owned()))
    }

    /// Adds a session that has just been stored to the table, and brings it to the current snapshot.
    fn enter(&self, session: Arc<Session>) -> Arc<Session> {
        let session = self.present().entry(session.id.clone()).or_insert(session).clone();
        self.view_of(&session);
        self.notify(&session, SessionStage::Created);
        session
    }

    pub(crate) fn notify(&self, session: &Session, stage: SessionStage) {
        // An error means that nobody listens.
        let _unheard = self.notices.send(SessionNotice::of(session, stage));
    }

    /// Announces the sessions that are created, changed or ended from now on.
    pub fn notices(&self) -> broadcast::Receiver<SessionNotice> {
        self.notices.subscribe()
    }

    fn begin(
        &self,
        snapshot: &Snapshot,
        id: &str,
        kind: SessionKind,
        owner: &str,
        scope: Option<Arc<Scope>>,
        draft: Draft,
    ) -> Arc<Session> {
        let now = now_ms();
        let beginning = Beginning {
            id: id.into(),
            kind,
            owner: owner.into(),
            scope: scope.unwrap_or_else(|| self.open_scope.clone()),
            owners: self.owners.clone(),
            draft,
            past: Arc::default(),
            revision: 1,
            created_at_ms: now,
            updated_at_ms: now,
            version: 0,
        };
        Session::begin(snapshot, beginning)
    }

    /// A session for a new session-era client. It cannot be found and is not stored until [`Self::admit_client`].
    pub fn for_client(&self, client: &str, owner: &str, scope: Arc<Scope>) -> Arc<Session> {
        let snapshot = self.snapshot();
        let selection = snapshot.first_selection(&scope);
        let draft = Draft { selection, ..Draft::default() };
        let id = client_session_id(client);
        self.begin(&snapshot, &id, SessionKind::Client, owner, Some(scope), draft)
    }

    /// Stores a client, and its session if it is the client's own. Returns when both are committed.
    pub async fn admit_client(
        &self,
        client: StoredClient,
        session: &Arc<Session>,
    ) -> Result<(), SessionError> {
        if session.kind != SessionKind::Client {
            return Ok(self.writes.put_client(client).await?);
        }
        let write = Acknowledged::Begin { session: session.clone(), client: Some(client) };
        self.writes.write(write, Box::new(())).await?;
        self.enter(session.clone());
        Ok(())
    }

    /// Adds a client and its session without storing them first. They are stored in the background if the store recovers.
    pub fn admit_unstored_client(&self, client: StoredClient, session: &Arc<Session>) {
        self.enter(session.clone());
        self.writes.note_session(session);
        self.writes.note_new_client(client);
    }

    /// The session that all stateless requests with one credential share, if so configured. Created on first use.
    pub async fn for_principal(&self, owner: &str) -> Result<Arc<Session>, SessionError> {
        let id = format!("principal:{owner}");
        if let Some(session) = self.find(&id).await? {
            return Ok(session);
        }
        let snapshot = self.snapshot();
        let selection = snapshot.first_selection(&self.open_scope);
        let draft = Draft { selection, ..Draft::default() };
        let session = self.begin(&snapshot, &id, SessionKind::Principal, owner, None, draft);
        let entered = self.present().entry(session.id.clone()).or_insert(session).clone();
        self.notify(&entered, SessionStage::Created);
        Ok(entered)
    }

    /// The session of this id, from memory or from the store.
    pub async fn find(&self, id: &str) -> Result<Option<Arc<Session>>, SessionError> {
        let present = self.present().get(id).cloned();
        if present.is_some() {
            return Ok(present);
        }
        let Some(stored) = self.writes.store.session(id).await? else { return Ok(None) };
        let session = self.wake(&stored).await?;
        // Two requests may load the session at the same time; the first one wins.
        Ok(Some(self.present().entry(session.id.clone()).or_insert(session).clone()))
    }

    async fn wake(&self, stored: &StoredSession) -> Result<Arc<Session>, SessionError> {
        let session = Session::begin(&self.snapshot(), self.beginning_of(stored).await?);
        // All changes while the session was not in memory count as one step.
        let is_same = stored.snapshot.as_deref() == Some(session.now().cached.digest());
        if !is_same && stored.snapshot.is_some() {
            session.note_unseen_step();
            self.writes.note_session(&session);
        }
        Ok(session)
    }

    /// The state of a stored session, with the tools that it saw last.
    pub(crate) async fn beginning_of(
        &self,
        stored: &StoredSession,
    ) -> Result<Beginning, SessionError> {
        let tools = match &stored.snapshot {
            Some(digest) => self.writes.store.snapshot(digest).await?,
            None => None,
        };
        Ok(session_rows::revived(stored, tools.as_deref(), self.owners.clone()))
    }

    /// The session of this id if it belongs to `owner`, or to any owner for `None`.
    pub async fn of(&self, id: &str, owner: Option<&str>) -> Result<Arc<Session>, SessionError> {
        let found = self.find(id).await?;
        found
            .filter(|session| owner.is_none_or(|owner| *session.owner == *owner))
            .ok_or_else(|| SessionError::Unknown(id.to_owned()))
    }

    /// Changes a session atomically: the change is stored and in effect when this returns `Ok`, else nothing has changed.
    /// `expected` is the revision that the caller knows. Dropping the future does not undo the change.
    ///
    /// [`SessionError::Contended`] means that another board has written the session: bring it to the newest row, then apply
    /// the change again.
    pub async fn change(
        &self,
        session: &Arc<Session>,
        expected: Option<u64>,
        change: Change,
    ) -> Result<(), SessionError> {
        let id = session.id.clone();
        self.store_change(session, expected, |snapshot, view, draft| {
            change.apply(snapshot, view, draft)?;
            draft.selection.owner = (!draft.servers.is_empty()).then_some(id);
            Ok(())
        })
        .await
    }

    /// The state of a session now, and after a change, which is checked and not made.
    pub fn preview(
        &self,
        session: &Session,
        expected: Option<u64>,
        change: Change,
    ) -> Result<(SessionState, SessionState), SessionError> {
        let ((), next, is_renewed) =
            session.prepare(&self.published, expected, |snapshot, view, draft| {
                change.apply(snapshot, view, draft)
            })?;
        let now = session.now();
        if is_renewed {
            self.notify(session, SessionStage::Changed);
        }
        let next = next.unwrap_or_else(|| now.clone());
        Ok((now, next))
    }

    /// Enables or disables toolsets for a meta-tool, within the scope of its caller. Otherwise as [`Self::change`].
    pub async fn switch(
        &self,
        session: &Arc<Session>,
        scope: &Arc<Scope>,
        decide: impl FnOnce(&View) -> Result<Switched, String>,
    ) -> Result<Switched, SessionError> {
        self.store_change(session, None, |snapshot, view, draft| {
            let seen = snapshot.view(scope, view.selection(), view.past());
            let switched = decide(&seen.view).map_err(SessionError::Refused)?;
            draft.selection = switched.selection.clone();
            Ok(switched)
        })
        .await
    }

    async fn store_change<T>(
        &self,
        session: &Arc<Session>,
        expected: Option<u64>,
        decide: impl FnOnce(&Snapshot, &View, &mut Draft) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let turn = session.turn_to_change().await?;
        let (answer, next, is_renewed) = session.prepare(&self.published, expected, decide)?;
        match next {
            Some(next) => {
                let write = Acknowledged::Change { session: session.clone(), next: Box::new(next) };
                if self.writes.write(write, Box::new(turn)).await? == WriteOutcome::Superseded {
                    return Err(SessionError::Contended);
                }
                self.notify(session, SessionStage::Changed);
            }
            None if is_renewed => self.writes.note_session(session),
            None => {}
        }
        Ok(answer)
    }

    /// The sessions of an owner, or all, oldest first.
    pub async fn list(&self, owner: Option<&str>) -> Result<Vec<Summary>, SessionError> {
        let stored = self.writes.store.sessions(owner).await?;
        Ok(stored.iter().map(|stored| self.summary(stored)).collect())
    }

    fn summary(&self, stored: &StoredSession) -> Summary {
        let present = self.present().get(stored.id.as_str()).cloned();
        // Another board may have written it since.
        let present = present.filter(|session| session.version() >= stored.version);
        present.map_or_else(
            || Summary {
                id: stored.id.clone(),
                kind: SessionKind::read(&stored.kind),
                owner: stored.owner.clone(),
                draft: session_rows::draft_of(stored),
                revision: stored.tools_revision,
                created_at_ms: stored.created_at_ms,
                updated_at_ms: stored.updated_at_ms,
            },
            |session| Summary::of(&session),
        )
    }

    /// Ends a session and these clients. On `Ok` both are removed from the store, else nothing has changed.
    pub async fn end(
        &self,
        session: &Arc<Session>,
        clients: Vec<String>,
    ) -> Result<(), SessionError> {
        let turn = session.turn_to_change().await?;
        let write = Acknowledged::End { session: session.clone(), clients };
        self.writes.write(write, Box::new(turn)).await?;
        self.present().remove(&session.id);
        self.notify(session, SessionStage::Ended);
        Ok(())
    }

    /// Ends the session of a client that was idle for too long. It is removed from the store in the background.
    pub fn expire(&self, session: &Session) {
        self.present().remove(&session.id);
        session.end();
        self.writes.note_session_gone(&session.id);
        self.notify(session, SessionStage::Ended);
    }

    /// Removes unused sessions from memory; they stay stored. One that somebody made and whose tools have changed since that
    /// moment stays in memory: what changed is not stored, and people ask for it. Returns the removed ones that have attached servers.
    pub fn let_go(&self, changed_since_ms: i64) -> Vec<Arc<Session>> {
        let mut gone = Vec::new();
        self.present().retain(|_, session| {
            let is_used =
                Arc::strong_count(session) > 1 || session.has_stepped_since(changed_since_ms);
            if !is_used && session.has_servers() {
                gone.push(session.clone());
            }
            is_used
        });
        gone
    }

    /// The attached servers of a session that is in the store but not in memory.
    pub async fn servers_of_sleeping(
        &self,
        id: &str,
    ) -> Result<BTreeMap<String, OwnServer>, SessionError> {
        if self.present().contains_key(id) {
            return Ok(BTreeMap::new());
        }
        let stored = self.writes.store.session(id).await?;
        Ok(stored.map(|stored| session_rows::draft_of(&stored).servers).unwrap_or_default())
    }
}

/// 143 random bits as text that is valid in a header. It begins with a letter: a leading `-` would be taken for an option on
/// a command line.
pub fn random_text() -> String {
    let mut bytes = [0u8; 18];
    if getrandom::fill(&mut bytes).is_err() {
        // Without system randomness no id is safe; one that is at least unique is used.
        let now = jiff::Timestamp::now().as_nanosecond().to_le_bytes();
        for (to, from) in bytes.iter_mut().zip(now) {
            *to = from;
        }
    }
    bytes[0] &= 0x7f;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::random_text;

    #[test]
    fn an_id_is_no_option_of_a_command_line() {
        for _ in 0..1000 {
            let id = random_text();
            assert!(id.starts_with(|first: char| first.is_ascii_alphabetic()), "{id}");
        }
    }
}
