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

use crate::connections::{Asking, Guest};
use crate::cross_origin::Page;
use crate::leases::Leased;
use crate::mcp;
use crate::same_host::{forbidden, hardened};
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
    /// On which a client listens.
    Stream(Box<Leased<GatewayBody>>),
    Other(Body),
}

/// The body of an answer while it is given. The connection is not idle as long as it is there.
#[derive(Debug)]
pub(crate) struct Answering {
    body: FaceBody,
    _asking: Asking,
}

impl Answering {
    pub(crate) fn new(body: FaceBody, asking: Asking) -> Self {
        Self { body, _asking: asking }
    }
}

impl Faces {
    /// Answers a request that came on a connection.
    pub(crate) async fn answer(
        guest: Arc<Guest>,
        request: Request<Incoming>,
    ) -> Result<Response<Answering>, Infallible> {
        let asking = guest.asks(request.version());
        let faces = &asking.guest().faces;
        let doors = faces.shared.hosts.current();
        let page = Page::of(&doors, request.headers());
        let mut answer = if let Some(answer) = page.as_ref().and_then(|_| Page::preflight(&request))
        {
            let refusal = doors.refusal(request.headers(), request.uri().authority());
            hardened(refusal.map_or(answer, forbidden)).map(FaceBody::Other)
        } else if let Some(route) = mcp_route(request.uri().path()) {
            mcp::serve(&faces.shared, Some(asking.guest()), route, request).await
        } else {
            // Boxed: it is large, and each connection has room for the largest.
            Box::pin(faces.route(request.map(Body::new))).await.map(FaceBody::Other)
        };
        if let Some(page) = page {
            page.may_read(answer.headers_mut());
        }
        Ok(answer.map(|body| Answering::new(body, asking)))
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
            Self::Stream(body) => {
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
            Self::Stream(body) => body.is_end_stream(),
            Self::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Gateway(body) => body.size_hint(),
            Self::Stream(body) => body.size_hint(),
            Self::Other(body) => body.size_hint(),
        }
    }
}

impl HttpBody for Answering {
    type Data = Piece;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
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
