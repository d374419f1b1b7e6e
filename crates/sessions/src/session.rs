//! One session: its selection of tools, its view, and the history of its revisions.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use switchboard_model::{AccessRules, Secret, ToolStrategy};
use switchboard_store::{SessionVersion, StoreFailure};
use switchboard_view::{Difference, Past, Scope, Selection, View};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use crate::error::SessionError;
use crate::owner_access::OwnerAccess;
use crate::write_queue::now_ms;
use switchboard_runtime::{CachedView, PublishedSnapshot, Snapshot};

/// The number of revision steps that are kept, for clients that reconnect to the event stream.
const KEPT_STEPS: usize = 64;
/// The number of steps whose previous view is kept too, for deltas. A view that is not shared may be large.
const KEPT_LOOKS: usize = 8;

/// How long a change waits for earlier changes of the session, which wait for the store.
const TURN_TIMEOUT: Duration = Duration::from_secs(5);

/// What a session belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionKind {
    /// One session-era client; the session ends with it.
    Client,
    /// An owner who created it, for a chat or as an MCP endpoint that clients of both eras may share.
    Endpoint,
    /// A credential: all its stateless requests share the session.
    Principal,
}

impl SessionKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Endpoint => "endpoint",
            Self::Principal => "principal",
        }
    }

    pub(crate) fn read(word: &str) -> Self {
        match word {
            "client" => Self::Client,
            "principal" => Self::Principal,
            _ => Self::Endpoint,
        }
    }
}

/// The descriptive fields of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    pub title: Option<String>,
    /// The LLM provider and the model that the session uses.
    pub provider: Option<String>,
    pub model: Option<String>,
    /// The name of the credential of the provider; `None` is the default one.
    pub credential: Option<String>,
    /// How the model uses tools; `None` leaves it to the provider.
    pub strategy: Option<ToolStrategy>,
}

/// An MCP server that a session attaches for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnServer {
    pub url: String,
    /// Whether the server has only the HTTP+SSE transport of 2024-11-05.
    pub is_sse: bool,
    /// Headers of every request to the server. They are never shown.
    pub headers: BTreeMap<String, Secret>,
}

/// The part of a session that a change can modify.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    pub about: About,
    pub selection: Selection,
    pub servers: BTreeMap<String, OwnServer>,
}

/// Why the tools of a session changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The session was changed.
    Session,
    /// The catalog or the configuration has changed.
    Catalog,
    /// What the owner of the session may use has changed.
    Access,
}

impl Cause {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Catalog => "catalog",
            Self::Access => "access",
        }
    }
}

/// One step of the revision.
#[derive(Debug, Clone)]
pub struct Step {
    /// The revision after the step.
    pub revision: u64,
    /// The revision before it. It is not always one less: other boards that share the session may have taken steps.
    after: u64,
    pub cause: Cause,
    pub difference: Arc<Difference>,
    pub at_ms: i64,
    /// The view before the step, as long as it is kept.
    before: Option<Arc<CachedView>>,
}

/// The state of a session at one moment.
#[derive(Debug, Clone)]
pub struct SessionState {
    pub draft: Draft,
    pub cached: Arc<CachedView>,
    pub revision: u64,
    pub updated_at_ms: i64,
    /// The version of the stored row that the state follows; 0 if the session is not stored yet.
    pub(crate) version: u64,
}

/// A session: of a chat, of a connected MCP client, or shared by the holders of a credential.
#[derive(Debug)]
pub struct Session {
    pub id: Arc<str>,
    pub kind: SessionKind,
    pub owner: Arc<str>,
    pub created_at_ms: i64,
    /// The scope of the session without the access of its owner; unrestricted unless it belongs to one client.
    pub(crate) own_scope: Arc<Scope>,
    owners: Arc<OwnerAccess>,
    state: Mutex<SessionInner>,
    /// Serialises changes: a change is decided, then stored, and only then in effect.
    changes: Arc<Semaphore>,
    /// The current revision, for waiting on the next one. Created on first use: most sessions have no follower.
    news: OnceLock<watch::Sender<u64>>,
}

#[derive(Debug)]
struct SessionInner {
    about: About,
    servers: BTreeMap<String, OwnServer>,
    cached: Arc<CachedView>,
    /// The scope that `cached` was computed for: the session's own, narrowed to the access of its owner.
    scope: Arc<Scope>,
    /// The version of the snapshot that `cached` was computed from.
    snapshot: u64,
    revision: u64,
    updated_at_ms: i64,
    steps: VecDeque<Step>,
    /// The version of the stored row that was read or written last; 0 before the first.
    version: u64,
    /// When that row was created, which tells a later session of the same name from this one.
    stored_since_ms: i64,
    /// When the version was last compared with the store.
    compared: Instant,
    /// Whether the session has ended and was removed from the table.
    is_ended: bool,
}

