//! The supervisor of a server: keeps one server connected for as long as it is configured.
//!
//! Only the supervisor opens and closes the supervised connection. It reports by changing the [`Server`]'s state and
//! waking the reconciler; it never touches the catalog. A list that could not be read completely changes nothing: the
//! last known one stays.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use futures::FutureExt;
use parking_lot::Mutex;
use switchboard_mcp_client::{
    ConnectOptions, ConnectProgress, Connection, ServerInfo, UpstreamNews,
};
use switchboard_model::{
    ConnectError, ConnectErrorKind as Kind, Era, QuarantinedTool, ServerName, ServerSpec,
    ServerState, ToolDescriptor, UpstreamToolList,
};
use switchboard_schema::prepare_for_lists;
use switchboard_store::Store;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::connection_pool::ConnectionPool;
use crate::list_again::{AskedByCaller, ListsRead};
use crate::memory::Memory;
use crate::offers::{Offers, Outgoing, ServerNews, UntoldWishes, read_offers};
use crate::reconnect_backoff::ReconnectBackoff;
use crate::waiting::Waiting;

/// The interval between two listings if neither the server nor the configuration sets one.
const DEFAULT_POLL: Duration = Duration::from_mins(1);
/// Minimum interval between two listings, whatever `ttlMs` the server sends.
const SHORTEST_POLL: Duration = Duration::from_secs(1);
/// Maximum interval between two listings, whatever `ttlMs` the server sends.
const LONGEST_POLL: Duration = Duration::from_hours(1);
/// The interval at which a server that requires a sign-in is tried again.
const SIGN_IN_PAUSE: Duration = Duration::from_mins(1);
/// How long change notifications are collected before one listing answers them.
const SETTLE: Duration = Duration::from_millis(50);
/// The interval between log lines about a server that is still connecting.
const STILL_WAITING: Duration = Duration::from_secs(10);
/// How long a server's negotiated era is remembered.
const ERA_MEMORY_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// How long calls may keep running after their server was removed or their connection was lost.
const RETIREMENT: Duration = Duration::from_mins(10);

/// The status of a server, for the command line and the API.
#[derive(Debug, Clone)]
pub struct ServerStatus {
    pub name: ServerName,
    pub state: ServerState,
    pub era: Option<Era>,
    pub info: ServerInfo,
    /// The number of tools that it lists, before any policy.
    pub offered: usize,
    /// Listed tools whose definitions are unusable.
    pub quarantined: Arc<Vec<QuarantinedTool>>,
    /// Why it cannot be reached.
    pub error: Option<ConnectError>,
    /// How long the last connect and listing took.
    pub connect_time: Option<Duration>,
    /// The end of its standard error, for a stdio server.
    pub stderr: Option<String>,
    /// When its tools were last listed, in this run.
    pub listed_at_ms: Option<i64>,
    /// How many sessions have a process of their own for this server.
    pub session_processes: usize,
    /// What the running connection attempt waits for.
    pub waiting: Option<Waiting>,
}

/// The state of a server that the reconciler needs.
#[derive(Debug, Clone)]
pub(crate) struct Listing {
    pub(crate) tools: Option<Arc<Vec<ToolDescriptor>>>,
    pub(crate) quarantined: Arc<Vec<QuarantinedTool>>,
    pub(crate) is_ready: bool,
    /// Whether the list was read in this run, rather than remembered from the previous one.
    pub(crate) is_fresh: bool,
}

#[derive(Debug)]
struct Condition {
    state: ServerState,
    era: Option<Era>,
    info: ServerInfo,
    tools: Option<Arc<Vec<ToolDescriptor>>>,
    quarantined: Arc<Vec<QuarantinedTool>>,
    is_fresh: bool,
    ttl: Option<Duration>,
    error: Option<ConnectError>,
    connect_time: Option<Duration>,
    listed_at_ms: Option<i64>,
    /// The running connection attempt and its start time.
    attempt: Option<(Instant, Arc<ConnectProgress>)>,
}

/// The servers of a plan, by name.
pub(crate) type Servers = HashMap<ServerName, Arc<Server>>;

