//! Sends requests to a streamable HTTP server and reads the responses, without rmcp.
//!
//! rmcp performs the handshake, holds the notification stream and replaces a lost session. Its current session is
//! learned from the traffic of its HTTP client.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, FuturesUnordered};
use futures::{FutureExt, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, PingRequest};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use sse_stream::{Error as SseError, Sse};
use switchboard_loopback::RetryPolicy;
use switchboard_model::{ConnectError, ConnectErrorKind, Era};
use switchboard_oauth::{Authorization, RequestAttempt, TokenVerdict};
use switchboard_outbound::USER_AGENT;
use switchboard_protocol::{encode_header, is_too_deep, quoted};
use tokio::sync::Semaphore;

use crate::bearer::BearerToken;
use crate::bounds::{MAX_MESSAGE_BYTES, QUOTED_BYTES};
use crate::envelope::{
    ResponseResult, ServerMessage, read_error, request_text, response_text, too_deep,
};
use crate::events::EventSender;
use crate::http_client::{ACCEPTED, EVENT_STREAM};
use crate::http_faults::{
    CLOSED, describe_answer, describe_non_rpc, describe_service_error, event_fault, with_oauth_hint,
};
use crate::http_sender::{HttpSender, RequestHeaders, UpstreamResponse};
use crate::message_sink::MessageSink;
use crate::pending_requests::{
    ELICITATION_COMPLETE, NOBODY_ANSWERS, OPEN_QUESTIONS, PendingRequests, Question, is_question,
    pass_on,
};
use crate::request::{CallerHeaders, RequestOrigin, RpcError, UpstreamEvent, UpstreamRequest};
use crate::upstream_session::{SessionSlot, UpstreamSession, VERSION};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Maximum number of consecutive resumptions of a response that bring no new event.
const RESUMES: usize = 4;
/// The default pause before a response is resumed; a server may request another one, up to the maximum.
const RESUME_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_RESUME_PAUSE: Duration = Duration::from_secs(30);
/// Maximum time for opening a new session.
const LONGEST_HEALING: Duration = Duration::from_secs(30);
/// How long to read on after the response, so that the stream ends and its connection can be reused.
const DRAINING: Duration = Duration::from_millis(50);

/// The constant parts of all requests, and the session.
#[derive(Debug)]
pub(crate) struct HttpWire {
    era: Era,
    sender: HttpSender,
    fixed: HeaderMap,
    /// The OAuth token of each request, if the server uses OAuth.
    authorization: Option<Arc<Authorization>>,
    /// The bearer token of each request, if it comes from a file.
    bearer: Option<Arc<BearerToken>>,
    session: Arc<SessionSlot>,
    /// The headers of the current session.
    prepared: Mutex<Option<Prepared>>,
    /// The rmcp peer, which opens new sessions.
    peer: OnceLock<Peer<RoleClient>>,
    /// Lets one task replace a lost session; the others find it replaced.
    healing: Semaphore,
}

/// The headers of a session, built once because that costs more than cloning them.
#[derive(Debug, Clone)]
struct Prepared {
    session: Arc<UpstreamSession>,
    headers: Arc<HeaderMap>,
}

impl HttpWire {
    /// `credentials` are the configured headers, with the bearer token.
    pub(crate) fn new(
        era: Era,
        sender: HttpSender,
        credentials: HeaderMap,
        authorization: Option<Arc<Authorization>>,
        bearer: Option<Arc<BearerToken>>,
        session: Arc<SessionSlot>,
    ) -> Self {
        let mut fixed = credentials;
        fixed.insert(header::ACCEPT, HeaderValue::from_static(ACCEPTED));
        fixed.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        fixed.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
        if era == Era::Modern {
            fixed.insert(VERSION, HeaderValue::from_static("2026-07-28"));
            // Each request sets its own.
            fixed.remove(METHOD);
            fixed.remove(NAME);
        }
        let (peer, healing) = (OnceLock::new(), Semaphore::new(1));
        let prepared = Mutex::default();
        Self { era, sender, fixed, authorization, bearer, session, prepared, peer, healing }
    }

    pub(crate) fn connect(&self, peer: Peer<RoleClient>) {
        // There is one handshake per connection.
        let _once = self.peer.set(peer);
    }