/// The initial state of a session, new or loaded from the store.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) id: Arc<str>,
    pub(crate) kind: SessionKind,
    pub(crate) owner: Arc<str>,
    pub(crate) scope: Arc<Scope>,
    pub(crate) owners: Arc<OwnerAccess>,
    pub(crate) draft: Draft,
    pub(crate) past: Arc<Past>,
    pub(crate) revision: u64,
    pub(crate) created_at_ms: i64,
    pub(crate) updated_at_ms: i64,
    /// The version of the row that it was loaded from; 0 for a new session.
    pub(crate) version: u64,
}

/// What a row of the store meant for a session in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowNews {
    /// The session has this version already, or a later one.
    Known,
    /// The row is that of a later session with the same name.
    Replaced,
    /// Somebody else has written the row.
    Newer {
        /// Whether anything of the session is another than before.
        is_changed: bool,
        /// Whether the revision here is higher than that of the row, which must then be written.
        is_ahead: bool,
    },
}

impl Session {
    pub(crate) fn begin(snapshot: &Snapshot, beginning: Beginning) -> Arc<Self> {
        let selection = Arc::new(beginning.draft.selection);
        let access = beginning.owners.rules_of(&beginning.owner);
        let scope = beginning.scope.with_access(access.as_slice());
        let cached = snapshot.view(&scope, &selection, &beginning.past);
        Arc::new(Self {
            id: beginning.id,
            kind: beginning.kind,
            owner: beginning.owner,
            created_at_ms: beginning.created_at_ms,
            own_scope: beginning.scope,
            owners: beginning.owners,
            state: Mutex::new(SessionInner {
                scope,
                about: beginning.draft.about,
                servers: beginning.draft.servers,
                cached,
                snapshot: snapshot.version(),
                revision: beginning.revision,
                updated_at_ms: beginning.updated_at_ms,
                steps: VecDeque::new(),
                version: beginning.version,
                stored_since_ms: beginning.created_at_ms,
                compared: Instant::now(),
                is_ended: false,
            }),
            changes: Arc::new(Semaphore::new(1)),
            news: OnceLock::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, SessionInner> {
        self.state.lock()
    }

    /// The scope of the session, narrowed to what its owner may use.
    pub fn scope(&self) -> Arc<Scope> {
        self.state().scope.clone()
    }

    /// What the owner of the session may use; `None` if nothing is withheld.
    pub(crate) fn owner_rules(&self) -> Option<Arc<AccessRules>> {
        self.owners.rules_of(&self.owner)
    }

    /// The current state, at the snapshot that the session was refreshed to last.
    pub fn now(&self) -> SessionState {
        let state = self.state();
        SessionState {
            draft: state.draft(),
            cached: state.cached.clone(),
            revision: state.revision,
            updated_at_ms: state.updated_at_ms,
            version: state.version,
        }
    }

    /// The version of the stored row that the session follows; 0 if it is not stored yet.
    pub(crate) fn version(&self) -> u64 {
        self.state().version
    }

    /// Whether the session is the one that the store has, in the version that it has; `None` if the store has none.
    pub(crate) fn is_as_stored(&self, stored: Option<&SessionVersion>) -> bool {
        let state = self.state();
        stored.map_or(state.version == 0, |stored| {
            (stored.version, stored.created_at_ms) == (state.version, state.stored_since_ms)
        })
    }

    /// How long ago the session was compared with the store.
    pub(crate) fn unseen_for(&self) -> Duration {
        self.state().compared.elapsed()
    }

    /// Notes that the store had no newer version at this moment.
    pub(crate) fn note_compared(&self, at: Instant) {
        let mut state = self.state();
        state.compared = state.compared.max(at);
    }

    /// Notes that the state that followed this version was stored.
    pub(crate) fn note_stored(&self, followed: u64) {
        let mut state = self.state();
        state.version = state.version.max(followed + 1);
    }

    /// Whether the session has attached servers.
    pub fn has_servers(&self) -> bool {
        !self.state().servers.is_empty()
    }

    pub fn revision(&self) -> u64 {
        self.state().revision
    }

    /// Brings the session to a snapshot. The flag is `true` if that changed the revision, which must then be stored.
    pub(crate) fn refresh(&self, snapshot: &Snapshot) -> (Arc<CachedView>, bool) {
        let mut state = self.state();
        let is_new = self.renew(&mut state, snapshot);
        (state.cached.clone(), is_new)
    }

    /// The selection, with the order and the earlier names of tools, to compute a narrower view of this session.
    pub(crate) fn seen(&self) -> (Arc<Selection>, Arc<Past>) {
        let view = &self.state().cached.clone().view;
        (view.selection().clone(), view.past().clone())
    }

    fn renew(&self, state: &mut SessionInner, snapshot: &Snapshot) -> bool {
        let access = self.owners.rules_of(&self.owner);
        let has_same_access = *state.scope.access == *access.as_slice();
        // A request may still hold an older snapshot; the session never goes back.
        if state.snapshot > snapshot.version()
            || (state.snapshot == snapshot.version() && has_same_access)
        {
            return false;
        }
        state.snapshot = snapshot.version();
        if !has_same_access {
            state.scope = self.own_scope.with_access(access.as_slice());
        }
        let selection = state.cached.view.selection().clone();
        let cached = snapshot.view(&state.scope, &selection, state.cached.view.past());
        let cause = if has_same_access { Cause::Catalog } else { Cause::Access };
        self.step(state, cached, cause, false, now_ms())
    }

    /// Waits until no other change of this session is being stored. While the permit is held, no other change can be made,
    /// so that changes do not overwrite each other.
    pub(crate) async fn turn_to_change(&self) -> Result<OwnedSemaphorePermit, SessionError> {
        let turn = tokio::time::timeout(TURN_TIMEOUT, self.changes.clone().acquire_owned()).await;
        let Ok(Ok(turn)) = turn else {
            let reason = "earlier changes of this session are still being stored";
            let failure = StoreFailure { reason, is_outage: true, in_full: reason.into() };
            return Err(SessionError::Store(failure));
        };
        Ok(turn)
    }

    /// Computes the state of the session after a change, without changing it: `None` if the state would be the same.
    /// `expected` is the revision that the caller knows. The flag says whether the refresh to the current snapshot changed
    /// the revision, which must then be stored.
    ///
    /// The snapshot is loaded under the session's lock, so that a view of an earlier snapshot never replaces a later one.
    pub(crate) fn prepare<T>(
        &self,
        published: &PublishedSnapshot,
        expected: Option<u64>,
        decide: impl FnOnce(&Snapshot, &View, &mut Draft) -> Result<T, SessionError>,
    ) -> Result<(T, Option<SessionState>, bool), SessionError> {
        let mut state = self.state();
        if state.is_ended {
            return Err(SessionError::Unknown(self.id.to_string()));
        }
        let snapshot = &*published.load();
        let is_renewed = self.renew(&mut state, snapshot);
        if let Some(expected) = expected.filter(|expected| *expected != state.revision) {
            return Err(SessionError::Stale { expected, current: state.revision });
        }
        let before = state.draft();
        let mut draft = before.clone();
        let answer = decide(snapshot, &state.cached.view, &mut draft)?;
        if draft == before {
            return Ok((answer, None, is_renewed));
        }
        let mut next = SessionState {
            cached: state.cached.clone(),
            revision: state.revision,
            updated_at_ms: now_ms(),
            version: state.version,
            draft,
        };
        if let Some((cached, is_chosen)) = Self::chosen(&state, snapshot, &next.draft.selection) {
            if is_chosen || !cached.since(&state.cached).lists_same {
                next.revision += 1;
            }
            next.cached = cached;
        }
        Ok((answer, Some(next), is_renewed))
    }

    /// Applies a change that has been decided and stored.
    pub(crate) fn adopt(&self, published: &PublishedSnapshot, next: SessionState) {
        let mut state = self.state();
        // The row was read in the meantime, as this change or a later one made it.
        if state.version > next.version {
            return;
        }
        state.version = next.version + 1;
        let snapshot = &*published.load();
        self.renew(&mut state, snapshot);
        let chosen = Self::chosen(&state, snapshot, &next.draft.selection);
        state.about = next.draft.about;
        state.servers = next.draft.servers;
        state.updated_at_ms = next.updated_at_ms;
        if let Some((cached, is_chosen)) = chosen {
            self.step(&mut state, cached, Cause::Session, is_chosen, next.updated_at_ms);
        }
    }

    /// The view of another selection, and whether it chooses other tools; `None` for the same selection.
    fn chosen(
        state: &SessionInner,
        snapshot: &Snapshot,
        selection: &Selection,
    ) -> Option<(Arc<CachedView>, bool)> {
        let before = state.cached.view.selection();
        if *selection == **before {
            return None;
        }
        // Attaching a server does not change the tools by itself; the server's tools do when they arrive.
        let is_chosen = !selection.chooses_same(before);
        let past = state.cached.view.past();
        Some((snapshot.view(&state.scope, &Arc::new(selection.clone()), past), is_chosen))
    }

    /// Replaces the view. The revision increases if the tools differ, or if it `must`.
    fn step(
        &self,
        state: &mut SessionInner,
        cached: Arc<CachedView>,
        cause: Cause,
        must: bool,
        at_ms: i64,
    ) -> bool {
        let compared = cached.since(&state.cached);
        if compared.lists_same && !must {
            state.cached = cached;
            return false;
        }
        let revision = state.revision + 1;
        self.step_to(state, revision, cached, cause, at_ms);
        true
    }

    fn step_to(
        &self,
        state: &mut SessionInner,
        revision: u64,
        cached: Arc<CachedView>,
        cause: Cause,
        at_ms: i64,
    ) {
        let difference = cached.since(&state.cached).difference.clone();
        let before = std::mem::replace(&mut state.cached, cached);
        let after = std::mem::replace(&mut state.revision, revision);
        state.updated_at_ms = at_ms;
        if state.steps.len() == KEPT_STEPS {
            state.steps.pop_front();
        }
        let place = state.steps.len().checked_sub(KEPT_LOOKS);
        if let Some(older) = place.and_then(|at| state.steps.get_mut(at)) {
            older.before = None;
        }
        let before = Some(before);
        state.steps.push_back(Step { revision, after, cause, difference, at_ms, before });
        if let Some(news) = self.news.get() {
            news.send_replace(revision);
        }
    }

    /// Brings the session to a row that somebody else may have written.
    ///
    /// The revision never goes back, and one number never stands for two lists of this board: where the list differs from
    /// the one that was shown here, the number is a new one. A row of a board with another catalog is not answered with a
    /// write, so two boards whose catalogs differ do not drive the revision up in turns.
    pub(crate) fn follow_row(&self, published: &PublishedSnapshot, row: Beginning) -> RowNews {
        let mut state = self.state();
        if state.is_ended {
            return RowNews::Known;
        }
        if state.version > 0 && row.created_at_ms != state.stored_since_ms {
            return RowNews::Replaced;
        }
        if row.version <= state.version {
            return RowNews::Known;
        }
        let snapshot = &*published.load();
        let Draft { about, selection, servers } = row.draft;
        let is_chosen = selection != **state.cached.view.selection();
        let cached = snapshot.view(&state.scope, &Arc::new(selection), &row.past);
        let has_same_list = cached.since(&state.cached).lists_same;
        let revision = if row.revision > state.revision {
            row.revision
        } else {
            state.revision + u64::from(!has_same_list)
        };
        let is_changed = is_chosen
            || revision != state.revision
            || about != state.about
            || servers != state.servers;
        state.snapshot = snapshot.version();
        state.version = row.version;
        state.stored_since_ms = row.created_at_ms;
        state.about = about;
        state.servers = servers;
        state.updated_at_ms = row.updated_at_ms;
        if revision == state.revision {
            state.cached = cached;
        } else {
            let cause = if is_chosen { Cause::Session } else { Cause::Catalog };
            self.step_to(&mut state, revision, cached, cause, row.updated_at_ms);
        }
        RowNews::Newer { is_changed, is_ahead: revision > row.revision }
    }

    /// Increases the revision for changes while the session was not in memory; their details are unknown.
    pub(crate) fn note_unseen_step(&self) {
        let mut state = self.state();
        state.revision += 1;
        state.updated_at_ms = now_ms();
    }

    /// Ends the session and closes the channels of its followers.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.is_ended = true;
        if let Some(news) = self.news.get() {
            news.send_replace(state.revision);
        }
    }

    /// Whether the session has ended while a reference to it was held.
    pub fn is_ended(&self) -> bool {
        self.state().is_ended
    }

    /// A channel with the current revision and all later ones. It closes when the session ends.
    pub fn follow(&self) -> watch::Receiver<u64> {
        let news = self.news.get_or_init(|| watch::Sender::new(0));
        // Under the lock: each step is either in this value or sent afterwards.
        let state = self.state();
        news.send_replace(state.revision);
        news.subscribe()
    }

    /// The steps after a revision, oldest first; `None` when some of them are no longer kept.
    pub fn steps_after(&self, revision: u64) -> Option<Vec<Step>> {
        let state = self.state();
        if revision == state.revision {
            return Some(Vec::new());
        }
        let first = state.steps.iter().position(|step| step.after == revision)?;
        Some(state.steps.iter().skip(first).cloned().collect())
    }

    /// Whether the tools of a session that somebody made have changed since a moment, as far as it is known. Sessions of clients
    /// do not count: they are many, and often left behind.
    pub(crate) fn has_stepped_since(&self, moment_ms: i64) -> bool {
        self.kind == SessionKind::Endpoint
            && self.state().steps.back().is_some_and(|step| step.at_ms >= moment_ms)
    }

    /// The view at a revision, as long as it is kept.
    pub fn view_at(&self, revision: u64) -> Option<Arc<CachedView>> {
        let state = self.state();
        if revision == state.revision {
            return Some(state.cached.clone());
        }
        state.steps.iter().find(|step| step.after == revision)?.before.clone()
    }
}

impl SessionInner {
    fn draft(&self) -> Draft {
        Draft {
            about: self.about.clone(),
            selection: Selection::clone(self.cached.view.selection()),
            servers: self.servers.clone(),
        }
    }
}