/// One server with its supervised connection, if any, and its state.
#[derive(Debug)]
pub(crate) struct Server {
    spec: ServerSpec,
    /// The session's own name for an attached server, whose unique name is generated.
    alias: Option<ServerName>,
    poll: Option<Duration>,
    condition: Mutex<Condition>,
    open: ArcSwapOption<OpenServer>,
    /// Calls that were resolved to this server and have not ended.
    users: TaskTracker,
    /// Wakes the supervisor to check the connection and read the list again.
    suspect: Notify,
    /// Makes the supervisor connect anew, now.
    reconnect: Notify,
    /// How many connection attempts have ended.
    attempts: watch::Sender<u64>,
    pub(crate) lists_read: watch::Sender<ListsRead>,
    pub(crate) asked_by_caller: Mutex<AskedByCaller>,
    attempted: CancellationToken,
    /// Whether the board stopped waiting for the first attempt, so that the supervisor has to report its outcome.
    is_left_behind: AtomicBool,
    stop: CancellationToken,
    pub(crate) offers: ArcSwap<Offers>,
    /// Resources that clients are subscribed to.
    pub(crate) watched: Mutex<BTreeSet<String>>,
    pub(crate) log_level: Mutex<Option<Arc<str>>>,
    /// Whether these two still have to be sent to the server, and the lock for sending them.
    pub(crate) untold: UntoldWishes,
    pub(crate) telling: Semaphore,
    /// Wakes the supervisor to read prompts and resources again.
    suspect_offers: Notify,
    pool: ConnectionPool,
    around: ServerContext,
}

/// An open connection and the calls that run over it.
#[derive(Debug)]
struct OpenServer {
    connection: Arc<Connection>,
    users: TaskTracker,
}

/// The callers that may know of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Everybody,
    /// Only the session that attached it, and only its tools: it has no metrics, its tools are not stored, and its
    /// notifications are dropped.
    Owner,
}

/// Shared by all supervisors.
#[derive(Debug, Clone)]
pub(crate) struct ServerContext {
    pub(crate) store: Store,
    pub(crate) memory: Memory,
    pub(crate) options: ConnectOptions,
    pub(crate) dirty: Arc<Notify>,
    pub(crate) tasks: TaskTracker,
    /// Stops every supervisor.
    pub(crate) stop: CancellationToken,
    pub(crate) outgoing: Outgoing,
    pub(crate) audience: Audience,
}

impl Server {
    /// Starts to keep `spec` connected. `remembered` are its tools from the previous run.
    pub(crate) fn start(
        spec: ServerSpec,
        alias: Option<ServerName>,
        poll: Option<Duration>,
        remembered: Option<Vec<ToolDescriptor>>,
        around: &ServerContext,
    ) -> Arc<Self> {
        let server = Arc::new(Self {
            spec,
            alias,
            poll,
            condition: Mutex::new(Condition {
                state: ServerState::Connecting,
                era: None,
                info: ServerInfo::default(),
                tools: remembered.map(|tools| Arc::new(listable(tools))),
                quarantined: Arc::default(),
                is_fresh: false,
                ttl: None,
                error: None,
                connect_time: None,
                listed_at_ms: None,
                attempt: None,
            }),
            open: ArcSwapOption::empty(),
            users: TaskTracker::new(),
            suspect: Notify::new(),
            reconnect: Notify::new(),
            attempts: watch::Sender::default(),
            lists_read: watch::Sender::default(),
            asked_by_caller: Mutex::default(),
            attempted: CancellationToken::new(),
            is_left_behind: AtomicBool::new(false),
            stop: around.stop.child_token(),
            offers: ArcSwap::default(),
            watched: Mutex::default(),
            log_level: Mutex::default(),
            untold: UntoldWishes::default(),
            telling: Semaphore::new(1),
            suspect_offers: Notify::new(),
            pool: ConnectionPool::default(),
            around: around.clone(),
        });
        around.tasks.spawn(supervise(server.clone(), around.clone()));
        server
    }

    pub(crate) fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    /// The further connections beside the supervised one.
    pub(crate) fn pool(&self) -> &ConnectionPool {
        &self.pool
    }

    pub(crate) fn around(&self) -> &ServerContext {
        &self.around
    }

    /// Cancelled when all tasks of this server must end.
    pub(crate) fn stop_token(&self) -> &CancellationToken {
        &self.stop
    }

