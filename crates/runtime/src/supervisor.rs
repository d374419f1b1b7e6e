//! Keeps one server connected for as long as it is configured.
//!
//! The supervisor is the only one that opens and closes the server's connection. It reports by changing the
//! [`Server`]'s state and waking the conductor; it never touches the catalog. A list that could not be read
//! whole changes nothing: the last known one stays.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use switchboard_mcp::{ConnectError, ConnectOptions, Connection, ServerInfo};
use switchboard_model::{Era, ServerName, ServerSpec, ServerState, ToolDescriptor, ToolList};
use switchboard_store::Store;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How often a server is asked again when neither it nor the configuration says.
const DEFAULT_POLL: Duration = Duration::from_secs(60);
/// No server is asked more often than this, whatever `ttlMs` it gives.
const SHORTEST_POLL: Duration = Duration::from_secs(1);
/// How long a burst of change notifications may last before its one listing.
const SETTLE: Duration = Duration::from_millis(50);
/// An era that was learned longer ago is asked for again.
const ERA_MEMORY_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// How long a server that was removed may take to finish its calls.
const RETIREMENT: Duration = Duration::from_secs(600);

/// How a server is doing, for people and for the API.
#[derive(Debug, Clone)]
pub struct ServerStatus {
    pub name: ServerName,
    pub state: ServerState,
    pub era: Option<Era>,
    pub info: ServerInfo,
    /// Tools that it lists, before any policy.
    pub offered: usize,
    /// Why it cannot be reached.
    pub error: Option<ConnectError>,
    /// How long the last connecting and listing took.
    pub connect_time: Option<Duration>,
    /// The last of its error output, for a stdio server.
    pub stderr: Option<String>,
}

/// What the conductor needs to know of a server.
#[derive(Debug, Clone)]
pub(crate) struct Listing {
    pub(crate) tools: Option<Arc<Vec<ToolDescriptor>>>,
    pub(crate) dropped: Arc<Vec<String>>,
    pub(crate) is_ready: bool,
    /// Whether the list was read in this run, rather than remembered from the last.
    pub(crate) is_fresh: bool,
}

#[derive(Debug)]
struct State {
    state: ServerState,
    era: Option<Era>,
    info: ServerInfo,
    tools: Option<Arc<Vec<ToolDescriptor>>>,
    dropped: Arc<Vec<String>>,
    is_fresh: bool,
    ttl: Option<Duration>,
    error: Option<ConnectError>,
    connect_time: Option<Duration>,
}

/// One configured server: its connection, while it has one, and how it is doing.
#[derive(Debug)]
pub(crate) struct Server {
    spec: ServerSpec,
    poll: Option<Duration>,
    state: Mutex<State>,
    connection: ArcSwapOption<Connection>,
    /// Calls that hold on to the connection.
    users: TaskTracker,
    /// Somebody saw a sign of trouble, or wants the list read again.
    suspect: Notify,
    attempted: CancellationToken,
    stop: CancellationToken,
    ended: CancellationToken,
}

/// What every supervisor needs.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) store: Store,
    pub(crate) options: ConnectOptions,
    pub(crate) dirty: Arc<Notify>,
    pub(crate) tasks: TaskTracker,
}

impl Server {
    /// Starts to keep `spec` connected. `remembered` is what it had at the last run.
    pub(crate) fn start(
        spec: ServerSpec,
        poll: Option<Duration>,
        remembered: Option<Vec<ToolDescriptor>>,
        around: &Surroundings,
    ) -> Arc<Self> {
        let server = Arc::new(Self {
            spec,
            poll,
            state: Mutex::new(State {
                state: ServerState::Connecting,
                era: None,
                info: ServerInfo::default(),
                tools: remembered.map(Arc::new),
                dropped: Arc::default(),
                is_fresh: false,
                ttl: None,
                error: None,
                connect_time: None,
            }),
            connection: ArcSwapOption::empty(),
            users: TaskTracker::new(),
            suspect: Notify::new(),
            attempted: CancellationToken::new(),
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
        });
        around.tasks.spawn(supervise(server.clone(), around.clone()));
        server
    }

