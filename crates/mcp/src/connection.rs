//! One connection to one upstream server.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use reqwest::RequestBuilder;
use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ProtocolVersion, ServerNotification, SubscriptionFilter};
use rmcp::service::{
    ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, Peer, RunningService,
    ServiceError, Subscription, serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{IntoTransport, StreamableHttpClientTransport};
use switchboard_model::{Endpoint, Era, EraChoice, Secret, ServerName, ServerSpec, ToolList};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::bounds::MAX_MESSAGE_BYTES;
use crate::error::{ConnectError, ConnectErrorKind, error_chain};
use crate::handler::{ProgressTable, UpstreamHandler};
use crate::http_client::{BoundedClient, HttpPool, describe_transport};
use crate::listing::list_tools;
use crate::probe::{Verdict, probe_era};
use crate::sse::{RequestTo, SseTransport};
use crate::stdio::{ChildProcess, CommandLine};

/// Our own limits decide how many calls run; the transport must not be narrower than they are.
const MAX_REQUESTS_IN_FLIGHT: usize = 4096;

/// How much of a dead child's error output goes into a message; [`Connection::stderr`] has more.
const MAX_LAST_WORDS: usize = 2000;

/// How long the question for the era may take.
const LONGEST_PROBE: Duration = Duration::from_secs(10);

/// How long a connection that is closed may take to tell the server what it no longer waits for.
const LAST_WORDS: Duration = Duration::from_millis(500);

type Service = RunningService<RoleClient, UpstreamHandler>;

/// What connecting needs besides the server's own spec.
#[derive(Debug, Clone, Default)]
pub struct ConnectOptions {
    /// The program that guards stdio children (`switchboard` itself); without it they are started directly.
    pub guard: Option<PathBuf>,
    /// The era that the server spoke last time; saves the question.
    pub known_era: Option<Era>,
    /// Shared between the connections of one board.
    pub http: HttpPool,
}

/// What a server says about itself. For display only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerInfo {
    pub name: Option<String>,
    pub version: Option<String>,
    pub protocol: String,
}

/// An open connection. Dropping it closes it in the background; [`Connection::close`] waits for that.
#[derive(Debug)]
pub struct Connection {
    server: ServerName,
    era: Era,
    /// Whether the era was learned by asking, and may be remembered.
    era_is_certain: bool,
    info: ServerInfo,
    peer: Peer<RoleClient>,
    changed: Arc<Notify>,
    progress: Arc<ProgressTable>,
    child: Option<ChildProcess>,
    tasks: TaskTracker,
    stop: CancellationToken,
    closed: CancellationToken,
    unsubscribe: CancellationToken,
    unsubscribed: CancellationToken,
    /// Cancellations on their way to the server.
    cancelling: TaskTracker,
}

impl Connection {
    /// Connects and lists, both within the server's `connect_timeout`.
    pub async fn open(
        spec: &ServerSpec,
        options: &ConnectOptions,
    ) -> Result<(Arc<Self>, ToolList), ConnectError> {
        let (step, limit) = (Step::default(), spec.connect_timeout);
        let opening = async {
            // With a remembered era half of the time is left for the question, should it no longer hold. Without
            // one the limit of the whole comes first.
            let share =
                if options.known_era.is_some() { limit / 2 } else { limit.saturating_mul(2) };
            let attempt = open_in_known_era(spec, options, &step);
            let mut opened = tokio::time::timeout(share, attempt).await.unwrap_or_else(|_| {
                let message = format!("no answer to {}", step.get());
                Err(ConnectError::new(ConnectErrorKind::Timeout, message))
            });
            if let Err(error) = &mut opened
                && error.kind == ConnectErrorKind::Protocol
                && matches!(spec.era, EraChoice::Fixed(_))
            {
                let hint = "the configuration fixes `era`; without it the server is asked";
                error.hint.get_or_insert_with(|| hint.into());
            }
            if opened.is_err() && options.known_era.is_some() {
                // What we remember may be out of date: ask again before giving up.
                let afresh = ConnectOptions { known_era: None, ..options.clone() };
                opened = open_in_known_era(spec, &afresh, &step).await;
            }
            opened
        };
        let opened = tokio::time::timeout(limit, opening).await.unwrap_or_else(|_| {
            let shown = switchboard_model::render_duration(limit);
            let message = format!("no answer to {} within {shown}", step.get());
            Err(ConnectError::new(ConnectErrorKind::Timeout, message)
                .with_hint("a server that needs longer to start wants a larger `connect_timeout`"))
        });
        opened.map_err(|error| scrub(spec, error))
    }

