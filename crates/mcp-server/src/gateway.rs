//! The MCP server: its connected clients, and the notifications that they get.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use switchboard_model::{GatewayPlan, ServerName};
use switchboard_runtime::{Board, ServerNews, Snapshot};
use switchboard_sessions::{
    Session, SessionError, SessionKind, SessionObserver, SessionService, Sessions, random_text,
};
use switchboard_view::Scope;
use tokio::sync::{Notify, OnceCell};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::client::Client;
use crate::list_changed::SeenLists;
use crate::listener::{Listener, Listeners};
use crate::log_level::LogLevel;
use crate::pending_input::PendingInputs;
use crate::state_signer::StateSigner;
use crate::stored_client::snapshot_of;

/// A client without a stream is removed from memory after this time, and restored from the store when it returns.
const SWAP_OUT_AFTER: Duration = Duration::from_mins(1);

/// The name under which the store keeps the secret of [`StateSigner`].
const SEAL: &str = "gateway.request_state";

/// The MCP server of a board. It serves the board's sessions to clients of both protocol eras.
pub struct Gateway {
    /// For tasks that are begun by a notice.
    pub(crate) this: Weak<Self>,
    pub(crate) board: Arc<Board>,
    pub(crate) service: Arc<SessionService>,
    pub(crate) clients: Mutex<HashMap<Arc<str>, Arc<Client>>>,
    pub(crate) listeners: Listeners,
    pub(crate) parked: PendingInputs,
    pub(crate) open_scope: Arc<Scope>,
    pub(crate) stop: CancellationToken,
    /// Signs `requestState` and task ids of servers; read from the store at the first stateless request.
    pub(crate) seal: OnceCell<StateSigner>,
    state_prefix: String,
    /// The rank of the most verbose log level that any client requested.
    log_rank: AtomicU8,
    /// Notified when a client has ended or its view has changed: resource subscriptions at servers may have to change.
    watch_again: Notify,
    /// Serialises [`Gateway::record_wanted_reports`].
    noting: Mutex<()>,
    tasks: TaskTracker,
    /// Responses that are being streamed to clients. Each ends with its connection; shutdown does not wait for them.
    pub(crate) talks: TaskTracker,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

impl Gateway {
    /// Starts serving the sessions of a board to MCP clients, until [`Gateway::shutdown`].
    pub fn start(service: Arc<SessionService>) -> Arc<Self> {
        let gateway = Arc::new_cyclic(|this: &Weak<Self>| Self {
            this: this.clone(),
            board: service.board().clone(),
            clients: Mutex::default(),
            listeners: Listeners::default(),
            parked: PendingInputs::default(),
            open_scope: Arc::default(),
            stop: service.stop_token().clone(),
            seal: OnceCell::new(),
            state_prefix: format!("{}.", random_text()),
            log_rank: AtomicU8::new(u8::MAX),
            watch_again: Notify::new(),
            noting: Mutex::default(),
            tasks: TaskTracker::new(),
            talks: TaskTracker::new(),
            service,
        });
        let observer: Weak<Self> = Arc::downgrade(&gateway);
        gateway.service.observe(observer);
        gateway.tasks.spawn(forward_server_news(gateway.clone()));
        gateway.tasks.spawn(sweep(gateway.clone()));
        gateway.tasks.spawn(update_servers(gateway.clone()));
        gateway
    }

    /// Ends every stream and queues the clients' state, which [`SessionService::shutdown`] then writes to the store.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        let clients: Vec<_> = self.clients().drain().map(|(_, client)| client).collect();
        for client in clients {
            self.sessions().writes.note_client(snapshot_of(&client));
            client.end();
        }
        self.parked.clear();
        self.tasks.close();
        // Every task ends with `stop` and waits for nothing else.
        self.tasks.wait().await;
    }

    /// The maximum size of a request body (`gateway.max_body_bytes`).
    pub fn max_body_bytes(&self) -> usize {
        usize::try_from(self.board.plan().gateway.max_body_bytes).unwrap_or(usize::MAX)
    }

    /// Closes the event streams of all clients, so that an HTTP server can stop gracefully. Running requests go on.
    pub fn end_streams(&self) {
        self.service.end_streams();
        let clients: Vec<_> = self.clients().values().cloned().collect();
        for client in clients {
            client.end_streams();
        }
    }

    pub(crate) fn plan(&self) -> GatewayPlan {
        self.board.plan().gateway.clone()
    }

