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
use crate::conversation::{Conversation, Step};
use crate::gateway::Gateway;
use crate::http_answer::{Accepts, Answer, streamed, written};
use crate::listener::Place;
use crate::outcome::Outcome;

const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);
/// The code with which a cancelled request is answered, outside of what JSON-RPC reserves.
pub(crate) const CANCELLED: i64 = -32_800;

/// What the connection has room for, and what waits behind it: with signs of life up to the first bound, where older
/// ones give way to newer ones; without them up to the second.
const STREAM_QUEUE: usize = 8;
const FEW: Bound = Bound { messages: 192, bytes: 1024 * 1024 };
const MANY: Bound = Bound { messages: 256, bytes: 32 * 1024 * 1024 };

/// The end of a request that a client may cancel.
pub(crate) struct Running {
    pub(crate) client: Arc<Client>,
    pub(crate) id: String,
    pub(crate) cancelled: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.client.finish(&self.id);
    }
}

/// A conversation that is being written to a client.
pub(crate) struct Talk {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) conversation: Option<Box<Conversation>>,
    pub(crate) id: String,
    pub(crate) running: Option<Running>,
}

pub(crate) enum Said {
    Message(String),
    Last(Outcome),
    Silence,
}

impl Talk {
    /// The answer alone where nothing else is said, else a stream.
    pub(crate) async fn answer(mut self, accepts: Accepts) -> Answer {
        let is_modern = self.running.is_none();
        loop {
            match self.step(None).await {
                Said::Last(outcome) => return written(&self.id, outcome, accepts, is_modern),
                Said::Silence => {}
                Said::Message(message) => {
                    let (out, mut events) = mpsc::channel(STREAM_QUEUE);
                    let talks = self.gateway.talks.clone();
                    talks.spawn(self.tell(event(&message), out));
                    let events = stream::poll_fn(move |context| events.poll_recv(context));
                    return streamed(GatewayBody::events(events));
                }
            }
        }
    }

    /// Goes on to its end or to that of its reader. A reader that takes nothing holds up nothing else: the time of the
    /// call runs, what is no more than a sign of life is left out, and who leaves too much of the rest is left.
    async fn tell(mut self, first: Bytes, out: mpsc::Sender<Bytes>) {
        let mut untold = Untold::default();
        untold.push(first);
        while self.conversation.is_some() || !untold.is_empty() {
            if untold.reaches(MANY) && self.conversation.is_some() {
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
                said = self.step(Some(KEEP_ALIVE_EVERY)), if self.conversation.is_some() => {
                    match said {
                        Said::Message(message) if is_sign_of_life(&message) => {
                            untold.push_sign_of_life(event(&message));
                        }
                        Said::Message(message) => untold.push(event(&message)),
                        Said::Silence if untold.is_empty() => untold.push(KEEP_ALIVE),
                        Said::Silence => {}
                        Said::Last(outcome) => untold.push(event(&outcome.message(&self.id))),
                    }
                }
            }
        }
    }

    /// Waits for the next thing to write; after the last one the conversation is gone.
    pub(crate) async fn step(&mut self, patience: Option<Duration>) -> Said {
        let Some(conversation) = &mut self.conversation else { return Said::Silence };
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
            step = conversation.next() => step,
            () = cancelled => Step::Done(Outcome::error(CANCELLED, "the request was cancelled")),
            () = silence => return Said::Silence,
        };
        match step {
            Step::Message(message) => Said::Message(message),
            Step::Done(outcome) => {
                self.conversation = None;
                Said::Last(outcome)
            }
            Step::Park { state, outcome } => {
                if let Some(conversation) = self.conversation.take() {
                    self.gateway.parked.put(state, conversation);
                }
                Said::Last(outcome)
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Bound {
    messages: usize,
    bytes: usize,
}

/// What waits for a reader.
#[derive(Debug, Default)]
struct Untold {
    events: VecDeque<(Bytes, Worth)>,
    bytes: usize,
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

    fn reaches(&self, bound: Bound) -> bool {
        self.events.len() >= bound.messages || self.bytes >= bound.bytes
    }

    fn push(&mut self, event: Bytes) {
        self.push_worth(event, Worth::Needed);
    }

    /// The newest matters most: it takes the place of older ones, and is left out only where there are none.
    fn push_sign_of_life(&mut self, event: Bytes) {
        while self.reaches(FEW) {
            let older = self.events.iter().position(|(_, worth)| *worth == Worth::SignOfLife);
            let Some((older, _)) = older.and_then(|at| self.events.remove(at)) else { return };
            self.bytes -= older.len();
        }
        self.push_worth(event, Worth::SignOfLife);
    }

    fn push_worth(&mut self, event: Bytes, worth: Worth) {
        self.bytes += event.len();
        self.events.push_back((event, worth));
    }

    fn pop(&mut self) -> Option<Bytes> {
        let (event, _) = self.events.pop_front()?;
        self.bytes -= event.len();
        Some(event)
    }
}

/// What a client can do without.
fn is_sign_of_life(message: &str) -> bool {
    let members = Members::read(message).unwrap_or_default();
    let method = members.string("method");
    matches!(
        method.as_deref(),
        Some(
            "notifications/progress"
                | "notifications/message"
                | "notifications/elicitation/complete"
        )
    )
}

/// Messages for a client that listens.
pub(crate) struct Stream {
    pub(crate) first: Option<String>,
    pub(crate) messages: mpsc::Receiver<String>,
    pub(crate) goodbye: Option<String>,
    pub(crate) ended: CancellationToken,
    pub(crate) _place: Option<Place>,
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
        untold.push(Bytes::from_static(b"question"));
        let last = 3 * FEW.messages;
        (0..=last).for_each(|number| untold.push_sign_of_life(numbered(number)));
        assert_eq!(untold.events.len(), FEW.messages);
        assert_eq!(untold.pop().unwrap(), "question");
        assert_eq!(untold.pop().unwrap(), numbered(last + 2 - FEW.messages));
        let newest = std::iter::from_fn(|| untold.pop()).last();
        assert_eq!((newest.unwrap(), untold.bytes), (numbered(last), 0));
    }

    #[test]
    fn what_is_needed_takes_no_sign_of_life_away_and_leaves_no_room_for_others() {
        let mut untold = Untold::default();
        untold.push_sign_of_life(numbered(1));
        untold.push(Bytes::from(vec![b'x'; FEW.bytes]));
        assert!(untold.reaches(FEW) && !untold.reaches(MANY));
        untold.push_sign_of_life(numbered(2));
        assert_eq!(untold.events.len(), 1, "the older one gave way, which was not enough");
    }
}
