//! Status codes, headers and bodies of HTTP responses.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use switchboard_protocol::{ErrorBody, Headers, code, error_response};

use crate::body::{GatewayBody, event};
use crate::outcome::Outcome;

pub(crate) type HttpResponse = Response<GatewayBody>;

/// A request that is refused before it is dispatched: the status code and the message.
pub(crate) struct Refused(pub(crate) StatusCode, pub(crate) String);

/// The media types that the `Accept` header allows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accepts {
    pub(crate) json: bool,
    pub(crate) events: bool,
}

pub(crate) fn version(headers: &HeaderMap) -> Option<&str> {
    headers.get(Headers::VERSION).and_then(|version| version.to_str().ok())
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("application/json")
    })
}

pub(crate) fn accepts(headers: &HeaderMap) -> Accepts {
    // The header of nearly all clients; compared as a whole first.
    const BOTH: &str = "application/json, text/event-stream";
    let mut accepts = Accepts { json: false, events: false };
    let mut said = false;
    for value in headers.get_all(header::ACCEPT) {
        if value == BOTH {
            return Accepts { json: true, events: true };
        }
        for kind in value.to_str().unwrap_or_default().split(',') {
            said = true;
            let kind = kind.split(';').next().unwrap_or_default().trim();
            accepts.json |= matches!(kind, "application/json" | "application/*" | "*/*");
            accepts.events |= matches!(kind, "text/event-stream" | "text/*" | "*/*");
        }
    }
    if said { accepts } else { Accepts { json: true, events: true } }
}

/// A response as JSON, or as a stream of one event for a client that accepts only event streams.
pub(crate) fn written(
    id: &str,
    outcome: Outcome,
    accepts: Accepts,
    is_stateless: bool,
) -> HttpResponse {
    let status = match &outcome {
        Outcome::Error { status, .. } if is_stateless => {
            StatusCode::from_u16(*status).unwrap_or(StatusCode::OK)
        }
        Outcome::Error { .. } | Outcome::Result(_) => StatusCode::OK,
    };
    if !accepts.json && status == StatusCode::OK {
        return streamed(GatewayBody::pieces([event(&outcome.message(id))]));
    }
    let mut answer = json_answer(outcome.body(id));
    *answer.status_mut() = status;
    answer
}

pub(crate) fn json_answer(body: GatewayBody) -> HttpResponse {
    let mut answer = Response::new(body);
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

pub(crate) fn streamed(body: GatewayBody) -> HttpResponse {
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}

pub(crate) fn refuse(
    status: StatusCode,
    id: Option<&str>,
    code: i64,
    message: impl Into<String>,
) -> HttpResponse {
    let text = error_response(id, &ErrorBody::new(code, message));
    let mut answer = json_answer(GatewayBody::text(text));
    *answer.status_mut() = status;
    answer
}

pub(crate) fn accepted() -> HttpResponse {
    bare(StatusCode::ACCEPTED)
}

pub(crate) fn bare(status: StatusCode) -> HttpResponse {
    let mut answer = Response::new(GatewayBody::empty());
    *answer.status_mut() = status;
    answer
}

pub(crate) fn no_such_method() -> HttpResponse {
    let message = "protocol version 2026-07-28 has only POST";
    let mut answer = refuse(StatusCode::METHOD_NOT_ALLOWED, None, code::INVALID_REQUEST, message);
    answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    answer
}