    pub(crate) fn clients(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Client>>> {
        self.clients.lock()
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        self.service.sessions()
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Ends a client at its own request, and its session if that is the client's own.
    pub(crate) async fn end_client(&self, client: &Client) -> Result<(), SessionError> {
        if client.session.kind == SessionKind::Client {
            self.service.end_stored(&client.session, vec![client.id.to_string()]).await?;
            self.drop_client(client);
            self.service.release_session(&client.session).await;
        } else {
            self.sessions().writes.delete_client(&client.id, &client.session).await?;
            self.drop_client(client);
        }
        Ok(())
    }

    /// Sends `list_changed` notifications to the clients of those sessions that `concerns` accepts.
    fn tell_changes(&self, concerns: impl Fn(Option<&Arc<Session>>) -> bool) {
        let clients: Vec<_> = self.clients().values().cloned().collect();
        for client in clients.iter().filter(|client| concerns(Some(&client.session))) {
            self.tell_client(client);
        }
        for listener in self.listeners.all() {
            if concerns(listener.session.as_ref()) {
                self.tell_listener(&listener);
            }
        }
        self.listeners.drop_slow();
    }

    /// Sends one client the `list_changed` notifications for changes since the last ones.
    pub(crate) fn tell_client(&self, client: &Client) {
        client.tell_changes(self.lists_of(client));
    }

    /// As [`Gateway::tell_client`], for a stream of the stateless era.
    pub(crate) fn tell_listener(&self, listener: &Listener) {
        listener.tell_changes(|| {
            self.seen_lists(&self.listener_scope(listener), listener.session.as_ref())
        });
    }

    /// The scope of a client with what its credential grants now.
    fn client_scope(&self, client: &Client) -> Arc<Scope> {
        self.service.scope_for(&client.scope, Some(&client.session), &client.access())
    }

    /// As [`Gateway::client_scope`], for a stream of the stateless era.
    fn listener_scope(&self, listener: &Listener) -> Arc<Scope> {
        self.service.scope_for(&listener.scope, listener.session.as_ref(), &listener.access)
    }

    /// Computes the current lists of a client. Its access is read before, because comparing them locks the client.
    fn lists_of<'a>(&'a self, client: &'a Client) -> impl FnOnce() -> SeenLists + 'a {
        let scope = self.client_scope(client);
        move || self.seen_lists(&scope, Some(&client.session))
    }

    /// The current lists of a client, to be compared with later ones.
    pub(crate) fn seen_lists(
        &self,
        scope: &Arc<Scope>,
        session: Option<&Arc<Session>>,
    ) -> SeenLists {
        let (snapshot, view) = self.service.snapshot_and_view(scope, session);
        SeenLists::new(&snapshot, scope, view)
    }

    /// An unguessable `requestState`. Its prefix distinguishes it from states of servers and of other gateways.
    pub(crate) fn new_state(&self) -> String {
        format!("{}{}", self.state_prefix, random_text())
    }

    pub(crate) fn is_own_state(&self, state: &str) -> bool {
        state.starts_with(&self.state_prefix)
    }

    /// The signer of this installation. If the store fails, its secret is random and lasts for this run only.
    pub(crate) async fn seal(&self) -> &StateSigner {
        let read = async || match self.board.store().installation_secret(SEAL).await {
            Ok(key) => StateSigner::new(key),
            Err(error) => {
                tracing::error!(
                    error = error.in_full(),
                    "the store failed; pending input requests and tasks do not survive a restart"
                );
                StateSigner::new(*blake3::hash(random_text().as_bytes()).as_bytes())
            }
        };
        match self.seal.get() {
            Some(seal) => seal,
            None => Box::pin(self.seal.get_or_init(read)).await,
        }
    }

    /// Updates the resource subscriptions at servers in the background.
    pub(crate) fn update_servers_soon(&self) {
        self.watch_again.notify_one();
    }

    /// Lowers the log level of session-era servers to `level` if it is higher. Waits for `server` only, or for all if
    /// the level was lowered and none is named.
    pub(crate) async fn lower_log_level(&self, level: LogLevel, server: Option<&ServerName>) {
        let before = self.log_rank.fetch_min(level.rank(), Ordering::Relaxed);
        let is_lower = level.rank() < before;
        if is_lower {
            self.record_wanted_reports();
            self.update_servers_soon();
        }
        match server {
            // Always sent: a concurrent call may have lowered the level without this server's confirmation.
            Some(server) => self.board.tell_logs(server).await,
            None if is_lower => {
                let servers = self.board.snapshot();
                let servers = servers.offers().iter();
                join_all(servers.map(|(server, _)| self.board.tell_logs(server))).await;
            }
            None => {}
        }
    }

    /// Updates the resource subscriptions at these servers and waits for them. Other servers are notified asynchronously.
    pub(crate) async fn watch_resources_of(&self, servers: &BTreeSet<ServerName>) {
        self.record_wanted_reports();
        join_all(servers.iter().map(|server| self.board.tell_wishes(server))).await;
        self.update_servers_soon();
    }

    /// Updates every server in a task of its own, so that a server that does not respond delays no other.
    fn update_all_servers(&self) {
        self.record_wanted_reports();
        for (server, _) in self.board.snapshot().offers() {
            let telling = self.board.tell_wishes(server);
            self.tasks.spawn(self.stop.clone().run_until_cancelled_owned(telling));
        }
    }

    /// Records for each server its wanted log level and resource subscriptions, also for one that connected a moment ago.
    /// Serialised, so that an older computation never overwrites a newer one.
    fn record_wanted_reports(&self) {
        let _turn = self.noting.lock();
        if let Some(level) = LogLevel::of_rank(self.log_rank.load(Ordering::Relaxed)) {
            self.board.wish_logs(&level.as_str().into());
        }
        let mut wanted = self.watched();
        for (server, _) in self.board.snapshot().offers() {
            let uris = wanted.remove(server).unwrap_or_default();
            self.board.wish_updates(server, uris);
        }
    }

    /// The subscribed resources that their subscribers can see, by server.
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
            let scope = self.client_scope(&client);
            add(&scope, Some(&client.session), client.subscriptions());
        }
        for listener in self.listeners.all() {
            let scope = self.listener_scope(&listener);
            add(&scope, listener.session.as_ref(), listener.uris.clone());
        }
        watched
    }

