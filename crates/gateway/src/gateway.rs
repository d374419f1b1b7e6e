//! The gateway: who is connected, and what everybody sees.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::future::join_all;
use switchboard_model::{CanonicalName, Exposure, GatewayPlan, Plan, ServerName};
use switchboard_runtime::{Board, ServerNews, StartupStage};
use switchboard_sessions::{Look, Session, SessionError, SessionKind, Sessions, random_text};
use switchboard_view::{Scope, Toolset};
use tokio::sync::{Notify, OnceCell};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::client::Client;
use crate::front::Front;
use crate::gaze::{Changes, Gaze};
use crate::legacy::snapshot_of;
use crate::level::Level;
use crate::listener::{Listener, Listeners};
use crate::parked::Parked;
use crate::seal::Seal;
use crate::startup::CatalogShown;

/// What decides about the exposure of a plan: command line and environment stand above it.
pub type ExposureRule = Box<dyn Fn(&Plan) -> Result<Exposure, String> + Send + Sync>;

/// Why the gateway cannot start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayError(pub String);

impl std::fmt::Display for GatewayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for GatewayError {}

/// A client without a stream leaves the memory after this time; the store brings it back when it returns.
const SWAP_OUT_AFTER: Duration = Duration::from_mins(1);

/// How many warnings are told.
const MOST_WARNINGS: usize = 1_000;

/// The secret that binds states of servers to their principals.
const SEAL: &str = "gateway.request_state";

/// The MCP face of a board.
pub struct Gateway {
    pub(crate) board: Arc<Board>,
    /// What is shown of the snapshot that was seen last; see [`Gateway::current`].
    front: ArcSwap<Front>,
    /// The turn to derive a front from a new snapshot.
    renewing: Mutex<()>,
    pub(crate) clients: Mutex<HashMap<Arc<str>, Arc<Client>>>,
    pub(crate) sessions: Sessions,
    pub(crate) listeners: Listeners,
    pub(crate) parked: Parked,
    pub(crate) open_scope: Arc<Scope>,
    pub(crate) stop: CancellationToken,
    pub(crate) shown: CatalogShown,
    /// For states of servers; read from the store when the first modern request needs it.
    pub(crate) seal: OnceCell<Seal>,
    exposure_rule: ExposureRule,
    state_prefix: String,
    /// The most talkative level that anybody asked for.
    log_rank: AtomicU8,
    /// Somebody is gone, or sees something else: servers may have to be told what is watched.
    watch_again: Notify,
    /// The turn to note what is watched.
    noting: Mutex<()>,
    /// What has been warned of. A server that comes and goes is no news.
    warned_of: Mutex<HashSet<String>>,
    tasks: TaskTracker,
    /// Conversations that are written to their clients. Each ends with its connection, for which nobody waits here.
    pub(crate) talks: TaskTracker,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

impl Gateway {
    /// Starts to follow the board. [`Gateway::shutdown`] ends it.
    pub fn start(
        board: Arc<Board>,
        exposure_rule: ExposureRule,
    ) -> Result<Arc<Self>, GatewayError> {
        // Looked at before the snapshot is: then its catalog is whole.
        let is_started = board.startup().is_finished();
        let snapshot = board.snapshot();
        let exposure = exposure_rule(snapshot.plan()).map_err(GatewayError)?;
        tracing::info!("exposure: {}", exposure.reason);
        let front = Front::new(&board, &snapshot, exposure);
        let tasks = TaskTracker::new();
        let stop = CancellationToken::new();
        let sessions = Sessions::new(board.store().clone(), front.stage.clone());
        let gateway = Arc::new(Self {
            board,
            front: ArcSwap::from_pointee(front),
            renewing: Mutex::default(),
            clients: Mutex::default(),
            sessions,
            listeners: Listeners::default(),
            parked: Parked::default(),
            open_scope: Arc::default(),
            stop,
            shown: CatalogShown::default(),
            seal: OnceCell::new(),
            exposure_rule,
            state_prefix: format!("{}.", random_text()),
            log_rank: AtomicU8::new(u8::MAX),
            watch_again: Notify::new(),
            noting: Mutex::default(),
            warned_of: Mutex::default(),
            tasks,
            talks: TaskTracker::new(),
        });
        if is_started {
            gateway.shown.note(StartupStage::Finished);
            gateway.warn_once();
        }
        gateway.tasks.spawn(follow(gateway.clone()));
        gateway.tasks.spawn(spread_news(gateway.clone()));
        gateway.tasks.spawn(sweep(gateway.clone()));
        gateway.tasks.spawn(keep_watch(gateway.clone()));
        Ok(gateway)
    }

