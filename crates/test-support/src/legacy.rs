//! The protocol up to 2025-11-25: a handshake, a session, and one notification stream.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use futures::stream;
use serde_json::{Value, json};

use crate::call::Call;
use crate::fault::Fault;
use crate::frame::{self, Frame, Frames, received};
use crate::http::{call_response, header_text, single_response, unknown_tool};
use crate::listing::{page, rpc_error, server_info};
use crate::shelf::{self, Interests};
use crate::state::{LEGACY_VERSIONS, Sessions, Shared, Wire};

const SESSION: &str = "mcp-session-id";

/// The result of a message in a session, independent of the transport.
pub(crate) enum Handled {
    /// A notification or a response; there is no reply.
    Taken,
    Answer(Frame),
    /// Several messages; needs an event stream.
    Stream(Frames),
    Call(Box<Call>),
}

pub(crate) async fn post(shared: &Arc<Shared>, parts: &Parts, message: &Value) -> Response {
    if message["method"] == "initialize" {
        let mut response = single_response(shared, initialize(shared, message)).await;
        if shared.script.sessions == Sessions::Required {
            let session = HeaderValue::try_from(shared.open_session()).unwrap();
            response.headers_mut().insert(SESSION, session);
        }
        return response;
    }
    let session = match session_of(shared, parts) {
        Ok(session) => session,
        Err(refusal) => return refusal.into(),
    };
    match handle(shared, &session, message) {
        Handled::Taken => StatusCode::ACCEPTED.into_response(),
        Handled::Answer(frame) => single_response(shared, frame).await,
        Handled::Stream(frames) => frame::as_events(frames),
        Handled::Call(call) => {
            let events = call.needs_events();
            call_response(shared, events, call.detached(&session)).await
        }
    }
}

/// GET opens the notification stream, DELETE ends the session.
pub(crate) fn stream_or_end(shared: &Arc<Shared>, parts: &Parts) -> Response {
    if shared.script.sessions == Sessions::None {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let session = match session_of(shared, parts) {
        Ok(session) => session,
        Err(refusal) => return refusal.into(),
    };
    match parts.method {
        Method::GET => frame::as_events(received(shared.open_stream(
            Some(session),
            None,
            Interests::all_lists(),
            None,
        ))),
        Method::DELETE => {
            shared.recorder.count(|stats| stats.delete_count += 1);
            shared.close_session(&session);
            StatusCode::OK.into_response()
        }
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

pub(crate) fn initialize(shared: &Shared, message: &Value) -> Value {
    let params = &message["params"];
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    shared.recorder.count(|stats| {
        stats.initialize_count += 1;
        stats.client_protocol_version = Some(asked.to_owned());
        stats.client_info = Some(params["clientInfo"].clone());
    });
    let newest = LEGACY_VERSIONS[LEGACY_VERSIONS.len() - 1];
    let version = if LEGACY_VERSIONS.contains(&asked) { asked } else { newest };
    let mut result = json!({
        "protocolVersion": version,
        "capabilities": shelf::capabilities(shared),
        "serverInfo": server_info(shared),
    });
    if let Some(instructions) = &shared.script.instructions {
        result["instructions"] = json!(instructions);
    }
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result})
}

pub(crate) fn handle(shared: &Arc<Shared>, session: &str, message: &Value) -> Handled {
    let (id, params) = (&message["id"], &message["params"]);
    match message["method"].as_str() {
        Some("notifications/cancelled") => {
            let cancelled = &params["requestId"];
            shared.recorder.count(|stats| stats.cancelled.push(cancelled.clone()));
            shared.cancel_call(&(session.to_owned(), cancelled.to_string()));
            Handled::Taken
        }
        _ if id.is_null() => Handled::Taken,
        None => Handled::Taken,
        Some("ping") => Handled::Answer(json!({"jsonrpc": "2.0", "id": id, "result": {}}).into()),
        Some("tools/list") => list(shared, id, params),
        Some("tools/call") => {
            match unknown_tool(Call::new(shared, Wire::Legacy, id, params), id, params) {
                Ok(call) => Handled::Call(Box::new(call)),
                Err(error) => Handled::Answer(error.into()),
            }
        }
        Some(method @ ("resources/subscribe" | "resources/unsubscribe"))
            if shared.script.has_resources =>
        {
            let uri = params["uri"].as_str().unwrap_or_default();
            shared.watch(session, uri, method == "resources/subscribe");
            Handled::Answer(json!({"jsonrpc": "2.0", "id": id, "result": {}}).into())
        }
        Some("logging/setLevel") if shared.script.has_logging => {
            Handled::Answer(json!({"jsonrpc": "2.0", "id": id, "result": {}}).into())
        }
        Some(_) => {
            let answer = shelf::answer(shared, Wire::Legacy, id, message);
            let unknown = || rpc_error(id, -32601, "Method not found");
            Handled::Answer(answer.unwrap_or_else(unknown).into())
        }
    }
}

fn list(shared: &Shared, id: &Value, params: &Value) -> Handled {
    let answer = page(shared, Wire::Legacy, id, params);
    if shared.strike(|fault| *fault == Fault::ListChangedBeforeList).is_some() {
        let early = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        return Handled::Stream(stream::iter([early.into(), answer]).boxed());
    }
    Handled::Answer(answer)
}

/// Why a request that needs a session is refused.
#[derive(Debug, Clone, Copy)]
enum Refusal {
    NoSession,
    UnknownSession,
}

impl From<Refusal> for Response {
    fn from(refusal: Refusal) -> Self {
        let (status, code, message) = match refusal {
            Refusal::NoSession => {
                (StatusCode::BAD_REQUEST, -32000, "Bad Request: Server not initialized")
            }
            Refusal::UnknownSession => (StatusCode::NOT_FOUND, -32001, "Session not found"),
        };
        frame::json(status, &rpc_error(&Value::Null, code, message))
    }
}

fn session_of(shared: &Shared, parts: &Parts) -> Result<String, Refusal> {
    if shared.script.sessions == Sessions::None {
        return Ok(String::new());
    }
    let session = header_text(parts, SESSION).ok_or(Refusal::NoSession)?;
    if shared.strike(|fault| *fault == Fault::DropSession).is_some() {
        shared.set_fault(None, None);
        shared.close_session(session);
    }
    if !shared.has_session(session) {
        return Err(Refusal::UnknownSession);
    }
    Ok(session.to_owned())
}