    /// Its name in log lines.
    fn shown_name(&self) -> &ServerName {
        self.alias.as_ref().unwrap_or(&self.spec.name)
    }

    pub(crate) fn poll(&self) -> Option<Duration> {
        self.poll
    }

    /// Returns when the first connection attempt has succeeded or failed.
    pub(crate) async fn attempted(&self) {
        self.attempted.cancelled().await;
    }

    pub(crate) fn is_attempted(&self) -> bool {
        self.attempted.is_cancelled()
    }

    /// Makes the supervisor report the outcome of the first attempt, because the board stops waiting for it.
    pub(crate) fn leave_behind(&self) {
        self.is_left_behind.store(true, Ordering::Relaxed);
    }

    /// Keeps the server from being retired until the token is dropped; `None` if it already was.
    pub(crate) fn hold(&self) -> Option<TaskTrackerToken> {
        // In this order: a concurrent retirement either waits for the token, or is noticed here.
        let token = self.users.token();
        (!self.users.is_closed()).then_some(token)
    }

    /// The supervised connection, if it is open; the token keeps it open.
    pub(crate) fn connection(&self) -> Option<(Arc<Connection>, TaskTrackerToken)> {
        let open = self.open.load_full().filter(|open| !open.connection.is_closed())?;
        Some((open.connection.clone(), open.users.token()))
    }

    /// Makes the supervisor check the connection and read the list again.
    pub(crate) fn suspect(&self) {
        self.suspect.notify_one();
    }

    /// Closes the connection, once its calls have ended, and opens a new one now. Returns when the attempt has ended.
    pub(crate) async fn reconnect(&self) {
        let mut attempts = self.attempts.subscribe();
        self.reconnect.notify_one();
        // An error means that the supervisor has ended.
        let _ended = attempts.changed().await;
    }

    /// Makes the supervisor read prompts and resources again.
    pub(crate) fn suspect_offers(&self) {
        self.suspect_offers.notify_one();
    }

    /// Stops the supervisor once the last call that was resolved to this server has ended.
    pub(crate) fn retire(self: Arc<Self>, tasks: &TaskTracker) {
        self.users.close();
        tasks.spawn(async move {
            self.let_finish(&self.users).await;
            self.stop.cancel();
        });
    }

    /// Waits for calls to end, for at most [`RETIREMENT`] or until the server is stopped. The caller ends the rest.
    pub(crate) async fn let_finish(&self, users: &TaskTracker) {
        let finished = tokio::time::timeout(RETIREMENT, users.wait());
        let _still_used = self.stop.run_until_cancelled(finished).await;
    }

    /// Stops the supervisor now.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    pub(crate) fn listing(&self) -> Listing {
        let condition = self.condition();
        Listing {
            tools: condition.tools.clone(),
            quarantined: condition.quarantined.clone(),
            is_ready: condition.state == ServerState::Ready,
            is_fresh: condition.is_fresh,
        }
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let stderr = self.open.load().as_ref().and_then(|open| open.connection.stderr());
        let condition = self.condition();
        ServerStatus {
            name: self.spec.name.clone(),
            state: condition.state,
            era: condition.era,
            info: condition.info.clone(),
            offered: condition.tools.as_ref().map_or(0, |tools| tools.len()),
            quarantined: condition.quarantined.clone(),
            error: condition.error.clone(),
            connect_time: condition.connect_time,
            stderr,
            listed_at_ms: condition.listed_at_ms,
            session_processes: self.session_connections(),
            waiting: condition.attempt.as_ref().map(|(start, progress)| Waiting {
                step: progress.step(),
                elapsed: start.elapsed(),
                limit: self.spec.connect_timeout,
                output: progress.last_output(),
            }),
        }
    }

    fn condition(&self) -> parking_lot::MutexGuard<'_, Condition> {
        self.condition.lock()
    }

    /// Stores a new list. Returns whether anything changed.
    fn take_list(&self, list: UpstreamToolList) -> bool {
        let mut condition = self.condition();
        let is_same = condition.is_fresh
            && condition.state == ServerState::Ready
            && condition.tools.as_deref() == Some(&list.tools)
            && *condition.quarantined == list.quarantined;
        (condition.is_fresh, condition.state, condition.error) = (true, ServerState::Ready, None);
        condition.ttl = list.ttl;
        condition.listed_at_ms = Some(jiff::Timestamp::now().as_millisecond());
        if !is_same {
            condition.tools = Some(Arc::new(list.tools));
            condition.quarantined = Arc::new(list.quarantined);
        }
        !is_same
    }

    /// Notifies waiting callers that the list was read, or could not be.
    fn note_read(&self, is_changed: bool) {
        self.lists_read.send_modify(|read| {
            read.reads += 1;
            read.changes += u64::from(is_changed);
        });
    }

    fn lose(&self, error: ConnectError) {
        let mut condition = self.condition();
        (condition.state, condition.error) = (ServerState::Unavailable, Some(error));
    }

    fn pause_between_lists(&self) -> Duration {
        let ttl = self.condition().ttl.filter(|ttl| !ttl.is_zero());
        ttl.or(self.poll).unwrap_or(DEFAULT_POLL).clamp(SHORTEST_POLL, LONGEST_POLL)
    }

    /// The key under which the negotiated era is stored: another endpoint may speak another era.
    fn fingerprint(&self) -> String {
        // The order in which the eras are tried with a child: eras found with another order are not reused.
        let order = "initialize first";
        blake3::hash(format!("{:?} {order}", self.spec.endpoint).as_bytes()).to_hex().to_string()
    }
}

