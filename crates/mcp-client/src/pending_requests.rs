//! The pending requests of one connection: matches responses with requests, and attributes requests and notifications
//! of the server to callers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard_model::{ConnectError, ConnectErrorKind, Era, JsonText};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::envelope::{
    ResponseError, ResponseResult, ServerMessage, cancellation_text, request_text, response_text,
};
use crate::events::{EventSender, Waits};
use crate::flow_limit::FlowLimit;
use crate::http_faults::CLOSED;
use crate::message_sink::MessageSink;
use crate::request::{
    CallerHeaders, RequestOrigin, RpcError, UpstreamEvent, UpstreamNews, UpstreamRequest,
};
use crate::request_ids::RequestIds;

/// Maximum number of unread notifications; further ones are dropped.
const KEPT_NEWS: usize = 1024;

/// Maximum number of server requests that are answered concurrently. Further ones get no response.
pub(crate) const OPEN_QUESTIONS: usize = 64;

/// The `_meta` key of notifications of the stateless era. They belong to a subscription, which rmcp owns.
pub(crate) const SUBSCRIBED: &str = "io.modelcontextprotocol/subscriptionId";

/// Sent when the user has finished the interaction at the URL of an elicitation.
pub(crate) const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";

pub(crate) const NOBODY_ANSWERS: &str = "the client does not answer requests of servers";
const NOBODY_CALLS: &str =
    "no client is calling this server at the moment, so its request cannot be answered";
const SEVERAL_CALL: &str = "several clients use this server at the same time, and the request cannot be attributed to one of them; \
    ask again when the other calls are done, reach the server over streamable HTTP, or give each session a connection of \
    its own with `connection: per_session`";
const WENT_AWAY: &str = "the client disconnected without an answer";

/// Time limit for sending a cancellation.
const LONGEST_CANCELLING: Duration = Duration::from_secs(5);

/// Subscriptions and log level, which are sent again when the server has lost the session.
#[derive(Debug, Default, Clone)]
pub(crate) struct KeptAnswer {
    pub(crate) watched: BTreeSet<String>,
    /// Resources whose subscription state is unknown, because the server did not answer.
    pub(crate) unsure: BTreeSet<String>,
    /// Resources that the server refused to subscribe to.
    pub(crate) refused: BTreeSet<String>,
    pub(crate) log_level: Option<String>,
}

/// One per connection.
#[derive(Debug)]
pub(crate) struct PendingRequests {
    next: AtomicU64,
    ids: RequestIds,
    in_flight: Mutex<InFlight>,
    flow: Mutex<Unasked>,
    kept: Mutex<KeptAnswer>,
    news: mpsc::Sender<UpstreamNews>,
    unread: Mutex<Option<mpsc::Receiver<UpstreamNews>>>,
    /// Notified when the tool list may have changed.
    changed: Arc<Notify>,
    /// Receives messages that belong to no running call, if the connection belongs to one session.
    session: Mutex<Option<EventSender>>,
    line: OnceLock<(Arc<dyn MessageSink>, Era)>,
    questions: Arc<Semaphore>,
    /// Server requests that are being answered, by the server's id, with the token that withdraws them.
    asked: Mutex<HashMap<String, Arc<CancellationToken>>>,
    /// Cancellations that are being sent.
    cancelling: TaskTracker,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// The rate limit of messages that answer no request.
#[derive(Debug)]
struct Unasked {
    limit: FlowLimit,
    read_on: Option<Instant>,
}

/// The requests in flight, oldest first.
#[derive(Debug, Default)]
struct InFlight {
    open: BTreeMap<u64, PendingCaller>,
    /// Why the connection ended; no more responses arrive then.
    ended: Option<ConnectError>,
}

#[derive(Debug)]
struct PendingCaller {
    asker: RequestOrigin,
    origin: Option<Arc<str>>,
    events: Option<EventSender>,
    /// The headers of further messages about the request.
    headers: Option<CallerHeaders>,
    /// Receives the response; `None` if it arrives on the request's own HTTP body.
    answer: Option<oneshot::Sender<ResponseResult>>,
}

impl PendingRequests {
    pub(crate) fn new(tasks: TaskTracker, stop: CancellationToken, changed: Arc<Notify>) -> Self {
        let (news, unread) = mpsc::channel(KEPT_NEWS);
        Self {
            next: AtomicU64::new(1),
            ids: RequestIds::default(),
            in_flight: Mutex::default(),
            flow: Mutex::new(Unasked { limit: FlowLimit::messages(), read_on: None }),
            kept: Mutex::default(),
            news,
            unread: Mutex::new(Some(unread)),
            changed,
            session: Mutex::default(),
            line: OnceLock::new(),
            questions: Arc::new(Semaphore::new(OPEN_QUESTIONS)),
            asked: Mutex::default(),
            cancelling: TaskTracker::new(),
            tasks,
            stop,
        }
    }

