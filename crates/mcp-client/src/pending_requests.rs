//! Where the requests of one connection meet what its server says: who waits for which answer, and whose a
//! question is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard_model::{Era, JsonText};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::envelope::{
    ResponseError, ResponseResult, ServerMessage, cancellation_text, request_text, response_text,
};
use crate::error::{ConnectError, ConnectErrorKind};
use crate::events::{EventSender, Waits};
use crate::flow_limit::FlowLimit;
use crate::http_faults::CLOSED;
use crate::http_transport::HttpWire;
use crate::request::{RequestOrigin, RpcError, UpstreamEvent, UpstreamNews, UpstreamRequest};
use crate::request_ids::RequestIds;
use crate::sse::Posts;

/// News that wait for their reader; further ones are dropped.
const KEPT_NEWS: usize = 1024;

/// Questions of a server that wait for an answer at the same time. Further ones get none.
pub(crate) const OPEN_QUESTIONS: usize = 64;

/// Modern notifications belong to a subscription, which rmcp keeps.
pub(crate) const SUBSCRIBED: &str = "io.modelcontextprotocol/subscriptionId";

/// The user has come back from a page that a question had sent them to.
pub(crate) const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";

pub(crate) const NOBODY_ANSWERS: &str = "the caller of this server cannot answer questions";
const NOBODY_CALLS: &str = "nobody is calling this server at the moment, so nobody can answer";
const SEVERAL_CALL: &str = "several clients use this server at the same time, and it cannot be told whose question this is; \
    ask again when the other calls are done, reach the server over streamable HTTP, or give each session a connection of \
    its own with `connection: per_session`";
const WENT_AWAY: &str = "the caller went away without an answer";

/// How messages reach the server.
#[derive(Debug)]
pub(crate) enum MessageSink {
    /// Lines to a child, written by a task of their own so that none is ever written by half.
    Lines(mpsc::Sender<Bytes>),
    /// POSTs of an HTTP+SSE session.
    Posts(Posts),
    Http(Arc<HttpWire>),
}

/// How long a cancellation may be on its way.
const LONGEST_CANCELLING: Duration = Duration::from_secs(5);

/// What a server must be told again when it has lost our session.
#[derive(Debug, Default, Clone)]
pub(crate) struct KeptAnswer {
    pub(crate) watched: BTreeSet<String>,
    /// Those of which nobody knows whether the server reports them: it was told something and did not answer.
    pub(crate) unsure: BTreeSet<String>,
    /// Those that it does not want to report.
    pub(crate) refused: BTreeSet<String>,
    pub(crate) log_level: Option<String>,
}

