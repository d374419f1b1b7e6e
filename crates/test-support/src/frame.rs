//! The parts of a response, and their encoding.

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use serde_json::Value;
use tokio::sync::mpsc;

/// Capacity of a queue of messages; a full queue blocks the sender.
pub(crate) const QUEUE: usize = 1024;

const FILLER: &[u8] = &[b'x'; 64 * 1024];

#[derive(Debug)]
pub(crate) enum Frame {
    Message(String),
    /// Bytes of the event stream that are not a message.
    Comments(Bytes),
    /// A message that is too large to hold in memory: `filler` times the letter x between head and tail.
    Padded {
        head: String,
        filler: usize,
        tail: String,
    },
    /// Half a message, then the connection closes.
    Break,
}

pub(crate) type Frames = BoxStream<'static, Frame>;

type Chunk = Result<Bytes, io::Error>;

impl From<Value> for Frame {
    fn from(message: Value) -> Self {
        Self::Message(message.to_string())
    }
}

pub(crate) fn received(queue: mpsc::Receiver<Frame>) -> Frames {
    stream::unfold(queue, |mut queue| async move { Some((queue.recv().await?, queue)) }).boxed()
}

pub(crate) fn json(status: StatusCode, message: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], message.to_string()).into_response()
}

/// The frames as one JSON body, complete with the last frame.
pub(crate) async fn as_json(frames: Frames) -> Response {
    let mut frames: Vec<Frame> = frames.collect().await;
    let body = match frames.as_mut_slice() {
        [Frame::Message(text)] => Body::from(std::mem::take(text)),
        _ => Body::from_stream(stream::iter(frames).flat_map(|frame| chunks("", frame, ""))),
    };
    typed("application/json", body)
}

/// The frames as an event stream, each sent at once.
pub(crate) fn as_events(frames: Frames) -> Response {
    let body = frames.flat_map(|frame| chunks("event: message\ndata: ", frame, "\n\n"));
    typed("text/event-stream", Body::from_stream(body))
}

/// Like [`as_events`], with a first event that names the address to post to.
pub(crate) fn as_endpoint_events(endpoint: &str, frames: Frames) -> Response {
    let first = Bytes::from(format!("event: endpoint\ndata: {endpoint}\n\n"));
    let rest = frames.flat_map(|frame| chunks("event: message\ndata: ", frame, "\n\n"));
    typed("text/event-stream", Body::from_stream(stream::iter([Ok(first)]).chain(rest)))
}

fn typed(content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn chunks(before: &'static str, frame: Frame, after: &'static str) -> BoxStream<'static, Chunk> {
    match frame {
        Frame::Message(text) => {
            stream::iter([Ok(Bytes::from(format!("{before}{text}{after}")))]).boxed()
        }
        Frame::Comments(bytes) => stream::iter([Ok(bytes)]).boxed(),
        Frame::Padded { head, filler, tail } => {
            let whole = (0..filler / FILLER.len()).map(|_| Ok(Bytes::from_static(FILLER)));
            let rest = Bytes::from_static(&FILLER[..filler % FILLER.len()]);
            stream::iter([Ok(Bytes::from(format!("{before}{head}")))])
                .chain(stream::iter(whole))
                .chain(stream::iter([Ok(rest), Ok(Bytes::from(format!("{tail}{after}")))]))
                .boxed()
        }
        Frame::Break => {
            let half = Bytes::from(format!("{before}{{\"jsonrpc\":\"2.0\",\"id\":1,\"resu"));
            let end = stream::once(async {
                // The first half must be sent before the connection closes.
                tokio::time::sleep(Duration::from_millis(30)).await;
                Err(io::Error::other("scripted end of the connection"))
            });
            stream::iter([Ok(half)]).chain(end).boxed()
        }
    }
}
