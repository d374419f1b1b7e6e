//! What answers a request: the MCP face by the shortest way, everything else through the routes.
//!
//! A router costs a call more than the gateway does: the request is matched, its body wrapped, and what answers it boxed
//! and copied several times.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::Response;
use axum::{Error, Router};
use bytes::Buf;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use switchboard_gateway::{GatewayBody, Piece, Route};

use crate::mcp;
use crate::server::Shared;

/// Both ways.
#[derive(Debug)]
pub(crate) struct Faces {
    pub(crate) router: Router,
    pub(crate) shared: Shared,
}

/// The body of an answer, whoever gave it.
#[derive(Debug)]
pub(crate) enum FaceBody {
    Gateway(GatewayBody),
    Other(Body),
}

impl Faces {
    pub(crate) async fn answer(
        faces: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<FaceBody>, Infallible> {
        if let Some(route) = mcp_route(request.uri().path()) {
            return Ok(mcp::serve(&faces.shared, route, request).await);
        }
        // Boxed: it is large, and each connection has room for the largest.
        let answer = Box::pin(faces.route(request.map(Body::new))).await;
        Ok(answer.map(FaceBody::Other))
    }

    async fn route(&self, request: Request) -> Response<Body> {
        use tower::ServiceExt;
        match self.router.clone().oneshot(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        }
    }
}

/// The endpoint of the MCP face that a path names, where nothing in it has to be decoded.
fn mcp_route(path: &str) -> Option<Route> {
    let rest = path.strip_prefix("/mcp")?;
    if rest.is_empty() {
        return Some(Route::All);
    }
    let (kind, name) = rest.strip_prefix('/')?.split_once('/')?;
    if name.is_empty() || name.contains(['/', '%']) {
        return None;
    }
    match kind {
        "servers" => Some(Route::Server(name.into())),
        "toolsets" => Some(Route::Toolsets(name.into())),
        "sessions" => Some(Route::Session(name.into())),
        _ => None,
    }
}

impl HttpBody for FaceBody {
    type Data = Piece;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, Error>>> {
        match self.get_mut() {
            Self::Gateway(body) => {
                Pin::new(body).poll_frame(context).map_err(|never| match never {})
            }
            Self::Other(body) => Pin::new(body).poll_frame(context).map_ok(|frame| {
                frame.map_data(|data| data.chain(Bytes::new()).chain(Bytes::new()))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Gateway(body) => body.is_end_stream(),
            Self::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Gateway(body) => body.size_hint(),
            Self::Other(body) => body.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_mcp_face_need_no_router() {
        assert_eq!(mcp_route("/mcp"), Some(Route::All));
        assert_eq!(mcp_route("/mcp/servers/crm"), Some(Route::Server("crm".into())));
        assert_eq!(mcp_route("/mcp/toolsets/a,b"), Some(Route::Toolsets("a,b".into())));
        assert_eq!(mcp_route("/mcp/sessions/x-1_"), Some(Route::Session("x-1_".into())));
        for other in ["/", "/mcp/", "/mcpx", "/mcp/servers", "/mcp/servers/", "/mcp/servers/a/b"] {
            assert_eq!(mcp_route(other), None, "{other}");
        }
        assert_eq!(mcp_route("/mcp/servers/a%20b"), None, "is decoded by the router");
    }
}