    /// Sends a request and waits for its response, which arrives on the body of its own HTTP response.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        pending: &Arc<PendingRequests>,
        ask: &UpstreamRequest,
        events: Option<EventSender>,
        asker: RequestOrigin,
    ) -> ResponseResult {
        let number = pending.next_number();
        let id = pending.ids().id(number);
        let body = Bytes::from(request_text(ask, &id, self.era));
        // A server of the stateless era sends no requests, and closing the stream cancels the call.
        let guard = match self.era {
            Era::Legacy => Some(pending.attend(number, ask, events.clone(), asker)?),
            Era::Modern => None,
        };
        let outcome = async {
            let answer = self.post_in_session(pending, ask, body).await?;
            let (events, callers) = (events.as_ref(), ask.caller_headers.as_ref());
            let reading = Reading { wire: self, pending, number, events, callers };
            reading.outcome(answer).await
        };
        let outcome = outcome.await;
        if let Some(guard) = guard {
            guard.leave();
        }
        outcome
    }

    /// Sends a message that has no response of its own.
    async fn post_message(
        &self,
        text: String,
        callers: Option<&CallerHeaders>,
    ) -> Result<(), ConnectError> {
        let session = self.session.get();
        let headers = RequestHeaders { shared: self.prepared(&session), own: Vec::new() };
        let headers = headers.for_caller(callers);
        let answer = self.dispatch(Method::POST, &headers, text.into(), RetryPolicy::Never).await?;
        if answer.status.is_success() {
            // The body is read to its end, so that the connection can be reused, and ignored.
            let _unread = answer.read(QUOTED_BYTES).await;
            return Ok(());
        }
        Err(describe(answer).await)
    }

    /// The headers of a session.
    fn prepared(&self, session: &Arc<UpstreamSession>) -> Arc<HeaderMap> {
        let mut prepared = self.prepared.lock();
        if let Some(prepared) = prepared.as_ref().filter(|old| Arc::ptr_eq(&old.session, session)) {
            return prepared.headers.clone();
        }
        let mut headers = self.fixed.clone();
        if let Some(id) = &session.id {
            headers.insert(SESSION, id.clone());
        }
        if let Some(version) = &session.version {
            headers.insert(VERSION, version.clone());
        }
        let headers = Arc::new(headers);
        *prepared = Some(Prepared { session: session.clone(), headers: headers.clone() });
        headers
    }

    fn headers_for(&self, ask: &UpstreamRequest, session: &Arc<UpstreamSession>) -> RequestHeaders {
        let mut headers = RequestHeaders { shared: self.prepared(session), own: Vec::new() };
        if self.era == Era::Modern {
            headers.own.push((METHOD, HeaderValue::from_static(ask.method)));
            headers.own.extend(ask.name.as_ref().map(|name| (NAME, encode_header(name))));
            headers.own.extend(ask.mirrored.iter().cloned());
            // Headers that repeat arguments override the shared ones.
            if ask.mirrored.iter().any(|(name, _)| headers.shared.contains_key(name)) {
                headers = headers.all().into();
            }
        }
        headers.for_caller(ask.caller_headers.as_ref())
    }

    async fn post(
        &self,
        ask: &UpstreamRequest,
        session: &Arc<UpstreamSession>,
        body: Bytes,
    ) -> Result<UpstreamResponse, ConnectError> {
        let headers = self.headers_for(ask, session);
        self.dispatch(Method::POST, &headers, body, repeat_of(ask.method)).await
    }

    async fn dispatch(
        &self,
        method: Method,
        headers: &RequestHeaders,
        body: Bytes,
        repeat: RetryPolicy,
    ) -> Result<UpstreamResponse, ConnectError> {
        match (&self.authorization, &self.bearer) {
            (None, None) => self.sender.send(method, headers, body, repeat).await,
            (None, Some(bearer)) => {
                let headers = headers.all();
                Box::pin(self.dispatch_with_token(bearer, method, headers, body, repeat)).await
            }
            // Boxed: the future is large, and few servers need it.
            (Some(authorization), _) => {
                let headers = headers.all();
                Box::pin(self.dispatch_signed_in(authorization, method, headers, body, repeat))
                    .await
            }
        }
    }

    /// Sends a request with the last token, and once more if the server rejects it and the file holds another one.
    async fn dispatch_with_token(
        &self,
        bearer: &BearerToken,
        method: Method,
        mut headers: HeaderMap,
        body: Bytes,
        repeat: RetryPolicy,
    ) -> Result<UpstreamResponse, ConnectError> {
        let used = bearer.token();
        if let Some(value) = bearer.header() {
            headers.insert(header::AUTHORIZATION, value);
        }
        let first = headers.clone().into();
        let answer = self.sender.send(method.clone(), &first, body.clone(), repeat).await?;
        if answer.status != StatusCode::UNAUTHORIZED || !bearer.renew(&used).await {
            return Ok(answer);
        }
        if let Some(value) = bearer.header() {
            headers.insert(header::AUTHORIZATION, value);
        }
        self.sender.send(method, &headers.into(), body, repeat).await
    }

    /// Sends a request with the current OAuth token. A 401 means that the request was not processed, so it is sent once
    /// more if there is another token.
    async fn dispatch_signed_in(
        &self,
        authorization: &Arc<Authorization>,
        method: Method,
        mut headers: HeaderMap,
        body: Bytes,
        repeat: RetryPolicy,
    ) -> Result<UpstreamResponse, ConnectError> {
        let mut token = authorization.token().await?;
        let mut attempt = RequestAttempt::First;
        loop {
            if let Some(value) = token.as_ref().and_then(|token| token.header()) {
                headers.insert(header::AUTHORIZATION, value);
            }
            let signed = headers.clone().into();
            let answer = self.sender.send(method.clone(), &signed, body.clone(), repeat).await?;
            let (status, said) = (answer.status, answer.headers());
            match authorization.judge(token.as_ref(), status, said, attempt).await? {
                TokenVerdict::Fine => return Ok(answer),
                TokenVerdict::Again(other) => {
                    (token, attempt) = (Some(other), RequestAttempt::Second);
                }
            }
        }
    }

    /// Sends a request; a session that the server no longer knows is replaced once. A 404 means that the request was
    /// not processed.
    async fn post_in_session(
        self: &Arc<Self>,
        pending: &Arc<PendingRequests>,
        ask: &UpstreamRequest,
        body: Bytes,
    ) -> Result<UpstreamResponse, ConnectError> {
        let session = self.session.get();
        let answer = self.post(ask, &session, body.clone()).await?;
        if session.id.is_none() || answer.status != StatusCode::NOT_FOUND {
            return Ok(answer);
        }
        drop(answer);
        // Boxed: the future is large, and sessions are rarely lost.
        Box::pin(self.post_anew(pending, ask, &session, body)).await
    }

    async fn post_anew(
        self: &Arc<Self>,
        pending: &Arc<PendingRequests>,
        ask: &UpstreamRequest,
        lost: &UpstreamSession,
        body: Bytes,
    ) -> Result<UpstreamResponse, ConnectError> {
        self.heal(pending, lost).await?;
        let answer = self.post(ask, &self.session.get(), body).await?;
        if answer.status == StatusCode::NOT_FOUND {
            let message = "HTTP 404 Not Found within a session that the server had just opened";
            return Err(ConnectError::new(ConnectErrorKind::Protocol, message));
        }
        Ok(answer)
    }

    /// Makes rmcp notice the lost session and open a new one.
    async fn heal(
        self: &Arc<Self>,
        pending: &Arc<PendingRequests>,
        lost: &UpstreamSession,
    ) -> Result<(), ConnectError> {
        let closed = || ConnectError::new(ConnectErrorKind::Unreachable, CLOSED);
        let _turn = self.healing.acquire().await.map_err(|_| closed())?;
        if self.session.get().id != lost.id {
            return Ok(());
        }
        let peer = self.peer.get().ok_or_else(closed)?;
        let ping = async {
            let request = ClientRequest::PingRequest(PingRequest::default());
            let options = PeerRequestOptions::no_options();
            peer.send_request_with_option(request, options).await?.await_response().await
        };
        let late = "the session was lost, and no new one was opened in time";
        let answered = tokio::time::timeout(LONGEST_HEALING, ping)
            .await
            .map_err(|_| ConnectError::new(ConnectErrorKind::Timeout, late))?;
        match answered {
            // Even a server that does not know `ping` has opened a session for it.
            Ok(_) | Err(ServiceError::McpError(_)) => {}
            Err(error) => return Err(describe_service_error(&error)),
        }
        if self.session.get().id != lost.id {
            let stop = pending.stop().clone();
            pending
                .tasks()
                .spawn(stop.run_until_cancelled_owned(tell_again(self.clone(), pending.clone())));
        }
        Ok(())
    }

    /// Requests the rest of a response.
    async fn resume(
        &self,
        last_event: &str,
        callers: Option<&CallerHeaders>,
    ) -> Result<EventStream, ConnectError> {
        let closed = || ConnectError::new(ConnectErrorKind::Unreachable, CLOSED);
        let mut headers = HeaderMap::clone(&self.prepared(&self.session.get()));
        headers.remove(header::CONTENT_TYPE);
        headers.insert(header::ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        headers.insert(LAST_EVENT, HeaderValue::from_str(last_event).map_err(|_| closed())?);
        let headers = RequestHeaders::from(headers).for_caller(callers);
        let answer =
            self.dispatch(Method::GET, &headers, Bytes::new(), RetryPolicy::IfLost).await?;
        if answer.status.is_success() && answer.is_event_stream() {
            return Ok(answer.events());
        }
        Err(closed())
    }
}