    pub(crate) fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    pub(crate) fn poll(&self) -> Option<Duration> {
        self.poll
    }

    /// Returns when the first attempt to connect has ended, one way or the other.
    pub(crate) async fn attempted(&self) {
        self.attempted.cancelled().await;
    }

    /// The connection, while there is one; the token keeps it open.
    pub(crate) fn connection(
        &self,
    ) -> Option<(Arc<Connection>, tokio_util::task::task_tracker::TaskTrackerToken)> {
        let token = self.users.token();
        self.connection.load_full().filter(|connection| !connection.is_closed()).map(|c| (c, token))
    }

    /// Has the supervisor look whether the server is still there, and read its list again.
    pub(crate) fn suspect(&self) {
        self.suspect.notify_one();
    }

    /// Ends the supervisor once the last call has let go of the connection.
    pub(crate) fn retire(self: Arc<Self>, tasks: &TaskTracker) {
        tasks.spawn(async move {
            // A call that found this server a moment ago is still about to take its connection.
            tokio::time::sleep(Duration::from_millis(250)).await;
            self.users.close();
            // After that the calls are cut off; nothing should run for so long unseen.
            let _still_used = tokio::time::timeout(RETIREMENT, self.users.wait()).await;
            self.stop.cancel();
        });
    }

    /// Ends the supervisor now.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Returns when the supervisor has ended and the connection is closed.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    pub(crate) fn listing(&self) -> Listing {
        let state = self.state();
        Listing {
            tools: state.tools.clone(),
            dropped: state.dropped.clone(),
            is_ready: state.state == ServerState::Ready,
            is_fresh: state.is_fresh,
        }
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let stderr = self.connection.load().as_ref().and_then(|connection| connection.stderr());
        let state = self.state();
        ServerStatus {
            name: self.spec.name.clone(),
            state: state.state,
            era: state.era,
            info: state.info.clone(),
            offered: state.tools.as_ref().map_or(0, |tools| tools.len()),
            error: state.error.clone(),
            connect_time: state.connect_time,
            stderr,
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over a list; says whether anything changed.
    fn take_list(&self, list: ToolList) -> bool {
        let mut state = self.state();
        let is_same = state.is_fresh
            && state.state == ServerState::Ready
            && state.tools.as_deref() == Some(&list.tools)
            && *state.dropped == list.dropped;
        (state.is_fresh, state.state, state.error) = (true, ServerState::Ready, None);
        state.ttl = list.ttl;
        if !is_same {
            state.tools = Some(Arc::new(list.tools));
            state.dropped = Arc::new(list.dropped);
        }
        !is_same
    }

    fn lose(&self, error: ConnectError) {
        self.connection.store(None);
        let mut state = self.state();
        (state.state, state.error) = (ServerState::Unavailable, Some(error));
    }

    fn pause_between_lists(&self) -> Duration {
        let ttl = self.state().ttl.filter(|ttl| !ttl.is_zero());
        ttl.or(self.poll).unwrap_or(DEFAULT_POLL).max(SHORTEST_POLL)
    }

    /// What an era verdict is remembered by: another place may speak another era.
    fn fingerprint(&self) -> String {
        blake3::hash(format!("{:?}", self.spec.endpoint).as_bytes()).to_hex().to_string()
    }
}

async fn supervise(server: Arc<Server>, around: Surroundings) {
    let watching = keep_connected(&server, &around);
    server.stop.clone().run_until_cancelled(watching).await;
    server.attempted.cancel();
    if let Some(connection) = server.connection.swap(None) {
        connection.close().await;
    }
    server.ended.cancel();
}

async fn keep_connected(server: &Server, around: &Surroundings) {
    let mut backoff = fresh_backoff();
    loop {
        match connect(server, around).await {
            Ok(connection) => {
                backoff = fresh_backoff();
                announce(server, around, true);
                let error = attend(server, &connection, around).await;
                tracing::warn!(server = %server.spec.name, %error, "MCP server lost, reconnecting");
                server.lose(error);
                // It may be alive and merely broken; what it still holds is given back in the background.
                around.tasks.spawn(async move { connection.close().await });
            }
            Err(error) => {
                let is_news = server.state().error.as_ref() != Some(&error);
                if is_news && server.attempted.is_cancelled() {
                    tracing::warn!(server = %server.spec.name, %error, "MCP server cannot be reached");
                }
                server.lose(error);
            }
        }
        announce(server, around, false);
        let pause = backoff.next().unwrap_or(Duration::from_secs(30));
        tokio::time::sleep(pause).await;
    }
}

fn announce(server: &Server, around: &Surroundings, is_up: bool) {
    switchboard_telemetry::server_state(server.spec.name.as_str(), is_up);
    server.attempted.cancel();
    around.dirty.notify_one();
}

fn fresh_backoff() -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(500))
        .with_max_delay(Duration::from_secs(30))
        .with_jitter()
        .without_max_times()
        .build()
}

