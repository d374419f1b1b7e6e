//! The gateway over standard input and output: one message a line, both eras.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use switchboard_auth::Principal;
use switchboard_protocol::{
    EraClaim, ErrorBody, Members, Message, Meta, Unreadable, claim, code, error_response,
    notification, read_message,
};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::body::push_line;
use crate::client::Client;
use crate::conversation::{Asker, Step};
use crate::gateway::Gateway;
use crate::http_face::take_notification;
use crate::legacy::asker_of;
use crate::listener::{Wanted, subscription_meta};
use crate::methods::{Incoming, Replying};
use crate::modern;
use crate::outcome::Outcome;

/// The longest line that is read.
const MAX_LINE: usize = 4 * 1024 * 1024;
/// Messages that wait to be written; then requests wait for the reader.
const WAITING: usize = 256;
/// How long requests may take to be answered once the input has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// Requests that run at the same time.
const MAX_RUNNING: usize = 1024;

/// One peer at the other end of two pipes.
struct Peer {
    gateway: Arc<Gateway>,
    principal: Principal,
    out: mpsc::Sender<String>,
    client: Mutex<Option<Arc<Client>>>,
    /// Modern requests that run, by their id.
    running: Mutex<HashMap<String, CancellationToken>>,
    /// Requests that will be answered.
    requests: TaskTracker,
    /// Streams that last as long as the pipes.
    streams: TaskTracker,
    stop: CancellationToken,
}

impl Gateway {
    /// Serves one client over a pair of pipes until its input ends.
    pub async fn serve_lines(
        self: &Arc<Self>,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> std::io::Result<()> {
        let (out, messages) = mpsc::channel(WAITING);
        let peer = Arc::new(Peer {
            gateway: self.clone(),
            principal: Principal::local(),
            out,
            client: Mutex::default(),
            running: Mutex::default(),
            requests: TaskTracker::new(),
            streams: TaskTracker::new(),
            stop: self.stop.child_token(),
        });
        let writers = TaskTracker::new();
        let writing = writers.spawn(write_lines(output, messages));
        let read = peer.stop.clone().run_until_cancelled(peer.read_lines(input)).await;
        // Whoever closes the input wants the answers to what was asked.
        peer.requests.close();
        let _unanswered = tokio::time::timeout(LAST_ANSWERS, peer.requests.wait()).await;
        let client = peer.client.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(client) = &client {
            self.forget(client);
        }
        peer.stop.cancel();
        peer.streams.close();
        tokio::join!(peer.requests.wait(), peer.streams.wait());
        drop(peer);
        let _written = writing.await;
        read.unwrap_or(Ok(()))
    }
}

impl Peer {
    async fn read_lines(self: &Arc<Self>, input: impl AsyncRead + Unpin) -> std::io::Result<()> {
        let mut input = BufReader::new(input);
        let mut line = Vec::new();
        loop {
            line.clear();
            match read_line(&mut input, &mut line).await? {
                Line::End => return Ok(()),
                Line::TooLong => {
                    let message = format!("a message is larger than {MAX_LINE} bytes");
                    self.refuse(None, code::PARSE_ERROR, message).await;
                }
                Line::Whole if line.iter().all(u8::is_ascii_whitespace) => {}
                Line::Whole => self.take(&line).await,
            }
        }
    }

    async fn send(&self, message: String) {
        // The reader is gone; then so is the whole conversation.
        let _gone = self.out.send(message).await;
    }

    async fn refuse(&self, id: Option<&str>, code: i64, message: impl Into<String>) {
        self.send(error_response(id, &ErrorBody::new(code, message))).await;
    }