    /// Sets the route to the server, after the handshake.
    pub(crate) fn connect(&self, sink: Arc<dyn MessageSink>, era: Era) {
        // There is one handshake per connection.
        let _once = self.line.set((sink, era));
    }

    /// The id generator of this connection's requests.
    pub(crate) fn ids(&self) -> &RequestIds {
        &self.ids
    }

    /// The number of a new request.
    pub(crate) fn next_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn changed(&self) -> &Arc<Notify> {
        &self.changed
    }

    pub(crate) fn cancelling(&self) -> &TaskTracker {
        &self.cancelling
    }

    /// Cancelled when the connection ends.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    pub(crate) fn take_news(&self) -> Option<mpsc::Receiver<UpstreamNews>> {
        self.unread.lock().take()
    }

    pub(crate) fn tell(&self, news: UpstreamNews) {
        let _full_or_unread = self.news.try_send(news);
    }

    pub(crate) fn kept<T>(&self, look: impl FnOnce(&mut KeptAnswer) -> T) -> T {
        look(&mut self.kept.lock())
    }

    fn in_flight<T>(&self, look: impl FnOnce(&mut InFlight) -> T) -> T {
        look(&mut self.in_flight.lock())
    }

    fn asked<T>(&self, look: impl FnOnce(&mut HashMap<String, Arc<CancellationToken>>) -> T) -> T {
        look(&mut self.asked.lock())
    }

