//! Serves the routes on a listener, and stops gracefully.

use std::convert::Infallible;
use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{BoxError, Router};
use http_body_util::Limited;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustix::io::Errno;
use switchboard_inject::AppRoute;
use switchboard_telemetry::MetricsPage;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::compression::{CompressionLayer, CompressionLevel};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access_sync::watch_access;
use crate::board_place::BoardPlace;
use crate::connections::{
    CloseOrder, ConnectionLimits, ConnectionPermit, ConnectionState, Connections, ObservedStream,
};
use crate::dispatch::Dispatcher;
use crate::mcp::McpEndpoint;
use crate::openapi::OpenApiDocument;
use crate::problem::ProblemResponse;
use crate::request_body::{Timed, Unread, announced};
use crate::self_waking::SelfWaking;
use crate::server_state::{ServeOptions, Shared};
use crate::sign_in_pages::serve_sign_in_pages;
use crate::tls_certificate::ServerCertificate;
use crate::tls_handshake::shake_hands;
use crate::{
    accounts, agents, api_docs, apps, authorize, board_events, call_questions, call_records,
    call_statistics, call_stream, calls, config, connect, connect_browser, connect_identity,
    content_checks, declarations, health, history, inspect, keys, mcp, me, openapi, problem,
    provider_accounts, providers, renderings, server_care, server_entries, session_events,
    session_preview, session_render, session_tools, sessions, sources, tooling_gateway,
    toolset_detail, toolset_entries, trustgraph, trustgraph_socket, turns, workbench,
};

/// The maximum size of a request body of the API.
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;
/// The maximum size of a conversation, or of a message with its images.
const MAX_CONVERSATION_BYTES: usize = 32 * 1024 * 1024;
/// How often collected metrics are aggregated when no scrape does it.
const FOLD_EVERY: Duration = Duration::from_secs(10);
/// How often an HTTP/2 client is pinged, and how long it may take to respond.
const PING_EVERY: Duration = Duration::from_secs(30);
const PONG_WITHIN: Duration = Duration::from_secs(30);

/// All routes. [`Dispatcher`] has already checked the requests.
fn router<M: McpEndpoint>(shared: &Shared, mcp: Arc<M>) -> Router {
    let routed = mcp::Routed { mcp, body_within: shared.body_within };
    api(shared).with_state(shared.clone()).merge(mcp::routes(routed))
}

fn api(shared: &Shared) -> Router<Shared> {
    let (documented, _document) = documented_routes().split_for_parts();
    documented
        .route("/.well-known/oauth-protected-resource", get(authorize::resource_metadata))
        .route("/.well-known/oauth-protected-resource/{*path}", get(authorize::resource_metadata))
        .route("/connect/{flow}", get(connect::show).post(connect::submit))
        .route("/connect/{flow}/identify", get(connect_identity::identify))
        .route(connect_browser::CALLBACK, get(connect::callback))
        .route("/.well-known/oauth-client/{document}", get(connect::client_document))
        .route(content_checks::CHAT_MESSAGE_PATH, post(content_checks::report))
        .route("/agents/v2/{agent}/mcpServers", get(tooling_gateway::servers))
        .route("/agents/{agent}/mcpServers", get(tooling_gateway::servers_by_url))
        .route("/mcp/servers", get(tooling_gateway::servers_by_query))
        .route("/trustgraph/api/v1/config", post(trustgraph::config))
        .route("/trustgraph/api/v1/flow/{flow}/service/{service}", post(trustgraph::flow_service))
        .merge(apps_of_providers())
        .route(trustgraph_socket::PATH, get(trustgraph_socket::socket))
        .fallback(workbench::serve)
        .method_not_allowed_fallback(problem::method_not_allowed)
        .layer(DefaultBodyLimit::max(MAX_CONVERSATION_BYTES))
        // Not event streams, and not what is compressed already.
        .layer(CompressionLayer::new().gzip(true).quality(CompressionLevel::Fastest))
        .layer(axum::middleware::from_fn_with_state(shared.clone(), bound_bodies))
}