async fn connect(server: &Server, around: &Surroundings) -> Result<Arc<Connection>, ConnectError> {
    let (name, fingerprint) = (&server.spec.name, server.fingerprint());
    let now = jiff::Timestamp::now().as_millisecond();
    let known_era =
        around.store.remembered_era(name, &fingerprint, now - ERA_MEMORY_MS).await.ok().flatten();
    let options = ConnectOptions { known_era, ..around.options.clone() };
    let start = Instant::now();
    tracing::info!("Connecting to MCP server '{name}' at {}", server.spec.endpoint);
    let (connection, list) = Connection::open(&server.spec, &options).await?;
    let took = start.elapsed();
    tracing::info!("MCP server '{name}' returned {} tools", list.tools.len());
    if let Some(era) = connection.learned_era().filter(|era| known_era != Some(*era))
        && let Err(error) = around.store.remember_era(name, &fingerprint, era, now).await
    {
        tracing::warn!(%error, "the protocol era could not be remembered");
    }
    {
        let mut state = server.state();
        state.era = Some(connection.era());
        state.info = connection.info().clone();
        state.connect_time = Some(took);
    }
    server.take_list(list);
    server.connection.store(Some(connection.clone()));
    Ok(connection)
}

/// Keeps the list current until the connection is lost; says why it was.
async fn attend(
    server: &Server,
    connection: &Arc<Connection>,
    around: &Surroundings,
) -> ConnectError {
    loop {
        tokio::select! {
            () = connection.closed() => return lost(connection),
            () = connection.changed() => tokio::time::sleep(SETTLE).await,
            () = server.suspect.notified() => {}
            () = tokio::time::sleep(server.pause_between_lists()) => {}
        }
        let limit = server.spec.connect_timeout;
        match tokio::time::timeout(limit, connection.list_tools()).await {
            Ok(Ok(list)) => {
                if server.take_list(list) {
                    around.dirty.notify_one();
                }
            }
            Ok(Err(_)) if connection.is_closed() => return lost(connection),
            Ok(Err(error)) if is_still_there(&error) => {
                tracing::warn!(
                    server = %server.spec.name, %error,
                    "the list of tools could not be read; the last known one stays"
                );
            }
            Ok(Err(error)) => return error,
            Err(_elapsed) => return no_answer(limit),
        }
    }
}

/// A server that answers, if wrongly, is not lost.
fn is_still_there(error: &ConnectError) -> bool {
    error.kind == switchboard_mcp::ConnectErrorKind::Protocol
        && error.message.starts_with("the server")
}

fn lost(connection: &Connection) -> ConnectError {
    ConnectError {
        kind: switchboard_mcp::ConnectErrorKind::Unreachable,
        message: format!("the connection closed: {}", connection.end_reason()),
        hint: None,
    }
}

fn no_answer(limit: Duration) -> ConnectError {
    ConnectError {
        kind: switchboard_mcp::ConnectErrorKind::Timeout,
        message: format!(
            "no answer to tools/list within {}",
            switchboard_model::render_duration(limit)
        ),
        hint: None,
    }
}
