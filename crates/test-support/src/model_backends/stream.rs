//! Encodes events as bytes, with the chunks and the ending of a step.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::stream::{self, BoxStream, Stream, StreamExt};
use serde_json::Value;

use super::backend::Backend;
use super::stamp::stamped;
use super::state::OpenStream;
use super::step::{Ending, Wire};

/// Time for the first half to be sent before the connection closes.
const LAST_WORDS: Duration = Duration::from_millis(30);

/// An event, sent once or many times.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) name: Option<String>,
    pub(crate) data: String,
    pub(crate) count: usize,
}

impl Event {
    pub(crate) fn named(name: &str, data: &Value) -> Self {
        Self { name: Some(name.to_owned()), data: data.to_string(), count: 1 }
    }

    pub(crate) fn data(data: &Value) -> Self {
        Self { name: None, data: data.to_string(), count: 1 }
    }

    pub(crate) fn times(self, count: usize) -> Self {
        Self { count, ..self }
    }

    fn encode(&self, line_end: &str) -> String {
        let name = self.name.as_ref().map(|name| format!("event: {name}{line_end}"));
        format!("{}data: {}{line_end}{line_end}", name.unwrap_or_default(), self.data)
    }
}

/// The bytes of the events, generated on demand.
pub(crate) fn encoded(
    backend: Backend,
    events: Vec<Event>,
    wire: &Wire,
) -> Box<dyn Iterator<Item = Bytes> + Send> {
    let is_google = matches!(backend, Backend::Gemini | Backend::CodeAssist);
    let line_end = if wire.crlf || is_google { "\r\n" } else { "\n" };
    let comment = format!(": still here{line_end}{line_end}");
    let comment = wire.comments.then(|| Bytes::from(comment));
    let unknown = wire.unknown_events.then(|| Bytes::from(unknown_event(backend).encode(line_end)));
    let mut is_first = true;
    Box::new(events.into_iter().flat_map(move |event| {
        let bytes = Bytes::from(event.encode(line_end));
        // Clients require the regular first event at the beginning of a stream.
        let unknown = if is_first { None } else { unknown.clone() };
        is_first = false;
        let before = [comment.clone(), unknown].into_iter().flatten();
        before.chain(std::iter::repeat_n(bytes, event.count))
    }))
}

/// An event that a later version of the backend might send.
fn unknown_event(backend: Backend) -> Event {
    use serde_json::json;
    match backend {
        Backend::OpenAi | Backend::ChatGpt => Event::named(
            "response.future.delta",
            &json!({"type": "response.future.delta", "sequence_number": 0, "delta": "?"}),
        ),
        Backend::Anthropic => Event::named("future", &json!({"type": "future", "value": 1})),
        Backend::Chat => Event::data(
            &json!({"id": "chatcmpl-future", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "future": {}}),
        ),
        Backend::Gemini => Event::data(&json!({"modelVersion": "future"})),
        Backend::CodeAssist => Event::data(&json!({"response": {"modelVersion": "future"}})),
    }
}

/// A body with these bytes. Reports to `open` whether it was read to its end.
pub(crate) fn body(
    bytes: Box<dyn Iterator<Item = Bytes> + Send>,
    wire: &Wire,
    open: OpenStream,
) -> Body {
    let limit = match wire.ending {
        Ending::Cut(limit) | Ending::Ended(limit) => limit,
        Ending::Whole | Ending::Hang | Ending::Silent => usize::MAX,
    };
    let mut left = limit;
    let limited = bytes.map_while(move |mut chunk| {
        if left == 0 {
            return None;
        }
        chunk.truncate(left);
        left -= chunk.len();
        Some(chunk)
    });
    let size = wire.split.unwrap_or(usize::MAX);
    let chunks = stream::iter(limited.flat_map(move |chunk| split(chunk, size)));
    let (pace, is_stamped) = (wire.pace, wire.stamped);
    let paced = chunks.then(move |chunk| async move {
        if !pace.is_zero() {
            tokio::time::sleep(pace).await;
        }
        Ok(if is_stamped { stamped(&chunk) } else { chunk })
    });
    let end: BoxStream<'static, Result<Bytes, io::Error>> = match wire.ending {
        Ending::Whole | Ending::Ended(_) => stream::empty().boxed(),
        Ending::Hang | Ending::Silent => stream::pending().boxed(),
        Ending::Cut(_) => stream::once(async {
            tokio::time::sleep(LAST_WORDS).await;
            Err(io::Error::other("scripted end of the connection"))
        })
        .boxed(),
    };
    Body::from_stream(Watched { inner: paced.chain(end).boxed(), open })
}

fn split(chunk: Bytes, size: usize) -> impl Iterator<Item = Bytes> {
    let mut rest = chunk;
    std::iter::from_fn(move || {
        let next = rest.split_to(size.min(rest.len()));
        (!next.is_empty()).then_some(next)
    })
}

struct Watched {
    inner: BoxStream<'static, Result<Bytes, io::Error>>,
    open: OpenStream,
}

impl Stream for Watched {
    type Item = Result<Bytes, io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.inner.poll_next_unpin(context);
        if matches!(next, Poll::Ready(None | Some(Err(_)))) {
            self.open.finish();
        }
        next
    }
}