/// The addresses of apps that speak the API of a model provider.
fn apps_of_providers() -> Router<Shared> {
    apps::ROUTES
        .into_iter()
        .fold(Router::new(), |router, path| router.route(path, any(apps::answer)))
}

/// The routes of the API document. The handler declares its path, method and documentation; the methods of one path belong
/// into one `routes!`.
#[expect(clippy::too_many_lines, reason = "one line for each path")]
pub(crate) fn documented_routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::with_openapi(OpenApiDocument::openapi())
        .routes(routes!(me::show))
        .routes(routes!(board_events::follow))
        .routes(routes!(inspect::servers))
        .routes(routes!(server_entries::show, server_entries::put, server_entries::delete))
        .routes(routes!(server_entries::reconnect))
        .routes(routes!(server_care::refresh))
        .routes(routes!(server_care::log))
        .routes(routes!(server_care::test))
        .routes(routes!(sources::list))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::show, keys::change, keys::revoke))
        .routes(routes!(inspect::tools))
        .routes(routes!(inspect::tool))
        .routes(routes!(renderings::of_tool))
        .routes(routes!(renderings::renderers))
        .routes(routes!(declarations::show, declarations::put, declarations::delete))
        .routes(routes!(declarations::preview))
        .routes(routes!(declarations::check))
        .routes(routes!(config::show))
        .routes(routes!(config::schema))
        .routes(routes!(config::reload))
        .routes(routes!(calls::call))
        .routes(routes!(call_records::recent))
        .routes(routes!(call_records::export))
        .routes(routes!(call_records::show))
        .routes(routes!(call_stream::cancel))
        .routes(routes!(call_questions::answer))
        .routes(routes!(call_statistics::over_time))
        .routes(routes!(call_statistics::now))
        .routes(routes!(calls::result))
        .routes(routes!(content_checks::recent))
        .routes(routes!(sessions::toolsets))
        .routes(routes!(toolset_detail::show, toolset_entries::put, toolset_entries::delete))
        .routes(routes!(toolset_detail::preview))
        .routes(routes!(sessions::list, sessions::create))
        .routes(routes!(sessions::show, sessions::change, sessions::end))
        .routes(routes!(sessions::bind))
        .routes(routes!(sessions::put_server, sessions::delete_server))
        .routes(routes!(sessions::snapshot))
        .routes(routes!(session_tools::list))
        .routes(routes!(session_tools::switch_tool))
        .routes(routes!(session_tools::call))
        .routes(routes!(session_tools::toolsets))
        .routes(routes!(session_tools::switch_toolset))
        .routes(routes!(session_events::follow))
        .routes(routes!(session_render::render))
        .routes(routes!(renderings::of_session))
        .routes(routes!(session_preview::preview))
        .routes(routes!(session_preview::clone))
        .routes(routes!(turns::list, turns::begin))
        .routes(routes!(turns::show))
        .routes(routes!(turns::cancel))
        .routes(routes!(turns::follow))
        .routes(routes!(history::show, history::replace))
        .routes(routes!(accounts::list))
        .routes(routes!(accounts::sign_out))
        .routes(routes!(accounts::begin))
        .routes(routes!(accounts::follow))
        .routes(routes!(accounts::set_token))
        .routes(routes!(providers::list))
        .routes(routes!(providers::models))
        .routes(routes!(provider_accounts::begin))
        .routes(routes!(provider_accounts::finish))
        .routes(routes!(provider_accounts::sign_out))
        .routes(routes!(agents::list))
        .routes(routes!(agents::show))
        .routes(routes!(agents::framework))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
        .routes(routes!(openapi::document))
        .routes(routes!(api_docs::api_docs))
}

