//! Opens connections: chooses the era and the transport, and describes failures.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use reqwest::RequestBuilder;
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, Peer, RunningService,
    serve_client_with_lifecycle_and_ct, serve_directly_with_ct,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{IntoTransport, StreamableHttpClientTransport};
use switchboard_model::{
    ConnectError, ConnectErrorKind, Endpoint, Era, EraChoice, Secret, ServerSpec, UpstreamAuth,
    UpstreamToolList,
};
use switchboard_oauth::Authorization;
use switchboard_outbound::{CurrentSecret, HttpPool, Redactor, error_chain};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::bearer::BearerToken;
use crate::bounds::MAX_MESSAGE_BYTES;
use crate::connect_progress::ConnectProgress;
use crate::connection::{ConnectOptions, Connection, ServerInfo};
use crate::exchange::RequestRoute;
use crate::handler::UpstreamHandler;
use crate::http_client::BoundedClient;
use crate::http_faults::describe_transport;
use crate::http_sender::HttpSender;
use crate::http_transport::HttpWire;
use crate::pending_requests::PendingRequests;
use crate::probe::{Verdict, probe_era};
use crate::process_error::process_error;
use crate::request::Features;
use crate::sse::{RequestTo, SseTransport};
use crate::stdio::{ChildProcess, ChildStreams, StdioCommand};
use crate::stdio_handshake::{FirstQuestion, Greeting, HandshakeFailure, StdioHandshake};
use crate::stdio_messages::LineSink;
use crate::subscriptions::{Announced, SubscriptionTask};

/// The transport's limit of concurrent requests. It is high, because the board limits the number of calls.
const MAX_REQUESTS_IN_FLIGHT: usize = 4096;

/// Maximum time of the era probe.
const LONGEST_PROBE: Duration = Duration::from_secs(10);

type Service = RunningService<RoleClient, UpstreamHandler>;

impl Connection {
    /// Connects and lists the tools, both within the server's `connect_timeout`.
    pub async fn open(
        spec: &ServerSpec,
        options: &ConnectOptions,
    ) -> Result<(Arc<Self>, UpstreamToolList), ConnectError> {
        let limit = spec.connect_timeout;
        let progress = options.progress.clone().unwrap_or_default();
        let bearer = BearerToken::read(&spec.endpoint).await;
        let redactor = || redactor_of(spec, options, bearer.clone());
        progress.begin(redactor());
        let opened = match &spec.endpoint {
            // A child is started and waited for only once; a remembered era only decides which request is sent first.
            Endpoint::Stdio { .. } => {
                tokio::time::timeout(limit, open_once(spec, options, bearer.as_ref(), &progress))
                    .await
            }
            Endpoint::StreamableHttp { .. } | Endpoint::Sse { .. } => {
                let opening = open_or_ask_again(spec, options, bearer.as_ref(), &progress);
                tokio::time::timeout(limit, opening).await
            }
        };
        let mut opened = opened.unwrap_or_else(|_| Err(progress.timed_out(spec)));
        if let Err(error) = &mut opened
            && error.kind == ConnectErrorKind::Protocol
            && matches!(spec.era, EraChoice::Fixed(_))
            && error.hints.is_empty()
        {
            let hint = "the configuration sets `era`; without it Switchboard finds out the era";
            *error = error.clone().with_operator_hint(hint);
        }
        opened.map_err(|error| redactor().redact_error(error))
    }
}

/// Tries the remembered era, and probes the era if that fails.
async fn open_or_ask_again(
    spec: &ServerSpec,
    options: &ConnectOptions,
    bearer: Option<&Arc<BearerToken>>,
    progress: &ConnectProgress,
) -> Result<(Arc<Connection>, UpstreamToolList), ConnectError> {
    if options.known_era.is_none() {
        return open_once(spec, options, bearer, progress).await;
    }
    // Half of the time is left for the probe, in case the remembered era is out of date.
    let attempt = open_once(spec, options, bearer, progress);
    let opened = tokio::time::timeout(spec.connect_timeout / 2, attempt).await;
    match opened {
        Ok(Ok(opened)) => Ok(opened),
        Ok(Err(error)) if error.kind == ConnectErrorKind::SignIn => Err(error),
        Ok(Err(_)) | Err(_) => {
            let afresh = ConnectOptions { known_era: None, ..options.clone() };
            open_once(spec, &afresh, bearer, progress).await
        }
    }
}

