//! `/mcp` and the endpoints below it: reads a request and passes it to the MCP server.

use std::convert::Infallible;
use std::future::Future;

use axum::BoxError;
use axum::Extension;
use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::ALLOW;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any};
use bytes::Buf;
use bytes::buf::Chain;
use http_body_util::BodyExt;
use std::sync::Arc;
use std::time::Duration;
use switchboard_auth::Principal;

use crate::connections::ConnectionState;
use crate::extract::FromPath;
use crate::problem::ProblemResponse;
use crate::request_body::{read_timed, read_watched};
use crate::wake_filter::if_woken;

/// The header in which a stateless client names its method. The MCP server checks it against the body.
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// A part of a body in three buffers that are written at once: the frame before a shared result, the result, and the frame
/// after it. As three body frames, the end of a large list would be sent in a packet of its own.
pub type BodyChunk = Chain<Chain<Bytes, Bytes>, Bytes>;

/// The part of the catalog that an endpoint serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpRoute {
    All,
    Server(String),
    Toolsets(String),
    Session(String),
    /// One server of an agent.
    Agent {
        agent: String,
        server: String,
    },
}

/// An authorized request. The body of a POST is passed beside it.
#[derive(Debug)]
pub struct McpRequest {
    pub route: McpRoute,
    pub query: Option<String>,
    pub headers: HeaderMap,
    pub principal: Principal,
}

/// The interface of an MCP server to HTTP.
pub trait McpEndpoint: Send + Sync + 'static {
    type Body: HttpBody<Data = BodyChunk, Error = Infallible> + Send + Unpin + 'static;

    /// The maximum size of the body of a POST.
    fn max_body_bytes(&self) -> usize;

    /// Responds to a POST: a message of the client.
    fn post(
        &self,
        request: McpRequest,
        body: Bytes,
    ) -> impl Future<Output = Response<Self::Body>> + Send;

    /// Responds to a GET: the event stream of a session.
    fn get(&self, request: McpRequest) -> impl Future<Output = Response<Self::Body>> + Send;

    /// Responds to a DELETE: the end of a session.
    fn delete(&self, request: McpRequest) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// The endpoint that a path names; `None` if the path must be percent-decoded.
pub(crate) fn route_of(path: &str) -> Option<McpRoute> {
    // The address that agents built on Microsoft's SDK make up from the name of a server.
    if let Some(name) = path.strip_prefix("/agents/servers/") {
        return is_plain(name).then(|| McpRoute::Server(name.into()));
    }
    let rest = path.strip_prefix("/mcp")?;
    if rest.is_empty() {
        return Some(McpRoute::All);
    }
    let (kind, name) = rest.strip_prefix('/')?.split_once('/')?;
    if kind == "agents" {
        let (agent, server) = name.split_once("/servers/")?;
        let is_whole = is_plain(agent) && is_plain(server);
        return is_whole.then(|| McpRoute::Agent { agent: agent.into(), server: server.into() });
    }
    if !is_plain(name) {
        return None;
    }
    match kind {
        "servers" => Some(McpRoute::Server(name.into())),
        "toolsets" => Some(McpRoute::Toolsets(name.into())),
        "sessions" => Some(McpRoute::Session(name.into())),
        _ => None,
    }
}

/// Whether a segment of a path is a name as it stands.
fn is_plain(segment: &str) -> bool {
    !segment.is_empty() && !segment.contains(['/', '%'])
}

/// The state of the routes whose paths must be percent-decoded.
#[derive(Debug)]
pub(crate) struct Routed<M> {
    pub(crate) mcp: Arc<M>,
    pub(crate) body_within: Duration,
}

impl<M> Clone for Routed<M> {
    fn clone(&self) -> Self {
        Self { mcp: self.mcp.clone(), body_within: self.body_within }
    }
}

/// The MCP endpoints whose paths must be percent-decoded. All other MCP requests bypass the router.
pub(crate) fn routes<M: McpEndpoint>(state: Routed<M>) -> Router {
    Router::new()
        .route("/mcp/servers/{server}", named(McpRoute::Server))
        .route("/mcp/toolsets/{sets}", named(McpRoute::Toolsets))
        .route("/mcp/sessions/{id}", named(McpRoute::Session))
        .route("/agents/servers/{server}", named(McpRoute::Server))
        .route("/mcp/agents/{agent}/servers/{server}", any(of_agent))
        .with_state(state)
}

