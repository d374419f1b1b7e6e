//! Checks a request once, then hands it to the MCP endpoint or to the routes of the API.
//!
//! MCP requests do not go through the router: matching, wrapping the body and boxing the response cost a call more than
//! the MCP server itself does.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, Response};
use axum::response::IntoResponse;
use axum::{Error, Router};
use bytes::Buf;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use switchboard_inject::{ApiFamily, AppRoute};
use switchboard_telemetry::{HttpFace, http_answered};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::apps;
use crate::authorize::{self, AuthDecision};
use crate::connect;
use crate::connections::{ConnectionState, RequestInProgress};
use crate::cross_origin::{self, is_allowed_page};
use crate::mcp::{self, BodyChunk, McpEndpoint};
use crate::origin_check::{RESOURCE_POLICY, forbidden, hardened};
use crate::problem::SentProblem;
use crate::server_state::Shared;
use crate::stream_auth::{Credentials, Leased};
use crate::workbench;

/// Responds to all requests: checks them, and passes them to the MCP endpoint or to the router.
#[derive(Debug)]
pub(crate) struct Dispatcher<M> {
    pub(crate) router: Router,
    pub(crate) mcp: Arc<M>,
    pub(crate) shared: Shared,
}

/// The body of a response.
#[derive(Debug)]
pub(crate) enum ResponseBody<B> {
    Mcp(B),
    /// An MCP event stream. It ends when the credentials that opened it are revoked or expire.
    McpStream(Box<Leased<B>>),
    Other(Body),
}

/// The body of a response while it is sent. As long as it exists, the connection is not idle.
#[derive(Debug)]
pub(crate) struct TrackedBody<B> {
    body: ResponseBody<B>,
    _asking: RequestInProgress,
}

impl<B> TrackedBody<B> {
    pub(crate) fn new(body: ResponseBody<B>, asking: RequestInProgress) -> Self {
        Self { body, _asking: asking }
    }
}

impl<M: McpEndpoint> Dispatcher<M> {
    /// Responds to a request of a connection. `Host`, `Origin` and credentials are checked here and nowhere else.
    pub(crate) async fn answer(
        &self,
        connection: Arc<ConnectionState>,
        request: Request<Incoming>,
    ) -> Result<Response<TrackedBody<M::Body>>, Infallible> {
        let (began, face) = (Instant::now(), face_of(request.uri().path()));
        let asking = connection.begin_request(request.version());
        let policy = self.shared.hosts.current();
        let is_page = is_allowed_page(&policy, request.headers());
        let authority = request.uri().authority();
        let path = request.uri().path();
        let app = AppRoute::of(path);
        let is_opened_by_people = connect::is_page(request.method(), path)
            || workbench::is_page(request.method(), path, request.headers());
        let refusal = if is_opened_by_people {
            policy.page_refusal(request.headers(), authority)
        } else {
            policy.refusal(request.headers(), authority)
        };
        let mut response = match refusal {
            Some(detail) => forbidden(detail).map(ResponseBody::Other),
            // Boxed: the future is large, and most requests do not come from a browser.
            None if is_page => Box::pin(self.dispatch_page(asking.connection(), request)).await,
            None => self.dispatch(asking.connection(), request).await,
        };
        if let Some(route) = app {
            response = in_words_of_app(route.family, response);
        }
        hardened(&mut response);
        if is_page {
            let policy = HeaderValue::from_static("cross-origin");
            response.headers_mut().insert(RESOURCE_POLICY, policy);
        }
        http_answered(face, response.status().as_u16(), began.elapsed());
        Ok(response.map(|body| TrackedBody::new(body, asking)))
    }

