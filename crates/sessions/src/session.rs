//! One session: what is chosen in it, what it sees, and how that came to be.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use switchboard_model::Secret;
use switchboard_store::StoreFailure;
use switchboard_view::{Difference, Past, Scope, Selection, View};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::error::SessionError;
use crate::write_queue::now_ms;
use switchboard_runtime::{CachedView, PublishedSnapshot, Snapshot};

/// Steps that are remembered, for listeners who come back.
const KEPT_STEPS: usize = 64;
/// Of these, steps whose tools are remembered too, for deltas. Looks may be large where nobody shares them.
const KEPT_LOOKS: usize = 8;

/// How long a change waits for those before it. Each of them waits for the store, which may be slow.
const TURN_TIMEOUT: Duration = Duration::from_secs(5);

/// Whose session it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionKind {
    /// Of one legacy client; ends with it.
    Client,
    /// Made by somebody, for a chat or as an endpoint that clients of both eras may share.
    Endpoint,
    /// Of everybody who shows the same credential.
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

/// What people say about a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    pub title: Option<String>,
    /// The provider that it talks to, and the model there.
    pub provider: Option<String>,
    pub model: Option<String>,
}

/// An MCP server that a session brings with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnServer {
    pub url: String,
    /// The legacy transport, where the server has no other.
    pub is_sse: bool,
    /// Sent with every request to it, and shown to nobody.
    pub headers: BTreeMap<String, Secret>,
}

/// What a change may touch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    pub about: About,
    pub selection: Selection,
    pub servers: BTreeMap<String, OwnServer>,
}

/// Why the tools of a session changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Somebody changed the session.
    Session,
    /// The servers, or the configuration, have others now.
    Catalog,
}

impl Cause {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Catalog => "catalog",
        }
    }
}

/// One step of the revision.
#[derive(Debug, Clone)]
pub struct Step {
    /// The revision that it led to.
    pub revision: u64,
    pub cause: Cause,
    pub difference: Arc<Difference>,
    pub at_ms: i64,
    /// What was seen before it, while that is remembered.
    before: Option<Arc<CachedView>>,
}

/// What a session is at one moment.
#[derive(Debug, Clone)]
pub struct SessionState {
    pub draft: Draft,
    pub cached: Arc<CachedView>,
    pub revision: u64,
    pub updated_at_ms: i64,
}

/// A chat, or a connected MCP client.
#[derive(Debug)]
pub struct Session {
    pub id: Arc<str>,
    pub kind: SessionKind,
    pub owner: Arc<str>,
    pub created_at_ms: i64,
    /// What it narrows itself to; nothing unless it is the session of one client.
    pub scope: Arc<Scope>,
    state: Mutex<SessionInner>,
    /// One change at a time: a change is decided, stored, and only then in force.
    changes: Arc<Semaphore>,
    /// The revision, for who waits for the next one. Few sessions are waited for.
    news: OnceLock<watch::Sender<u64>>,
}

#[derive(Debug)]
struct SessionInner {
    about: About,
    servers: BTreeMap<String, OwnServer>,
    cached: Arc<CachedView>,
    /// The snapshot that `cached` is from.
    snapshot: u64,
    revision: u64,
    updated_at_ms: i64,
    steps: VecDeque<Step>,
    /// Nobody will find it any more.
    is_ended: bool,
}

/// What a session begins with.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) id: Arc<str>,
    pub(crate) kind: SessionKind,
    pub(crate) owner: Arc<str>,
    pub(crate) scope: Arc<Scope>,
    pub(crate) draft: Draft,
    pub(crate) past: Arc<Past>,
    pub(crate) revision: u64,
    pub(crate) created_at_ms: i64,
    pub(crate) updated_at_ms: i64,
}