    /// The server's whole list of tools.
    pub async fn list_tools(&self) -> Result<ToolList, ConnectError> {
        match list_tools(&self.peer).await {
            Ok(list) => Ok(list),
            Err(error) => Err(self.lost_child(&error).await.map_or(error, process_error)),
        }
    }

    /// The server's name in the configuration.
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// The era that is spoken.
    pub fn era(&self) -> Era {
        self.era
    }

    /// The era, when it was learned from the server itself and may be remembered.
    pub fn learned_era(&self) -> Option<Era> {
        self.era_is_certain.then_some(self.era)
    }

    /// What the server says about itself.
    pub fn info(&self) -> &ServerInfo {
        &self.info
    }

    /// Returns when the list may have changed since the last return. A storm is one change.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns when the connection has ended, whoever ended it.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Why the connection ended, as far as we know.
    pub fn end_reason(&self) -> String {
        self.child.as_ref().map_or_else(|| "the server closed it".into(), ChildProcess::reason)
    }

    /// The last of what a stdio server wrote to its error output.
    pub fn stderr(&self) -> Option<String> {
        self.child.as_ref().map(ChildProcess::stderr).filter(|text| !text.is_empty())
    }

    /// Ends the connection and everything that belongs to it. A child gets a moment to end by itself.
    pub async fn close(&self) {
        // A server may wait for its open requests before it ends, and a subscription never ends by itself.
        self.unsubscribe.cancel();
        self.unsubscribed.cancelled().await;
        // Calls that were given up a moment ago should not go on running over there.
        self.cancelling.close();
        let _unheard = tokio::time::timeout(LAST_WORDS, self.cancelling.wait()).await;
        self.stop.cancel();
        if let Some(child) = &self.child {
            // A child that no longer reads keeps a message stuck in its pipe, and the service with it.
            let _stuck = tokio::time::timeout(LAST_WORDS, self.closed.cancelled()).await;
            child.end().await;
        }
        self.closed.cancelled().await;
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The child, if it is behind this failure. It may take a moment to be seen to end.
    pub(crate) async fn lost_child(&self, error: &ConnectError) -> Option<&ChildProcess> {
        let child = self.child.as_ref().filter(|_| error.kind == ConnectErrorKind::Unreachable)?;
        child.settle().await;
        child.is_gone().then_some(child)
    }

    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }

    pub(crate) fn progress(&self) -> &ProgressTable {
        &self.progress
    }