impl MessageSink for HttpWire {
    fn send(
        &self,
        text: String,
        callers: Option<CallerHeaders>,
    ) -> BoxFuture<'_, Result<(), ConnectError>> {
        async move { self.post_message(text, callers.as_ref()).await }.boxed()
    }
}

/// Requests of Switchboard itself change nothing and may be repeated. Callers' requests never are.
fn repeat_of(method: &str) -> RetryPolicy {
    match method {
        "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
            RetryPolicy::IfLost
        }
        _ => RetryPolicy::Never,
    }
}

/// Repeats the subscriptions and the log level in a new session.
fn tell_again(wire: Arc<HttpWire>, pending: Arc<PendingRequests>) -> BoxFuture<'static, ()> {
    async move {
        let kept = pending.kept(|kept| kept.clone());
        let level = kept.log_level.map(|level| ("logging/setLevel", "level", level));
        let watched = kept.watched.into_iter().map(|uri| ("resources/subscribe", "uri", uri));
        for (method, key, value) in level.into_iter().chain(watched) {
            let params = format!(r#""{key}":{}"#, quoted(&value));
            let ask = UpstreamRequest { method, params, ..UpstreamRequest::default() };
            // A refusal costs only notifications.
            let _refused = wire.ask(&pending, &ask, None, RequestOrigin::Us).await;
        }
    }
    .boxed()
}