    async fn take(self: &Arc<Self>, line: &[u8]) {
        let message = match read_message(line) {
            Ok(message) => message,
            Err(Unreadable::NotJson(reason)) => {
                return self.refuse(None, code::PARSE_ERROR, reason).await;
            }
            Err(Unreadable::NotAMessage { id, reason }) => {
                return self.refuse(id.as_deref(), code::INVALID_REQUEST, reason).await;
            }
        };
        let claimed = claim(&message, None);
        match message {
            Message::Response { id, outcome } => {
                if let Some(client) = self.client() {
                    client.take_answer(id, outcome);
                }
            }
            Message::Notification { method, params } => self.take_notification(&method, params),
            Message::Request { id, method, params } => {
                let params = params.unwrap_or("{}");
                match claimed {
                    EraClaim::Handshake => self.initialize(id, params).await,
                    EraClaim::Modern => self.modern_request(id, &method, params).await,
                    EraClaim::Legacy => self.legacy_request(id, &method, params).await,
                }
            }
        }
    }

    fn client(&self) -> Option<Arc<Client>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_notification(&self, method: &str, params: Option<&str>) {
        if let Some(client) = self.client() {
            take_notification(&client, method, params);
        }
        if method == "notifications/cancelled"
            && let Ok(params) = Members::read(params.unwrap_or("{}"))
            && let Some(token) = params.get("requestId").and_then(|id| self.running().remove(id))
        {
            token.cancel();
        }
    }

    async fn initialize(self: &Arc<Self>, id: &str, params: &str) {
        let params = Members::read(params).unwrap_or_default();
        let scope = self.gateway.open_scope.clone();
        let made = self.gateway.initialize(&params, &self.principal.id, scope, None);
        let Some((client, result)) = made else {
            return self
                .refuse(Some(id), code::INTERNAL_ERROR, "there are too many sessions")
                .await;
        };
        let mut pushed = client.open_stream();
        let peer = self.clone();
        self.streams.spawn(async move {
            let pushing = async {
                while let Some(message) = pushed.recv().await {
                    peer.send(message).await;
                }
            };
            peer.stop.run_until_cancelled(pushing).await;
        });
        let before = self.client.lock().unwrap_or_else(PoisonError::into_inner).replace(client);
        if let Some(before) = before {
            self.gateway.forget(&before);
        }
        self.send(Outcome::text(result).message(id)).await;
    }

    async fn legacy_request(self: &Arc<Self>, id: &str, method: &str, params: &str) {
        let Some(client) = self.client() else {
            if method == "ping" {
                return self.send(Outcome::text("{}").message(id)).await;
            }
            let message = "begin with `initialize`, or speak 2026-07-28";
            return self.refuse(Some(id), code::INVALID_REQUEST, message).await;
        };
        client.touch();
        let Some(cancelled) = client.begin(id) else {
            let message = "a request of this id is still running";
            return self.refuse(Some(id), code::INVALID_REQUEST, message).await;
        };
        let asker = asker_of(&client, true);
        let (id, method, params) = (id.to_owned(), method.to_owned(), params.to_owned());
        let peer = self.clone();
        self.requests.spawn(async move {
            let answering = peer.answer(&id, asker, &method, &params, false);
            let token = cancelled.clone();
            token.run_until_cancelled(answering).await;
            client.finish(&id);
        });
    }

    async fn modern_request(self: &Arc<Self>, id: &str, method: &str, params: &str) {
        let read = Members::read(params).map_err(|error| error.to_string());
        let checked = match &read {
            Ok(members) => modern::check(method, members, None),
            Err(reason) => Err(Outcome::error(code::INVALID_PARAMS, reason.clone())),
        };
        let meta = match checked {
            Ok(meta) => meta,
            Err(outcome) => return self.send(outcome.message(id)).await,
        };
        if self.running().len() >= MAX_RUNNING {
            return self
                .refuse(Some(id), code::INTERNAL_ERROR, "too many requests are running")
                .await;
        }
        let scope = self.gateway.open_scope.clone();
        let asker = self.gateway.modern_asker(&self.principal.id, scope, None, &meta, true).await;
        let token = self.stop.child_token();
        self.running().insert(id.to_owned(), token.clone());
        let (id, method, params) = (id.to_owned(), method.to_owned(), params.to_owned());
        let peer = self.clone();
        let tracker = if method == "subscriptions/listen" { &self.streams } else { &self.requests };
        tracker.spawn(async move {
            token.run_until_cancelled(peer.answer(&id, asker, &method, &params, true)).await;
            peer.running().remove(&id);
        });
    }