    pub(crate) fn cancelling(&self) -> &TaskTracker {
        &self.cancelling
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What is being waited for, so that a timeout can say so.
#[derive(Debug, Default)]
struct Step(Mutex<Option<&'static str>>);

impl Step {
    fn set(&self, step: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(step);
    }

    fn get(&self) -> &'static str {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or("the connection")
    }
}

/// The parts of a connection before it is known to work.
struct Opened {
    service: Service,
    child: Option<ChildProcess>,
    era_is_certain: bool,
}

/// What every way of opening a connection needs.
struct Opening<'a> {
    spec: &'a ServerSpec,
    options: &'a ConnectOptions,
    step: &'a Step,
    handler: UpstreamHandler,
    tasks: TaskTracker,
    stop: CancellationToken,
}

async fn open_in_known_era(
    spec: &ServerSpec,
    options: &ConnectOptions,
    step: &Step,
) -> Result<(Arc<Connection>, ToolList), ConnectError> {
    let handler = UpstreamHandler { changed: Arc::default(), progress: Arc::default() };
    let stop = CancellationToken::new();
    // An opening that is given up must not leave a service behind.
    let guard = stop.clone().drop_guard();
    let opening = Opening { spec, options, step, handler, tasks: TaskTracker::new(), stop };
    let opened = match &spec.endpoint {
        Endpoint::StreamableHttp { url, headers, bearer } => {
            opening.streamable_http(url, headers, bearer.as_ref()).await?
        }
        Endpoint::Sse { url, headers, bearer } => {
            opening.sse(url, headers, bearer.as_ref()).await?
        }
        Endpoint::Stdio { command, args, env, cwd } => {
            opening.stdio(&CommandLine { command, args, env, cwd: cwd.as_ref() }).await?
        }
    };
    let connection = opening.finish(opened).await;
    step.set("tools/list");
    match connection.list_tools().await {
        Ok(list) => {
            guard.disarm();
            Ok((connection, list))
        }
        Err(error) => Err(error),
    }
}

impl Opening<'_> {
    async fn streamable_http(
        &self,
        url: &Url,
        headers: &BTreeMap<String, Secret>,
        bearer: Option<&Secret>,
    ) -> Result<Opened, ConnectError> {
        let client = BoundedClient::new(&self.options.http, url, self.handler.changed.clone())?;
        let headers = header_map(headers)?;
        let (era, era_is_certain) = match (self.spec.era, self.options.known_era) {
            (EraChoice::Fixed(era), _) => (era, false),
            (EraChoice::Auto, Some(era)) => (era, true),
            (EraChoice::Auto, None) => {
                self.step.set("server/discover");
                let request = client.http().post(url.clone());
                let asking = probe_era(credentials(request, &headers, bearer));
                // Some older servers never answer what they do not know; then the old handshake is tried.
                let limit = LONGEST_PROBE.min(self.spec.connect_timeout / 3);
                match tokio::time::timeout(limit, asking).await {
                    Ok(verdict) => match verdict? {
                        Verdict::Speaks(era) => (era, true),
                        Verdict::Unclear => (Era::Legacy, false),
                    },
                    Err(_elapsed) => (Era::Legacy, false),
                }
            }
        };
        let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
            .max_concurrent_requests(MAX_REQUESTS_IN_FLIGHT)
            .max_sse_event_size(MAX_MESSAGE_BYTES)
            .reinit_on_expired_session(true)
            .custom_headers(headers);
        if let Some(bearer) = bearer {
            config = config.auth_header(bearer.expose());
        }
        let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
        let served = self.serve(transport, era).await;
        let service = served
            .map_err(|error| client.take_fault().unwrap_or_else(|| handshake_error(&error)))?;
        Ok(Opened { service, child: None, era_is_certain })
    }

    async fn sse(
        &self,
        url: &Url,
        headers: &BTreeMap<String, Secret>,
        bearer: Option<&Secret>,
    ) -> Result<Opened, ConnectError> {
        let client = BoundedClient::new(&self.options.http, url, self.handler.changed.clone())?;
        let headers = header_map(headers)?;
        let bearer = bearer.cloned();
        let request: RequestTo = Box::new(move |method, url| {
            credentials(client.http().request(method, url), &headers, bearer.as_ref())
        });
        self.step.set("the opening of the event stream");
        let transport = SseTransport::open(url, request).await?;
        let served = self.serve(transport, Era::Legacy).await;
        let service = served.map_err(|error| handshake_error(&error))?;
        Ok(Opened { service, child: None, era_is_certain: true })
    }

    async fn stdio(&self, line: &CommandLine<'_>) -> Result<Opened, ConnectError> {
        self.step.set("the handshake");
        let known = match (self.spec.era, self.options.known_era) {
            (EraChoice::Fixed(era), _) => Some(era),
            (EraChoice::Auto, known) => known,
        };
        let era_is_certain = self.spec.era == EraChoice::Auto;
        let first = known.map_or_else(ask_for_era, lifecycle);
        let (error, child) = match self.start_child(line, first).await? {
            Ok((service, child)) => {
                return Ok(Opened { service, child: Some(child), era_is_certain });
            }
            Err(failed) => failed,
        };
        child.settle().await;
        if known.is_some() || !child.ended_by_itself() {
            return Err(child_error(&error, &child));
        }
        // Some older servers end at the first message that they do not know: start them anew in their way.
        match self.start_child(line, lifecycle(Era::Legacy)).await? {
            Ok((service, child)) => Ok(Opened { service, child: Some(child), era_is_certain }),
            Err((error, child)) => {
                child.settle().await;
                Err(child_error(&error, &child))
            }
        }
    }

