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
const CANCELLED: i64 = -32_800;

/// What the connection has room for, and what waits behind it: signs of life up to the first bound, everything else up
/// to the second.
const STREAM_QUEUE: usize = 8;
const FEW: Untold = Untold { messages: 32, bytes: 1024 * 1024 };
const MANY: Untold = Untold { messages: 256, bytes: 32 * 1024 * 1024 };

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
        let mut untold = VecDeque::from([first]);
        while self.conversation.is_some() || !untold.is_empty() {
            let waiting =
                Untold { messages: untold.len(), bytes: untold.iter().map(Bytes::len).sum() };
            if waiting.reaches(MANY) && self.conversation.is_some() {
                return;
            }
            tokio::select! {
                biased;
                () = out.closed() => return,
                Ok(place) = out.reserve(), if !untold.is_empty() => {
                    if let Some(event) = untold.pop_front() {
                        place.send(event);
                    }
                }
                said = self.step(Some(KEEP_ALIVE_EVERY)), if self.conversation.is_some() => {
                    match said {
                        Said::Message(message) if !waiting.reaches(FEW) || !is_sign_of_life(&message) => {
                            untold.push_back(event(&message));
                        }
                        Said::Silence if untold.is_empty() => untold.push_back(KEEP_ALIVE),
                        Said::Message(_) | Said::Silence => {}
                        Said::Last(outcome) => untold.push_back(event(&outcome.message(&self.id))),
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

/// What waits for a reader.
#[derive(Debug, Clone, Copy)]
struct Untold {
    messages: usize,
    bytes: usize,
}

impl Untold {
    fn reaches(self, bound: Self) -> bool {
        self.messages >= bound.messages || self.bytes >= bound.bytes
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