    /// The server that provides a resource URI in this view.
    pub(crate) fn owner_of(
        &self,
        scope: &Arc<Scope>,
        session: Option<&Arc<Session>>,
        uri: &str,
    ) -> Option<ServerName> {
        self.with_visible(scope, session, |snapshot, serves| {
            // In a scope of one server or of an agent, a URI of another server does not exist.
            let is_open = scope.server.is_none() && scope.agent.is_none();
            // To a caller with narrowed access only what it sees exists.
            let is_known = |server: &ServerName| {
                is_open && snapshot.knows(server) && (scope.access.is_empty() || serves(server))
            };
            snapshot.prompts_resources().server_of(uri, serves, is_known).cloned()
        })
    }

    /// Looks something up among prompts and resources. The second argument of `look_up` says whether the entries of a
    /// server belong to the view.
    pub(crate) fn with_visible<T>(
        &self,
        scope: &Arc<Scope>,
        session: Option<&Arc<Session>>,
        look_up: impl FnOnce(&Snapshot, &dyn Fn(&ServerName) -> bool) -> T,
    ) -> T {
        let (snapshot, cached) = self.service.snapshot_and_view(scope, session);
        look_up(&snapshot, &|server| snapshot.serves(&cached.view, scope, server))
    }
}

impl SessionObserver for Gateway {
    fn snapshot_published(&self, is_starting: bool) {
        if is_starting {
            // A client that connected during the start and still waits for its first list gets no `list_changed`.
            let clients: Vec<_> = self.clients().values().cloned().collect();
            for client in clients {
                client.adopt(self.lists_of(&client));
            }
        }
        self.tell_changes(|_| true);
        self.update_servers_soon();
    }

    fn session_changed(&self, session: &Arc<Session>) {
        self.tell_changes(|watched| watched.is_some_and(|other| Arc::ptr_eq(other, session)));
        self.update_servers_soon();
    }

    fn session_followed(&self, session: &Arc<Session>) {
        self.follow_clients_of(session);
    }

    fn clients_of(&self, session: &Arc<Session>) -> Vec<String> {
        let clients = self.clients();
        let of_it = clients.values().filter(|client| Arc::ptr_eq(&client.session, session));
        of_it.map(|client| client.id.to_string()).collect()
    }

    fn session_ended(&self, session: &Arc<Session>) {
        let clients: Vec<_> = self.clients().values().cloned().collect();
        for client in clients.iter().filter(|client| Arc::ptr_eq(&client.session, session)) {
            self.drop_client(client);
        }
        self.listeners.end_of(session);
    }
}

