//! MCP over standard input and output: one message per line, both eras.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use switchboard_auth::Principal;
use switchboard_protocol::{
    EraClaim, ErrorBody, Members, Meta, RpcMessage, Unreadable, claim, code, error_response,
    is_too_deep, notification, read_message,
};
use switchboard_sessions::StartFailed;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::client::Client;
use crate::gateway::Gateway;
use crate::http_endpoint::{BATCHING, MAX_BATCH};
use crate::http_response::CANCELLED;
use crate::lines::{LineReader, WAITING_LINES, write_lines};
use crate::listener::{ListenRequest, subscription_meta};
use crate::methods::{Dispatch, Incoming};
use crate::outcome::Outcome;
use crate::request_context::RequestContext;
use crate::session_era::{NotAdmitted, Promise, context_of};
use crate::startup::INTRODUCTION_WAIT;
use crate::stateless_era;
use crate::upstream_exchange::ExchangeStep;

/// How long running requests may take after the end of the input.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// The same after a signal to stop: shorter, because the sender of the signal waits only a little longer.
const LAST_MOMENTS: Duration = Duration::from_secs(4);
/// The maximum number of running requests of both eras together; further ones are refused.
const MAX_RUNNING: usize = 1024;
const STILL_RUNNING: &str = "a request of this id is still running";
const TOO_MANY: &str = "too many requests are running";

/// The client at the other end of the pipes.
struct Peer {
    gateway: Arc<Gateway>,
    principal: Principal,
    out: mpsc::Sender<String>,
    client: Mutex<Option<Arc<Client>>>,
    /// Until when requests wait for tools while the board starts; set by the first message.
    catalog_by: OnceLock<Instant>,
    /// Running stateless-era requests by their id.
    running: Mutex<HashMap<String, CancellationToken>>,
    /// The number of running requests.
    busy: AtomicUsize,
    /// Tasks of requests. They are awaited at the end.
    requests: TaskTracker,
    /// Tasks of event streams. They last as long as the pipes.
    streams: TaskTracker,
    /// Cancelled to stop reading and to end the event streams.
    stop: CancellationToken,
    /// Cancelled when the time of the running requests is over.
    cut_off: CancellationToken,
}

/// Counts requests as running until it is dropped.
struct Room {
    peer: Arc<Peer>,
    requests: usize,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.peer.busy.fetch_sub(self.requests, Ordering::Relaxed);
    }
}

