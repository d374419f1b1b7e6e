//! A server: its state as its supervisor reports it, and how the rest of the board uses it.
//!
//! The supervisor alone changes the state. A list that could not be read completely changes nothing: the last known one
//! stays.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use switchboard_mcp_client::{ConnectProgress, Connection, ServerInfo};
use switchboard_model::{
    ConnectError, Era, GrantOwner, QuarantinedTool, ServerName, ServerSpec, ServerState,
    ToolDescriptor, UpstreamToolList,
};
use switchboard_schema::prepare_for_lists;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::connection_pool::ConnectionPool;
use crate::list_again::{AskedByCaller, ListsRead};
use crate::offers::{Offers, UntoldWishes};
use crate::server_context::{Audience, ServerContext};
use crate::waiting::Waiting;

/// The interval between two listings if neither the server nor the configuration sets one.
const DEFAULT_POLL: Duration = Duration::from_mins(1);
/// Minimum interval between two listings, whatever `ttlMs` the server sends.
const SHORTEST_POLL: Duration = Duration::from_secs(1);
/// Maximum interval between two listings, whatever `ttlMs` the server sends.
const LONGEST_POLL: Duration = Duration::from_hours(1);
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
    /// Since when it is in this state.
    pub since_ms: i64,
    /// When it could last not be reached, in this run.
    pub last_error_at_ms: Option<i64>,
    /// When the next connection attempt begins, if it waits for one.
    pub retry_at_ms: Option<i64>,
    /// Calls that were resolved to it and have not ended.
    pub in_flight: usize,
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
    since_ms: i64,
    last_error_at_ms: Option<i64>,
    retry_at_ms: Option<i64>,
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
    pub(crate) suspected: Notify,
    /// Makes the supervisor connect anew, now.
    pub(crate) reconnect_wanted: Notify,
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
    pub(crate) offers_suspected: Notify,
    pool: ConnectionPool,
    /// The owner whose account last listed the tools.
    listing_owner: Mutex<Option<GrantOwner>>,
    around: ServerContext,
}

/// An open connection and the calls that run over it.
#[derive(Debug)]
pub(crate) struct OpenServer {
    pub(crate) connection: Arc<Connection>,
    pub(crate) users: TaskTracker,
}