/// The handler of an endpoint with a name in its path.
fn named<M: McpEndpoint>(route: fn(String) -> McpRoute) -> MethodRouter<Routed<M>> {
    any(
        async move |State(at): State<Routed<M>>,
                    FromPath(name): FromPath<String>,
                    Extension(principal): Extension<Principal>,
                    request: Request| { at.answer(route(name), principal, request).await },
    )
}

async fn of_agent<M: McpEndpoint>(
    State(at): State<Routed<M>>,
    FromPath((agent, server)): FromPath<(String, String)>,
    Extension(principal): Extension<Principal>,
    request: Request,
) -> Response {
    at.answer(McpRoute::Agent { agent, server }, principal, request).await
}

impl<M: McpEndpoint> Routed<M> {
    async fn answer(self, route: McpRoute, principal: Principal, request: Request) -> Response {
        let (mcp, within) = (&*self.mcp, self.body_within);
        let answered = serve(mcp, within, None, route, principal, request).await;
        answered.map_or_else(
            |refused| refused,
            |response| {
                response.map(|body| {
                    Body::new(body.map_frame(|frame| {
                        frame.map_data(|mut piece| piece.copy_to_bytes(piece.remaining()))
                    }))
                })
            },
        )
    }
}

/// Responds to an MCP request. The error is the response to a request that cannot be read.
pub(crate) async fn serve<M, B>(
    mcp: &M,
    body_within: Duration,
    connection: Option<&ConnectionState>,
    route: McpRoute,
    principal: Principal,
    request: Request<B>,
) -> Result<Response<M::Body>, Response>
where
    M: McpEndpoint,
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let query = parts.uri.query().map(str::to_owned);
    let asked = McpRequest { route, query, headers: parts.headers, principal };
    match parts.method {
        Method::POST => {
            let limit = mcp.max_body_bytes();
            let read = match connection.filter(|_| parts.version != Version::HTTP_2) {
                Some(connection) => read_watched(body, &asked.headers, limit, connection).await,
                // Boxed: the future is large, and most connections do not need it.
                None => Box::pin(read_timed(body, &asked.headers, limit, body_within)).await,
            };
            match read {
                Ok(body) => Ok(if_woken(mcp.post(asked, body)).await),
                Err(unread) => Err(unread.into_response()),
            }
        }
        Method::GET => Ok(mcp.get(asked).await),
        Method::DELETE => Ok(mcp.delete(asked).await),
        _ => {
            let detail = "an MCP endpoint answers to POST, GET and DELETE";
            let status = StatusCode::METHOD_NOT_ALLOWED;
            let problem = ProblemResponse::new("method_not_allowed", status, detail);
            let mut response = problem.into_response();
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
            Err(response)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_mcp_endpoints_need_no_router() {
        assert_eq!(route_of("/mcp"), Some(McpRoute::All));
        assert_eq!(route_of("/mcp/servers/crm"), Some(McpRoute::Server("crm".into())));
        assert_eq!(route_of("/mcp/toolsets/a,b"), Some(McpRoute::Toolsets("a,b".into())));
        assert_eq!(route_of("/mcp/sessions/x-1_"), Some(McpRoute::Session("x-1_".into())));
        assert_eq!(route_of("/agents/servers/crm"), Some(McpRoute::Server("crm".into())));
        let of_agent = McpRoute::Agent { agent: "bot".into(), server: "crm".into() };
        assert_eq!(route_of("/mcp/agents/bot/servers/crm"), Some(of_agent));
        for other in [
            "/",
            "/mcp/",
            "/mcpx",
            "/mcp/servers",
            "/mcp/servers/",
            "/mcp/servers/a/b",
            "/mcp/agents/bot",
            "/mcp/agents/bot/servers/",
            "/mcp/agents//servers/crm",
            "/mcp/agents/bot/x/servers/crm",
            "/mcp/agents/bot/servers/crm/x",
            "/mcp/agents/a%20b/servers/crm",
            "/agents/servers/",
            "/agents/v2/bot/mcpServers",
        ] {
            assert_eq!(route_of(other), None, "{other}");
        }
        assert_eq!(route_of("/mcp/servers/a%20b"), None, "is decoded by the router");
    }
}