/// The parts of a connection before its tools are listed.
struct Opened {
    service: Service,
    pending: Arc<PendingRequests>,
    route: RequestRoute,
    child: Option<ChildProcess>,
    era_is_certain: bool,
}

/// The inputs of opening a connection, for all transports.
struct Opening<'a> {
    spec: &'a ServerSpec,
    options: &'a ConnectOptions,
    bearer: Option<Arc<BearerToken>>,
    progress: &'a ConnectProgress,
    tasks: TaskTracker,
    stop: CancellationToken,
}

async fn open_once(
    spec: &ServerSpec,
    options: &ConnectOptions,
    bearer: Option<&Arc<BearerToken>>,
    progress: &ConnectProgress,
) -> Result<(Arc<Connection>, UpstreamToolList), ConnectError> {
    let stop = CancellationToken::new();
    // Dropping the future must stop the rmcp service.
    let guard = stop.clone().drop_guard();
    let bearer = bearer.cloned();
    let opening = Opening { spec, options, bearer, progress, tasks: TaskTracker::new(), stop };
    let opened = match &spec.endpoint {
        Endpoint::StreamableHttp { url, headers, auth } => {
            opening.streamable_http(url, headers, auth).await?
        }
        Endpoint::Sse { url, headers, auth } => opening.sse(url, headers, auth).await?,
        Endpoint::Stdio { command, args, env, cwd } => {
            opening.stdio(&StdioCommand { command, args, env, cwd: cwd.as_ref() }).await?
        }
    };
    let connection = opening.finish(opened).await;
    progress.set_step("tools/list");
    match connection.list_tools().await {
        Ok(list) => {
            guard.disarm();
            Ok((connection, list))
        }
        Err(error) => Err(error),
    }
}