    /// Sends a request and waits for its response, which arrives among all messages of the server.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        ask: &UpstreamRequest,
        events: Option<EventSender>,
        asker: RequestOrigin,
    ) -> ResponseResult {
        let number = self.next_number();
        let Some((sink, era)) = self.line.get() else {
            return Err(ConnectError::new(ConnectErrorKind::Unreachable, CLOSED).into());
        };
        let (answer, mut answered) = oneshot::channel();
        let headers = ask.caller_headers.clone();
        let origin = ask.origin.clone();
        let caller = PendingCaller { asker, origin, events, headers, answer: Some(answer) };
        let text = request_text(ask, &self.ids.id(number), *era);
        let guard = self.enter(number, caller)?;
        let sending = sink.send(text, ask.caller_headers.clone());
        let outcome = tokio::select! {
            biased;
            outcome = &mut answered => outcome,
            sent = sending => match sent {
                Ok(()) => answered.await,
                Err(error) => Ok(Err(self.ended().unwrap_or(error).into())),
            },
        };
        guard.leave();
        outcome.unwrap_or_else(|_| {
            let lost = || ConnectError::new(ConnectErrorKind::Unreachable, CLOSED);
            Err(self.ended().unwrap_or_else(lost).into())
        })
    }

    /// Registers the request for attributing server-initiated requests; its response arrives on the HTTP body.
    pub(crate) fn attend(
        self: &Arc<Self>,
        number: u64,
        ask: &UpstreamRequest,
        events: Option<EventSender>,
        asker: RequestOrigin,
    ) -> Result<RequestGuard, ConnectError> {
        let headers = ask.caller_headers.clone();
        let origin = ask.origin.clone();
        self.enter(number, PendingCaller { asker, origin, events, headers, answer: None })
    }

    fn enter(
        self: &Arc<Self>,
        number: u64,
        caller: PendingCaller,
    ) -> Result<RequestGuard, ConnectError> {
        let headers = caller.headers.clone();
        self.in_flight(|in_flight| {
            if let Some(error) = &in_flight.ended {
                return Err(error.clone());
            }
            in_flight.open.insert(number, caller);
            Ok(())
        })?;
        Ok(RequestGuard { pending: self.clone(), number, headers, is_left: false })
    }

    fn ended(&self) -> Option<ConnectError> {
        self.in_flight(|in_flight| in_flight.ended.clone())
    }

    /// Ends the connection: all pending requests fail. The first reason counts.
    pub(crate) fn end(&self, error: ConnectError) {
        let waiting = self.in_flight(|in_flight| {
            in_flight.ended.get_or_insert(error);
            std::mem::take(&mut in_flight.open)
        });
        // Their waiters read the reason when the sender is dropped.
        drop(waiting);
    }

    /// Handles a message for Switchboard or a caller. Returns `false` for a message that rmcp has to handle.
    pub(crate) fn take(self: &Arc<Self>, whole: &Bytes) -> bool {
        let Ok(message) = ServerMessage::read(whole) else {
            self.count_unasked();
            return false;
        };
        if let Some(number) = message.answers(&self.ids) {
            let caller = self.in_flight(|in_flight| in_flight.open.remove(&number));
            if let Some(answer) = caller.and_then(|caller| caller.answer) {
                let _no_longer_wanted = answer.send(message.outcome(whole));
            }
            return true;
        }
        self.count_unasked();
        match (message.id, message.method.as_deref()) {
            (None, Some("notifications/progress")) => {
                let Some(number) = message.progress_of(&self.ids) else { return false };
                let events =
                    self.in_flight(|in_flight| in_flight.open.get(&number)?.events.clone());
                pass_on(events.as_ref(), message.kept_params().map(UpstreamEvent::Progress));
                true
            }
            (None, Some("notifications/message")) => {
                match (self.unattributed_receiver().ok(), message.kept_params()) {
                    (Some((events, _)), params) => {
                        pass_on(Some(&events), params.map(UpstreamEvent::Log));
                    }
                    (None, Some(params)) => self.tell(UpstreamNews::Log(params)),
                    (None, None) => {}
                }
                true
            }
            (None, Some(ELICITATION_COMPLETE)) => {
                let params = message.kept_params().map(UpstreamEvent::ElicitationComplete);
                let receiver = self.unattributed_receiver().ok();
                pass_on(receiver.as_ref().map(|(events, _)| events), params);
                true
            }
            (None, Some(_)) => self.hear(&message),
            (Some(_), Some(method)) if is_question(method) => {
                self.answer_by_itself(&message);
                true
            }
            _ => false,
        }
    }

    /// Counts a message that answers no request.
    fn count_unasked(&self) {
        let mut flow = self.flow.lock();
        flow.read_on = flow.limit.take(1);
    }

    /// When to read on from a server above its rate limit, if that is later than now.
    pub(crate) fn read_on(&self) -> Option<Instant> {
        self.flow.lock().read_on.take()
    }

    /// Handles a notification that belongs to no request. Returns `false` if rmcp has to handle it.
    pub(crate) fn hear(&self, message: &ServerMessage<'_>) -> bool {
        if message.params.is_some_and(|params| params.get().contains(SUBSCRIBED)) {
            return false;
        }
        match message.method.as_deref() {
            Some("notifications/cancelled") => return self.withdraw(message),
            Some("notifications/tools/list_changed") => self.changed.notify_one(),
            Some("notifications/prompts/list_changed") => self.tell(UpstreamNews::PromptsChanged),
            Some("notifications/resources/list_changed") => {
                self.kept(|kept| kept.refused.clear());
                self.tell(UpstreamNews::ResourcesChanged);
            }
            Some("notifications/resources/updated") => {
                let params = message.kept_params();
                if let Some((uri, params)) = params.and_then(|params| Some((uri(&params)?, params)))
                {
                    self.tell(UpstreamNews::ResourceUpdated { uri, params });
                }
            }
            _ => return false,
        }
        true
    }

    /// Withdraws a request that the server cancelled. Returns `false` if it is not pending.
    fn withdraw(&self, message: &ServerMessage<'_>) -> bool {
        #[derive(Deserialize)]
        struct Cancelled<'a> {
            #[serde(borrow, rename = "requestId")]
            id: &'a RawValue,
        }
        let params = message.params.map(RawValue::get).unwrap_or_default();
        let Ok(Cancelled { id }) = serde_json::from_str(params) else { return false };
        let withdrawn = self.asked(|asked| asked.remove(id.get()));
        withdrawn.inspect(|question| question.cancel()).is_some()
    }

    /// Reports all lists as changed, because the server has lost the session.
    pub(crate) fn suspect_lists(&self) {
        self.kept(|kept| kept.refused.clear());
        self.changed.notify_one();
        self.tell(UpstreamNews::PromptsChanged);
        self.tell(UpstreamNews::ResourcesChanged);
    }

    /// Sets the receiver of messages that the server sends while no call runs, on a connection of one session.
    pub(crate) fn listen_for_session(&self, events: EventSender) {
        *self.session.lock() = Some(events);
    }

    fn session_events(&self) -> Option<EventSender> {
        self.session.lock().clone()
    }

    /// Sends a notification; failures and timeouts are ignored.
    pub(crate) async fn notify(&self, text: String) {
        if let Some((sink, _)) = self.line.get() {
            let _gone = tokio::time::timeout(LONGEST_CANCELLING, sink.send(text, None)).await;
        }
    }

    /// The receiver of a server message that names no request: the caller of the newest request, if all requests in
    /// flight have the same origin. Without a running call, the client of the session that the connection belongs to. With
    /// the headers of the caller, for the reply.
    fn unattributed_receiver(&self) -> Result<(EventSender, Option<CallerHeaders>), &'static str> {
        let session = self.session_events();
        self.in_flight(|in_flight| {
            let mut callers = in_flight
                .open
                .values()
                .filter(|caller| caller.asker == RequestOrigin::Caller)
                .rev();
            let Some(newest) = callers.next() else {
                return session.map(|events| (events, None)).ok_or(NOBODY_CALLS);
            };
            let is_of_another =
                |caller: &PendingCaller| caller.origin.is_none() || caller.origin != newest.origin;
            if callers.any(is_of_another) {
                return Err(SEVERAL_CALL);
            }
            let events = newest.events.clone().ok_or(NOBODY_ANSWERS)?;
            Ok((events, newest.headers.clone()))
        })
    }

    /// Forwards a server request to its receiver, and sends the response, as long as the connection lives.
    fn answer_by_itself(self: &Arc<Self>, message: &ServerMessage<'_>) {
        let Ok(permit) = self.questions.clone().try_acquire_owned() else { return };
        // Roots belong to the session and not to a call, which may end before its client has answered.
        let is_about_roots = message.method.as_deref() == Some("roots/list");
        let session = self.session_events().filter(|_| is_about_roots);
        let whom =
            session.map_or_else(|| self.unattributed_receiver(), |events| Ok((events, None)));
        let events = whom.as_ref().map(|(events, _)| events).map_err(|reason| *reason);
        let Some(question) = Question::put(self, events, message) else { return };
        let headers = whom.ok().and_then(|(_, headers)| headers);
        let (pending, stop) = (self.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            stop.run_until_cancelled(pending.deliver(question, headers, permit)).await;
        });
    }

    async fn deliver(
        &self,
        question: Question,
        headers: Option<CallerHeaders>,
        _permit: OwnedSemaphorePermit,
    ) {
        if let (Some(text), Some((sink, _))) = (question.answer().await, self.line.get()) {
            // A server that is gone needs no response.
            let _gone = sink.send(text, headers).await;
        }
    }
}