impl Session {
    pub(crate) fn begin(snapshot: &Snapshot, beginning: Beginning) -> Arc<Self> {
        let selection = Arc::new(beginning.draft.selection);
        let cached = snapshot.view(&beginning.scope, &selection, &beginning.past);
        Arc::new(Self {
            id: beginning.id,
            kind: beginning.kind,
            owner: beginning.owner,
            created_at_ms: beginning.created_at_ms,
            scope: beginning.scope,
            state: Mutex::new(SessionInner {
                about: beginning.draft.about,
                servers: beginning.draft.servers,
                cached,
                snapshot: snapshot.version(),
                revision: beginning.revision,
                updated_at_ms: beginning.updated_at_ms,
                steps: VecDeque::new(),
                is_ended: false,
            }),
            changes: Arc::new(Semaphore::new(1)),
            news: OnceLock::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, SessionInner> {
        self.state.lock()
    }

    /// What it is now, as far as it has looked.
    pub fn now(&self) -> SessionState {
        let state = self.state();
        SessionState {
            draft: state.draft(),
            cached: state.cached.clone(),
            revision: state.revision,
            updated_at_ms: state.updated_at_ms,
        }
    }

    /// Whether it brought servers of its own.
    pub fn has_servers(&self) -> bool {
        !self.state().servers.is_empty()
    }

    pub fn revision(&self) -> u64 {
        self.state().revision
    }

    /// Brings the session to a snapshot; `true` when that made a step, which is to be written down.
    pub(crate) fn refresh(&self, snapshot: &Snapshot) -> (Arc<CachedView>, bool) {
        let mut state = self.state();
        let is_new = self.renew(&mut state, snapshot);
        (state.cached.clone(), is_new)
    }

    /// The order and the earlier names for a narrower view of this session, with what is chosen.
    pub(crate) fn seen(&self) -> (Arc<Selection>, Arc<Past>) {
        let view = &self.state().cached.clone().view;
        (view.selection().clone(), view.past().clone())
    }

    fn renew(&self, state: &mut SessionInner, snapshot: &Snapshot) -> bool {
        // A request may still hold an older snapshot; the session does not go back.
        if state.snapshot >= snapshot.version() {
            return false;
        }
        state.snapshot = snapshot.version();
        let selection = state.cached.view.selection().clone();
        let cached = snapshot.view(&self.scope, &selection, state.cached.view.past());
        self.step(state, cached, Cause::Catalog, false, now_ms())
    }

    /// Waits until no other change of this session is being stored. Changes that are made while the turn is held never
    /// undo each other.
    pub(crate) async fn turn_to_change(&self) -> Result<OwnedSemaphorePermit, SessionError> {
        let turn = tokio::time::timeout(TURN_TIMEOUT, self.changes.clone().acquire_owned()).await;
        let Ok(Ok(turn)) = turn else {
            let reason = "earlier changes of this session are still being stored";
            let failure = StoreFailure { reason, is_outage: true, in_full: reason.into() };
            return Err(SessionError::Store(failure));
        };
        Ok(turn)
    }

    /// Decides a change and says what the session would be with it, without changing anything yet: `None` where it
    /// would stay the same. `expected` is the revision that the caller has seen. The flag says whether looking at the
    /// snapshot made a step that is to be written down.
    ///
    /// The snapshot is loaded under the session's lock, so that no view of an earlier snapshot replaces a later one.
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
            draft,
        };
        if let Some((cached, is_chosen)) = self.chosen(&state, snapshot, &next.draft.selection) {
            if is_chosen || !cached.since(&state.cached).lists_same {
                next.revision += 1;
            }
            next.cached = cached;
        }
        Ok((answer, Some(next), is_renewed))
    }

    /// Brings a change into force that has been decided and stored.
    pub(crate) fn adopt(&self, published: &PublishedSnapshot, next: SessionState) {
        let mut state = self.state();
        let snapshot = &*published.load();
        self.renew(&mut state, snapshot);
        let chosen = self.chosen(&state, snapshot, &next.draft.selection);
        state.about = next.draft.about;
        state.servers = next.draft.servers;
        state.updated_at_ms = next.updated_at_ms;
        if let Some((cached, is_chosen)) = chosen {
            self.step(&mut state, cached, Cause::Session, is_chosen, next.updated_at_ms);
        }
    }

    /// What another selection shows, and whether it is another choice; `None` for the same selection.
    fn chosen(
        &self,
        state: &SessionInner,
        snapshot: &Snapshot,
        selection: &Selection,
    ) -> Option<(Arc<CachedView>, bool)> {
        let before = state.cached.view.selection();
        if *selection == **before {
            return None;
        }
        // That it brings servers now changes nothing by itself: their tools do, when they come.
        let is_chosen = !selection.chooses_same(before);
        let past = state.cached.view.past();
        Some((snapshot.view(&self.scope, &Arc::new(selection.clone()), past), is_chosen))
    }

    /// Takes another view, and a step of the revision where that shows something else (or must).
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
        let before = std::mem::replace(&mut state.cached, cached);
        state.revision += 1;
        state.updated_at_ms = at_ms;
        if state.steps.len() == KEPT_STEPS {
            state.steps.pop_front();
        }
        let place = state.steps.len().checked_sub(KEPT_LOOKS);
        if let Some(older) = place.and_then(|at| state.steps.get_mut(at)) {
            older.before = None;
        }
        state.steps.push_back(Step {
            revision: state.revision,
            cause,
            difference: compared.difference.clone(),
            at_ms: state.updated_at_ms,
            before: Some(before),
        });
        if let Some(news) = self.news.get() {
            news.send_replace(state.revision);
        }
        true
    }

    /// A step that was made while the session was asleep; nobody knows any more what it was.
    pub(crate) fn note_unseen_step(&self) {
        let mut state = self.state();
        state.revision += 1;
        state.updated_at_ms = now_ms();
    }

    /// Lets go of who follows it.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.is_ended = true;
        if let Some(news) = self.news.get() {
            news.send_replace(state.revision);
        }
    }

    /// Whether it was ended while somebody held it.
    pub fn is_ended(&self) -> bool {
        self.state().is_ended
    }

    /// Follows the revision.
    pub fn follow(&self) -> watch::Receiver<u64> {
        let news = self.news.get_or_init(|| watch::Sender::new(0));
        // Taken under the lock: a step is either seen here or told afterwards.
        let state = self.state();
        news.send_replace(state.revision);
        news.subscribe()
    }

    /// The steps after a revision, oldest first; `None` when they are no longer all remembered.
    pub fn steps_after(&self, revision: u64) -> Option<Vec<Step>> {
        let state = self.state();
        let first = state.steps.front().map_or(state.revision + 1, |step| step.revision);
        if revision > state.revision || revision + 1 < first {
            return None;
        }
        Some(state.steps.iter().filter(|step| step.revision > revision).cloned().collect())
    }

    /// What was seen at a revision, while that is remembered.
    pub fn view_at(&self, revision: u64) -> Option<Arc<CachedView>> {
        let state = self.state();
        if revision == state.revision {
            return Some(state.cached.clone());
        }
        state.steps.iter().find(|step| step.revision == revision + 1)?.before.clone()
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