impl Opening<'_> {
    fn redactor(&self) -> Redactor {
        redactor_of(self.spec, self.options, self.bearer.clone())
    }

    /// One per attempt, so that the requests to one child do not carry over to the next.
    fn pending(&self) -> Arc<PendingRequests> {
        let pending = PendingRequests::new(self.tasks.clone(), self.stop.clone(), Arc::default());
        let session = self.options.session.as_ref();
        if let Some(events) = session.and_then(|session| session.events.clone()) {
            pending.listen_for_session(events);
        }
        Arc::new(pending)
    }

    fn handler(&self, pending: &Arc<PendingRequests>) -> UpstreamHandler {
        let session = self.options.session.as_ref();
        let declared = session.and_then(|session| session.capabilities.as_deref());
        // Invalid capabilities count as none.
        let capabilities = declared.map(|json| serde_json::from_str(json).unwrap_or_default());
        UpstreamHandler { pending: pending.clone(), capabilities }
    }

    /// The OAuth state of the server, if the server is configured with OAuth.
    fn authorization(
        &self,
        auth: &UpstreamAuth,
    ) -> Result<Option<Arc<Authorization>>, ConnectError> {
        match auth {
            UpstreamAuth::None | UpstreamAuth::Bearer(_) | UpstreamAuth::BearerFile { .. } => {
                Ok(None)
            }
            UpstreamAuth::OAuth(_) => {
                let sign_ins = self.options.sign_ins.as_ref();
                let found = sign_ins
                    .and_then(|all| all.authorization_of(self.spec, self.options.owner.clone()));
                found.map(Some).ok_or_else(|| {
                    let message =
                        "the server requires a sign-in, and there is no store for its tokens";
                    ConnectError::new(ConnectErrorKind::SignIn, message)
                })
            }
        }
    }

    /// The token of the server, if it comes from a file and can change.
    fn bearer_in_file(&self) -> Option<Arc<BearerToken>> {
        self.bearer.clone().filter(|bearer| bearer.is_in_file())
    }

    /// The era to use, and whether it may be remembered.
    async fn era(
        &self,
        request: RequestBuilder,
        authorization: Option<&Arc<Authorization>>,
    ) -> Result<(Era, bool), ConnectError> {
        match (self.spec.era, self.options.known_era) {
            (EraChoice::Fixed(era), _) => Ok((era, false)),
            (EraChoice::Auto, Some(era)) => Ok((era, true)),
            (EraChoice::Auto, None) => {
                self.progress.set_step("server/discover");
                let asking = probe_era(request, authorization);
                // Some older servers never answer unknown methods; the handshake of the session era is tried then.
                let limit = LONGEST_PROBE.min(self.spec.connect_timeout / 3);
                Ok(match tokio::time::timeout(limit, asking).await {
                    Ok(verdict) => match verdict? {
                        Verdict::Speaks(era) => (era, true),
                        Verdict::Unclear => (Era::Legacy, false),
                    },
                    Err(_elapsed) => (Era::Legacy, false),
                })
            }
        }
    }

    /// The HTTP clients for this server, with the egress check where its address needs one.
    fn http(&self) -> HttpPool {
        let shared = &self.options.http;
        self.spec.egress.as_deref().map_or_else(|| shared.clone(), |policy| shared.under(policy))
    }

    /// The configured headers for requests that no caller makes, such as the handshake and lists. A header that needs a
    /// caller is left out.
    fn own_requests(
        &self,
        headers: &BTreeMap<String, Secret>,
    ) -> Result<HashMap<HeaderName, HeaderValue>, ConnectError> {
        let mut all = header_map(headers)?;
        let of_nobody = self.spec.caller_headers.iter().filter_map(|header| {
            Some((header.name.clone(), Secret::new(header.value.for_nobody()?)))
        });
        all.extend(header_map(&of_nobody.collect())?);
        Ok(all)
    }

    async fn streamable_http(
        &self,
        url: &Url,
        headers: &BTreeMap<String, Secret>,
        auth: &UpstreamAuth,
    ) -> Result<Opened, ConnectError> {
        let pending = self.pending();
        let authorization = self.authorization(auth)?;
        let bearer = self.bearer.as_ref().map(|bearer| bearer.token());
        let http = &self.http();
        let client = BoundedClient::new(
            http,
            url,
            pending.clone(),
            authorization.clone(),
            self.bearer_in_file(),
        )?;
        let headers = self.own_requests(headers)?;
        let question = credentials(client.http().post(url.clone()), &headers, bearer.as_ref());
        let (era, era_is_certain) = self.era(question, authorization.as_ref()).await?;
        let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
            .max_concurrent_requests(MAX_REQUESTS_IN_FLIGHT)
            .max_sse_event_size(MAX_MESSAGE_BYTES)
            .reinit_on_expired_session(true)
            .custom_headers(headers.clone());
        if let Some(bearer) = &bearer {
            config = config.auth_header(bearer.expose());
        }
        let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
        let served = self.serve(transport, era, &pending).await;
        let service = served
            .map_err(|error| client.take_fault().unwrap_or_else(|| handshake_error(&error)))?;
        let sender = HttpSender::new(http, url)?;
        if let Some(pool) = sender.pool() {
            let stop = self.stop.clone();
            self.tasks.spawn(async move {
                stop.run_until_cancelled(pool.tidy()).await;
            });
        }
        let own = own_headers(headers, bearer.as_ref())?;
        let session = client.session().clone();
        let bearer = self.bearer_in_file();
        let wire = HttpWire::new(era, sender, own, authorization, bearer, session);
        let route = RequestRoute::Http(Arc::new(wire));
        Ok(Opened { service, pending, route, child: None, era_is_certain })
    }

    async fn sse(
        &self,
        url: &Url,
        headers: &BTreeMap<String, Secret>,
        auth: &UpstreamAuth,
    ) -> Result<Opened, ConnectError> {
        let pending = self.pending();
        let authorization = self.authorization(auth)?;
        let bearer = self.bearer.as_ref().map(|bearer| bearer.token());
        let client = self.http().client_for(url)?;
        let headers = self.own_requests(headers)?;
        let make = Box::new(move |method, url| {
            credentials(client.request(method, url), &headers, bearer.as_ref())
        });
        let request = RequestTo { make, authorization, bearer: self.bearer_in_file() };
        self.progress.set_step("the opening of the event stream");
        let transport = SseTransport::open(url, request, pending.clone()).await?;
        let route = RequestRoute::Stream(Arc::new(transport.posts().clone()));
        let served = self.serve(transport, Era::Legacy, &pending).await;
        let service = served.map_err(|error| handshake_error(&error))?;
        Ok(Opened { service, pending, route, child: None, era_is_certain: true })
    }

    /// Opens a child in the configured era. If the era is not fixed, `initialize` is sent first: a process speaks one
    /// era for its whole life, and in the session era a server of both eras can also send requests to clients that know
    /// only this one.
    async fn stdio(&self, line: &StdioCommand<'_>) -> Result<Opened, ConnectError> {
        use FirstQuestion::{Discover, Initialize, Only};
        // Some servers exit at the first unknown message. They are started once more, with the other era first.
        let (first, second) = match self.spec.era {
            EraChoice::Fixed(era) => (Only(era), None),
            EraChoice::Auto => (Initialize, Some(Discover)),
        };
        let (failure, child) = match self.start_child(line, first).await? {
            Ok(opened) => return Ok(opened),
            Err(failed) => failed,
        };
        child.settle().await;
        let is_ended = matches!(failure, HandshakeFailure::Closed) && child.ended_by_itself();
        let Some(second) = second.filter(|_| is_ended) else {
            return Err(child_error(failure, &child, &self.redactor()));
        };
        match self.start_child(line, second).await? {
            Ok(opened) => Ok(Opened { era_is_certain: true, ..opened }),
            Err((failure, child)) => {
                child.settle().await;
                Err(child_error(failure, &child, &self.redactor()))
            }
        }
    }

    /// The outer error means that the child could not be started at all.
    async fn start_child(
        &self,
        line: &StdioCommand<'_>,
        first: FirstQuestion,
    ) -> Result<Result<Opened, ConnectFailure>, ConnectError> {
        let guard = self.options.guard.as_deref();
        let pending = self.pending();
        self.progress.set_step("the start of the process");
        let (streams, child) = ChildProcess::spawn(line, guard, &pending)?;
        self.progress.set_stderr(child.stderr_tail().clone());
        let ChildStreams { mut output, input, lines } = streams;
        let handler = self.handler(&pending);
        let handshake = StdioHandshake {
            output: &mut output,
            input: &lines,
            handler: &handler,
            progress: self.progress,
            times: self.options.probe_times.within(self.spec.connect_timeout),
        };
        let Greeting { info, is_certain } = match handshake.run(first).await {
            Ok(greeting) => greeting,
            Err(failure) => return Ok(Err((failure, child))),
        };
        // `output` enforces the size limit and reports when it is exceeded.
        let transport =
            AsyncRwTransport::new_client(output, input).with_max_line_length(usize::MAX);
        let stop = self.stop.clone();
        let service = serve_directly_with_ct(handler, transport, Some(info), stop);
        let route = RequestRoute::Stream(Arc::new(LineSink(lines)));
        let child = Some(child);
        Ok(Ok(Opened { service, pending, route, child, era_is_certain: is_certain }))
    }

    async fn serve<T, E, A>(
        &self,
        transport: T,
        era: Era,
        pending: &Arc<PendingRequests>,
    ) -> Result<Service, HandshakeError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        self.progress.set_step(match era {
            Era::Legacy => "initialize",
            Era::Modern => "server/discover",
        });
        let (handler, stop) = (self.handler(pending), self.stop.clone());
        serve_client_with_lifecycle_and_ct(handler, transport, lifecycle(era), stop)
            .await
            .map_err(Box::new)
    }

    async fn finish(self, opened: Opened) -> Arc<Connection> {
        let peer = opened.service.peer().clone();
        // The catalog is the cache; rmcp's own would serve stale lists.
        peer.set_response_cache_config(ClientCacheConfig::disabled()).await;
        let Described { info, era, features, announced } = describe_peer(&peer);
        let mirrors_arguments = era == Era::Modern && matches!(opened.route, RequestRoute::Http(_));
        let route = opened.route;
        if let RequestRoute::Http(wire) = &route {
            wire.connect(peer.clone());
        }
        let pending = opened.pending;
        pending.connect(route.sink(), era);
        let closed = CancellationToken::new();
        let (unsubscribe, unsubscribed) = (self.stop.child_token(), CancellationToken::new());
        let (listener, watch) =
            SubscriptionTask::new(peer, pending.clone(), announced, unsubscribe.clone());
        let connection = Arc::new(Connection {
            server: self.spec.name.clone(),
            era,
            era_is_certain: opened.era_is_certain,
            info,
            features,
            pending,
            route,
            watch,
            mirrors_arguments,
            list_bounds: self.options.list_bounds,
            redactor: self.redactor(),
            child: opened.child,
            tasks: self.tasks.clone(),
            stop: self.stop.clone(),
            closed: closed.clone(),
            unsubscribe,
            unsubscribed: unsubscribed.clone(),
        });
        self.tasks.spawn(async move {
            // The reason is ignored here: the child, or the next request, reports it.
            let _quit_reason = opened.service.waiting().await;
            closed.cancel();
        });
        let done = unsubscribed.drop_guard();
        if era == Era::Modern {
            self.tasks.spawn(async move {
                listener.run().await;
                drop(done);
            });
        }
        connection
    }
}