    /// Responds to a page of an allowed origin, with the headers that let it read the response.
    async fn dispatch_page(
        &self,
        connection: &ConnectionState,
        mut request: Request<Incoming>,
    ) -> Response<ResponseBody<M::Body>> {
        cross_origin::refuse_unknown_headers(request.headers_mut());
        let dispatching = tower::service_fn(async |request| {
            Ok::<_, Infallible>(self.dispatch(connection, request).await)
        });
        match cross_origin::LAYER.layer(dispatching).oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    async fn dispatch(
        &self,
        connection: &ConnectionState,
        mut request: Request<Incoming>,
    ) -> Response<ResponseBody<M::Body>> {
        let principal = match authorize::admit(&self.shared, connection.is_local(), &request).await
        {
            Ok(AuthDecision::Public) => None,
            Ok(AuthDecision::Principal(principal)) => Some(principal),
            Err(refused) => return refused.map(ResponseBody::Other),
        };
        let opens_stream = request.method() == Method::GET
            || request.headers().get(mcp::METHOD).is_some_and(may_listen);
        let credentials = principal
            .as_ref()
            .filter(|_| opens_stream)
            .map(|principal| (Credentials::of(request.headers()), principal.role));
        let leases = &self.shared.leases;
        if let (Some(route), Some(principal)) = (mcp::route_of(request.uri().path()), &principal) {
            let principal = principal.clone();
            let within = self.shared.body_within;
            let answered =
                mcp::serve(&*self.mcp, within, Some(connection), route, principal, request).await;
            return match answered {
                Err(refused) => refused.map(ResponseBody::Other),
                Ok(response) => match credentials {
                    None => response.map(ResponseBody::Mcp),
                    Some((credentials, role)) => leases
                        .lease(credentials, role, response)
                        .map(|body| ResponseBody::McpStream(Box::new(body))),
                },
            };
        }
        if let Some(principal) = principal {
            request.extensions_mut().insert(principal);
        }
        // Boxed: the future of every connection would otherwise have the size of its largest branch.
        let response = Box::pin(self.route(request.map(Body::new))).await;
        let response = match credentials {
            None => response,
            Some((credentials, role)) => leases.lease(credentials, role, response).map(Body::new),
        };
        response.map(ResponseBody::Other)
    }

    async fn route(&self, request: Request) -> Response<Body> {
        match self.router.clone().oneshot(request).await {
            Ok(response) => response.into_response(),
            Err(never) => match never {},
        }
    }
}

/// The part of the server that answers, for metrics.
fn face_of(path: &str) -> HttpFace {
    if path == "/mcp" || path.starts_with("/mcp/") {
        HttpFace::Mcp
    } else if ["/api/", "/agents/", "/trustgraph/"].iter().any(|start| path.starts_with(start)) {
        HttpFace::Api
    } else {
        HttpFace::Other
    }
}

/// A response to an app: a problem is answered in the words of its API.
fn in_words_of_app<B>(
    family: ApiFamily,
    response: Response<ResponseBody<B>>,
) -> Response<ResponseBody<B>> {
    let Some(SentProblem(problem)) = response.extensions().get().cloned() else { return response };
    apps::in_words_of(family, &problem, response.headers()).map(ResponseBody::Other)
}

/// Whether a stateless request opens an event stream. An encoded header value is treated as if it does.
fn may_listen(method: &HeaderValue) -> bool {
    method == "subscriptions/listen" || method.as_bytes().starts_with(b"=?")
}

/// An empty body, as the response to a preflight has.
impl<B> Default for ResponseBody<B> {
    fn default() -> Self {
        Self::Other(Body::empty())
    }
}

impl<B> HttpBody for ResponseBody<B>
where
    B: HttpBody<Data = BodyChunk, Error = Infallible> + Unpin,
{
    type Data = BodyChunk;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<BodyChunk>, Error>>> {
        match self.get_mut() {
            Self::Mcp(body) => Pin::new(body).poll_frame(context).map_err(|never| match never {}),
            Self::McpStream(body) => {
                Pin::new(body).poll_frame(context).map_err(|never| match never {})
            }
            Self::Other(body) => Pin::new(body).poll_frame(context).map_ok(|frame| {
                frame.map_data(|data| data.chain(Bytes::new()).chain(Bytes::new()))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Mcp(body) => body.is_end_stream(),
            Self::McpStream(body) => body.is_end_stream(),
            Self::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Mcp(body) => body.size_hint(),
            Self::McpStream(body) => body.size_hint(),
            Self::Other(body) => body.size_hint(),
        }
    }
}

impl<B> HttpBody for TrackedBody<B>
where
    B: HttpBody<Data = BodyChunk, Error = Infallible> + Unpin,
{
    type Data = BodyChunk;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<BodyChunk>, Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
