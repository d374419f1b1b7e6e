//! Waits for an answer within limits, and passes on what the server says meanwhile.

use std::pin::Pin;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{Future, StreamExt};
use switchboard_mcp::{AskEvent, RpcError};
use switchboard_model::JsonText;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Sleep};

/// An answer did not come in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overdue {
    Total,
    /// Not even a sign of life, for this long.
    Silent(Duration),
}

/// The limits of one running request and who hears what its server says.
#[derive(Debug)]
pub(crate) struct Running {
    total: Duration,
    silence: Option<Duration>,
    listener: Option<mpsc::Sender<AskEvent>>,
}

type Reply = Result<JsonText, RpcError>;

/// A question that the caller is thinking about, with the place where its answer goes.
struct Asked {
    answer: oneshot::Receiver<Reply>,
    reply: oneshot::Sender<Reply>,
}

impl Running {
    pub(crate) fn new(
        total: Duration,
        silence: Option<Duration>,
        listener: Option<mpsc::Sender<AskEvent>>,
    ) -> Self {
        Self { total, silence, listener }
    }

    /// Waits for the answer. While the caller thinks about a question of the server no time passes for the server.
    pub(crate) async fn watch<F: Future>(
        self,
        mut answering: Pin<&mut F>,
        mut events: mpsc::Receiver<AskEvent>,
    ) -> Result<F::Output, Overdue> {
        let mut total = std::pin::pin!(tokio::time::sleep(self.total));
        let silence = self.silence.unwrap_or(self.total);
        let mut silent = std::pin::pin!(tokio::time::sleep(silence));
        let mut thinking = FuturesUnordered::new();
        let mut asked_at = None;
        loop {
            tokio::select! {
                biased;
                answer = &mut answering => {
                    while let Ok(event) = events.try_recv() {
                        self.pass_on(event);
                    }
                    return Ok(answer);
                }
                // Before the signs of life: however many there are, they do not extend the whole time.
                () = &mut total, if thinking.is_empty() => return Err(Overdue::Total),
                Some(event) = events.recv() => {
                    silent.as_mut().reset(Instant::now() + silence);
                    if let Some(asked) = self.pass_on(event) {
                        asked_at.get_or_insert_with(Instant::now);
                        thinking.push(answered(asked));
                    }
                }
                Some(()) = thinking.next() => {
                    if thinking.is_empty() && let Some(asked_at) = asked_at.take() {
                        extend(total.as_mut(), asked_at.elapsed());
                        silent.as_mut().reset(Instant::now() + silence);
                    }
                }
                () = &mut silent, if self.silence.is_some() && thinking.is_empty() => {
                    return Err(Overdue::Silent(silence));
                }
            }
        }
    }

    /// Signs of life may be missed by a listener that does not keep up; a question is then refused.
    fn pass_on(&self, event: AskEvent) -> Option<Asked> {
        let (event, asked) = match event {
            AskEvent::Question { method, params, reply } => {
                let (sender, answer) = oneshot::channel();
                let question = AskEvent::Question { method, params, reply: sender };
                (question, Some(Asked { answer, reply }))
            }
            sign => (sign, None),
        };
        let sent = self.listener.as_ref().map(|listener| listener.try_send(event));
        if matches!(sent, Some(Ok(()))) {
            return asked;
        }
        if let Some(asked) = asked {
            let _gone = asked.reply.send(Err(nobody_answers()));
        }
        None
    }
}

async fn answered(asked: Asked) {
    let answer = asked.answer.await.unwrap_or_else(|_| Err(nobody_answers()));
    // The server may have given up waiting.
    let _gone = asked.reply.send(answer);
}

fn nobody_answers() -> RpcError {
    RpcError { code: -32_603, message: "the client does not answer questions".into(), data: None }
}

fn extend(sleep: Pin<&mut Sleep>, by: Duration) {
    let deadline = sleep.deadline() + by;
    sleep.reset(deadline);
}