type HandshakeError = Box<ClientInitializeError>;
type ConnectFailure = (HandshakeFailure, ChildProcess);

fn lifecycle(era: Era) -> ClientLifecycleMode {
    match era {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    }
}

/// The server's self-description, and what follows from it.
#[derive(Debug)]
struct Described {
    info: ServerInfo,
    era: Era,
    features: Features,
    announced: Announced,
}

fn describe_peer(peer: &Peer<RoleClient>) -> Described {
    let Some(said) = peer.peer_info() else {
        return Described {
            info: ServerInfo::default(),
            era: Era::Legacy,
            features: Features::default(),
            announced: Announced::default(),
        };
    };
    let info = ServerInfo {
        name: said.server_info.as_ref().map(|info| info.name.clone()),
        version: said.server_info.as_ref().map(|info| info.version.clone()),
        protocol: said.protocol_version.to_string(),
    };
    let era = if said.protocol_version.has_initialize() { Era::Legacy } else { Era::Modern };
    let can = &said.capabilities;
    let announced = Announced {
        tools: can.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true)),
        prompts: can.prompts.as_ref().is_some_and(|prompts| prompts.list_changed == Some(true)),
        resources: can.resources.as_ref().is_some_and(|all| all.list_changed == Some(true)),
    };
    let features = Features {
        prompts: can.prompts.is_some(),
        resources: can.resources.is_some(),
        subscribe: can.resources.as_ref().is_some_and(|all| all.subscribe == Some(true)),
        completions: can.completions.is_some(),
        logging: can.logging.is_some(),
        instructions: said.instructions.clone(),
    };
    Described { info, era, features, announced }
}

