//! The sessions of a board, as used by the MCP server, the HTTP API, turns and the command line.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_model::{CanonicalName, LiveAccess, ServerName};
use switchboard_runtime::{Board, CachedView, Snapshot, StartupStage};
use switchboard_view::{Scope, ToolGroups, Toolset};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;

use crate::session::Session;
use crate::session_clients::StatelessClients;
use crate::sessions::Sessions;
use crate::startup::CatalogShown;
use crate::write_queue::now_ms;

/// The maximum number of distinct warnings about names and patterns that are logged in one run.
const MAX_WARNINGS: usize = 1_000;
/// How often unused sessions are removed from memory.
const SWEEP_EVERY: Duration = Duration::from_secs(15);
/// How long the last changes of a session's tools can be asked for at least.
const STEPS_STAY: Duration = Duration::from_mins(10);

/// A component that shows sessions to clients of its own, such as the MCP server. Its methods are called in the order of
/// the changes and must not block.
pub trait SessionObserver: Send + Sync {
    /// A new snapshot is in effect, and every session in memory has its view of it. `is_starting` is true while the board
    /// still connects its servers.
    fn snapshot_published(&self, is_starting: bool);

    /// A session has been changed.
    fn session_changed(&self, session: &Arc<Session>);

    /// A session was brought to what another board has stored. Its stored clients may have changed, too.
    fn session_followed(&self, session: &Arc<Session>);

    /// The ids of the stored clients that end together with a session.
    fn clients_of(&self, session: &Arc<Session>) -> Vec<String>;

    /// A session has ended. The observer must end its clients.
    fn session_ended(&self, session: &Arc<Session>);
}

/// The sessions of a board and everything they do: lifecycle, attached servers, views, calls and meta-tools.
///
/// A request loads one snapshot here and uses it for all decisions. [`SessionService::shutdown`] ends the service.
pub struct SessionService {
    pub(crate) board: Arc<Board>,
    pub(crate) sessions: Sessions,
    pub(crate) shown: CatalogShown,
    pub(crate) stateless_clients: StatelessClients,
    pub(crate) stop: CancellationToken,
    observers: Mutex<Vec<Weak<dyn SessionObserver>>>,
    /// Warnings that have been logged, so that a server that reconnects does not repeat them.
    warned_of: Mutex<HashSet<String>>,
    tasks: TaskTracker,
}

impl std::fmt::Debug for SessionService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionService").finish_non_exhaustive()
    }
}

impl SessionService {
    /// Starts to follow the snapshots of the board.
    pub fn start(board: Arc<Board>) -> Arc<Self> {
        // Read before the first snapshot is loaded: if the start is finished, that snapshot is complete.
        let is_started = board.startup().is_finished();
        let sessions = Sessions::new(board.store().clone(), board.published().clone());
        let service = Arc::new(Self {
            board,
            sessions,
            shown: CatalogShown::default(),
            stateless_clients: StatelessClients::default(),
            stop: CancellationToken::new(),
            observers: Mutex::default(),
            warned_of: Mutex::default(),
            tasks: TaskTracker::new(),
        });
        if is_started {
            service.shown.note(StartupStage::Finished);
            service.warn_once();
        }
        service.tasks.spawn(follow(service.clone()));
        service.tasks.spawn(sweep(service.clone()));
        service.tasks.spawn(service.clone().follow_store());
        service
    }

    /// Registers an observer. It is removed when it is dropped.
    pub fn observe(&self, observer: Weak<dyn SessionObserver>) {
        let mut observers = self.observers.lock();
        observers.retain(|observer| observer.strong_count() > 0);
        observers.push(observer);
    }

    fn observers(&self) -> Vec<Arc<dyn SessionObserver>> {
        self.observers.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Writes everything that waits to be written, and ends the tasks. Observers must have queued their clients before.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        self.sessions.writes.flush().await;
        self.tasks.close();
        // Every task ends with `stop` and waits for nothing else.
        self.tasks.wait().await;
    }