/// Updates subscriptions at servers in the background whenever they may have changed.
async fn update_servers(gateway: Arc<Gateway>) {
    let again = async || {
        gateway.watch_again.notified().await;
        gateway.update_all_servers();
    };
    while gateway.stop.run_until_cancelled(again()).await.is_some() {}
}

/// Forwards resource updates of servers to their subscribers.
async fn forward_server_news(gateway: Arc<Gateway>) {
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
                    // Several servers may have the URI; a subscription means the one that is visible to the subscriber.
                    gateway.owner_of(scope, session, &uri).as_ref() == Some(&server)
                };
                let clients: Vec<_> = gateway.clients().values().cloned().collect();
                for client in clients.iter().filter(|client| client.is_subscribed(&uri)) {
                    if sees(&gateway.client_scope(client), Some(&client.session)) {
                        let method = "notifications/resources/updated";
                        client.send(switchboard_protocol::notification(
                            method,
                            Some(params.as_str()),
                        ));
                    }
                }
                gateway.listeners.resource_updated(&uri, |listener| {
                    sees(&gateway.listener_scope(listener), listener.session.as_ref())
                });
            }
            // A log message without a request may concern another client: it is forwarded to none.
            Ok(ServerNews::Log { server, .. }) => {
                tracing::debug!(%server, "a log message that belongs to no request is not passed on");
            }
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(
                    missed,
                    "resource updates and log messages were dropped: they came faster than they could be passed on"
                );
            }
            Err(RecvError::Closed) => return,
        }
    }
}

/// Expires idle clients and pending requests at intervals.
async fn sweep(gateway: Arc<Gateway>) {
    loop {
        let idle = gateway.plan().session_idle;
        let pause = (idle / 4).clamp(Duration::from_millis(100), Duration::from_secs(15));
        if gateway.stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
        gateway.sweep_once(idle).await;
    }
}

impl Gateway {
    async fn sweep_once(&self, idle: Duration) {
        let unused = |client: &Client| {
            client.idle_since().map_or(Duration::ZERO, |since| Instant::now() - since)
        };
        let clients = || self.clients().values().cloned().collect::<Vec<_>>();
        for client in clients().iter().filter(|client| unused(client) >= idle) {
            // It may be active at another board. The store forgets it when no board has seen it.
            if self.board.store().is_shared() {
                self.let_go(client);
            } else {
                self.expire(client, || unused(client) >= idle).await;
            }
        }
        let now = Instant::now();
        let mut round = self.sessions().writes.begin_round(idle);
        for client in clients() {
            let unused = unused(&client);
            if let Some(round) = &mut round {
                round.touch_client(&client.id, unused);
            }
            // A session with server-side state stays in memory, so that its expiry also ends that state.
            let is_held = || self.board.serves_session(&client.session.id);
            if unused >= SWAP_OUT_AFTER && client.subscriptions().is_empty() && !is_held() {
                self.sessions().writes.note_client(snapshot_of(&client));
                self.clients().remove(&client.id);
            }
        }
        self.parked.expire(now);
        // A server that failed to update its subscriptions may respond by now.
        self.update_servers_soon();
        if let Some(round) = round {
            round.end();
        }
    }

    /// Ends a client that was idle for too long, and revokes the tokens of its session's accounts. They are read before the store
    /// forgets them with the session; a client that came back meanwhile goes on.
    async fn expire(&self, client: &Client, is_still_idle: impl Fn() -> bool) {
        let accounts = if client.session.kind == SessionKind::Client {
            self.board.accounts_of_session(&client.session.id).await
        } else {
            Vec::new()
        };
        if is_still_idle() {
            self.forget(client);
            self.board.revoke_accounts(accounts);
        }
    }

    /// Ends a client for good. It is removed from the store in the background.
    pub(crate) fn forget(&self, client: &Client) {
        self.sessions().writes.note_client_gone(&client.id);
        if client.session.kind == SessionKind::Client {
            self.sessions().expire(&client.session);
            self.board.end_session(&client.session.id);
        }
        self.drop_client(client);
    }

    /// Ends what this board has of a client, which may be active at another board.
    fn let_go(&self, client: &Client) {
        if client.session.kind == SessionKind::Client {
            self.board.end_session(&client.session.id);
        }
        self.drop_client(client);
    }

    /// Removes a client from memory and closes its streams.
    pub(crate) fn drop_client(&self, client: &Client) {
        self.clients().remove(&client.id);
        client.end();
        if !client.subscriptions().is_empty() {
            self.update_servers_soon();
        }
    }
}
