//! `/mcp` and the endpoints below it: reads a request and hands it to the gateway.

use std::convert::Infallible;

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::ALLOW;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use bytes::Buf;
use http_body_util::BodyExt;
use switchboard_gateway::{HttpRequest, Piece, Route};

use crate::connections::Guest;
use crate::extract::FromPath;
use crate::faces::FaceBody;
use crate::if_woken::if_woken;
use crate::leases::Credentials;
use crate::problem::ProblemResponse;
use crate::ready::still_starting;
use crate::request_body::{read_timed, read_watched};
use crate::same_host::{forbidden, hardened};
use crate::server::Shared;

/// Where a modern client names its method. That it tells the truth is checked before anything is done.
const METHOD: HeaderName = HeaderName::from_static("mcp-method");

pub(crate) async fn all(State(shared): State<Shared>, request: Request) -> Response {
    routed(&shared, Route::All, request).await
}

pub(crate) async fn server(
    State(shared): State<Shared>,
    FromPath(server): FromPath<String>,
    request: Request,
) -> Response {
    routed(&shared, Route::Server(server), request).await
}

pub(crate) async fn toolsets(
    State(shared): State<Shared>,
    FromPath(sets): FromPath<String>,
    request: Request,
) -> Response {
    routed(&shared, Route::Toolsets(sets), request).await
}

pub(crate) async fn session(
    State(shared): State<Shared>,
    FromPath(id): FromPath<String>,
    request: Request,
) -> Response {
    routed(&shared, Route::Session(id), request).await
}

/// The same for who came through the routes.
async fn routed(shared: &Shared, route: Route, request: Request) -> Response {
    let answer = serve(shared, None, route, request).await;
    answer.map(|body| match body {
        FaceBody::Gateway(body) => in_pieces(body),
        FaceBody::Stream(body) => in_pieces(body),
        FaceBody::Other(body) => body,
    })
}

fn in_pieces<B>(body: B) -> Body
where
    B: HttpBody<Data = Piece, Error = Infallible> + Send + 'static,
{
    Body::new(
        body.map_frame(|frame| frame.map_data(|mut piece| piece.copy_to_bytes(piece.remaining()))),
    )
}

/// Answers a request that came on this connection, where that is known.
pub(crate) async fn serve<B>(
    shared: &Shared,
    guest: Option<&Guest>,
    route: Route,
    request: Request<B>,
) -> Response<FaceBody>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    let other = |response: Response| response.map(FaceBody::Other);
    let doors = shared.hosts.current();
    if let Some(detail) = doors.refusal(request.headers(), request.uri().authority()) {
        return other(forbidden(detail));
    }
    let principal = match crate::doorman::admit(shared, request.headers()).await {
        Ok(principal) => principal,
        Err(refused) => return other(hardened(refused)),
    };
    let Some(gateway) = shared.board.gateway() else {
        return other(still_starting().into_response());
    };
    let (parts, body) = request.into_parts();
    let query = parts.uri.query().map(str::to_owned);
    // The name may be written in another way, too; then it is not worth a look.
    let may_listen = |method: &HeaderValue| {
        method == "subscriptions/listen" || method.as_bytes().starts_with(b"=?")
    };
    let stays = parts.method == Method::GET || parts.headers.get(METHOD).is_some_and(may_listen);
    let shown = stays.then(|| Credentials::of(&parts.headers));
    let asked = HttpRequest { route, query, headers: parts.headers, principal };
    let answer = match parts.method {
        Method::POST => {
            let limit = gateway.max_body_bytes();
            let read = match guest.filter(|_| parts.version != Version::HTTP_2) {
                Some(guest) => read_watched(body, &asked.headers, limit, guest).await,
                // Boxed: it is large, and most connections do without.
                None => Box::pin(read_timed(body, &asked.headers, limit, shared.body_within)).await,
            };
            match read {
                Ok(body) => if_woken(gateway.post(asked, body)).await,
                Err(unread) => return other(unread.into_response()),
            }
        }
        Method::GET => gateway.get(asked).await,
        Method::DELETE => gateway.delete(asked).await,
        _ => {
            let detail = "an MCP endpoint answers to POST, GET and DELETE";
            let status = StatusCode::METHOD_NOT_ALLOWED;
            let problem = ProblemResponse::new("method_not_allowed", status, detail);
            let mut answer = problem.into_response();
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
            return other(answer);
        }
    };
    hardened(match shown {
        None => answer.map(FaceBody::Gateway),
        Some(shown) => {
            shared.leases.lease(shown, answer).map(|body| FaceBody::Stream(Box::new(body)))
        }
    })
}