/// The error of a response that is not an MCP message.
async fn describe(answer: UpstreamResponse) -> ConnectError {
    let (status, kind) = (answer.status, answer.content_type());
    let headers = answer.headers().clone();
    let body = answer.read(QUOTED_BYTES).await.unwrap_or_else(|(_, head)| head);
    with_oauth_hint(describe_answer(status, &kind, &body), &headers)
}

type EventStream = BoxStream<'static, Result<Sse, SseError>>;

/// A response while it is being read.
struct Reading<'a> {
    wire: &'a HttpWire,
    pending: &'a Arc<PendingRequests>,
    number: u64,
    events: Option<&'a EventSender>,
    /// The headers of the caller whose request it answers.
    callers: Option<&'a CallerHeaders>,
}

/// The effect of one message on the stream.
enum StreamStep<'a> {
    On,
    Reply(BoxFuture<'a, ()>),
    Done(ResponseResult),
}

impl<'a> Reading<'a> {
    async fn outcome(self, answer: UpstreamResponse) -> ResponseResult {
        if answer.status.is_success() && answer.is_event_stream() {
            // Boxed: the future is large, and most servers answer in one piece.
            return Box::pin(self.follow(answer.events())).await;
        }
        self.read_json(answer).await
    }

    async fn read_json(self, answer: UpstreamResponse) -> ResponseResult {
        let status = answer.status;
        let is_credential_fault =
            matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if is_credential_fault || !answer.is_json() {
            return Err(Box::pin(describe(answer)).await.into());
        }
        let body = answer.read(MAX_MESSAGE_BYTES).await.map_err(|(error, _)| error)?;
        let message = match ServerMessage::read(&body) {
            Ok(message) => message,
            Err(error) if status.is_success() => return Err(describe_non_rpc(&error, &body).into()),
            Err(_) => return Err(describe_answer(status, "application/json", &body).into()),
        };
        // Web frameworks also write a member `error`; only an object is a JSON-RPC error.
        let error = message.error.filter(|error| error.get().starts_with('{'));
        match (message.answers(self.pending.ids()), error) {
            (Some(number), error)
                if number == self.number && (error.is_some() || status.is_success()) =>
            {
                message.outcome(&body)
            }
            (None, Some(error)) if message.id.is_none() => {
                let said = read_error(error).message;
                let message = format!("the server refused: {said} (HTTP {status})");
                Err(ConnectError::new(ConnectErrorKind::Protocol, message).into())
            }
            _ if status.is_success() => {
                let message = "the response has the id of another request";
                Err(ConnectError::new(ConnectErrorKind::Protocol, message).into())
            }
            _ => Err(describe_answer(status, "application/json", &body).into()),
        }
    }