    /// The outer error is that of a child that could not be started at all.
    async fn start_child(
        &self,
        line: &CommandLine<'_>,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Result<(Service, ChildProcess), Failed>, ConnectError> {
        let guard = self.options.guard.as_deref();
        let (transport, child) = ChildProcess::spawn(line, guard, &self.tasks)?;
        let served = serve_client_with_lifecycle_and_ct(
            self.handler.clone(),
            transport,
            lifecycle,
            self.stop.clone(),
        );
        Ok(match served.await {
            Ok(service) => Ok((service, child)),
            Err(error) => Err((Box::new(error), child)),
        })
    }

    async fn serve<T, E, A>(&self, transport: T, era: Era) -> Result<Service, HandshakeError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        self.step.set(match era {
            Era::Legacy => "initialize",
            Era::Modern => "server/discover",
        });
        let (handler, stop) = (self.handler.clone(), self.stop.clone());
        serve_client_with_lifecycle_and_ct(handler, transport, lifecycle(era), stop)
            .await
            .map_err(Box::new)
    }

    async fn finish(self, opened: Opened) -> Arc<Connection> {
        let peer = opened.service.peer().clone();
        // Our catalog is the cache; a second one below it would serve stale lists.
        peer.set_response_cache_config(ClientCacheConfig::disabled()).await;
        let (info, era, announces_changes) = describe_peer(&peer);
        let closed = CancellationToken::new();
        let (unsubscribe, unsubscribed) = (self.stop.child_token(), CancellationToken::new());
        let connection = Arc::new(Connection {
            server: self.spec.name.clone(),
            era,
            era_is_certain: opened.era_is_certain,
            info,
            peer: peer.clone(),
            changed: self.handler.changed.clone(),
            progress: self.handler.progress.clone(),
            child: opened.child,
            tasks: self.tasks.clone(),
            stop: self.stop.clone(),
            closed: closed.clone(),
            unsubscribe: unsubscribe.clone(),
            unsubscribed: unsubscribed.clone(),
            cancelling: TaskTracker::new(),
        });
        self.tasks.spawn(async move {
            // How it ended does not matter here: the child or the next request says why.
            let _quit_reason = opened.service.waiting().await;
            closed.cancel();
        });
        let done = unsubscribed.drop_guard();
        if era == Era::Modern && announces_changes {
            self.tasks.spawn(async move {
                listen_for_changes(peer, self.handler.changed, unsubscribe).await;
                drop(done);
            });
        }
        connection
    }
}

type HandshakeError = Box<ClientInitializeError>;
type Failed = (HandshakeError, ChildProcess);

fn lifecycle(era: Era) -> ClientLifecycleMode {
    match era {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    }
}

fn ask_for_era() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

/// What the server said about itself, the era that follows from it, and whether it announces changed lists.
fn describe_peer(peer: &Peer<RoleClient>) -> (ServerInfo, Era, bool) {
    let Some(said) = peer.peer_info() else {
        return (ServerInfo::default(), Era::Legacy, false);
    };
    let info = ServerInfo {
        name: said.server_info.as_ref().map(|info| info.name.clone()),
        version: said.server_info.as_ref().map(|info| info.version.clone()),
        protocol: said.protocol_version.to_string(),
    };
    let era = if said.protocol_version.has_initialize() { Era::Legacy } else { Era::Modern };
    let tools = said.capabilities.tools.as_ref();
    (info, era, tools.is_some_and(|tools| tools.list_changed == Some(true)))
}