/// Forwards an event to a caller, if there is one; a slow caller misses it.
pub(crate) fn pass_on(events: Option<&EventSender>, event: Option<UpstreamEvent>) {
    if let (Some(events), Some(event)) = (events, event) {
        let _full_or_gone = events.tell(event);
    }
}

pub(crate) fn is_question(method: &str) -> bool {
    matches!(method, "elicitation/create" | "sampling/createMessage" | "roots/list")
}

fn uri(params: &JsonText) -> Option<String> {
    #[derive(Deserialize)]
    struct Updated {
        uri: String,
    }
    Some(serde_json::from_str::<Updated>(params.as_str()).ok()?.uri)
}

/// A request of the server, forwarded to a receiver or refused.
#[derive(Debug)]
pub(crate) struct Question {
    id: String,
    is_about_roots: bool,
    asked: Result<Asked, &'static str>,
}

/// A forwarded request without a response yet. The time limits of the call are suspended for it.
#[derive(Debug)]
struct Asked {
    answer: oneshot::Receiver<Result<JsonText, RpcError>>,
    waits: Waits,
    open: OpenRequest,
}

/// Its registration among the requests that the server can withdraw.
#[derive(Debug)]
struct OpenRequest {
    pending: Arc<PendingRequests>,
    id: String,
    withdrawn: Arc<CancellationToken>,
}