    /// Ends every stream and writes down who was there.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        let clients: Vec<_> = self.clients().drain().map(|(_, client)| client).collect();
        for client in clients {
            self.sessions.keeper.note_client(snapshot_of(&client));
            client.end();
        }
        self.parked.clear();
        self.sessions.keeper.flush().await;
        self.tasks.close();
        // The followers end with `stop`; none of them waits for anything else.
        self.tasks.wait().await;
    }

    /// The configured exposure in force.
    pub fn exposure(&self) -> Exposure {
        self.current().stage.exposure.clone()
    }

    /// What is shown under the snapshot that the board has published last. Whoever finds an older one derives it anew
    /// before anything is decided by it: there is no time in which a configuration is in force and not seen here.
    pub(crate) fn current(&self) -> Arc<Front> {
        let front = self.front.load();
        if front.version == self.board.version() {
            return Arc::clone(&front);
        }
        self.renew()
    }

    /// Whether policy lets clients reach a tool, by canonical or bare name, whichever face they use.
    pub fn permits(&self, tool: &str) -> bool {
        let front = self.current();
        let found = front.stage.catalog().resolve(tool);
        found.is_ok_and(|tool| front.index().permits(tool.name.as_str()))
    }

    /// Whether policy leaves clients anything of a configured server, whichever face they use.
    pub fn permits_server(&self, server: &str) -> bool {
        self.current().knows(&ServerName::new(server))
    }

    /// The largest message that is read.
    pub fn max_body_bytes(&self) -> usize {
        usize::try_from(self.board.plan().gateway.max_body_bytes).unwrap_or(usize::MAX)
    }

    /// Completes when streams are to end.
    pub fn stopping(&self) -> tokio_util::sync::WaitForCancellationFutureOwned {
        self.stop.clone().cancelled_owned()
    }

    /// Ends the streams on which clients only listen, so that a server can stop; requests go on.
    pub fn end_streams(&self) {
        self.stop.cancel();
        let clients: Vec<_> = self.clients().values().cloned().collect();
        for client in clients {
            client.end_streams();
        }
    }

    /// Toolsets that clients may see, with the tools of each that they can reach.
    pub fn toolsets(&self) -> Vec<(Toolset, Vec<CanonicalName>)> {
        let front = self.current();
        let sets = front.index().toolsets();
        let reachable = |set: &Toolset| {
            let members = set.members.iter().filter(|at| front.index().is_reachable(**at));
            let entries = front.index().entries();
            members.filter_map(|at| Some(entries.get(*at)?.tool.name.clone())).collect()
        };
        sets.map(|set| (set.clone(), reachable(set))).collect()
    }

    pub(crate) fn plan(&self) -> GatewayPlan {
        self.board.plan().gateway.clone()
    }