/// Refuses a body that is announced as too large before it is sent. A body of unknown length is cut off at the limit, and
/// one that takes too long fails.
pub(crate) async fn bound_bodies(
    State(shared): State<Shared>,
    mut request: Request,
    next: Next,
) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let parts: Vec<_> = request.uri().path().split('/').collect();
    let is_conversation = matches!(*parts, ["", "api", "v1", "sessions", _, "turns" | "history"]);
    let is_of_app = AppRoute::of(request.uri().path()).is_some();
    let most = if is_conversation || is_of_app { MAX_CONVERSATION_BYTES } else { MAX_BODY_BYTES };
    if announced(request.headers()).is_none_or(|length| length <= most) {
        let (parts, body) = request.into_parts();
        let (body, lateness) = Timed::new(Limited::new(body, most), shared.body_within);
        request = Request::from_parts(parts, Body::new(body));
        let answer = next.run(request).await;
        return if lateness.is_late() { Unread::Late.into_response() } else { answer };
    }
    let detail = format!("the body is larger than {most} bytes");
    ProblemResponse::new("bad_request", StatusCode::PAYLOAD_TOO_LARGE, detail).into_response()
}

/// Serves until `shutdown`, then lets running requests finish for at most `drain`.
pub async fn serve<M: McpEndpoint>(
    listener: TcpListener,
    options: ServeOptions,
    mcp: Arc<M>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let limits = ConnectionLimits::default();
    let shared = Shared::new(&options, &limits);
    serve_sign_in_pages(&shared, listener.local_addr().ok());
    let watching = Box::pin(watch_access(shared.clone()));
    let tls = options.tls.clone();
    let renewing = renew_certificate(tls.as_deref(), &options.board);
    let router = router(&shared, mcp.clone());
    let dispatcher = Arc::new(Dispatcher { router, mcp, shared });
    let connections = Connections::new(limits);
    let ending = CancellationToken::new();
    let folding = fold_regularly(options.metrics.clone());
    let cut_off = async {
        shutdown.await;
        ending.cancel();
        tokio::time::sleep(options.drain).await;
    };
    // Boxed: the future is large, and would be part of the caller's.
    let answer = move |connection, request| {
        let dispatcher = dispatcher.clone();
        async move { dispatcher.answer(connection, request).await }
    };
    let accepting = Box::pin(accept(listener, tls.clone(), &connections, &ending, answer));
    tokio::select! {
        () = accepting => Ok(()),
        () = connections.watch() => Ok(()),
        () = cut_off => Ok(()),
        () = folding => Ok(()),
        () = watching => Ok(()),
        () = renewing => Ok(()),
    }
}

async fn renew_certificate(tls: Option<&ServerCertificate>, place: &BoardPlace) {
    match tls {
        Some(certificate) => certificate.watch(place).await,
        None => std::future::pending().await,
    }
}