impl Server {
    /// A server that is not connected yet. `remembered` are its tools from the previous run.
    pub(crate) fn new(
        spec: ServerSpec,
        alias: Option<ServerName>,
        poll: Option<Duration>,
        remembered: Option<Vec<ToolDescriptor>>,
        around: &ServerContext,
    ) -> Self {
        Self {
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
                since_ms: now_ms(),
                last_error_at_ms: None,
                retry_at_ms: None,
                attempt: None,
            }),
            open: ArcSwapOption::empty(),
            users: TaskTracker::new(),
            suspected: Notify::new(),
            reconnect_wanted: Notify::new(),
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
            offers_suspected: Notify::new(),
            pool: ConnectionPool::default(),
            listing_owner: Mutex::default(),
            around: around.clone(),
        }
    }

    pub(crate) fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    /// The further connections beside the supervised one.
    pub(crate) fn pool(&self) -> &ConnectionPool {
        &self.pool
    }

    pub(crate) fn listing_owner(&self) -> Option<GrantOwner> {
        self.listing_owner.lock().clone()
    }

    pub(crate) fn forget_listing_owner(&self) {
        *self.listing_owner.lock() = None;
    }

    pub(crate) fn note_listing_owner(&self, owner: GrantOwner) {
        *self.listing_owner.lock() = Some(owner);
    }

    pub(crate) fn around(&self) -> &ServerContext {
        &self.around
    }

    /// Cancelled when all tasks of this server must end.
    pub(crate) fn stop_token(&self) -> &CancellationToken {
        &self.stop
    }

    /// Its name in log lines.
    pub(crate) fn shown_name(&self) -> &ServerName {
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

    /// Ends the wait for the first connection attempt.
    pub(crate) fn note_attempted(&self) {
        self.attempted.cancel();
    }

    /// Wakes those who asked for a new connection.
    pub(crate) fn note_attempt_ended(&self) {
        self.attempts.send_modify(|attempts| *attempts += 1);
    }

    /// Makes the supervisor report the outcome of the first attempt, because the board stops waiting for it.
    pub(crate) fn leave_behind(&self) {
        self.is_left_behind.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_left_behind(&self) -> bool {
        self.is_left_behind.load(Ordering::Relaxed)
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

    /// Sets the supervised connection.
    pub(crate) fn set_open(&self, connection: Arc<Connection>) {
        self.open.store(Some(Arc::new(OpenServer { connection, users: TaskTracker::new() })));
    }

    /// Takes the supervised connection away, so that no new call finds it.
    pub(crate) fn take_open(&self) -> Option<Arc<OpenServer>> {
        self.open.swap(None)
    }

    /// Makes the supervisor check the connection and read the list again.
    pub(crate) fn suspect(&self) {
        self.suspected.notify_one();
    }

    /// Closes the connection, once its calls have ended, and opens a new one now. Returns when the attempt has ended.
    pub(crate) async fn reconnect(&self) {
        let mut attempts = self.attempts.subscribe();
        self.reconnect_wanted.notify_one();
        // An error means that the supervisor has ended.
        let _ended = attempts.changed().await;
    }

    /// Makes the supervisor read prompts and resources again.
    pub(crate) fn suspect_offers(&self) {
        self.offers_suspected.notify_one();
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
            since_ms: condition.since_ms,
            last_error_at_ms: condition.last_error_at_ms,
            retry_at_ms: condition.retry_at_ms,
            in_flight: self.users.len(),
        }
    }

    fn condition(&self) -> parking_lot::MutexGuard<'_, Condition> {
        self.condition.lock()
    }

    /// Why the server cannot be reached.
    pub(crate) fn error(&self) -> Option<ConnectError> {
        self.condition().error.clone()
    }

    /// Marks a connection attempt as running, until the returned value is dropped.
    pub(crate) fn begin_attempt(
        &self,
        start: Instant,
        progress: Arc<ConnectProgress>,
    ) -> RunningAttempt<'_> {
        let mut condition = self.condition();
        condition.attempt = Some((start, progress));
        condition.retry_at_ms = None;
        drop(condition);
        RunningAttempt(self)
    }

    /// Notes what a new connection has negotiated.
    pub(crate) fn note_connected(&self, connection: &Connection, took: Duration) {
        let mut condition = self.condition();
        condition.era = Some(connection.era());
        condition.info = connection.info().clone();
        condition.connect_time = Some(took);
    }

    /// Stores a new list. Returns whether anything changed.
    pub(crate) fn take_list(&self, list: UpstreamToolList) -> bool {
        let mut condition = self.condition();
        let is_same = condition.is_fresh
            && condition.state == ServerState::Ready
            && condition.tools.as_deref() == Some(&list.tools)
            && *condition.quarantined == list.quarantined;
        let now = now_ms();
        if condition.state != ServerState::Ready {
            condition.since_ms = now;
        }
        (condition.is_fresh, condition.state, condition.error) = (true, ServerState::Ready, None);
        condition.ttl = list.ttl;
        condition.listed_at_ms = Some(now);
        condition.retry_at_ms = None;
        if !is_same {
            condition.tools = Some(Arc::new(list.tools));
            condition.quarantined = Arc::new(list.quarantined);
        }
        drop(condition);
        if !is_same {
            self.announce();
        }
        !is_same
    }

    /// Notifies waiting callers that the list was read, or could not be.
    pub(crate) fn note_read(&self, is_changed: bool) {
        self.lists_read.send_modify(|read| {
            read.reads += 1;
            read.changes += u64::from(is_changed);
        });
    }

    /// Marks the server as unavailable.
    pub(crate) fn lose(&self, error: ConnectError) {
        let mut condition = self.condition();
        let now = now_ms();
        if condition.state != ServerState::Unavailable {
            condition.since_ms = now;
        }
        condition.last_error_at_ms = Some(now);
        (condition.state, condition.error) = (ServerState::Unavailable, Some(error));
        drop(condition);
        self.announce();
    }

    /// Notes that the next connection attempt begins after this pause.
    pub(crate) fn note_retry(&self, pause: Duration) {
        let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
        self.condition().retry_at_ms = Some(now_ms().saturating_add(pause));
    }

    /// Tells those who watch the board that this server has changed. Servers of sessions are nobody else's business.
    fn announce(&self) {
        match self.around.audience {
            Audience::Everybody => self.around.activity.server_changed(&self.spec.name),
            Audience::Owner => {}
        }
    }

    /// How long to wait before the next listing.
    pub(crate) fn pause_between_lists(&self) -> Duration {
        let ttl = self.condition().ttl.filter(|ttl| !ttl.is_zero());
        ttl.or(self.poll).unwrap_or(DEFAULT_POLL).clamp(SHORTEST_POLL, LONGEST_POLL)
    }

    /// The key under which the negotiated era is stored: another endpoint may speak another era.
    pub(crate) fn fingerprint(&self) -> String {
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

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// A running connection attempt.
pub(crate) struct RunningAttempt<'a>(&'a Server);

impl Drop for RunningAttempt<'_> {
    fn drop(&mut self) {
        self.0.condition().attempt = None;
    }
}
