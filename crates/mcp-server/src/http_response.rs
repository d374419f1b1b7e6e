//! Conversations and streams while they are written to a client over HTTP.

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
/// After this much silence the headers of the answer are sent, as the beginning of an event stream. Clients and proxies give
/// up a request without headers long before a call may end: `fetch` of Node after 300 seconds, others much earlier.
const QUIET_BEFORE_HEADERS: Duration = Duration::from_secs(3);
/// The code with which a cancelled request is answered, outside of what JSON-RPC reserves.
pub(crate) const CANCELLED: i64 = -32_800;

/// What the connection has room for, and what waits behind it: signs of life up to the first bound, where older ones give
/// way, and everything else up to the second.
const STREAM_QUEUE: usize = 8;
const FEW: Bound = Bound { messages: 192, bytes: 1024 * 1024 };
const MANY: Bound = Bound { messages: 256, bytes: 32 * 1024 * 1024 };

/// The end of a request that a client may cancel.
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

/// An exchange that is being written to a client.
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
    /// The answer alone where it comes soon and nothing else is said, else a stream. It is one at once for a client that has
    /// to be told something `before`.
    pub(crate) async fn answer(mut self, accepts: Accepts, before: &[String]) -> HttpResponse {
        if !before.is_empty() {
            let events: Vec<u8> = before.iter().flat_map(|message| event(message)).collect();
            return self.stream(events.into());
        }
        let is_modern = self.running.is_none();
        let patience = accepts.events.then_some(QUIET_BEFORE_HEADERS);
        match self.step(patience).await {
            ResponseEvent::Last(outcome) => written(&self.id, outcome, accepts, is_modern),
            ResponseEvent::Silence => self.stream(KEEP_ALIVE),
            ResponseEvent::Message(message) => self.stream(event(&message)),
        }
    }

    /// A stream that begins with this.
    fn stream(self, first: Bytes) -> HttpResponse {
        let (out, mut events) = mpsc::channel(STREAM_QUEUE);
        let talks = self.gateway.talks.clone();
        talks.spawn(self.tell(first, out));
        let events = stream::poll_fn(move |context| events.poll_recv(context));
        streamed(GatewayBody::events(events))
    }

    /// Goes on to its end or to that of its reader. A reader that takes nothing holds up nothing else: the time of the
    /// call runs, what is no more than a sign of life is left out, and who leaves too much of the rest is left.
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

    /// Waits for the next thing to write; after the last one the exchange is gone.
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

/// So much.
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

/// What waits for a reader.
#[derive(Debug, Default)]
struct Untold {
    events: VecDeque<(Bytes, Worth)>,
    signs_of_life: Bound,
    needed: Bound,
}

/// Whether a client can do without.
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

    /// Of signs of life the newest matters most: older ones give way.
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

/// Messages for a client that listens.
pub(crate) struct Stream {
    pub(crate) first: Option<String>,
    pub(crate) messages: mpsc::Receiver<String>,
    pub(crate) goodbye: Option<String>,
    pub(crate) ended: CancellationToken,
    /// Whose stream it is, in the session era.
    pub(crate) client: Option<Arc<Client>>,
    pub(crate) _place: Option<ListenerGuard>,
}

/// A connection that is lost takes nothing with it that was still waiting here.
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