    pub(crate) fn clients(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Client>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All sessions, which look at what the board has published last.
    pub fn sessions(&self) -> &Sessions {
        self.current();
        &self.sessions
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// What somebody sees now.
    pub(crate) fn look_of(&self, scope: &Arc<Scope>, session: Option<&Arc<Session>>) -> Arc<Look> {
        self.sight_of(scope, session).1
    }

    /// What somebody sees now, and the front that it is a part of: both of one snapshot.
    pub(crate) fn sight_of(
        &self,
        scope: &Arc<Scope>,
        session: Option<&Arc<Session>>,
    ) -> (Arc<Front>, Arc<Look>) {
        loop {
            let front = self.current();
            let look = match session {
                Some(session) => self.sessions.look_through(&front.stage, scope, session),
                // Without a state a dynamic client still begins with the sets that it names.
                None => front.stage.look_alone(scope),
            };
            // Another request may have shown the session a snapshot that was published since.
            if look.stage() == front.stage.serial() {
                return (front, look);
            }
        }
    }

    /// Tells everybody whom it concerns that a session has been changed.
    pub fn session_changed(&self, session: &Arc<Session>) {
        self.look_again(|watched| watched.is_some_and(|other| Arc::ptr_eq(other, session)));
        self.watch_soon();
    }

    /// Ends a session; its clients are told that it is gone. Where that cannot be stored, nothing has ended.
    pub async fn end_session(&self, session: &Arc<Session>) -> Result<(), SessionError> {
        let clients: Vec<_> = self.clients().values().cloned().collect();
        let of_it = |client: &&Arc<Client>| Arc::ptr_eq(&client.session, session);
        let clients: Vec<_> = clients.iter().filter(of_it).collect();
        let ids = clients.iter().map(|client| client.id.to_string()).collect();
        self.sessions.end(session, ids).await?;
        for client in clients {
            self.drop_client(client);
        }
        self.release_session(session).await;
        Ok(())
    }

    /// Ends what streams and servers keep for a session that has ended.
    async fn release_session(&self, session: &Arc<Session>) {
        self.listeners.end_of(session);
        self.board.end_session(&session.id);
        if session.has_servers() {
            self.board.detach_all(&session.id).await;
        }
    }

    /// Ends a client that wants to end, with its session where that is its own.
    pub(crate) async fn end_client(&self, client: &Client) -> Result<(), SessionError> {
        if client.session.kind == SessionKind::Client {
            self.sessions.end(&client.session, vec![client.id.to_string()]).await?;
            self.drop_client(client);
            self.release_session(&client.session).await;
        } else {
            self.sessions.keeper.delete_client(&client.id).await?;
            self.drop_client(client);
        }
        Ok(())
    }

    /// Has clients compare what they see with what they saw.
    fn look_again(&self, concerns: impl Fn(Option<&Arc<Session>>) -> bool) {
        // Thousands of clients see the same two things: they are compared once.
        let mut known: HashMap<(*const Gaze, *const Gaze), Changes> = HashMap::new();
        let mut compare = |now: &Arc<Gaze>, before: &Arc<Gaze>| {
            let pair = (Arc::as_ptr(now), Arc::as_ptr(before));
            *known.entry(pair).or_insert_with(|| now.since(before))
        };
        let clients: Vec<_> = self.clients().values().cloned().collect();
        // Everything that is compared stays alive meanwhile, so no address stands for two things.
        let mut kept = Vec::new();
        for client in clients.iter().filter(|client| concerns(Some(&client.session))) {
            kept.push(self.look_for(client, &mut compare));
        }
        for listener in self.listeners.all() {
            if concerns(listener.session.as_ref()) {
                kept.push(self.look_by(&listener, &mut compare));
            }
        }
        drop(kept);
        self.listeners.drop_slow();
    }

    /// Has one client look again.
    pub(crate) fn look_for(
        &self,
        client: &Client,
        compare: impl FnOnce(&Arc<Gaze>, &Arc<Gaze>) -> Changes,
    ) -> Arc<Gaze> {
        client.look(|| self.gaze(&client.scope, Some(&client.session)), compare)
    }

    /// Has one listener look again.
    pub(crate) fn look_by(
        &self,
        listener: &Listener,
        compare: impl FnOnce(&Arc<Gaze>, &Arc<Gaze>) -> Changes,
    ) -> Arc<Gaze> {
        listener.look(|| self.gaze(&listener.scope, listener.session.as_ref()), compare)
    }

    /// What somebody sees now, to be compared with what will be seen.
    pub(crate) fn gaze(&self, scope: &Arc<Scope>, session: Option<&Arc<Session>>) -> Arc<Gaze> {
        let (front, look) = self.sight_of(scope, session);
        front.settled(scope, &look)
    }

    /// A state that nobody can guess. Its beginning tells it from those of servers, also from another gateway's.
    pub(crate) fn new_state(&self) -> String {
        format!("{}{}", self.state_prefix, random_text())
    }

    pub(crate) fn is_own_state(&self, state: &str) -> bool {
        state.starts_with(&self.state_prefix)
    }

    /// The seal of this installation. Without a store it is one of this run.
    pub(crate) async fn seal(&self) -> &Seal {
        let read = async || match self.board.store().installation_secret(SEAL).await {
            Ok(key) => Seal::new(key),
            Err(error) => {
                tracing::error!(
                    error = error.in_full(),
                    "the store failed; questions of servers do not survive a restart"
                );
                Seal::new(*blake3::hash(random_text().as_bytes()).as_bytes())
            }
        };
        match self.seal.get() {
            Some(seal) => seal,
            None => Box::pin(self.seal.get_or_init(read)).await,
        }
    }

    /// Has servers told in the background which resources are watched now.
    pub(crate) fn watch_soon(&self) {
        self.watch_again.notify_one();
    }

    /// Makes legacy servers talkative enough for everybody who wants to hear them. Who asks one server waits for no
    /// other.
    pub(crate) async fn hear_from(&self, level: Level, server: Option<&ServerName>) {
        let before = self.log_rank.fetch_min(level.rank(), Ordering::Relaxed);
        let is_lower = level.rank() < before;
        if is_lower {
            self.note_wishes();
            self.watch_soon();
        }
        match server {
            // Another call may have lowered it a moment ago.
            Some(server) => self.board.tell_logs(server).await,
            None if is_lower => {
                let servers = self.board.snapshot();
                let servers = servers.offers().iter();
                join_all(servers.map(|(server, _)| self.board.tell_logs(server))).await;
            }
            None => {}
        }
    }

    /// Tells these servers which of their resources are watched now. All others hear it soon: nobody waits for a server
    /// that is none of his business.
    pub(crate) async fn watch_resources_of(&self, servers: &BTreeSet<ServerName>) {
        self.note_wishes();
        join_all(servers.iter().map(|server| self.board.tell_wishes(server))).await;
        self.watch_soon();
    }

    /// Tells every server, each in its own time: who does not answer holds up nobody.
    fn tell_all(&self) {
        self.note_wishes();
        for (server, _) in self.board.snapshot().offers() {
            let telling = self.board.tell_wishes(server);
            self.tasks.spawn(self.stop.clone().run_until_cancelled_owned(telling));
        }
    }

    /// Notes for each server what it is to report now, also for one that came a moment ago. One after the other, so that
    /// nobody notes what is no longer so.
    fn note_wishes(&self) {
        let _turn = self.noting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(level) = Level::of_rank(self.log_rank.load(Ordering::Relaxed)) {
            self.board.wish_logs(&level.as_str().into());
        }
        let mut wanted = self.watched();
        for (server, _) in self.board.snapshot().offers() {
            let uris = wanted.remove(server).unwrap_or_default();
            self.board.wish_updates(server, uris);
        }
    }

    /// The resources that somebody watches and sees, by server.
    fn watched(&self) -> HashMap<ServerName, BTreeSet<String>> {
        let mut watched: HashMap<_, BTreeSet<String>> = HashMap::new();
        let mut add =
            |scope: &Arc<Scope>, session: Option<&Arc<Session>>, uris: BTreeSet<String>| {
                for uri in uris {
                    if let Some(server) = self.owner_of(scope, session, &uri) {
                        watched.entry(server).or_default().insert(uri);
                    }
                }
            };
        let clients: Vec<_> = self.clients().values().cloned().collect();
        for client in clients {
            add(&client.scope, Some(&client.session), client.subscriptions());
        }
        for listener in self.listeners.all() {
            add(&listener.scope, listener.session.as_ref(), listener.uris.clone());
        }
        watched
    }

    /// The server from which somebody reads an address.
    pub(crate) fn owner_of(
        &self,
        scope: &Arc<Scope>,
        session: Option<&Arc<Session>>,
        uri: &str,
    ) -> Option<ServerName> {
        self.with_sight(scope, session, |front, serves| {
            // Who has chosen one server means no other.
            let is_known = |server: &ServerName| scope.server.is_none() && front.knows(server);
            front.extras.server_of(uri, serves, is_known).cloned()
        })
    }

    /// What somebody sees now beside tools.
    pub(crate) fn with_sight<T>(
        &self,
        scope: &Arc<Scope>,
        session: Option<&Arc<Session>>,
        look: impl FnOnce(&Front, &dyn Fn(&ServerName) -> bool) -> T,
    ) -> T {
        let (front, seen) = self.sight_of(scope, session);
        look(&front, &|server| front.serves(&seen.view, scope, server))
    }
}

/// Tells sessions and clients whenever the board has published another snapshot.
async fn follow(gateway: Arc<Gateway>) {
    let mut versions = gateway.board.versions();
    let startup = gateway.board.startup();
    loop {
        let changed = tokio::select! {
            () = gateway.stop.cancelled() => return,
            () = startup.finished(), if gateway.is_starting() => Ok(()),
            () = startup.published_early(), if !gateway.shown.any() => Ok(()),
            changed = versions.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
        let reached = startup.reached();
        gateway.current();
        gateway.warn_once();
        gateway.sessions.look_again();
        if gateway.is_starting() {
            // Who came early and waits for its first list is not told that it changed.
            let clients: Vec<_> = gateway.clients().values().cloned().collect();
            for client in clients {
                client.adopt(|| gateway.gaze(&client.scope, Some(&client.session)));
            }
        }
        gateway.look_again(|_| true);
        // Only now: who waited for tools sees them.
        gateway.shown.note(reached);
        gateway.watch_soon();
    }
}

/// Tells servers what is watched when that may have changed and nobody waits for it.
async fn keep_watch(gateway: Arc<Gateway>) {
    let again = async || {
        gateway.watch_again.notified().await;
        gateway.tell_all();
    };
    while gateway.stop.run_until_cancelled(again()).await.is_some() {}
}

impl Gateway {
    /// Warns of what nobody has been warned of yet.
    fn warn_once(&self) {
        let front = self.current();
        let mut warned_of = self.warned_of.lock().unwrap_or_else(PoisonError::into_inner);
        let of_extras = front.extras.warnings(|server| front.knows(server));
        // Until then the catalog is not whole, and says nothing of what is missing from it.
        let is_whole = self.board.startup().is_finished();
        let unmatched = front.warnings.iter().filter(|_| is_whole);
        for warning in front.index().warnings().iter().chain(unmatched).chain(&of_extras) {
            // So many that nobody reads on.
            if warned_of.len() == MOST_WARNINGS {
                break;
            }
            if warned_of.insert(warning.clone()) {
                tracing::warn!("{warning}");
            }
        }
    }

    /// Derives the front of the snapshot that is published now.
    fn renew(&self) -> Arc<Front> {
        let _turn = self.renewing.lock().unwrap_or_else(PoisonError::into_inner);
        // Loaded in turn: fronts follow each other as their snapshots do.
        let (snapshot, older) = (self.board.snapshot(), self.front.load_full());
        if older.version == snapshot.version() {
            return older;
        }
        let exposure = (self.exposure_rule)(snapshot.plan()).unwrap_or_else(|error| {
            tracing::error!("{error}; the exposure stays as it was");
            older.stage.exposure.clone()
        });
        let front = Arc::new(Front::new(&self.board, &snapshot, exposure));
        if front.stage.exposure != older.stage.exposure {
            tracing::info!("exposure: {}", front.stage.exposure.reason);
        }
        self.sessions.replace_stage(front.stage.clone());
        self.front.store(front.clone());
        front
    }
}

/// Passes on what servers say to nobody in particular.
async fn spread_news(gateway: Arc<Gateway>) {
    use tokio::sync::broadcast::error::RecvError;
    let mut news = gateway.board.news();
    loop {
        let said = tokio::select! {
            () = gateway.stop.cancelled() => return,
            said = news.recv() => said,
        };
        match said {
            Ok(ServerNews::ResourceUpdated { server, uri, params }) => {
                let sees = |scope: &Arc<Scope>, session: Option<&Arc<Session>>| {
                    // Several servers may have the address; who asks for it means the one that it sees there.
                    gateway.owner_of(scope, session, &uri).as_ref() == Some(&server)
                };
                let clients: Vec<_> = gateway.clients().values().cloned().collect();
                for client in clients.iter().filter(|client| client.is_subscribed(&uri)) {
                    if sees(&client.scope, Some(&client.session)) {
                        let method = "notifications/resources/updated";
                        client.send(switchboard_protocol::notification(
                            method,
                            Some(params.as_str()),
                        ));
                    }
                }
                gateway.listeners.resource_updated(&uri, |listener| {
                    sees(&listener.scope, listener.session.as_ref())
                });
            }
            // Nobody can tell whose log message it is, so nobody else may read it.
            Ok(ServerNews::Log { server, .. }) => {
                tracing::debug!(%server, "a log message that belongs to no request is not passed on");
            }
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(
                    missed,
                    "updates of resources and log messages came faster than they could be passed on"
                );
            }
            Err(RecvError::Closed) => return,
        }
    }
}

/// Frees what nobody uses any more.
async fn sweep(gateway: Arc<Gateway>) {
    loop {
        let idle = gateway.plan().session_idle;
        let pause = (idle / 4).clamp(Duration::from_millis(100), Duration::from_secs(15));
        if gateway.stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
        gateway.sweep_once(idle);
    }
}

impl Gateway {
    fn sweep_once(&self, idle: Duration) {
        let now = Instant::now();
        let clients: Vec<_> = self.clients().values().cloned().collect();
        let mut round = self.sessions.keeper.begin_round(idle);
        for client in clients {
            let unused = client.idle_since().map_or(Duration::ZERO, |since| now - since);
            if unused >= idle {
                self.forget(&client);
                continue;
            }
            if let Some(round) = &mut round {
                round.touch_client(&client.id, unused);
            }
            // What servers keep for a session ends with it: its end must be seen here.
            let is_held = || self.board.serves_session(&client.session.id);
            if unused >= SWAP_OUT_AFTER && client.subscriptions().is_empty() && !is_held() {
                self.sessions.keeper.note_client(snapshot_of(&client));
                self.clients().remove(&client.id);
            }
        }
        self.parked.expire(now);
        // A server may answer by now that did not.
        self.watch_soon();
        let gone = self.sessions.let_go();
        if !gone.is_empty() {
            let board = self.board.clone();
            self.tasks.spawn(async move {
                for session in gone {
                    board.detach_all(&session.id).await;
                }
            });
        }
        if let Some(round) = round {
            round.end();
        }
    }

    /// Ends a client for good; the store forgets it when it can.
    pub(crate) fn forget(&self, client: &Client) {
        self.sessions.keeper.note_client_gone(&client.id);
        if client.session.kind == SessionKind::Client {
            self.sessions.expire(&client.session);
            self.board.end_session(&client.session.id);
        }
        self.drop_client(client);
    }

    /// Lets go of a client and its streams.
    fn drop_client(&self, client: &Client) {
        self.clients().remove(&client.id);
        client.end();
        if !client.subscriptions().is_empty() {
            self.watch_soon();
        }
    }
}