    /// Ends event streams, so that an HTTP server can stop gracefully. Running requests go on.
    pub fn end_streams(&self) {
        self.stop.cancel();
    }

    /// Completes when event streams must end.
    pub fn stopping(&self) -> WaitForCancellationFutureOwned {
        self.stop.clone().cancelled_owned()
    }

    /// A token that is cancelled when event streams must end.
    pub fn stop_token(&self) -> &CancellationToken {
        &self.stop
    }

    /// The board whose tools the sessions call.
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// The table of sessions.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// The stateless-era client that was seen last in each session.
    pub fn stateless_clients(&self) -> &StatelessClients {
        &self.stateless_clients
    }

    /// Whether policy and this access permit clients to reach a tool, by canonical or bare name.
    pub fn permits(&self, tool: &str, access: &LiveAccess) -> bool {
        let snapshot = self.board.snapshot();
        snapshot.catalog().resolve(tool).is_ok_and(|tool| {
            snapshot.index().permits(tool.name.as_str())
                && access.tools().is_none_or(|rules| snapshot.index().grants(&rules, tool))
        })
    }

    /// Whether policy and this access permit clients to reach anything of a configured server.
    pub fn permits_server(&self, server: &str, access: &LiveAccess) -> bool {
        let (snapshot, server) = (self.board.snapshot(), ServerName::new(server));
        snapshot.knows(&server)
            && access.tools().is_none_or(|rules| snapshot.index().grants_server(&rules, &server))
    }

    /// The same, and while the tools of the server are not known: whether this access may grant one of them. Who may use a
    /// tool may sign in, also before anybody's sign-in made the tools known.
    pub fn may_permit_server(&self, server: &str, access: &LiveAccess) -> bool {
        let (snapshot, server) = (self.board.snapshot(), ServerName::new(server));
        let may_grant = |rules| snapshot.index().may_grant_of_server(&rules, &server);
        snapshot.knows(&server) && access.tools().is_none_or(may_grant)
    }

    /// The toolsets that clients with this access may see, with their reachable tools.
    pub fn toolsets(&self, access: &LiveAccess) -> Vec<(Toolset, Vec<CanonicalName>)> {
        let (snapshot, rules) = (self.board.snapshot(), access.tools());
        let index = snapshot.index();
        let reachable = |set: &Toolset| -> Vec<CanonicalName> {
            let members = set.members.iter().filter(|at| index.is_reachable(**at));
            let tools = members.filter_map(|at| Some(&index.entries().get(*at)?.tool));
            let granted =
                tools.filter(|tool| rules.as_ref().is_none_or(|rules| index.grants(rules, tool)));
            granted.map(|tool| tool.name.clone()).collect()
        };
        let sets = index.toolsets_for(rules.as_slice());
        sets.map(|set| (set.clone(), reachable(set))).collect()
    }

    /// The names of all toolsets, also of those that policy hides from clients.
    pub fn toolset_names(&self) -> Vec<String> {
        self.board.snapshot().index().all_toolsets().map(|set| set.name.clone()).collect()
    }

    /// The view of a scope in a session, or without a session.
    pub fn view_of(&self, scope: &Arc<Scope>, session: Option<&Arc<Session>>) -> Arc<CachedView> {
        self.snapshot_and_view(scope, session).1
    }

    /// The scope of a turn: that of its session, narrowed to the tools of its groups and its state, and to what the caller
    /// that began it may use now.
    pub fn turn_scope(
        &self,
        session: &Arc<Session>,
        groups: &ToolGroups,
        access: &LiveAccess,
    ) -> Arc<Scope> {
        let is_narrowed =
            *groups != ToolGroups::default() || self.board.snapshot().index().has_groups();
        let scope = if is_narrowed {
            let own = Scope::clone(&session.own_scope);
            Arc::new(Scope { groups: Some(groups.clone()), ..own })
        } else {
            session.own_scope.clone()
        };
        self.scope_for(&scope, Some(session), access)
    }

