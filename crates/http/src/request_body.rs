//! Reads request bodies completely, within a size and a time.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::BytesMut;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::{Sleep, sleep};

use crate::connections::ConnectionState;
use crate::problem::ProblemResponse;

/// Why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// `Content-Length` or the body is larger than the limit, or the connection broke.
    TooLarge { limit: usize },
    /// It did not arrive in time.
    Late,
}

impl IntoResponse for Unread {
    fn into_response(self) -> Response {
        match self {
            Self::TooLarge { limit } => {
                let detail = format!(
                    "the body is larger than {limit} bytes (`gateway.max_body_bytes`), or was cut off"
                );
                ProblemResponse::new("bad_request", StatusCode::PAYLOAD_TOO_LARGE, detail)
            }
            Self::Late => {
                let detail = "the body did not arrive in time";
                ProblemResponse::new("request_timeout", StatusCode::REQUEST_TIMEOUT, detail)
            }
        }
        .into_response()
    }
}

/// The `Content-Length` of a request.
pub(crate) fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok())
}

/// Reads the body of an HTTP/1 request. The regular scan of [`crate::connections`] enforces the time: a timer for each body
/// would cost more than reading it.
pub(crate) async fn read_watched<B>(
    body: B,
    headers: &HeaderMap,
    limit: usize,
    connection: &ConnectionState,
) -> Result<Bytes, Unread>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let begun = connection.body_begins();
    let read = read(body, headers, limit, || connection.is_late(begun)).await;
    connection.body_ends();
    read
}

/// Reads the body of any request, with a timer.
pub(crate) async fn read_timed<B>(
    body: B,
    headers: &HeaderMap,
    limit: usize,
    within: Duration,
) -> Result<Bytes, Unread>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<axum::BoxError>,
{
    let (body, lateness) = Timed::new(body, within);
    let read = read(body, headers, limit, || false).await;
    if lateness.is_late() { Err(Unread::Late) } else { read }
}

/// Reads a body. One that arrives in a single frame is not copied.
async fn read<B>(
    mut body: B,
    headers: &HeaderMap,
    limit: usize,
    is_late: impl Fn() -> bool,
) -> Result<Bytes, Unread>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let too_large = Unread::TooLarge { limit };
    if announced(headers).is_some_and(|length| length > limit) {
        return Err(too_large);
    }
    let mut whole = Bytes::new();
    // Reading past the announced length would have to wait for the end of the stream.
    while !body.is_end_stream() {
        let mut frame = body.frame();
        let frame = std::future::poll_fn(|context| match Pin::new(&mut frame).poll(context) {
            Poll::Pending if is_late() => Poll::Ready(Err(Unread::Late)),
            polled => polled.map(Ok),
        });
        let Some(frame) = frame.await? else { break };
        let Ok(piece) = frame.map_err(|_| too_large)?.into_data() else { continue };
        if whole.len() + piece.len() > limit {
            return Err(too_large);
        }
        if whole.is_empty() {
            whole = piece;
        } else {
            let mut joined = BytesMut::from(whole);
            joined.extend_from_slice(&piece);
            whole = joined.freeze();
        }
    }
    Ok(whole)
}

/// A body that fails when it takes too long.
#[derive(Debug)]
pub(crate) struct Timed<B> {
    body: B,
    within: Duration,
    /// Created when the body is first waited for.
    end: Option<Pin<Box<Sleep>>>,
    lateness: Lateness,
}

/// Whether a body was too late; readable without the body.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lateness(Arc<AtomicBool>);

impl Lateness {
    pub(crate) fn is_late(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<B> Timed<B> {
    pub(crate) fn new(body: B, within: Duration) -> (Self, Lateness) {
        let lateness = Lateness::default();
        (Self { body, within, end: None, lateness: lateness.clone() }, lateness)
    }
}

#[derive(Debug)]
struct TooLate;

impl fmt::Display for TooLate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body did not arrive in time")
    }
}

impl std::error::Error for TooLate {}

impl<B> HttpBody for Timed<B>
where
    B: HttpBody + Unpin,
    B::Error: Into<axum::BoxError>,
{
    type Data = B::Data;
    type Error = axum::BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, axum::BoxError>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let end = this.end.get_or_insert_with(|| Box::pin(sleep(this.within)));
        std::task::ready!(end.as_mut().poll(context));
        this.lateness.0.store(true, Ordering::Relaxed);
        Poll::Ready(Some(Err(TooLate.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
