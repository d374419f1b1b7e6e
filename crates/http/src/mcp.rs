//! `/mcp` and the endpoints below it: reads a request and hands it to the gateway.

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Buf, BytesMut};
use http_body_util::BodyExt;
use switchboard_gateway::{HttpRequest, Route};

use crate::faces::FaceBody;
use crate::if_woken::if_woken;
use crate::problem::ProblemResponse;
use crate::ready::still_starting;
use crate::same_host::{forbidden, hardened};
use crate::server::Shared;

pub(crate) async fn all(State(shared): State<Shared>, request: Request) -> Response {
    routed(&shared, Route::All, request).await
}

pub(crate) async fn server(
    State(shared): State<Shared>,
    Path(server): Path<String>,
    request: Request,
) -> Response {
    routed(&shared, Route::Server(server), request).await
}

pub(crate) async fn toolsets(
    State(shared): State<Shared>,
    Path(sets): Path<String>,
    request: Request,
) -> Response {
    routed(&shared, Route::Toolsets(sets), request).await
}

pub(crate) async fn session(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    routed(&shared, Route::Session(id), request).await
}

/// The same for who came through the routes.
async fn routed(shared: &Shared, route: Route, request: Request) -> Response {
    let answer = serve(shared, route, request).await;
    answer.map(|body| match body {
        FaceBody::Gateway(body) => {
            Body::new(body.map_frame(|frame| {
                frame.map_data(|mut piece| piece.copy_to_bytes(piece.remaining()))
            }))
        }
        FaceBody::Other(body) => body,
    })
}

pub(crate) async fn serve<B>(
    shared: &Shared,
    route: Route,
    request: Request<B>,
) -> Response<FaceBody>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let other = |response: Response| response.map(FaceBody::Other);
    if let Some(detail) = shared.doors.refusal(request.headers(), request.uri().authority()) {
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
    let asked = HttpRequest { route, query, headers: parts.headers, principal };
    let answer = match parts.method {
        Method::POST => {
            let limit = gateway.max_body_bytes();
            match read(body, &asked.headers, limit).await {
                Some(body) => if_woken(gateway.post(asked, body)).await,
                None => return other(too_large(limit)),
            }
        }
        Method::GET => gateway.get(asked).await,
        Method::DELETE => gateway.delete(asked).await,
        _ => {
            let detail = "an MCP endpoint answers to POST, GET and DELETE";
            let status = StatusCode::METHOD_NOT_ALLOWED;
            let problem = ProblemResponse::new("method_not_allowed", status, detail);
            return other(problem.into_response());
        }
    };
    hardened(answer.map(FaceBody::Gateway))
}

/// The body, unless it is announced as too large, is too large or breaks off. One piece is not copied.
async fn read<B>(mut body: B, headers: &HeaderMap, limit: usize) -> Option<Bytes>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let announced = headers.get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > limit) {
        return None;
    }
    let mut whole = Bytes::new();
    // A body of known length is not asked for more than that: it would have to be waited for.
    while !body.is_end_stream()
        && let Some(frame) = body.frame().await
    {
        let Ok(piece) = frame.ok()?.into_data() else { continue };
        if whole.len() + piece.len() > limit {
            return None;
        }
        if whole.is_empty() {
            whole = piece;
        } else {
            let mut joined = BytesMut::from(whole);
            joined.extend_from_slice(&piece);
            whole = joined.freeze();
        }
    }
    Some(whole)
}

fn too_large(limit: usize) -> Response {
    let detail = format!("the body is larger than {limit} bytes, or was cut off");
    ProblemResponse::new("bad_request", StatusCode::PAYLOAD_TOO_LARGE, detail).into_response()
}