    /// Answers one request, with everything that is said before the answer.
    async fn answer(&self, id: &str, asker: Asker, method: &str, params: &str, is_modern: bool) {
        let read = Members::read(params).map_err(|error| error.to_string()).and_then(|params| {
            Meta::of(&params).map(|meta| (params, meta)).map_err(|fault| fault.0)
        });
        let (params, meta) = match read {
            Ok(read) => read,
            Err(reason) => return self.refuse(Some(id), code::INVALID_PARAMS, reason).await,
        };
        let incoming = Incoming { method, params, meta, headers: None };
        match self.gateway.respond(asker.clone(), incoming).await {
            Replying::Now(before, outcome) => {
                for message in before {
                    self.send(message).await;
                }
                self.send(outcome.message(id)).await;
            }
            Replying::Parked(outcome) => self.send(outcome.message(id)).await,
            Replying::Listen(wanted) => {
                debug_assert!(is_modern, "only the modern era listens");
                self.listen(id, &asker, &wanted).await;
            }
            Replying::Talk(mut conversation) => loop {
                match conversation.next().await {
                    Step::Message(message) => self.send(message).await,
                    Step::Done(outcome) => return self.send(outcome.message(id)).await,
                    Step::Park { state, outcome } => {
                        self.gateway.parked.put(state, conversation);
                        return self.send(outcome.message(id)).await;
                    }
                }
            },
        }
    }

    async fn listen(&self, id: &str, asker: &Asker, wanted: &Wanted) {
        let Some((mut changes, _place)) =
            self.gateway.listeners.add(&self.gateway, id, asker, wanted)
        else {
            return self.refuse(Some(id), code::INTERNAL_ERROR, "too many streams are open").await;
        };
        if !wanted.uris.is_empty() {
            self.gateway.watch_resources().await;
        }
        let meta = subscription_meta(id);
        let params = format!("{{\"notifications\":{},{meta}}}", wanted.text());
        self.send(notification("notifications/subscriptions/acknowledged", Some(&params))).await;
        while let Some(message) = changes.recv().await {
            self.send(message).await;
        }
    }
}

enum Line {
    Whole,
    TooLong,
    End,
}

/// Reads up to a line break; what is too long is read to its end and thrown away.
async fn read_line(
    input: &mut (impl AsyncBufReadExt + Unpin),
    line: &mut Vec<u8>,
) -> std::io::Result<Line> {
    let mut is_too_long = false;
    loop {
        let buffer = input.fill_buf().await?;
        if buffer.is_empty() {
            return Ok(match (line.is_empty(), is_too_long) {
                (true, false) => Line::End,
                (_, true) => Line::TooLong,
                (false, false) => Line::Whole,
            });
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
        if line.len() + part.len() > MAX_LINE {
            is_too_long = true;
            line.clear();
        } else if !is_too_long {
            line.extend_from_slice(part);
        }
        let read = end.map_or(buffer.len(), |end| end + 1);
        input.consume(read);
        if end.is_some() {
            return Ok(if is_too_long { Line::TooLong } else { Line::Whole });
        }
    }
}

async fn write_lines(
    mut output: impl AsyncWrite + Unpin,
    mut messages: mpsc::Receiver<String>,
) -> std::io::Result<()> {
    while let Some(message) = messages.recv().await {
        let mut line = String::with_capacity(message.len() + 1);
        push_line(&mut line, &message);
        line.push('\n');
        output.write_all(line.as_bytes()).await?;
        output.flush().await?;
    }
    Ok(())
}
