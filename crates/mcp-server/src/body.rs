//! HTTP response bodies: a few chunks that are complete already, or a stream of server-sent events.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::buf::Chain;
use bytes::{Buf, Bytes};
use futures::Stream;
use http_body::{Body, Frame, SizeHint};

/// A response written in one piece: the JSON-RPC frame before the result, the result, and the frame after it. As three
/// body frames, the end of a large list would be sent in a packet of its own.
pub type BodyChunk = Chain<Chain<Bytes, Bytes>, Bytes>;

fn piece(body: Bytes) -> BodyChunk {
    body.chain(Bytes::new()).chain(Bytes::new())
}

/// The body of an HTTP response of the gateway.
pub struct GatewayBody(BodyContent);

enum BodyContent {
    /// A complete body; shared bytes are not copied.
    Whole(BodyChunk),
    Pieces(VecDeque<Bytes>),
    Events(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl std::fmt::Debug for GatewayBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            BodyContent::Whole(body) => body.fmt(f),
            BodyContent::Pieces(pieces) => f.debug_list().entries(pieces).finish(),
            BodyContent::Events(_) => f.write_str("events"),
        }
    }
}

impl GatewayBody {
    pub(crate) fn empty() -> Self {
        Self(BodyContent::Whole(piece(Bytes::new())))
    }

    pub(crate) fn text(text: String) -> Self {
        Self(BodyContent::Whole(piece(text.into())))
    }

    /// A response around a large result. The result is shared, not copied.
    pub(crate) fn framed(frame: String, result: Bytes, end: &'static [u8]) -> Self {
        Self(BodyContent::Whole(Bytes::from(frame).chain(result).chain(Bytes::from_static(end))))
    }

    pub(crate) fn pieces(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        Self(BodyContent::Pieces(pieces.into_iter().collect()))
    }

    pub(crate) fn events(events: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(BodyContent::Events(Box::pin(events)))
    }
}

impl Body for GatewayBody {
    type Data = BodyChunk;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<BodyChunk>, Self::Error>>> {
        let next = match &mut self.0 {
            BodyContent::Whole(body) if !body.has_remaining() => Poll::Ready(None),
            BodyContent::Whole(body) => {
                return Poll::Ready(Some(Ok(Frame::data(std::mem::replace(
                    body,
                    piece(Bytes::new()),
                )))));
            }
            BodyContent::Pieces(pieces) => Poll::Ready(pieces.pop_front()),
            BodyContent::Events(events) => events.as_mut().poll_next(context),
        };
        next.map(|next| next.map(|bytes| Ok(Frame::data(piece(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodyContent::Whole(body) => !body.has_remaining(),
            BodyContent::Pieces(pieces) => pieces.is_empty(),
            BodyContent::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyContent::Whole(body) => SizeHint::with_exact(body.remaining() as u64),
            BodyContent::Pieces(pieces) => {
                SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum())
            }
            BodyContent::Events(_) => SizeHint::default(),
        }
    }
}

/// The message as one server-sent event. Line breaks in JSON only stand between tokens, so they can be replaced.
pub(crate) fn event(message: &str) -> Bytes {
    let mut text = String::with_capacity(message.len() + 24);
    text.push_str("event: message\ndata: ");
    push_line(&mut text, message);
    text.push_str("\n\n");
    text.into()
}

/// Appends the message without line breaks.
pub(crate) fn push_line(text: &mut String, message: &str) {
    if message.contains(['\n', '\r']) {
        text.extend(message.chars().map(|c| if c == '\n' || c == '\r' { ' ' } else { c }));
    } else {
        text.push_str(message);
    }
}

/// The comment that is sent on an idle event stream, so that clients and proxies do not time it out.
pub(crate) const KEEP_ALIVE: Bytes = Bytes::from_static(b": still here\n\n");