/// Keeps one subscription open. Servers and proxies close these at will, so it is opened again with patience,
/// and each time the list may have changed in between.
async fn listen_for_changes(peer: Peer<RoleClient>, changed: Arc<Notify>, stop: CancellationToken) {
    const LONGEST_PAUSE: Duration = Duration::from_mins(1);
    let mut pause = Duration::from_millis(500);
    loop {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        match stop.run_until_cancelled(peer.listen(filter)).await {
            Some(Ok(subscription)) => {
                let opened = Instant::now();
                follow(subscription, &changed, &stop).await;
                // One that is closed as soon as it is opened is opened less and less often.
                if opened.elapsed() >= LONGEST_PAUSE {
                    pause = Duration::from_millis(500);
                }
                changed.notify_one();
            }
            // Some servers announce what they cannot do; their list is asked for from time to time anyway.
            Some(Err(ServiceError::McpError(error)))
                if error.code == ErrorCode::METHOD_NOT_FOUND =>
            {
                return;
            }
            Some(Err(_)) => {}
            None => return,
        }
        if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Passes on changes until the subscription ends, or ends it when it is told to.
async fn follow(mut subscription: Subscription, changed: &Notify, stop: &CancellationToken) {
    while let Some(next) = stop.run_until_cancelled(subscription.next()).await {
        match next {
            Ok(Some(ServerNotification::ToolListChangedNotification(_))) => changed.notify_one(),
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return,
        }
    }
    // A server that does not take it is about to lose the connection anyway.
    let _unheard = tokio::time::timeout(LAST_WORDS, subscription.cancel()).await;
}

/// Takes out of an error what must not be shown: a server may quote its credentials, and what a variable held
/// stands in its command line.
fn scrub(spec: &ServerSpec, error: ConnectError) -> ConnectError {
    let (secrets, words): (Vec<&Secret>, Vec<&String>) = match &spec.endpoint {
        Endpoint::StreamableHttp { headers, bearer, .. }
        | Endpoint::Sse { headers, bearer, .. } => {
            (headers.values().chain(bearer).collect(), Vec::new())
        }
        Endpoint::Stdio { command, args, env, .. } => {
            (env.values().collect(), std::iter::once(command).chain(args).collect())
        }
    };
    let expanded = words.into_iter().filter(|word| !spec.place.contains(*word)).map(String::as_str);
    let hidden = secrets.into_iter().map(Secret::expose).filter(|secret| secret.len() >= 6);
    let message = hidden
        .chain(expanded)
        .filter(|text| !text.is_empty())
        .fold(error.message.clone(), |message, text| message.replace(text, "***"));
    ConnectError { message, ..error }
}

fn header_map(
    headers: &BTreeMap<String, Secret>,
) -> Result<HashMap<HeaderName, HeaderValue>, ConnectError> {
    let bad = |name: &str| {
        ConnectError::new(ConnectErrorKind::Protocol, format!("`{name}` is not a legal header"))
    };
    headers
        .iter()
        .map(|(name, value)| {
            let key = HeaderName::try_from(name.as_str()).map_err(|_| bad(name))?;
            let mut value = HeaderValue::try_from(value.expose()).map_err(|_| bad(name))?;
            value.set_sensitive(true);
            Ok((key, value))
        })
        .collect()
}

fn credentials(
    request: RequestBuilder,
    headers: &HashMap<HeaderName, HeaderValue>,
    bearer: Option<&Secret>,
) -> RequestBuilder {
    let request = request.headers(headers.clone().into_iter().collect());
    match bearer {
        Some(bearer) => request.bearer_auth(bearer.expose()),
        None => request,
    }
}

fn child_error(error: &ClientInitializeError, child: &ChildProcess) -> ConnectError {
    if child.is_gone() { process_error(child) } else { handshake_error(error) }
}

/// What a dead child leaves: how it ended, and its last words.
fn process_error(child: &ChildProcess) -> ConnectError {
    if let Some(failure) = child.start_failure() {
        return failure;
    }
    let (reason, said) = (child.reason(), child.stderr());
    let said = last_bytes(&said, MAX_LAST_WORDS);
    let message = if said.is_empty() { reason } else { format!("{reason}; it said:\n{said}") };
    ConnectError::new(ConnectErrorKind::Process, message)
        .with_hint("run the command by hand to see whether it starts and waits for input")
}

fn last_bytes(text: &str, limit: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(limit));
    text.get(start..).unwrap_or_default()
}

fn handshake_error(error: &ClientInitializeError) -> ConnectError {
    let message = match error {
        ClientInitializeError::TransportError { error, .. } => return describe_transport(error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            return handshake_error(fallback);
        }
        ClientInitializeError::JsonRpcError(error) => {
            format!("the server refused the handshake: {}", error.message)
        }
        ClientInitializeError::ConnectionClosed(_) => {
            "the server closed the connection during the handshake".into()
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<_> = server_supported.iter().map(ToString::to_string).collect();
            format!("no common protocol version; the server speaks {}", versions.join(", "))
        }
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_)
        | ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            "the server answered the handshake with something else".into()
        }
        other => error_chain(other),
    };
    ConnectError::new(ConnectErrorKind::Protocol, message)
}