/// The remembered tools in the form that lists show. A tool that an earlier version stored and that cannot be listed is
/// left out until its server lists it again.
fn listable(mut remembered: Vec<ToolDescriptor>) -> Vec<ToolDescriptor> {
    remembered.retain_mut(|tool| prepare_for_lists(tool).is_ok());
    remembered
}

async fn supervise(server: Arc<Server>, around: ServerContext) {
    // Boxed, so that the future, which lives as long as its server, is moved only once.
    let watching = Box::pin(keep_connected(&server, &around));
    server.stop.clone().run_until_cancelled(watching).await;
    server.attempted.cancel();
    if let Some(open) = server.open.swap(None) {
        open.connection.close().await;
    }
}

async fn keep_connected(server: &Arc<Server>, around: &ServerContext) {
    let mut backoff = ReconnectBackoff::new();
    loop {
        let connected = connect(server, around).await;
        // A request that came during the attempt is fulfilled by it.
        let _fulfilled = server.reconnect.notified().now_or_never();
        match connected {
            Ok(connection) => {
                announce(server, around, true);
                server.attempts.send_modify(|attempts| *attempts += 1);
                let connected = Instant::now();
                let error = attend(server, &connection, around).await;
                backoff.note_connected_for(connected.elapsed());
                tracing::warn!(server = %server.spec.name, %error, "MCP server lost, reconnecting");
                server.lose(error);
                give_up(server, around);
            }
            Err(error) => {
                let is_news = server.condition().error.as_ref() != Some(&error);
                // The start of the board reports the first failure of a configured server.
                let is_untold =
                    server.is_attempted() || server.is_left_behind.load(Ordering::Relaxed);
                match around.audience {
                    Audience::Owner if is_news => tracing::warn!(
                        "Failed to connect to MCP server '{}' at {}\nError: {error}",
                        server.shown_name(),
                        server.spec.place
                    ),
                    Audience::Everybody if is_news && is_untold => {
                        tracing::warn!(server = %server.spec.name, %error, "MCP server cannot be reached");
                    }
                    Audience::Owner | Audience::Everybody => {}
                }
                server.lose(error);
                server.attempts.send_modify(|attempts| *attempts += 1);
            }
        }
        announce(server, around, false);
        tokio::select! {
            () = server.reconnect.notified() => {}
            () = wait_to_reconnect(server, around, &mut backoff) => {}
        }
    }
}

async fn wait_to_reconnect(
    server: &Server,
    around: &ServerContext,
    backoff: &mut ReconnectBackoff,
) {
    if wait_for_sign_in(server, around).await {
        *backoff = ReconnectBackoff::new();
    } else {
        tokio::time::sleep(backoff.next_delay()).await;
    }
}

