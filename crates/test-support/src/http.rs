//! Handles a request: records it, applies a fault, then follows the rules of its era.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use futures::{StreamExt, future, stream};
use serde_json::{Value, json};

use crate::call::Call;
use crate::fault::{Fault, Stage};
use crate::frame::{self, Frame, Frames};
use crate::listing::rpc_error;
use crate::state::{Answers, Era, MODERN_VERSION, Shared, Transport};
use crate::{legacy, modern, sse_transport};

const BODY_LIMIT: usize = 64 * 1024 * 1024;

const LOGIN_PAGE: &str = "<!doctype html><html><head><title>Sign in</title></head><body>\
    <form method=\"post\"><input name=\"user\"><input name=\"password\" type=\"password\">\
    </form></body></html>";

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(handle).with_state(shared)
}

async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, BODY_LIMIT).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let message: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    shared.recorder.request(&parts, &message);
    if let Some(response) = struck(&shared, &parts, stage_of(&message)).await {
        return response;
    }
    if !bearer_is_right(&shared, &parts) {
        return status_response(StatusCode::UNAUTHORIZED);
    }
    match (shared.script.transport, parts.uri.path()) {
        (Transport::HttpSse, _) => sse_transport::handle(&shared, &parts, &message),
        (Transport::StreamableHttp, "/mcp") => streamable(&shared, &parts, &message).await,
        (Transport::StreamableHttp, _) => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn streamable(shared: &Arc<Shared>, parts: &Parts, message: &Value) -> Response {
    if let Some(answer) = shared.script.exact_answer(message) {
        return single_response(shared, answer).await;
    }
    let is_modern = claims_modern(parts, message);
    match (shared.script.era, parts.method == Method::POST) {
        (Era::Modern, false) => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        (Era::Dual, false) if is_modern => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        (Era::Legacy | Era::Dual, false) => legacy::stream_or_end(shared, parts),
        (_, true) if message.is_null() => {
            frame::json(StatusCode::BAD_REQUEST, &rpc_error(&Value::Null, -32700, "not JSON"))
        }
        (_, true) if !accepts_both(parts) => StatusCode::NOT_ACCEPTABLE.into_response(),
        (Era::Modern, true) => modern::post(shared, parts, message).await,
        (Era::Dual, true) if is_modern => modern::post(shared, parts, message).await,
        (Era::Legacy | Era::Dual, true) => legacy::post(shared, parts, message).await,
    }
}

/// The response to a call, as JSON or as an event stream.
pub(crate) async fn call_response(shared: &Shared, events: bool, frames: Frames) -> Response {
    if events || shared.script.answers == Answers::Events {
        return frame::as_events(frames);
    }
    frame::as_json(frames).await
}

/// A response that is a single message.
pub(crate) async fn single_response(shared: &Shared, frame: impl Into<Frame>) -> Response {
    let frame = frame.into();
    call_response(shared, false, stream::iter([frame]).boxed()).await
}

pub(crate) fn unknown_tool(call: Option<Call>, id: &Value, params: &Value) -> Result<Call, Value> {
    let message = || format!("Unknown tool: {}", params["name"].as_str().unwrap_or_default());
    call.ok_or_else(|| rpc_error(id, -32602, &message()))
}

pub(crate) fn header_text<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    parts.headers.get(name)?.to_str().ok()
}

pub(crate) fn meta_version(message: &Value) -> &Value {
    &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
}

fn claims_modern(parts: &Parts, message: &Value) -> bool {
    let named_in_header =
        header_text(parts, "mcp-protocol-version").is_some_and(|named| named >= MODERN_VERSION);
    named_in_header || !meta_version(message).is_null() || message["method"] == "server/discover"
}

fn accepts_both(parts: &Parts) -> bool {
    let accepted = header_text(parts, "accept").unwrap_or_default();
    accepted.contains("application/json") && accepted.contains("text/event-stream")
}

fn bearer_is_right(shared: &Shared, parts: &Parts) -> bool {
    let expected = shared.script.bearer.lock().expect("nobody panics with it").clone();
    let Some(expected) = expected else { return true };
    header_text(parts, "authorization").and_then(|value| value.strip_prefix("Bearer "))
        == Some(&*expected)
}

fn stage_of(message: &Value) -> Stage {
    match message["method"].as_str() {
        Some("initialize") => Stage::Initialize,
        Some("server/discover") => Stage::Discover,
        Some("tools/list") => Stage::List,
        Some("prompts/list") => Stage::Prompts,
        Some("resources/subscribe") => Stage::Subscribe,
        Some("logging/setLevel") => Stage::SetLevel,
        Some("tools/call") => Stage::Call,
        Some(_) | None => Stage::Any,
    }
}

/// The response of a fault, in place of the real one.
async fn struck(shared: &Shared, parts: &Parts, stage: Stage) -> Option<Response> {
    match shared.strike(|fault| fault.strikes_first(stage))? {
        Fault::HangAtConnect | Fault::Hang(_) => future::pending().await,
        Fault::Status(_, code) => Some(status_response(StatusCode::from_u16(code).unwrap())),
        Fault::Reflect(_) => Some(reflection(parts)),
        Fault::RateLimited(_, seconds) => {
            let mut response = status_response(StatusCode::TOO_MANY_REQUESTS);
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            Some(response)
        }
        Fault::LoginPage(_) => Some(Html(LOGIN_PAGE).into_response()),
        Fault::NotJson(_) => {
            let body = Body::from("{ this is not JSON at all");
            Some(([(header::CONTENT_TYPE, "application/json")], body).into_response())
        }
        Fault::Redirect(_, address) => {
            let location = [(header::LOCATION, address)];
            Some((StatusCode::TEMPORARY_REDIRECT, location).into_response())
        }
        Fault::CloseMidBody(_) => Some(frame::as_json(stream::iter([Frame::Break]).boxed()).await),
        Fault::DelayInitialize(delay) => {
            tokio::time::sleep(delay).await;
            None
        }
        _ => None,
    }
}

/// A 401 body that repeats the request's credentials, as some servers send it.
fn reflection(parts: &Parts) -> Response {
    let is_secret = |name: &str| ["authorization", "x-key", "x-own"].contains(&name);
    let said = parts.headers.iter().filter(|(name, _)| is_secret(name.as_str()));
    let mut said: Vec<String> = said
        .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())))
        .collect();
    said.sort();
    let path = parts.uri.path();
    said.extend((path != "/mcp").then(|| format!("path: {path}")));
    (StatusCode::UNAUTHORIZED, said.join(", ")).into_response()
}

fn status_response(status: StatusCode) -> Response {
    let message = json!({"error": status.canonical_reason().unwrap_or("scripted")});
    let mut response = frame::json(status, &message);
    if status == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Bearer realm=\"scripted\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}