impl OpenRequest {
    fn new(pending: &Arc<PendingRequests>, id: &str) -> Self {
        let withdrawn = Arc::new(CancellationToken::new());
        pending.asked(|asked| asked.insert(id.to_owned(), withdrawn.clone()));
        Self { pending: pending.clone(), id: id.to_owned(), withdrawn }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.pending.asked(|asked| {
            // After a lost session the server counts ids from the start, so the id may be that of a newer request.
            let is_ours = asked.get(&self.id).is_some_and(|it| Arc::ptr_eq(it, &self.withdrawn));
            if is_ours {
                asked.remove(&self.id);
            }
        });
    }
}

impl Question {
    /// Forwards the request to a receiver. `None` if the message is not a request.
    pub(crate) fn put(
        pending: &Arc<PendingRequests>,
        whom: Result<&EventSender, &'static str>,
        message: &ServerMessage<'_>,
    ) -> Option<Self> {
        let (id, method) = (message.id?.get().to_owned(), message.method.as_deref()?);
        let is_about_roots = method == "roots/list";
        let asked = whom.and_then(|events| {
            let (reply, answer) = oneshot::channel();
            let params = message.kept_params();
            let question = UpstreamEvent::Question { method: method.to_owned(), params, reply };
            let asked =
                Asked { answer, waits: events.waits(), open: OpenRequest::new(pending, &id) };
            if events.tell(question) { Ok(asked) } else { Err(NOBODY_ANSWERS) }
        });
        Some(Self { id, is_about_roots, asked })
    }

    /// The response to send; `None` if the server has withdrawn the request. The receiver notices that by the closed
    /// reply channel.
    pub(crate) async fn answer(self) -> Option<String> {
        let reply = match self.asked {
            Ok(Asked { answer, waits, open }) => {
                let answer = open.withdrawn.run_until_cancelled(answer).await;
                drop(waits);
                answer?.unwrap_or_else(|_| Err(RpcError::internal(WENT_AWAY)))
            }
            // Without a receiver there are no roots, which is a valid response; servers ask at any time.
            Err(_) if self.is_about_roots => Ok(JsonText::from(&serde_json::json!({"roots": []}))),
            Err(reason) => Err(RpcError::internal(reason)),
        };
        Some(response_text(&self.id, &reply))
    }
}

/// A request in flight. Dropping it before [`RequestGuard::leave`] cancels the request at the server.
#[derive(Debug)]
pub(crate) struct RequestGuard {
    pending: Arc<PendingRequests>,
    number: u64,
    headers: Option<CallerHeaders>,
    is_left: bool,
}

impl RequestGuard {
    pub(crate) fn leave(mut self) {
        self.is_left = true;
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.pending.in_flight(|in_flight| in_flight.open.remove(&self.number));
        if self.is_left {
            return;
        }
        let (pending, text) =
            (self.pending.clone(), cancellation_text(&self.pending.ids.id(self.number)));
        let headers = self.headers.take();
        self.pending.cancelling.spawn(async move {
            if let Some((sink, _)) = pending.line.get() {
                // Failures and timeouts are ignored: the server is gone or does not read.
                let sending = sink.send(text, headers);
                let _gone = tokio::time::timeout(LONGEST_CANCELLING, sending).await;
            }
        });
    }
}

impl From<&ResponseError> for ConnectError {
    fn from(failure: &ResponseError) -> Self {
        match failure {
            ResponseError::Lost(error) => error.clone(),
            ResponseError::Rpc(error) => {
                Self::new(ConnectErrorKind::Protocol, error.message.clone())
            }
        }
    }
}