/// If the server requires a sign-in, waits for one, or for [`SIGN_IN_PAUSE`]. Returns whether it waited.
async fn wait_for_sign_in(server: &Server, around: &ServerContext) -> bool {
    let kind = server.condition().error.as_ref().map(|error| error.kind);
    let Some(sign_ins) = around.options.sign_ins.as_ref().filter(|_| kind == Some(Kind::SignIn))
    else {
        return false;
    };
    let _nobody_came = tokio::time::timeout(SIGN_IN_PAUSE, sign_ins.changed(&server.spec)).await;
    true
}

/// Closes the connection in the background. The server may still be alive: calls that run over the connection may end
/// by themselves.
fn give_up(server: &Arc<Server>, around: &ServerContext) {
    let Some(open) = server.open.swap(None) else { return };
    let server = server.clone();
    around.tasks.spawn(async move {
        open.users.close();
        server.let_finish(&open.users).await;
        open.connection.close().await;
    });
}

fn announce(server: &Server, around: &ServerContext, is_up: bool) {
    if around.audience == Audience::Everybody {
        switchboard_telemetry::server_state(server.spec.name.as_str(), is_up);
    }
    server.attempted.cancel();
    around.dirty.notify_one();
}

async fn connect(server: &Server, around: &ServerContext) -> Result<Arc<Connection>, ConnectError> {
    let (name, fingerprint) = (&server.spec.name, server.fingerprint());
    let now = jiff::Timestamp::now().as_millisecond();
    let known_era = match around.audience {
        Audience::Everybody => {
            let era = around.store.remembered_era(name, &fingerprint, now - ERA_MEMORY_MS).await;
            era.ok().flatten()
        }
        Audience::Owner => None,
    };
    let progress = Arc::new(ConnectProgress::default());
    let options =
        ConnectOptions { known_era, progress: Some(progress.clone()), ..around.options.clone() };
    let start = Instant::now();
    let shown = server.shown_name();
    tracing::info!("Connecting to MCP server '{shown}' at {}", server.spec.place);
    let (connection, list) = {
        let _attempt = Attempt::begin(server, start, progress);
        let mut opening = std::pin::pin!(Connection::open(&server.spec, &options));
        loop {
            tokio::select! {
                opened = &mut opening => break opened?,
                () = tokio::time::sleep(STILL_WAITING) => {
                    if let Some(waiting) = server.status().waiting {
                        tracing::info!("MCP server '{shown}' is not connected yet: {waiting}");
                    }
                }
            }
        }
    };
    let took = start.elapsed();
    tracing::info!("MCP server '{shown}' returned {} tools", list.tools.len());
    if around.memory == Memory::Keep
        && let Some(era) = connection.learned_era().filter(|era| known_era != Some(*era))
        && let Err(error) = around.store.remember_era(name, &fingerprint, era, now).await
    {
        tracing::warn!(error = error.in_full(), "the protocol era could not be remembered");
    }
    {
        let mut condition = server.condition();
        condition.era = Some(connection.era());
        condition.info = connection.info().clone();
        condition.connect_time = Some(took);
    }
    server.pool.forget_failures();
    take_offers(server, &connection, around).await;
    // The connection is set before the state is: a caller that sees a ready server must find its connection.
    let open = OpenServer { connection: connection.clone(), users: TaskTracker::new() };
    server.open.store(Some(Arc::new(open)));
    server.take_list(list);
    server.resume().await;
    Ok(connection)
}

/// Marks a running connection attempt until it is dropped.
struct Attempt<'a>(&'a Server);

impl<'a> Attempt<'a> {
    fn begin(server: &'a Server, start: Instant, progress: Arc<ConnectProgress>) -> Self {
        server.condition().attempt = Some((start, progress));
        Self(server)
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.0.condition().attempt = None;
    }
}

async fn take_offers(server: &Server, connection: &Connection, around: &ServerContext) {
    if around.audience == Audience::Owner {
        return;
    }
    let before = server.offers.load_full();
    let offers = read_offers(connection, &server.spec.name, &before).await;
    if offers != *before {
        server.offers.store(Arc::new(offers));
        around.dirty.notify_one();
    }
}