impl Gateway {
    /// Serves one client over a pair of pipes until its input ends.
    pub async fn serve_lines(
        self: &Arc<Self>,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> std::io::Result<()> {
        let (out, messages) = mpsc::channel(WAITING_LINES);
        let peer = Arc::new(Peer {
            gateway: self.clone(),
            principal: Principal::local(),
            out,
            client: Mutex::default(),
            catalog_by: OnceLock::new(),
            running: Mutex::default(),
            busy: AtomicUsize::new(0),
            requests: TaskTracker::new(),
            streams: TaskTracker::new(),
            stop: self.stop.child_token(),
            cut_off: CancellationToken::new(),
        });
        let writers = TaskTracker::new();
        let writing = writers.spawn(write_lines(output, messages));
        let read = peer.stop.clone().run_until_cancelled(peer.read_lines(input)).await;
        // After the end of the input, running requests are still answered, but the client can answer no requests.
        let client = peer.client.lock().take();
        peer.requests.close();
        if let Some(client) = &client {
            client.refuse_questions();
        }
        // A signal to stop after the end of the input cancels the wait.
        let (patience, gives_up) = match &read {
            Some(_) => (LAST_ANSWERS, peer.stop.clone()),
            None => (LAST_MOMENTS, CancellationToken::new()),
        };
        if self.service.is_starting() {
            // The time that a request waits for the start of the board does not count.
            let waiting = self.service.catalog_by(peer.catalog_by());
            tokio::select! {
                () = peer.requests.wait() => {}
                _ = waiting => {}
            }
        }
        let answered = tokio::time::timeout(patience, peer.requests.wait());
        let _unanswered = gives_up.run_until_cancelled(answered).await;
        peer.cut_off.cancel();
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
        let mut lines = LineReader::new(input);
        while let Some(line) = lines.next().await? {
            match line {
                Ok(line) => self.take(line).await,
                Err(bad) => self.refuse(None, code::PARSE_ERROR, bad.to_string()).await,
            }
        }
        Ok(())
    }

    async fn send(&self, message: String) {
        // The output is closed, so nobody reads this message.
        let _gone = self.out.send(message).await;
    }

    /// Sends the response to a request: nothing if its client cancelled it, an error if the program's end cut it off.
    async fn send_last(&self, id: &str, answer: Option<String>) {
        match answer {
            Some(answer) => self.send(answer).await,
            None if self.cut_off.is_cancelled() => {
                let message = "the request was cancelled because the program ends";
                self.refuse(Some(id), CANCELLED, message).await;
            }
            None => {}
        }
    }

    async fn refuse(&self, id: Option<&str>, code: i64, message: impl Into<String>) {
        self.send(error_response(id, &ErrorBody::new(code, message))).await;
    }

    /// Reserves running requests; `None` beyond [`MAX_RUNNING`].
    fn room(self: &Arc<Self>, requests: usize) -> Option<Room> {
        let before = self.busy.fetch_add(requests, Ordering::Relaxed);
        let room = Room { peer: self.clone(), requests };
        (before + requests <= MAX_RUNNING).then_some(room)
    }

    async fn take(self: &Arc<Self>, line: &str) {
        if line.trim_ascii_start().starts_with('[') {
            return self.take_batch(line).await;
        }
        let message = match read_message(line.as_bytes()) {
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
            RpcMessage::Response { id, outcome } => {
                if let Some(client) = self.client() {
                    client.take_answer(id, outcome);
                }
            }
            RpcMessage::Notification { method, params } => self.take_notification(&method, params),
            RpcMessage::Request { id, method, params } => {
                let params = params.unwrap_or("{}");
                match claimed {
                    EraClaim::Handshake => self.initialize(id, params).await,
                    EraClaim::Stateless => self.stateless_request(id, &method, params).await,
                    EraClaim::Session => self.session_request(id, &method, params).await,
                }
            }
        }
    }

    /// Responds to a batch (protocol versions before 2025-06-18) with one array of responses.
    async fn take_batch(self: &Arc<Self>, line: &str) {
        let parts =
            if is_too_deep(line.as_bytes()) { None } else { serde_json::from_str(line).ok() };
        let Some(parts): Option<Vec<&RawValue>> = parts else {
            let message = "the message is not JSON, or nested too deep";
            return self.refuse(None, code::PARSE_ERROR, message).await;
        };
        let client = self.client().filter(|client| BATCHING.contains(&client.version));
        let Some(client) = client else {
            let message = "batches are not part of this protocol version";
            return self.refuse(None, code::INVALID_REQUEST, message).await;
        };
        client.touch();
        if parts.is_empty() || parts.len() > MAX_BATCH {
            let message = format!("a batch has from 1 to {MAX_BATCH} messages");
            return self.refuse(None, code::INVALID_REQUEST, message).await;
        }
        let Some(room) = self.room(parts.len()) else {
            return self.refuse(None, code::INTERNAL_ERROR, TOO_MANY).await;
        };
        let parts: Vec<String> = parts.into_iter().map(|part| part.get().to_owned()).collect();
        self.requests.spawn(async move {
            let gateway = &room.peer.gateway;
            if gateway.service.is_starting() {
                let waiting = gateway.service.catalog_by(room.peer.catalog_by());
                if Box::pin(waiting).await == Err(StartFailed) {
                    let message = StartFailed::MESSAGE;
                    return room.peer.refuse(None, code::INTERNAL_ERROR, message).await;
                }
            }
            let answers = parts
                .iter()
                .map(|part| gateway.batch_response(&client, &room.peer.principal, part, None));
            let answers = futures::future::join_all(answers).await;
            let answers: Vec<String> = answers.into_iter().flatten().collect();
            if !answers.is_empty() {
                room.peer.send(format!("[{}]", answers.join(","))).await;
            }
        });
    }

    fn client(&self) -> Option<Arc<Client>> {
        self.client.lock().clone()
    }

    fn running(&self) -> parking_lot::MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.running.lock()
    }

