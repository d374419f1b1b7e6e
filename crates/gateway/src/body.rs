//! Bodies of answers: a few pieces that are there already, or a stream of events.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use http_body::{Body, Frame, SizeHint};

/// The body of an answer.
pub struct GatewayBody(Inner);

enum Inner {
    /// Shared bytes are not copied: a list goes out as its frame, the list and the end of the frame.
    Pieces(VecDeque<Bytes>),
    Events(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl std::fmt::Debug for GatewayBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Inner::Pieces(pieces) => f.debug_list().entries(pieces).finish(),
            Inner::Events(_) => f.write_str("events"),
        }
    }
}

impl GatewayBody {
    pub(crate) fn empty() -> Self {
        Self(Inner::Pieces(VecDeque::new()))
    }

    pub(crate) fn text(text: String) -> Self {
        Self(Inner::Pieces(VecDeque::from([Bytes::from(text)])))
    }

    pub(crate) fn pieces(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        Self(Inner::Pieces(pieces.into_iter().collect()))
    }

    pub(crate) fn events(events: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Inner::Events(Box::pin(events)))
    }
}

impl Body for GatewayBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut self.0 {
            Inner::Pieces(pieces) => Poll::Ready(pieces.pop_front().map(|piece| Ok(Frame::data(piece)))),
            Inner::Events(events) => {
                events.as_mut().poll_next(context).map(|event| event.map(|event| Ok(Frame::data(event))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Inner::Pieces(pieces) if pieces.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Pieces(pieces) => {
                SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum())
            }
            Inner::Events(_) => SizeHint::default(),
        }
    }
}

/// A message as one event. Line breaks in JSON are only ever space between its parts.
pub(crate) fn event(message: &str) -> Bytes {
    let mut text = String::with_capacity(message.len() + 24);
    text.push_str("event: message\ndata: ");
    push_line(&mut text, message);
    text.push_str("\n\n");
    text.into()
}

/// A message as one line.
pub(crate) fn push_line(text: &mut String, message: &str) {
    if message.contains(['\n', '\r']) {
        text.extend(message.chars().map(|c| if c == '\n' || c == '\r' { ' ' } else { c }));
    } else {
        text.push_str(message);
    }
}

/// What keeps a silent stream from being taken for a dead one.
pub(crate) const KEEP_ALIVE: Bytes = Bytes::from_static(b": still here\n\n");
