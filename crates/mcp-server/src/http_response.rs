//! Writes responses and event streams to a client over HTTP while their messages arrive.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use switchboard_protocol::Members;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::body::{GatewayBody, KEEP_ALIVE, event};
use crate::client::Client;
use crate::gateway::Gateway;
use crate::http_answer::{Accepts, HttpResponse, streamed, written};
use crate::listener::ListenerGuard;
use crate::outcome::Outcome;
use crate::upstream_exchange::{ExchangeStep, UpstreamExchange};

const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);
/// After this time without a message, the response headers are sent and the response becomes an event stream. Clients and
/// proxies abort a request without headers long before a call may end: `fetch` of Node after 300 seconds, others earlier.
const QUIET_BEFORE_HEADERS: Duration = Duration::from_secs(3);
/// The error code of a cancelled request. It is outside of the range that JSON-RPC reserves.
pub(crate) const CANCELLED: i64 = -32_800;

/// Events that the connection may hold, and those that may wait for it: progress and log messages up to `FEW`, beyond
/// which the oldest are dropped, and all other events up to `MANY`, beyond which the stream is closed.
const STREAM_QUEUE: usize = 8;
const FEW: Bound = Bound { messages: 192, bytes: 1024 * 1024 };
const MANY: Bound = Bound { messages: 256, bytes: 32 * 1024 * 1024 };

/// A running request of a session-era client; dropping it removes the request from the client.
pub(crate) struct RunningRequest {
    pub(crate) client: Arc<Client>,
    pub(crate) id: String,
    pub(crate) cancelled: CancellationToken,
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.client.finish(&self.id);
    }
}

/// Writes one exchange with a server to the client: its messages and its response.
pub(crate) struct ResponseWriter {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) exchange: Option<Box<UpstreamExchange>>,
    pub(crate) id: String,
    pub(crate) running: Option<RunningRequest>,
}

pub(crate) enum ResponseEvent {
    Message(String),
    Last(Outcome),
    Silence,
}

impl ResponseWriter {
    /// Responds with JSON if the response comes soon and no message precedes it, else with an event stream. Messages in
    /// `before` are sent first and make it a stream at once.
    pub(crate) async fn answer(mut self, accepts: Accepts, before: &[String]) -> HttpResponse {
        if !before.is_empty() {
            let events: Vec<u8> = before.iter().flat_map(|message| event(message)).collect();
            return self.stream(events.into());
        }
        let is_stateless = self.running.is_none();
        let patience = accepts.events.then_some(QUIET_BEFORE_HEADERS);
        match self.step(patience).await {
            ResponseEvent::Last(outcome) => written(&self.id, outcome, accepts, is_stateless),
            ResponseEvent::Silence => self.stream(KEEP_ALIVE),
            ResponseEvent::Message(message) => self.stream(event(&message)),
        }
    }

    /// Responds with an event stream whose first event is `first`.
    fn stream(self, first: Bytes) -> HttpResponse {
        let (out, mut events) = mpsc::channel(STREAM_QUEUE);
        let talks = self.gateway.talks.clone();
        talks.spawn(self.tell(first, out));
        let events = stream::poll_fn(move |context| events.poll_recv(context));
        streamed(GatewayBody::events(events))
    }

    /// Writes events until the exchange ends or the client disconnects. A client that does not read cannot stop the
    /// exchange: the call's timeouts apply, progress and log messages are dropped, too many other events end the stream.
    async fn tell(mut self, first: Bytes, out: mpsc::Sender<Bytes>) {
        let mut untold = Untold::default();
        untold.push(first, Worth::Needed);
        while self.exchange.is_some() || !untold.is_empty() {
            if untold.needed.reaches(MANY) && self.exchange.is_some() {
                return;
            }
            tokio::select! {
                biased;
                () = out.closed() => return,
                Ok(place) = out.reserve(), if !untold.is_empty() => {
                    if let Some(event) = untold.pop() {
                        place.send(event);
                    }
                }
                said = self.step(Some(KEEP_ALIVE_EVERY)), if self.exchange.is_some() => {
                    match said {
                        ResponseEvent::Message(message) => untold.push(event(&message), worth_of(&message)),
                        ResponseEvent::Silence if untold.is_empty() => {
                            untold.push(KEEP_ALIVE, Worth::SignOfLife);
                        }
                        ResponseEvent::Silence => {}
                        ResponseEvent::Last(outcome) => {
                            untold.push(event(&outcome.message(&self.id)), Worth::Needed);
                        }
                    }
                }
            }
        }
    }