    fn take_notification(&self, method: &str, params: Option<&str>) {
        if let Some(client) = self.client() {
            self.gateway.take_notification(&client, method, params);
        }
        if method == "notifications/cancelled"
            && let Ok(params) = Members::read(params.unwrap_or("{}"))
            && let Some(token) =
                params.get("requestId").and_then(|id| self.running().get(id).cloned())
        {
            token.cancel();
        }
    }

    /// Until when requests wait for tools while the board starts. It is one time for all requests: a client waits for its
    /// handshake and its first list in sequence.
    fn catalog_by(&self) -> Instant {
        *self.catalog_by.get_or_init(|| Instant::now() + self.gateway.plan().startup_wait)
    }

    async fn initialize(self: &Arc<Self>, id: &str, params: &str) {
        if self.gateway.service.is_starting() {
            // The response contains no tools; later requests wait for those.
            let soon = self.catalog_by().min(Instant::now() + INTRODUCTION_WAIT);
            let waiting = self.gateway.service.catalog_within(soon);
            if waiting.await == Err(StartFailed) {
                return self.refuse(Some(id), code::INTERNAL_ERROR, StartFailed::MESSAGE).await;
            }
        }
        let params = Members::read(params).unwrap_or_default();
        let scope = self.gateway.open_scope.clone();
        let promise = Promise::EndsWithConnection;
        let owner = &self.principal;
        let made = match self.gateway.initialize(&params, owner, scope, None, promise).await {
            Ok(made) => made,
            Err(why) => {
                let message = match why {
                    NotAdmitted::Full => "there are too many sessions".into(),
                    NotAdmitted::Store(error) => error.to_string(),
                };
                return self.refuse(Some(id), code::INTERNAL_ERROR, &message).await;
            }
        };
        let (client, result) = made;
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
        let before = self.client.lock().replace(client);
        if let Some(before) = before {
            self.gateway.forget(&before);
        }
        self.send(Outcome::text(result).message(id)).await;
    }

    async fn session_request(self: &Arc<Self>, id: &str, method: &str, params: &str) {
        let Some(client) = self.client() else {
            if method == "ping" {
                return self.send(Outcome::text("{}").message(id)).await;
            }
            let message = "begin with `initialize`, or use protocol version 2026-07-28";
            return self.refuse(Some(id), code::INVALID_REQUEST, message).await;
        };
        client.touch();
        let Some(room) = self.room(1) else {
            return self.refuse(Some(id), code::INTERNAL_ERROR, TOO_MANY).await;
        };
        let Some(cancelled) = client.begin(id) else {
            return self.refuse(Some(id), code::INVALID_REQUEST, STILL_RUNNING).await;
        };
        let context = context_of(&self.gateway, &client, &self.principal, true);
        let (id, method, params) = (id.to_owned(), method.to_owned(), params.to_owned());
        self.requests.spawn(async move {
            let answering = room.peer.answer(&id, context, &method, &params, false);
            let answer = cancelled.run_until_cancelled(answering).await;
            // Before the response is sent: after it, the client may use the id again.
            client.finish(&id);
            room.peer.send_last(&id, answer).await;
        });
    }