fn redactor_of(
    spec: &ServerSpec,
    options: &ConnectOptions,
    bearer: Option<Arc<BearerToken>>,
) -> Redactor {
    let authorization =
        options.sign_ins.as_ref().and_then(|all| all.authorization_of(spec, options.owner.clone()));
    let token = authorization.map(|it| it as Arc<dyn CurrentSecret>);
    let bearer = bearer.map(|it| it as Arc<dyn CurrentSecret>);
    Redactor::of(spec).with(token).with(bearer)
}

fn header_map(
    headers: &BTreeMap<String, Secret>,
) -> Result<HashMap<HeaderName, HeaderValue>, ConnectError> {
    let bad = |name: &str| {
        ConnectError::new(ConnectErrorKind::Protocol, format!("`{name}` is not a valid header"))
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

/// The configured headers, for requests that do not go through rmcp.
fn own_headers(
    headers: HashMap<HeaderName, HeaderValue>,
    bearer: Option<&Secret>,
) -> Result<HeaderMap, ConnectError> {
    let mut headers: HeaderMap = headers.into_iter().collect();
    if let Some(bearer) = bearer {
        let mut value =
            HeaderValue::try_from(format!("Bearer {}", bearer.expose())).map_err(|_| {
                ConnectError::new(
                    ConnectErrorKind::Protocol,
                    "`auth.bearer` has characters that a header cannot carry",
                )
            })?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    Ok(headers)
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

fn child_error(
    failure: HandshakeFailure,
    child: &ChildProcess,
    redactor: &Redactor,
) -> ConnectError {
    match failure {
        // The child may have exited since, because its input was closed.
        HandshakeFailure::Refused(error) => error,
        HandshakeFailure::Closed if child.is_gone() => process_error(child, redactor),
        HandshakeFailure::Closed => {
            let message = "the server closed the connection during the handshake";
            ConnectError::new(ConnectErrorKind::Protocol, message)
        }
    }
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
            "the server sent an unexpected response to the handshake".into()
        }
        other => error_chain(other),
    };
    ConnectError::new(ConnectErrorKind::Protocol, message)
}