    /// A scope as a caller has it at this moment: narrowed to what its credential grants and, in the session of another
    /// owner, to what the owner may use.
    pub fn scope_for(
        &self,
        scope: &Arc<Scope>,
        session: Option<&Arc<Session>>,
        access: &LiveAccess,
    ) -> Arc<Scope> {
        let owners = session.and_then(|session| session.owner_rules());
        let own = access.tools().filter(|own| owners.as_ref() != Some(own));
        match (owners, own) {
            (None, None) => scope.with_access(&[]),
            (Some(rules), None) | (None, Some(rules)) => scope.with_access(&[rules]),
            (Some(owners), Some(own)) => scope.with_access(&[owners, own]),
        }
    }

    /// Notes the access of a principal that makes a request: its sessions follow it from now on.
    pub fn note_access(&self, principal: &Arc<str>, access: &LiveAccess) {
        self.sessions.owners.note(principal, access);
    }

    /// Brings sessions and clients to the present access of their owners. Clients whose lists changed are notified.
    pub fn access_changed(&self) {
        self.sessions.refresh_all();
        for observer in self.observers() {
            observer.snapshot_published(self.is_starting());
        }
    }

    /// The view together with the snapshot that it was computed from.
    pub fn snapshot_and_view(
        &self,
        scope: &Arc<Scope>,
        session: Option<&Arc<Session>>,
    ) -> (Arc<Snapshot>, Arc<CachedView>) {
        loop {
            let snapshot = self.board.snapshot();
            let view = match session {
                Some(session) => self.sessions.view_through(&snapshot, scope, session),
                None => snapshot.view_without_session(scope),
            };
            // A concurrent request may have brought the session to a newer snapshot: load again.
            if view.version() == snapshot.version() {
                return (snapshot, view);
            }
        }
    }

    /// Notifies every observer that a session has been changed.
    pub fn session_changed(&self, session: &Arc<Session>) {
        for observer in self.observers() {
            observer.session_changed(session);
        }
    }

    pub(crate) fn session_followed(&self, session: &Arc<Session>) {
        for observer in self.observers() {
            observer.session_followed(session);
        }
    }

    pub(crate) fn clients_of(&self, session: &Arc<Session>) -> Vec<String> {
        self.observers().iter().flat_map(|observer| observer.clients_of(session)).collect()
    }

    pub(crate) fn session_ended(&self, session: &Arc<Session>) {
        for observer in self.observers() {
            observer.session_ended(session);
        }
    }

    /// Logs warnings about names and patterns, each one once.
    fn warn_once(&self) {
        let mut warned_of = self.warned_of.lock();
        for warning in self.board.warnings() {
            if warned_of.len() == MAX_WARNINGS {
                break;
            }
            if !warned_of.contains(&warning) {
                tracing::warn!("{warning}");
                warned_of.insert(warning);
            }
        }
    }
}

/// Brings sessions to each new snapshot and notifies the observers.
async fn follow(service: Arc<SessionService>) {
    let mut versions = service.board.versions();
    let startup = service.board.startup();
    loop {
        let changed = tokio::select! {
            () = service.stop.cancelled() => return,
            () = startup.finished(), if service.is_starting() => Ok(()),
            () = startup.published_early(), if !service.shown.any() => Ok(()),
            changed = versions.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
        let reached = startup.reached();
        service.warn_once();
        service.sessions.refresh_all();
        for observer in service.observers() {
            observer.snapshot_published(service.is_starting());
        }
        // Noted last, so that requests that waited for the catalog see its tools in their sessions.
        service.shown.note(reached);
    }
}

/// Removes unused sessions from memory; they stay stored. Their attached servers are disconnected.
async fn sweep(service: Arc<SessionService>) {
    loop {
        let idle = service.board.plan().gateway.session_idle;
        let pause = (idle / 4).clamp(Duration::from_millis(100), SWEEP_EVERY);
        if service.stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
        let kept = idle.min(STEPS_STAY).as_millis();
        let changed_since = now_ms().saturating_sub(i64::try_from(kept).unwrap_or(i64::MAX));
        for session in service.sessions.let_go(changed_since) {
            service.board.detach_all(&session.id).await;
        }
    }
}