    async fn stateless_request(self: &Arc<Self>, id: &str, method: &str, params: &str) {
        let read = Members::read(params).map_err(|error| error.to_string());
        let checked = match &read {
            Ok(members) => stateless_era::check(method, members, None),
            Err(reason) => Err(Outcome::error(code::INVALID_PARAMS, reason.clone())),
        };
        let meta = match checked {
            Ok(meta) => meta,
            Err(outcome) => return self.send(outcome.message(id)).await,
        };
        if self.running().contains_key(id) {
            return self.refuse(Some(id), code::INVALID_REQUEST, STILL_RUNNING).await;
        }
        let Some(room) = self.room(1) else {
            return self.refuse(Some(id), code::INTERNAL_ERROR, TOO_MANY).await;
        };
        let scope = self.gateway.open_scope.clone();
        let context =
            match self.gateway.stateless_context(&self.principal, scope, None, &meta, true).await {
                Ok(context) => context,
                Err(error) => {
                    return self.refuse(Some(id), code::INTERNAL_ERROR, &error.to_string()).await;
                }
            };
        // A stream gets a final response at the end instead of being cancelled.
        let (tracker, token) = if method == "subscriptions/listen" {
            (&self.streams, CancellationToken::new())
        } else {
            (&self.requests, self.cut_off.child_token())
        };
        self.running().insert(id.to_owned(), token.clone());
        let (id, method, params) = (id.to_owned(), method.to_owned(), params.to_owned());
        tracker.spawn(async move {
            let answering = room.peer.answer(&id, context, &method, &params, true);
            let answer = token.run_until_cancelled(answering).await;
            room.peer.running().remove(&id);
            room.peer.send_last(&id, answer).await;
        });
    }

    /// Runs one request, sends its notifications and returns its response.
    async fn answer(
        &self,
        id: &str,
        context: RequestContext,
        method: &str,
        params: &str,
        is_stateless: bool,
    ) -> String {
        let read = Members::read(params).map_err(|error| error.to_string()).and_then(|params| {
            Meta::of(&params).map(|meta| (params, meta)).map_err(|fault| fault.0)
        });
        let (params, meta) = match read {
            Ok(read) => read,
            Err(reason) => return Outcome::error(code::INVALID_PARAMS, reason).message(id),
        };
        if self.gateway.service.is_starting() && method != "ping" {
            let waiting = match method {
                "server/discover" => {
                    let soon = self.catalog_by().min(Instant::now() + INTRODUCTION_WAIT);
                    Box::pin(self.gateway.service.catalog_within(soon)).await
                }
                _ => Box::pin(self.gateway.service.catalog_by(self.catalog_by())).await,
            };
            if waiting == Err(StartFailed) {
                return Outcome::error(code::INTERNAL_ERROR, StartFailed::MESSAGE).message(id);
            }
        }
        let incoming = Incoming { method, params, meta, headers: None };
        match self.gateway.respond(context.clone(), incoming).await {
            Dispatch::Now(before, outcome) => {
                for message in before {
                    self.send(message).await;
                }
                outcome.message(id)
            }
            Dispatch::PendingInputs(outcome) => outcome.message(id),
            Dispatch::Listen(wanted) => {
                debug_assert!(is_stateless, "`subscriptions/listen` is stateless-era only");
                self.listen(id, &context, &wanted).await
            }
            Dispatch::ResponseWriter(mut exchange) => loop {
                match exchange.next().await {
                    ExchangeStep::Message(message) => self.send(message).await,
                    ExchangeStep::Done(outcome) => return outcome.message(id),
                    ExchangeStep::Park { state, outcome } => {
                        self.gateway.parked.put(state, exchange);
                        return outcome.message(id);
                    }
                }
            },
        }
    }

    /// Sends notifications until the program stops or the client is too slow and must listen again. Returns the response.
    async fn listen(&self, id: &str, context: &RequestContext, wanted: &ListenRequest) -> String {
        let Some((mut changes, _place)) =
            self.gateway.listeners.add(&self.gateway, id, context, wanted)
        else {
            return Outcome::error(code::INTERNAL_ERROR, "too many streams are open").message(id);
        };
        self.gateway.watch_for(context, wanted).await;
        let meta = subscription_meta(id);
        let params = format!("{{\"notifications\":{},{meta}}}", wanted.text());
        self.send(notification("notifications/subscriptions/acknowledged", Some(&params))).await;
        loop {
            tokio::select! {
                biased;
                change = changes.recv() => match change {
                    Some(message) => self.send(message).await,
                    None => break,
                },
                () = self.stop.cancelled() => break,
            }
        }
        Outcome::text(format!("{{\"resultType\":\"complete\",{meta}}}")).message(id)
    }
}