    /// Waits up to `patience` for the next message. `exchange` is `None` after the last one.
    pub(crate) async fn step(&mut self, patience: Option<Duration>) -> ResponseEvent {
        let Some(exchange) = &mut self.exchange else { return ResponseEvent::Silence };
        let cancelled = self.running.as_ref().map(|running| running.cancelled.clone());
        let cancelled = async {
            match cancelled {
                Some(cancelled) => cancelled.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let silence = async {
            match patience {
                Some(patience) => tokio::time::sleep(patience).await,
                None => std::future::pending().await,
            }
        };
        let step = tokio::select! {
            biased;
            step = exchange.next() => step,
            () = cancelled => ExchangeStep::Done(Outcome::error(CANCELLED, "the request was cancelled")),
            () = silence => return ResponseEvent::Silence,
        };
        match step {
            ExchangeStep::Message(message) => ResponseEvent::Message(message),
            ExchangeStep::Done(outcome) => {
                self.exchange = None;
                ResponseEvent::Last(outcome)
            }
            ExchangeStep::Park { state, outcome } => {
                if let Some(exchange) = self.exchange.take() {
                    self.gateway.parked.put(state, exchange);
                }
                ResponseEvent::Last(outcome)
            }
        }
    }
}

/// A number of messages and their size.
#[derive(Debug, Clone, Copy, Default)]
struct Bound {
    messages: usize,
    bytes: usize,
}

impl Bound {
    fn reaches(self, other: Self) -> bool {
        self.messages >= other.messages || self.bytes >= other.bytes
    }
}

/// Events that wait until the connection takes them.
#[derive(Debug, Default)]
struct Untold {
    events: VecDeque<(Bytes, Worth)>,
    signs_of_life: Bound,
    needed: Bound,
}

/// Whether an event may be dropped when the client is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worth {
    SignOfLife,
    Needed,
}

impl Untold {
    fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    fn push(&mut self, event: Bytes, worth: Worth) {
        if worth == Worth::SignOfLife {
            self.make_room();
        }
        let waiting = self.waiting(worth);
        waiting.messages += 1;
        waiting.bytes += event.len();
        self.events.push_back((event, worth));
    }

    fn pop(&mut self) -> Option<Bytes> {
        self.take(0)
    }

    /// Drops the oldest progress and log messages beyond `FEW`.
    fn make_room(&mut self) {
        while self.signs_of_life.reaches(FEW) {
            let is_older = |(_, worth): &(Bytes, Worth)| *worth == Worth::SignOfLife;
            let Some(older) = self.events.iter().position(is_older) else { return };
            self.take(older);
        }
    }

    fn take(&mut self, at: usize) -> Option<Bytes> {
        let (event, worth) = self.events.remove(at)?;
        let waiting = self.waiting(worth);
        waiting.messages -= 1;
        waiting.bytes -= event.len();
        Some(event)
    }

    fn waiting(&mut self, worth: Worth) -> &mut Bound {
        match worth {
            Worth::SignOfLife => &mut self.signs_of_life,
            Worth::Needed => &mut self.needed,
        }
    }
}

fn worth_of(message: &str) -> Worth {
    let members = Members::read(message).unwrap_or_default();
    match members.string("method").as_deref() {
        Some("notifications/progress" | "notifications/message") => Worth::SignOfLife,
        Some(_) | None => Worth::Needed,
    }
}

/// An event stream on which a client listens, independent of any request.
pub(crate) struct Stream {
    pub(crate) first: Option<String>,
    pub(crate) messages: mpsc::Receiver<String>,
    pub(crate) goodbye: Option<String>,
    pub(crate) ended: CancellationToken,
    /// The client of the stream, in the session era.
    pub(crate) client: Option<Arc<Client>>,
    pub(crate) _place: Option<ListenerGuard>,
}

/// Returns the messages that the stream did not deliver to the client's backlog.
impl Drop for Stream {
    fn drop(&mut self) {
        let Some(client) = &self.client else { return };
        self.messages.close();
        while let Ok(message) = self.messages.try_recv() {
            client.take_back(message);
        }
    }
}

impl Stream {
    pub(crate) async fn next(mut self) -> Option<(Bytes, Self)> {
        if let Some(first) = self.first.take() {
            return Some((event(&first), self));
        }
        tokio::select! {
            biased;
            message = self.messages.recv() => {
                let message = message.or_else(|| self.goodbye.take())?;
                Some((event(&message), self))
            }
            () = self.ended.cancelled() => {
                let goodbye = self.goodbye.take()?;
                Some((event(&goodbye), self))
            }
            () = tokio::time::sleep(KEEP_ALIVE_EVERY) => Some((KEEP_ALIVE, self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(number: usize) -> Bytes {
        number.to_string().into()
    }

    #[test]
    fn the_newest_signs_of_life_wait_and_everything_else_does() {
        let mut untold = Untold::default();
        untold.push(Bytes::from_static(b"question"), Worth::Needed);
        let last = 3 * FEW.messages;
        (0..=last).for_each(|number| untold.push(numbered(number), Worth::SignOfLife));
        assert_eq!(untold.events.len(), FEW.messages + 1);
        assert_eq!(untold.pop().unwrap(), "question");
        assert_eq!(untold.pop().unwrap(), numbered(last + 1 - FEW.messages));
        let newest = std::iter::from_fn(|| untold.pop()).last();
        assert_eq!((newest.unwrap(), untold.signs_of_life.bytes), (numbered(last), 0));
    }

    #[test]
    fn what_is_needed_and_signs_of_life_take_no_room_from_each_other() {
        let mut untold = Untold::default();
        untold.push(numbered(1), Worth::SignOfLife);
        untold.push(Bytes::from(vec![b'x'; MANY.bytes]), Worth::Needed);
        untold.push(numbered(2), Worth::SignOfLife);
        assert_eq!(untold.events.len(), 3);
        assert!(untold.needed.reaches(MANY) && !untold.signs_of_life.reaches(FEW));
    }
}
