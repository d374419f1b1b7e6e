//! `/mcp` and the endpoints below it: reads a request and hands it to the gateway.

use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use switchboard_gateway::{HttpRequest, Route};

use crate::problem::ProblemResponse;
use crate::ready::still_starting;
use crate::same_host::{forbidden, hardened};
use crate::server::Shared;

pub(crate) async fn all(State(shared): State<Shared>, request: Request) -> Response {
    serve(&shared, Route::All, request).await
}

pub(crate) async fn server(
    State(shared): State<Shared>,
    Path(server): Path<String>,
    request: Request,
) -> Response {
    serve(&shared, Route::Server(server), request).await
}

pub(crate) async fn toolsets(
    State(shared): State<Shared>,
    Path(sets): Path<String>,
    request: Request,
) -> Response {
    serve(&shared, Route::Toolsets(sets), request).await
}

pub(crate) async fn session(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    serve(&shared, Route::Session(id), request).await
}

async fn serve(shared: &Shared, route: Route, request: Request) -> Response {
    if let Some(detail) = shared.doors.refusal(request.headers(), request.uri().authority()) {
        return forbidden(detail);
    }
    let principal = match crate::doorman::admit(shared, request.headers()).await {
        Ok(principal) => principal,
        Err(refused) => return hardened(refused),
    };
    let Some(gateway) = shared.board.gateway() else { return still_starting().into_response() };
    let (parts, body) = request.into_parts();
    let query = parts.uri.query().map(str::to_owned);
    let asked = HttpRequest { route, query, headers: parts.headers, principal };
    let answer = match parts.method {
        Method::POST => {
            let limit = gateway.max_body_bytes();
            let announced = asked.headers.get(header::CONTENT_LENGTH);
            let announced =
                announced.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
            if announced.is_some_and(|length| length > limit) {
                return too_large(limit);
            }
            match to_bytes(body, limit).await {
                Ok(body) => gateway.post(asked, body).await,
                Err(_) => return too_large(limit),
            }
        }
        Method::GET => gateway.get(asked).await,
        Method::DELETE => gateway.delete(asked).await,
        _ => {
            let detail = "an MCP endpoint answers to POST, GET and DELETE";
            let status = StatusCode::METHOD_NOT_ALLOWED;
            return ProblemResponse::new("method_not_allowed", status, detail).into_response();
        }
    };
    hardened(answer.map(Body::new))
}

fn too_large(limit: usize) -> Response {
    let detail = format!("the body is larger than {limit} bytes, or was cut off");
    ProblemResponse::new("bad_request", StatusCode::PAYLOAD_TOO_LARGE, detail).into_response()
}