/// Keeps the list current until the connection is lost. Returns the reason of the loss.
async fn attend(
    server: &Server,
    connection: &Arc<Connection>,
    around: &ServerContext,
) -> ConnectError {
    let mut news = connection.take_news();
    loop {
        tokio::select! {
            () = connection.closed() => return lost(connection),
            () = server.reconnect.notified() => {
                // The supervisor must not wait before it connects again.
                server.reconnect.notify_one();
                return requested();
            }
            Some(said) = next_news(&mut news) => {
                hear(server, connection, around, said, &mut news).await;
                continue;
            }
            () = server.suspect_offers.notified() => {
                tokio::time::sleep(SETTLE).await;
                server.ask_again();
                take_offers(server, connection, around).await;
                continue;
            }
            () = connection.changed() => tokio::time::sleep(SETTLE).await,
            () = server.suspect.notified() => {}
            () = tokio::time::sleep(server.pause_between_lists()) => {}
        }
        let limit = server.spec.list_timeout();
        let mut listed = tokio::time::timeout(limit, connection.list_tools()).await;
        // A single lost response does not prove a server lost whose calls are answered, and giving it up would end them
        // all.
        if matches!(&listed, Ok(Err(error)) if error.kind == Kind::Unreachable)
            && !connection.is_closed()
        {
            listed = tokio::time::timeout(limit, connection.list_tools()).await;
        }
        match listed {
            Ok(Ok(list)) => {
                let is_changed = server.take_list(list);
                if is_changed {
                    around.dirty.notify_one();
                }
                server.note_read(is_changed);
            }
            Ok(Err(_)) if connection.is_closed() => return lost(connection),
            Ok(Err(error)) if is_still_there(&error) => {
                tracing::warn!(
                    server = %server.spec.name, %error,
                    "the list of tools could not be read; the last known one stays"
                );
                server.note_read(false);
            }
            Ok(Err(error)) => return error,
            Err(_elapsed) => return no_answer(limit),
        }
    }
}

async fn next_news(news: &mut Option<mpsc::Receiver<UpstreamNews>>) -> Option<UpstreamNews> {
    match news {
        Some(news) => news.recv().await,
        None => None,
    }
}

/// Handles a notification of the server. Several changes of its lists in a row cause one listing.
async fn hear(
    server: &Server,
    connection: &Connection,
    around: &ServerContext,
    said: UpstreamNews,
    news: &mut Option<mpsc::Receiver<UpstreamNews>>,
) {
    if around.audience == Audience::Owner {
        return;
    }
    let name = &server.spec.name;
    let mut is_list_changed = false;
    let mut next = Some(said);
    while let Some(said) = next.take() {
        match said {
            UpstreamNews::PromptsChanged | UpstreamNews::ResourcesChanged => {
                if !std::mem::replace(&mut is_list_changed, true) {
                    tokio::time::sleep(SETTLE).await;
                }
            }
            // There may be no receiver.
            UpstreamNews::ResourceUpdated { uri, params } => {
                let update = ServerNews::ResourceUpdated { server: name.clone(), uri, params };
                let _unheard = around.outgoing.news.send(update);
            }
            UpstreamNews::Log(params) => {
                let log = ServerNews::Log { server: name.clone(), params };
                let _unheard = around.outgoing.news.send(log);
            }
        }
        next = news.as_mut().and_then(|news| news.try_recv().ok());
    }
    if is_list_changed {
        server.ask_again();
        take_offers(server, connection, around).await;
    }
}

/// Whether the error proves that the server is alive: an answer, even a wrong one.
fn is_still_there(error: &ConnectError) -> bool {
    match error.kind {
        Kind::Protocol | Kind::Overloaded => true,
        Kind::Forbidden
        | Kind::Unreachable
        | Kind::Process
        | Kind::Timeout
        | Kind::Unauthorized
        | Kind::SignIn => false,
    }
}

fn lost(connection: &Connection) -> ConnectError {
    let message = format!("the connection closed: {}", connection.end_reason());
    ConnectError::new(Kind::Unreachable, message)
}

fn requested() -> ConnectError {
    ConnectError::new(Kind::Unreachable, "a new connection was requested")
}

fn no_answer(limit: Duration) -> ConnectError {
    let limit = switchboard_model::render_duration(limit);
    ConnectError::new(Kind::Timeout, format!("no answer to tools/list within {limit}"))
}