/// Accepts connections until the shutdown, then waits for the remaining ones.
pub(crate) async fn accept<A, F, B>(
    listener: TcpListener,
    tls: Option<Arc<ServerCertificate>>,
    connections: &Arc<Connections>,
    ending: &CancellationToken,
    answer: A,
) where
    A: Fn(Arc<ConnectionState>, hyper::Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<hyper::Response<B>, Infallible>> + Send + 'static,
    B: HttpBody<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    let tasks = TaskTracker::new();
    let server = Arc::new(server());
    loop {
        let accepted = async {
            let (stream, peer) = next_stream(&listener, connections).await;
            (stream, peer, connections.place().await)
        };
        let (stream, peer, place) = tokio::select! {
            biased;
            () = ending.cancelled() => break,
            accepted = accepted => accepted,
        };
        let connection = place.connection.clone();
        connection.set_local(is_loopback(&peer));
        let (server, ending, answer) = (server.clone(), ending.clone(), answer.clone());
        if let Some(tls) = &tls {
            let attending = attend_tls(stream, tls.config(), place, server, ending, answer);
            let attending = SelfWaking::new(attending);
            connection.set_task(attending.waker().clone());
            tasks.spawn(attending);
        } else {
            let attending = SelfWaking::new(attend(stream, place, server, ending, answer));
            connection.set_task(attending.waker().clone());
            tasks.spawn(attending);
        }
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
}

/// The next connection. Errors of the system are logged, and the accept is repeated.
async fn next_stream(listener: &TcpListener, connections: &Connections) -> (TcpStream, SocketAddr) {
    loop {
        let error = match listener.accept().await {
            Ok((stream, peer)) => {
                // Otherwise small responses on reused connections would wait for the client's delayed acknowledgement.
                let _unsupported = stream.set_nodelay(true);
                return (stream, peer);
            }
            Err(error) => error,
        };
        match (error.kind(), Errno::from_io_error(&error)) {
            (
                ErrorKind::ConnectionRefused
                | ErrorKind::ConnectionAborted
                | ErrorKind::ConnectionReset,
                _,
            ) => tracing::debug!(%error, "a client closed its connection before it was accepted"),
            (_, Some(Errno::MFILE | Errno::NFILE)) => connections.files_ran_out(&error).await,
            _ => connections.accept_failed(&error).await,
        }
    }
}

/// HTTP/1 has no timers here, because [`Connections`] enforces the times. HTTP/2 clients are pinged.
fn server() -> auto::Builder<TokioExecutor> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    let mut http2 = server.http2();
    http2.timer(TokioTimer::new());
    http2.keep_alive_interval(PING_EVERY).keep_alive_timeout(PONG_WITHIN);
    server
}

/// Performs the handshake of a connection, then serves it. Only what is decrypted counts as received, so a client that stops
/// within the handshake is treated as one that sends nothing.
async fn attend_tls<A, F, B>(
    stream: TcpStream,
    config: Arc<rustls::ServerConfig>,
    place: ConnectionPermit,
    server: Arc<auto::Builder<TokioExecutor>>,
    ending: CancellationToken,
    answer: A,
) where
    A: Fn(Arc<ConnectionState>, hyper::Request<Incoming>) -> F,
    F: Future<Output = Result<hyper::Response<B>, Infallible>> + Send + 'static,
    B: HttpBody<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    let stream = tokio::select! {
        biased;
        stream = shake_hands(stream, config) => stream,
        _order = place.connection.order(CloseOrder::Leave) => return,
        () = ending.cancelled() => return,
    };
    if let Some(stream) = stream {
        attend(stream, place, server, ending, answer).await;
    }
}

/// Serves one connection. After the shutdown began, it completes the current request and accepts no other.
async fn attend<S, A, F, B>(
    stream: S,
    place: ConnectionPermit,
    server: Arc<auto::Builder<TokioExecutor>>,
    ending: CancellationToken,
    answer: A,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: Fn(Arc<ConnectionState>, hyper::Request<Incoming>) -> F,
    F: Future<Output = Result<hyper::Response<B>, Infallible>> + Send + 'static,
    B: HttpBody<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    let connection = &place.connection;
    let stream = TokioIo::new(ObservedStream { stream, connection: connection.clone() });
    let service = service_fn(|request| answer(connection.clone(), request));
    let mut serving = std::pin::pin!(server.serve_connection_with_upgrades(stream, service));
    tokio::select! {
        biased;
        // Most connections end because the client closes them.
        _ended = &mut serving => return,
        order = connection.order(CloseOrder::Leave) => match order {
            CloseOrder::Leave => serving.as_mut().graceful_shutdown(),
            CloseOrder::Go => return,
        },
        () = ending.cancelled() => serving.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        biased;
        _ended = serving => {}
        _order = connection.order(CloseOrder::Go) => {}
    }
}

async fn fold_regularly(metrics: MetricsPage) {
    loop {
        tokio::time::sleep(FOLD_EVERY).await;
        metrics.fold();
    }
}

/// Whether only this machine can reach the address.
pub fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