    /// Reads events until the response. A truncated response is resumed if the server sent an event id.
    async fn follow(self, mut events: EventStream) -> ResponseResult {
        let mut replies = FuturesUnordered::new();
        let (mut last_event, mut pause, mut in_vain) = (None, RESUME_PAUSE, 0);
        loop {
            let next = tokio::select! {
                biased;
                Some(()) = replies.next(), if !replies.is_empty() => continue,
                next = events.next() => next,
            };
            let lost = match next {
                Some(Ok(event)) => {
                    if let Some(id) = event.id.filter(|id| !id.is_empty()) {
                        (last_event, in_vain) = (Some(id), 0);
                    }
                    if let Some(named) = event.retry.map(Duration::from_millis) {
                        pause = named.min(LONGEST_RESUME_PAUSE);
                    }
                    match event.data.map_or(StreamStep::On, |data| self.step(data, replies.len())) {
                        StreamStep::On => {}
                        StreamStep::Reply(reply) => replies.push(reply),
                        StreamStep::Done(outcome) => {
                            self.drain(events);
                            return outcome;
                        }
                    }
                    continue;
                }
                Some(Err(error)) => event_fault(&error),
                None => ConnectError::new(ConnectErrorKind::Unreachable, CLOSED),
            };
            let (Some(from), true) = (&last_event, in_vain < RESUMES && self.may_resume(&lost))
            else {
                return Err(lost.into());
            };
            in_vain += 1;
            tokio::time::sleep(pause).await;
            events = self.wire.resume(from, self.callers).await?;
        }
    }

    fn may_resume(&self, lost: &ConnectError) -> bool {
        self.wire.era == Era::Legacy && lost.kind == ConnectErrorKind::Unreachable
    }

    fn step(&self, data: String, open_replies: usize) -> StreamStep<'a> {
        if is_too_deep(data.as_bytes()) {
            return StreamStep::Done(Err(too_deep().into()));
        }
        let whole = Bytes::from(data);
        // Keep-alives and other data that is not JSON-RPC.
        let Ok(message) = ServerMessage::read(&whole) else { return StreamStep::On };
        if message.answers(self.pending.ids()) == Some(self.number) {
            return StreamStep::Done(message.outcome(&whole));
        }
        match (message.id, message.method.as_deref()) {
            (None, Some("notifications/progress")) => {
                pass_on(self.events, message.kept_params().map(UpstreamEvent::Progress));
            }
            (None, Some("notifications/message")) => {
                pass_on(self.events, message.kept_params().map(UpstreamEvent::Log));
            }
            (None, Some(ELICITATION_COMPLETE)) => {
                let params = message.kept_params();
                pass_on(self.events, params.map(UpstreamEvent::ElicitationComplete));
            }
            (None, Some(_)) => {
                self.pending.hear(&message);
            }
            (Some(id), Some(method)) if open_replies < OPEN_QUESTIONS => {
                return StreamStep::Reply(self.reply(id.get(), method, &message));
            }
            _ => {}
        }
        StreamStep::On
    }

    fn reply(&self, id: &str, method: &str, message: &ServerMessage<'_>) -> BoxFuture<'a, ()> {
        let (wire, callers) = (self.wire, self.callers);
        if is_question(method)
            && let Some(question) =
                Question::put(self.pending, self.events.ok_or(NOBODY_ANSWERS), message)
        {
            return async move {
                if let Some(answer) = question.answer().await {
                    // A server that is gone needs no response.
                    let _gone = wire.post_message(answer, callers).await;
                }
            }
            .boxed();
        }
        let reply = match method {
            "ping" => Ok(switchboard_model::JsonText::from(&serde_json::json!({}))),
            _ => Err(RpcError { code: -32601, message: "Method not found".into(), data: None }),
        };
        let text = response_text(id, &reply);
        async move {
            let _gone = wire.post_message(text, callers).await;
        }
        .boxed()
    }

    /// Reads the rest of a stream whose response has arrived: a connection can be reused only after its body was read
    /// to the end.
    fn drain(&self, mut events: EventStream) {
        if matches!(events.next().now_or_never(), Some(None)) {
            return;
        }
        self.pending.tasks().spawn(async move {
            let rest = async { while let Some(Ok(_)) = events.next().await {} };
            let _still_open = tokio::time::timeout(DRAINING, rest).await;
        });
    }
}