/// One per connection.
#[derive(Debug)]
pub(crate) struct PendingRequests {
    next: AtomicU64,
    ids: RequestIds,
    floor: Mutex<InFlight>,
    flow: Mutex<Unasked>,
    kept: Mutex<KeptAnswer>,
    news: mpsc::Sender<UpstreamNews>,
    unread: Mutex<Option<mpsc::Receiver<UpstreamNews>>>,
    /// Notified when the list of tools may have changed.
    changed: Arc<Notify>,
    /// Where that goes which belongs to no running call, when the connection is that of one session.
    session: Mutex<Option<EventSender>>,
    line: OnceLock<(MessageSink, Era)>,
    questions: Arc<Semaphore>,
    /// Those that somebody thinks about, by the server's id, and how they are withdrawn.
    asked: Mutex<HashMap<String, Arc<CancellationToken>>>,
    /// Cancellations on their way to the server.
    cancelling: TaskTracker,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// What comes over the one pipe or stream of a connection without being an answer.
#[derive(Debug)]
struct Unasked {
    limit: FlowLimit,
    read_on: Option<Instant>,
}

/// The requests in flight, oldest first.
#[derive(Debug, Default)]
struct InFlight {
    open: BTreeMap<u64, PendingCaller>,
    /// Why nothing more will be answered.
    ended: Option<ConnectError>,
}

#[derive(Debug)]
struct PendingCaller {
    asker: RequestOrigin,
    origin: Option<Arc<str>>,
    events: Option<EventSender>,
    /// Where answers do not come on the request's own stream.
    answer: Option<oneshot::Sender<ResponseResult>>,
}

impl PendingRequests {
    pub(crate) fn new(tasks: TaskTracker, stop: CancellationToken, changed: Arc<Notify>) -> Self {
        let (news, unread) = mpsc::channel(KEPT_NEWS);
        Self {
            next: AtomicU64::new(1),
            ids: RequestIds::default(),
            floor: Mutex::default(),
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

    /// Opens the way to the server, after the handshake.
    pub(crate) fn connect(&self, outlet: MessageSink, era: Era) {
        // There is one handshake per connection.
        let _once = self.line.set((outlet, era));
    }

    /// The ids of this connection's requests.
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

    fn floor<T>(&self, look: impl FnOnce(&mut InFlight) -> T) -> T {
        look(&mut self.floor.lock())
    }

    fn asked<T>(&self, look: impl FnOnce(&mut HashMap<String, Arc<CancellationToken>>) -> T) -> T {
        look(&mut self.asked.lock())
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        ask: &UpstreamRequest,
        events: Option<EventSender>,
        asker: RequestOrigin,
    ) -> ResponseResult {
        let number = self.next_number();
        let Some((outlet, era)) = self.line.get() else {
            return Err(ConnectError::new(ConnectErrorKind::Unreachable, CLOSED).into());
        };
        if let MessageSink::Http(wire) = outlet {
            return wire.ask(self, number, ask, events, asker).await;
        }
        let (answer, mut answered) = oneshot::channel();
        let caller =
            PendingCaller { asker, origin: ask.origin.clone(), events, answer: Some(answer) };
        let text = request_text(ask, &self.ids.id(number), *era);
        let seat = self.enter(number, caller)?;
        let sending = outlet.send(text);
        let outcome = tokio::select! {
            biased;
            outcome = &mut answered => outcome,
            sent = sending => match sent {
                Ok(()) => answered.await,
                Err(error) => Ok(Err(self.ended().unwrap_or(error).into())),
            },
        };
        seat.leave();
        outcome.unwrap_or_else(|_| {
            let lost = || ConnectError::new(ConnectErrorKind::Unreachable, CLOSED);
            Err(self.ended().unwrap_or_else(lost).into())
        })
    }

    /// Takes part in the question whose a question is; the answer comes elsewhere.
    pub(crate) fn attend(
        self: &Arc<Self>,
        number: u64,
        ask: &UpstreamRequest,
        events: Option<EventSender>,
        asker: RequestOrigin,
    ) -> Result<RequestGuard, ConnectError> {
        self.enter(
            number,
            PendingCaller { asker, origin: ask.origin.clone(), events, answer: None },
        )
    }

    fn enter(
        self: &Arc<Self>,
        number: u64,
        caller: PendingCaller,
    ) -> Result<RequestGuard, ConnectError> {
        self.floor(|floor| {
            if let Some(error) = &floor.ended {
                return Err(error.clone());
            }
            floor.open.insert(number, caller);
            Ok(())
        })?;
        Ok(RequestGuard { desk: self.clone(), number, is_left: false })
    }

    fn ended(&self) -> Option<ConnectError> {
        self.floor(|floor| floor.ended.clone())
    }

    /// Nothing more will come: whoever waits for an answer is told so. The first reason counts.
    pub(crate) fn end(&self, error: ConnectError) {
        let waiting = self.floor(|floor| {
            floor.ended.get_or_insert(error);
            std::mem::take(&mut floor.open)
        });
        // They ask why when their answer is dropped.
        drop(waiting);
    }

    /// Takes a message that is for us or for a caller. `false` leaves it to rmcp.
    pub(crate) fn take(self: &Arc<Self>, whole: &Bytes) -> bool {
        let Ok(message) = ServerMessage::read(whole) else {
            self.count_unasked();
            return false;
        };
        if let Some(number) = message.answers(&self.ids) {
            let caller = self.floor(|floor| floor.open.remove(&number));
            if let Some(answer) = caller.and_then(|caller| caller.answer) {
                let _no_longer_wanted = answer.send(message.outcome(whole));
            }
            return true;
        }
        self.count_unasked();
        match (message.id, message.method.as_deref()) {
            (None, Some("notifications/progress")) => {
                let Some(number) = message.progress_of(&self.ids) else { return false };
                let events = self.floor(|floor| floor.open.get(&number)?.events.clone());
                pass_on(events.as_ref(), message.kept_params().map(UpstreamEvent::Progress));
                true
            }
            (None, Some("notifications/message")) => {
                match (self.whose().ok(), message.kept_params()) {
                    (Some(events), params) => {
                        pass_on(Some(&events), params.map(UpstreamEvent::Log));
                    }
                    (None, Some(params)) => self.tell(UpstreamNews::Log(params)),
                    (None, None) => {}
                }
                true
            }
            (None, Some(ELICITATION_COMPLETE)) => {
                let params = message.kept_params().map(UpstreamEvent::ElicitationComplete);
                pass_on(self.whose().ok().as_ref(), params);
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

    /// Counts a message that answers nothing.
    fn count_unasked(&self) {
        let mut flow = self.flow.lock();
        flow.read_on = flow.limit.take(1);
    }

    /// When to read on from a server that sends faster than it may, if that is not now.
    pub(crate) fn read_on(&self) -> Option<Instant> {
        self.flow.lock().read_on.take()
    }

    /// A notification that belongs to no request.
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

    /// The server no longer wants an answer; `false` when nobody was asked.
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

    /// Somebody forgot what we know of its lists.
    pub(crate) fn suspect_lists(&self) {
        self.kept(|kept| kept.refused.clear());
        self.changed.notify_one();
        self.tell(UpstreamNews::PromptsChanged);
        self.tell(UpstreamNews::ResourcesChanged);
    }

    /// Receives what the server sends while no call runs, on a connection of one session.
    pub(crate) fn listen_for_session(&self, events: EventSender) {
        *self.session.lock() = Some(events);
    }

    fn session_events(&self) -> Option<EventSender> {
        self.session.lock().clone()
    }

    /// Sends a notification. A server that is gone needs none, and one that is stuck takes none.
    pub(crate) async fn notify(&self, text: String) {
        if let Some((outlet, _)) = self.line.get() {
            let _gone = tokio::time::timeout(LONGEST_CANCELLING, outlet.send(text)).await;
        }
    }

    /// The receiver of a question that names no request: the caller of the newest one, while all are of one origin.
    /// Without a running call, the client of the session that the connection belongs to.
    fn whose(&self) -> Result<EventSender, &'static str> {
        let session = self.session_events();
        self.floor(|floor| {
            let mut callers =
                floor.open.values().filter(|caller| caller.asker == RequestOrigin::Caller).rev();
            let Some(newest) = callers.next() else { return session.ok_or(NOBODY_CALLS) };
            let is_of_another =
                |caller: &PendingCaller| caller.origin.is_none() || caller.origin != newest.origin;
            if callers.any(is_of_another) {
                return Err(SEVERAL_CALL);
            }
            newest.events.clone().ok_or(NOBODY_ANSWERS)
        })
    }

    /// Passes a question on to whose it is, and the answer back, while the connection lives.
    fn answer_by_itself(self: &Arc<Self>, message: &ServerMessage<'_>) {
        let Ok(permit) = self.questions.clone().try_acquire_owned() else { return };
        // Roots belong to the session and not to a call, which may end before its client has answered.
        let is_about_roots = message.method.as_deref() == Some("roots/list");
        let session = self.session_events().filter(|_| is_about_roots);
        let whom = session.map_or_else(|| self.whose(), Ok);
        let Some(question) = Question::put(self, whom.as_ref().map_err(|reason| *reason), message)
        else {
            return;
        };
        let (desk, stop) = (self.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            stop.run_until_cancelled(desk.deliver(question, permit)).await;
        });
    }

    async fn deliver(&self, question: Question, _permit: OwnedSemaphorePermit) {
        if let (Some(text), Some((outlet, _))) = (question.answer().await, self.line.get()) {
            // A server that is gone waits for no answer.
            let _gone = outlet.send(text).await;
        }
    }
}

/// Passes something on to a caller who listens; one that does not keep up misses it.
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

/// A question of a server, on its way to somebody or refused.
#[derive(Debug)]
pub(crate) struct Question {
    id: String,
    is_about_roots: bool,
    asked: Result<Asked, &'static str>,
}

/// One that somebody thinks about. Meanwhile no time passes for the server.
#[derive(Debug)]
struct Asked {
    answer: oneshot::Receiver<Result<JsonText, RpcError>>,
    waits: Waits,
    open: OpenRequest,
}

/// Its place among those that can be withdrawn.
#[derive(Debug)]
struct OpenRequest {
    desk: Arc<PendingRequests>,
    id: String,
    withdrawn: Arc<CancellationToken>,
}

impl OpenRequest {
    fn new(desk: &Arc<PendingRequests>, id: &str) -> Self {
        let withdrawn = Arc::new(CancellationToken::new());
        desk.asked(|asked| asked.insert(id.to_owned(), withdrawn.clone()));
        Self { desk: desk.clone(), id: id.to_owned(), withdrawn }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.desk.asked(|asked| {
            // A server that has forgotten us counts anew: then the id is that of another question by now.
            let is_ours = asked.get(&self.id).is_some_and(|it| Arc::ptr_eq(it, &self.withdrawn));
            if is_ours {
                asked.remove(&self.id);
            }
        });
    }
}

impl Question {
    /// Puts the question to somebody. `None` is no question at all.
    pub(crate) fn put(
        desk: &Arc<PendingRequests>,
        whom: Result<&EventSender, &'static str>,
        message: &ServerMessage<'_>,
    ) -> Option<Self> {
        let (id, method) = (message.id?.get().to_owned(), message.method.as_deref()?);
        let is_about_roots = method == "roots/list";
        let asked = whom.and_then(|events| {
            let (reply, answer) = oneshot::channel();
            let params = message.kept_params();
            let question = UpstreamEvent::Question { method: method.to_owned(), params, reply };
            let asked = Asked { answer, waits: events.waits(), open: OpenRequest::new(desk, &id) };
            if events.tell(question) { Ok(asked) } else { Err(NOBODY_ANSWERS) }
        });
        Some(Self { id, is_about_roots, asked })
    }

    /// The message that answers it; none once the server has withdrawn it. Whoever was asked sees then that nobody
    /// waits for the reply.
    pub(crate) async fn answer(self) -> Option<String> {
        let reply = match self.asked {
            Ok(Asked { answer, waits, open }) => {
                let answer = open.withdrawn.run_until_cancelled(answer).await;
                drop(waits);
                answer?.unwrap_or_else(|_| Err(RpcError::internal(WENT_AWAY)))
            }
            // Whoever has nothing to show has no roots; that is an answer, and servers ask at any time.
            Err(_) if self.is_about_roots => Ok(JsonText::from(&serde_json::json!({"roots": []}))),
            Err(reason) => Err(RpcError::internal(reason)),
        };
        Some(response_text(&self.id, &reply))
    }
}

/// A request in flight. Dropped before it is left, the request is cancelled at the server.
#[derive(Debug)]
pub(crate) struct RequestGuard {
    desk: Arc<PendingRequests>,
    number: u64,
    is_left: bool,
}

impl RequestGuard {
    pub(crate) fn leave(mut self) {
        self.is_left = true;
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.desk.floor(|floor| floor.open.remove(&self.number));
        if self.is_left {
            return;
        }
        let (desk, text) = (self.desk.clone(), cancellation_text(&self.desk.ids.id(self.number)));
        self.desk.cancelling.spawn(async move {
            if let Some((outlet, _)) = desk.line.get() {
                // A server that is gone needs no cancellation, and one that is stuck takes none.
                let _gone = tokio::time::timeout(LONGEST_CANCELLING, outlet.send(text)).await;
            }
        });
    }
}

impl MessageSink {
    /// Sends a message that has no answer of its own.
    pub(crate) async fn send(&self, text: String) -> Result<(), ConnectError> {
        match self {
            Self::Lines(lines) => {
                let mut line = text;
                line.push('\n');
                let unread = || {
                    let message = "the process no longer reads its input";
                    ConnectError::new(ConnectErrorKind::Unreachable, message)
                };
                lines.send(line.into()).await.map_err(|_| unread())
            }
            Self::Posts(posts) => posts.send(text).await,
            Self::Http(wire) => wire.send(text).await,
        }
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
