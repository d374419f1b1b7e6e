//! The transport of 2024-11-05: `GET /sse` opens the stream of a session and names the address to post to; responses
//! are sent on that stream.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::frame::{self, Frame, Frames, received};
use crate::legacy::{self, Handled};
use crate::shelf::Interests;
use crate::state::Shared;

pub(crate) fn handle(shared: &Arc<Shared>, parts: &Parts, message: &Value) -> Response {
    match (&parts.method, parts.uri.path()) {
        (&Method::GET, "/sse") => {
            let session = shared.open_session();
            let endpoint = format!("/messages?session={session}");
            let receiver = shared.open_stream(Some(session), None, Interests::all_lists(), None);
            frame::as_endpoint_events(&endpoint, received(receiver))
        }
        (&Method::POST, "/messages") => post(shared, parts, message),
        (_, "/sse" | "/messages") => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn post(shared: &Arc<Shared>, parts: &Parts, message: &Value) -> Response {
    let session = parts.uri.query().and_then(|query| query.strip_prefix("session="));
    let Some((session, queue)) = session.and_then(|name| Some((name, shared.stream_of(name)?)))
    else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if message["method"] == "initialize" {
        send(shared, queue, stream_of(legacy::initialize(shared, message).into()));
        return StatusCode::ACCEPTED.into_response();
    }
    match legacy::handle(shared, session, message) {
        Handled::Taken => {}
        Handled::Answer(frame) => send(shared, queue, stream_of(frame)),
        Handled::Stream(frames) => send(shared, queue, frames),
        Handled::Call(call) => send(shared, queue, call.detached(session)),
    }
    StatusCode::ACCEPTED.into_response()
}

fn stream_of(frame: Frame) -> Frames {
    futures::stream::iter([frame]).boxed()
}

fn send(shared: &Shared, queue: mpsc::Sender<Frame>, mut frames: Frames) {
    shared.tracker.spawn(async move {
        while let Some(frame) = frames.next().await {
            if queue.send(frame).await.is_err() {
                return;
            }
        }
    });
}
