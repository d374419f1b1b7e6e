//! MCP over HTTP: POST, GET and DELETE of both protocol eras, and their status codes.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::value::RawValue;
use switchboard_auth::Principal;
use switchboard_protocol::{
    EraClaim, ErrorBody, Headers, LEGACY_VERSIONS, MODERN_VERSION, Members, Meta, ModernFault,
    RpcMessage, Unreadable, check_notification, claim, code, error_response, is_too_deep,
    notification, read_message,
};
use switchboard_sessions::{Session, SessionError};
use switchboard_view::Scope;

use crate::body::{GatewayBody, event};
use crate::client::Client;
use crate::gateway::Gateway;
use crate::http_answer::{
    Accepts, HttpResponse, Refused, accepted, accepts, bare, is_json, json_answer, no_such_method,
    refuse, streamed, version, written,
};
use crate::http_request::{HttpRequest, Route};
use crate::http_response::{ResponseEvent, ResponseWriter, RunningRequest, Stream};
use crate::http_scope::{check_scope, read_scope};
use crate::listener::{ListenRequest, subscription_meta};
use crate::methods::{Dispatch, Incoming};
use crate::outcome::Outcome;
use crate::request_context::RequestContext;
use crate::scope_values::names;
use crate::session_era::{NoClient, NotAdmitted, Promise, Stay, context_of};
use crate::stateless_era;
use crate::stored_client::snapshot_of;

/// Protocol versions that have batches, and the maximum number of messages in one.
pub(crate) const BATCHING: [&str; 2] = ["2024-11-05", "2025-03-26"];
pub(crate) const MAX_BATCH: usize = 100;

/// Request headers that narrow the view.
const WISHES: [HeaderName; 3] = [
    HeaderName::from_static("x-mcp-toolsets"),
    HeaderName::from_static("x-mcp-tools"),
    HeaderName::from_static("x-mcp-readonly"),
];

const TOO_MANY_SESSIONS: &str =
    "there are too many sessions; end one with DELETE, or come back later";

impl Gateway {
    /// Responds to a POST.
    pub async fn post(self: &Arc<Self>, request: HttpRequest, body: Bytes) -> HttpResponse {
        if self.service.is_starting()
            && let Err(failed) = Box::pin(self.hold(&request)).await
        {
            return failed;
        }
        if !is_json(&request.headers) {
            let message = "the content type must be application/json";
            return refuse(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                None,
                code::INVALID_REQUEST,
                message,
            );
        }
        let accepts = accepts(&request.headers);
        if !accepts.json && !accepts.events {
            let message = "the client must accept application/json and text/event-stream";
            return refuse(StatusCode::NOT_ACCEPTABLE, None, code::INVALID_REQUEST, message);
        }
        if body.trim_ascii_start().starts_with(b"[") {
            return Box::pin(self.post_batch(&request, &body)).await;
        }
        let message = match read_message(&body) {
            Ok(message) => message,
            Err(Unreadable::NotJson(reason)) => {
                return refuse(StatusCode::BAD_REQUEST, None, code::PARSE_ERROR, reason);
            }
            Err(Unreadable::NotAMessage { id, reason }) => {
                return refuse(
                    StatusCode::BAD_REQUEST,
                    id.as_deref(),
                    code::INVALID_REQUEST,
                    reason,
                );
            }
        };
        match claim(&message, version(&request.headers)) {
            EraClaim::Stateless => self.post_stateless(&request, &message, accepts).await,
            EraClaim::Handshake => Box::pin(self.post_handshake(&request, &message, accepts)).await,
            EraClaim::Session => self.post_session(&request, &message, accepts).await,
        }
    }

    /// Responds to a batch (protocol versions before 2025-06-18) with one array of responses.
    async fn post_batch(self: &Arc<Self>, request: &HttpRequest, body: &Bytes) -> HttpResponse {
        let bad =
            |message: String| refuse(StatusCode::BAD_REQUEST, None, code::INVALID_REQUEST, message);
        let parts = if is_too_deep(body) { None } else { serde_json::from_slice(body).ok() };
        let Some(parts): Option<Vec<&RawValue>> = parts else {
            let message = "the message is not JSON, or nested too deep";
            return refuse(StatusCode::BAD_REQUEST, None, code::PARSE_ERROR, message);
        };
        let client = match self.session_client(request, Stay::On).await {
            Ok(client) if BATCHING.contains(&client.version) => client,
            Ok(_) | Err(Refused(StatusCode::BAD_REQUEST, _)) => {
                return bad("batches are not part of this protocol version".into());
            }
            Err(Refused(status, message)) => {
                return refuse(status, None, code::LEGACY_SERVER_ERROR, message);
            }
        };
        client.touch();
        if parts.is_empty() || parts.len() > MAX_BATCH {
            return bad(format!("a batch has from 1 to {MAX_BATCH} messages"));
        }
        let answers = parts.iter().map(|part| {
            self.batch_response(&client, &request.principal, part.get(), Some(&request.headers))
        });
        let answers: Vec<String> =
            futures::future::join_all(answers).await.into_iter().flatten().collect();
        if answers.is_empty() {
            return accepted();
        }
        json_answer(GatewayBody::text(format!("[{}]", answers.join(","))))
    }

    /// The response to one message of a batch. No notification can precede it, and the client cannot be asked for input.
    pub(crate) async fn batch_response(
        self: &Arc<Self>,
        client: &Arc<Client>,
        principal: &Principal,
        message: &str,
        headers: Option<&HeaderMap>,
    ) -> Option<String> {
        let (id, method, params) = match read_message(message.as_bytes()) {
            Ok(RpcMessage::Request { id, method, params }) => (id, method, params.unwrap_or("{}")),
            Ok(RpcMessage::Notification { method, params }) => {
                self.take_notification(client, &method, params);
                return None;
            }
            Ok(RpcMessage::Response { id, outcome }) => {
                client.take_answer(id, outcome);
                return None;
            }
            Err(Unreadable::NotJson(reason) | Unreadable::NotAMessage { reason, .. }) => {
                return Some(error_response(None, &ErrorBody::new(code::INVALID_REQUEST, reason)));
            }
        };
        let refused =
            |message: &str| Some(Outcome::error(code::INVALID_REQUEST, message).message(id));
        let Ok(params) = Members::read(params) else { return refused("the params cannot be read") };
        let Ok(meta) = Meta::of(&params) else { return refused("the _meta cannot be read") };
        let Some(cancelled) = client.begin(id) else {
            return refused("a request of this id is still running");
        };
        let running = RunningRequest { client: client.clone(), id: id.to_owned(), cancelled };
        let incoming = Incoming { method: &method, params, meta, headers };
        let outcome = match self.respond(context_of(self, client, principal, false), incoming).await
        {
            Dispatch::Now(_, outcome) | Dispatch::PendingInputs(outcome) => outcome,
            Dispatch::Listen(_) => Outcome::error(code::METHOD_NOT_FOUND, "not in a batch"),
            Dispatch::ResponseWriter(exchange) => {
                let mut talk = ResponseWriter {
                    gateway: self.clone(),
                    exchange: Some(exchange),
                    id: id.to_owned(),
                    running: Some(running),
                };
                loop {
                    if let ResponseEvent::Last(outcome) = talk.step(None).await {
                        break outcome;
                    }
                }
            }
        };
        Some(outcome.message(id))
    }

    async fn post_stateless(
        self: &Arc<Self>,
        request: &HttpRequest,
        message: &RpcMessage<'_>,
        accepts: Accepts,
    ) -> HttpResponse {
        let (id, method, params) = match message {
            RpcMessage::Request { id, method, params } => (*id, &**method, *params),
            RpcMessage::Notification { method, .. } => {
                return accept_stateless_notification(request, method);
            }
            RpcMessage::Response { id, .. } => {
                let message = "clients of protocol version 2026-07-28 send no responses";
                return refuse(StatusCode::BAD_REQUEST, Some(id), code::INVALID_REQUEST, message);
            }
        };
        let params = match Members::read(params.unwrap_or("{}")) {
            Ok(params) => params,
            Err(error) => {
                let message = error.to_string();
                return refuse(StatusCode::BAD_REQUEST, Some(id), code::INVALID_PARAMS, message);
            }
        };
        let meta = match stateless_era::check(method, &params, Some(&request.headers)) {
            Ok(meta) => meta,
            Err(outcome) => return written(id, outcome, accepts, true),
        };
        let (scope, endpoint) = match self.scope_and_session(request).await {
            Ok(place) => place,
            Err(Refused(status, message)) => {
                return refuse(status, Some(id), code::INVALID_PARAMS, message);
            }
        };
        let principal = &request.principal;
        let context =
            match self.stateless_context(principal, scope, endpoint, &meta, accepts.events).await {
                Ok(context) => context,
                Err(error) => {
                    let status = StatusCode::SERVICE_UNAVAILABLE;
                    return refuse(status, Some(id), code::INTERNAL_ERROR, error.to_string());
                }
            };
        let incoming = Incoming { method, params, meta, headers: Some(&request.headers) };
        let listener = (method == "subscriptions/listen").then(|| context.clone());
        let replying = self.respond(context, incoming).await;
        match (replying, listener) {
            // Boxed: the future of every request would otherwise have the size of its largest branch.
            (Dispatch::Listen(wanted), Some(listener)) => {
                Box::pin(self.listen(id, &listener, &wanted, accepts)).await
            }
            (replying, _) => self.answer(replying, id, accepts, None, Vec::new()).await,
        }
    }

    async fn post_handshake(
        self: &Arc<Self>,
        request: &HttpRequest,
        message: &RpcMessage<'_>,
        accepts: Accepts,
    ) -> HttpResponse {
        let RpcMessage::Request { id, params, .. } = message else { return accepted() };
        let (scope, endpoint) = match self.scope_and_session(request).await {
            Ok(place) => place,
            Err(Refused(status, message)) => {
                return refuse(status, Some(id), code::INVALID_PARAMS, message);
            }
        };
        let params = Members::read(params.unwrap_or("{}")).unwrap_or_default();
        let owner = &request.principal;
        let promise = Promise::Survives;
        let (client, result) = match self.initialize(&params, owner, scope, endpoint, promise).await
        {
            Ok(made) => made,
            Err(why) => {
                let message = match why {
                    NotAdmitted::Full => TOO_MANY_SESSIONS.to_owned(),
                    NotAdmitted::Store(error) => error.to_string(),
                };
                let status = StatusCode::SERVICE_UNAVAILABLE;
                return refuse(status, Some(id), code::INTERNAL_ERROR, message);
            }
        };
        let mut answer = written(id, Outcome::text(result), accepts, false);
        if let Ok(id) = HeaderValue::try_from(&*client.id) {
            answer.headers_mut().insert(Headers::SESSION, id);
        }
        answer
    }

    async fn post_session(
        self: &Arc<Self>,
        request: &HttpRequest,
        message: &RpcMessage<'_>,
        accepts: Accepts,
    ) -> HttpResponse {
        let id = match message {
            RpcMessage::Request { id, .. } => Some(*id),
            RpcMessage::Notification { .. } | RpcMessage::Response { .. } => None,
        };
        let client = match self.session_client(request, Stay::On).await {
            Ok(client) => client,
            // Without this case, the client would be told to begin with `initialize`.
            Err(_) if is_initialize(message) => {
                let message = "`initialize` needs a `protocolVersion`";
                return refuse(StatusCode::BAD_REQUEST, id, code::INVALID_PARAMS, message);
            }
            Err(Refused(status, message)) => {
                return refuse(status, id, code::LEGACY_SERVER_ERROR, message);
            }
        };
        client.touch();
        match message {
            RpcMessage::Response { id, outcome } => {
                client.take_answer(id, *outcome);
                accepted()
            }
            RpcMessage::Notification { method, params } => {
                self.take_notification(&client, method, *params);
                accepted()
            }
            RpcMessage::Request { id, method, params } => {
                self.session_request(&client, id, method, *params, request, accepts).await
            }
        }
    }

    async fn session_request(
        self: &Arc<Self>,
        client: &Arc<Client>,
        id: &str,
        method: &str,
        params: Option<&str>,
        request: &HttpRequest,
        accepts: Accepts,
    ) -> HttpResponse {
        let params = Members::read(params.unwrap_or("{}"));
        let read = params.map_err(|error| error.to_string()).and_then(|params| {
            Meta::of(&params).map(|meta| (params, meta)).map_err(|fault| fault.0)
        });
        let (params, meta) = match read {
            Ok(read) => read,
            Err(reason) => {
                return written(id, Outcome::error(code::INVALID_PARAMS, reason), accepts, false);
            }
        };
        let Some(cancelled) = client.begin(id) else {
            let message = "a request of this id is still running";
            return written(id, Outcome::error(code::INVALID_REQUEST, message), accepts, false);
        };
        let running = RunningRequest { client: client.clone(), id: id.to_owned(), cancelled };
        let context = context_of(self, client, &request.principal, accepts.events);
        let incoming = Incoming { method, params, meta, headers: Some(&request.headers) };
        // Taken before the response is made: a later change needs a notification of its own.
        let owed = client.take_owed_before(method, accepts.events);
        let owed: Vec<String> = owed.methods().map(|method| notification(method, None)).collect();
        if !owed.is_empty() {
            self.sessions().writes.note_client(snapshot_of(client));
        }
        let replying = self.respond(context, incoming).await;
        self.answer(replying, id, accepts, Some(running), owed).await
    }

    async fn answer(
        self: &Arc<Self>,
        replying: Dispatch,
        id: &str,
        accepts: Accepts,
        running: Option<RunningRequest>,
        owed: Vec<String>,
    ) -> HttpResponse {
        let is_stateless = running.is_none();
        match replying {
            Dispatch::Now(before, outcome) if before.is_empty() && owed.is_empty() => {
                written(id, outcome, accepts, is_stateless)
            }
            Dispatch::Now(before, outcome) => {
                let messages = owed.into_iter().chain(before).chain([outcome.message(id)]);
                let events: Vec<Bytes> = messages.map(|message| event(&message)).collect();
                streamed(GatewayBody::pieces(events))
            }
            Dispatch::PendingInputs(outcome) => written(id, outcome, accepts, is_stateless),
            Dispatch::ResponseWriter(exchange) => {
                let talk = ResponseWriter {
                    gateway: self.clone(),
                    exchange: Some(exchange),
                    id: id.to_owned(),
                    running,
                };
                talk.answer(accepts, &owed).await
            }
            // `subscriptions/listen` exists in the stateless era only.
            Dispatch::Listen(_) => {
                let error = Outcome::error(
                    code::METHOD_NOT_FOUND,
                    "`subscriptions/listen` needs protocol version 2026-07-28",
                );
                written(id, error, accepts, is_stateless)
            }
        }
    }

    async fn listen(
        self: &Arc<Self>,
        id: &str,
        context: &RequestContext,
        wanted: &ListenRequest,
        accepts: Accepts,
    ) -> HttpResponse {
        if !accepts.events {
            let message = "`subscriptions/listen` needs `Accept: text/event-stream`";
            return refuse(StatusCode::NOT_ACCEPTABLE, Some(id), code::INVALID_REQUEST, message);
        }
        let Some((changes, place)) = self.listeners.add(self, id, context, wanted) else {
            let message = "too many streams are open; close some first";
            return refuse(StatusCode::TOO_MANY_REQUESTS, Some(id), code::INTERNAL_ERROR, message);
        };
        self.watch_for(context, wanted).await;
        let meta = subscription_meta(id);
        let acknowledged = notification(
            "notifications/subscriptions/acknowledged",
            Some(&format!("{{\"notifications\":{},{meta}}}", wanted.text())),
        );
        let goodbye = Outcome::text(format!("{{\"resultType\":\"complete\",{meta}}}")).message(id);
        let stream = Stream {
            first: Some(acknowledged),
            messages: changes,
            goodbye: Some(goodbye),
            ended: self.stop.clone(),
            client: None,
            _place: Some(place),
        };
        streamed(GatewayBody::events(stream::unfold(stream, Stream::next)))
    }

    /// Responds to a GET: the event stream of a session-era client.
    pub async fn get(self: &Arc<Self>, request: HttpRequest) -> HttpResponse {
        if version(&request.headers).is_some_and(|version| version >= MODERN_VERSION) {
            return no_such_method();
        }
        if self.service.is_starting()
            && let Err(failed) = Box::pin(self.hold(&request)).await
        {
            return failed;
        }
        if !accepts(&request.headers).events {
            let message = "the client must accept text/event-stream";
            return refuse(StatusCode::NOT_ACCEPTABLE, None, code::INVALID_REQUEST, message);
        }
        let client = match self.session_client(&request, Stay::On).await {
            Ok(client) => client,
            Err(Refused(status, message)) => {
                return refuse(status, None, code::LEGACY_SERVER_ERROR, message);
            }
        };
        let messages = client.open_stream();
        // List changes that waited for this stream are now sent, so the stored state changes.
        self.sessions().writes.note_client(snapshot_of(&client));
        let stream = Stream {
            first: None,
            messages,
            goodbye: None,
            ended: client.ended.clone(),
            client: Some(client),
            _place: None,
        };
        streamed(GatewayBody::events(stream::unfold(stream, Stream::next)))
    }

    /// Responds to a DELETE: ends the session of a session-era client.
    pub async fn delete(self: &Arc<Self>, request: HttpRequest) -> HttpResponse {
        if version(&request.headers).is_some_and(|version| version >= MODERN_VERSION) {
            return no_such_method();
        }
        if self.service.is_starting()
            && let Err(failed) = Box::pin(self.hold(&request)).await
        {
            return failed;
        }
        match self.session_client(&request, Stay::Off).await {
            Ok(client) => match self.end_client(&client).await {
                Ok(()) => bare(StatusCode::NO_CONTENT),
                Err(error) => {
                    let status = StatusCode::SERVICE_UNAVAILABLE;
                    refuse(status, None, code::LEGACY_SERVER_ERROR, error.to_string())
                }
            },
            Err(Refused(status, message)) => {
                refuse(status, None, code::LEGACY_SERVER_ERROR, message)
            }
        }
    }

    /// The session-era client that a request belongs to.
    async fn session_client(
        &self,
        request: &HttpRequest,
        stay: Stay,
    ) -> Result<Arc<Client>, Refused> {
        let mut ids = request.headers.get_all(Headers::SESSION).iter();
        let (id, another) = (ids.next().and_then(|id| id.to_str().ok()), ids.next());
        let Some(id) = id.filter(|_| another.is_none()) else {
            let message = "the request names no session; begin with `initialize`, or use protocol version 2026-07-28";
            return Err(Refused(StatusCode::BAD_REQUEST, message.into()));
        };
        let gone = || {
            let message = "there is no such session; begin anew with `initialize`";
            Refused(StatusCode::NOT_FOUND, message.into())
        };
        let client = self.client(id, &request.principal, stay).await.map_err(|why| match why {
            NoClient::Unknown => gone(),
            NoClient::Full => Refused(StatusCode::SERVICE_UNAVAILABLE, TOO_MANY_SESSIONS.into()),
            NoClient::Store(error) => Refused(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        })?;
        // A session id is valid at `/mcp` and at the endpoint where the session began.
        let is_at_home = match &request.route {
            Route::All => true,
            Route::Session(id) => *client.session.id == **id,
            Route::Server(server) => client.scope.server.as_ref() == Some(server),
            Route::Toolsets(sets) => client.scope.toolsets.contains(&names(sets)),
            Route::Agent { agent, server } => {
                let is_of_agent =
                    client.scope.agent.as_ref() == Some(agent) || *client.session.id == **agent;
                is_of_agent && client.scope.server.as_ref() == Some(server)
            }
        };
        if !is_at_home || self.is_denied_agent(&client, &request.principal) {
            return Err(gone());
        }
        // A missing header means 2025-03-26 or older, which did not have it.
        if let Some(version) = version(&request.headers)
            && !LEGACY_VERSIONS.contains(&version)
        {
            let message = format!("protocol version {version:?} is not supported");
            return Err(Refused(StatusCode::BAD_REQUEST, message));
        }
        Ok(client)
    }

    /// The scope of a request, and the session that its path names.
    async fn scope_and_session(
        &self,
        request: &HttpRequest,
    ) -> Result<(Arc<Scope>, Option<Arc<Session>>), Refused> {
        if let Route::Agent { agent, server } = &request.route {
            return Box::pin(self.agent_scope(request, agent, server)).await;
        }
        let scope = self.scope_of(request)?;
        let Route::Session(id) = &request.route else { return Ok((scope, None)) };
        let session = Box::pin(self.service.session(id, Some(&request.principal.id))).await;
        let session = session.map_err(|error| {
            if matches!(error, SessionError::Store(_)) {
                return Refused(StatusCode::SERVICE_UNAVAILABLE, error.to_string());
            }
            let message = "there is no such session; make one with POST /api/v1/sessions";
            Refused(StatusCode::NOT_FOUND, message.to_owned())
        })?;
        Ok((scope, Some(session)))
    }

    fn scope_of(&self, request: &HttpRequest) -> Result<Arc<Scope>, Refused> {
        let headers = &request.headers;
        let has_wishes = WISHES.iter().any(|wish| headers.contains_key(wish));
        let is_open = matches!(request.route, Route::All | Route::Session(_));
        if is_open && request.query.as_deref().unwrap_or_default().is_empty() && !has_wishes {
            return Ok(self.open_scope.clone());
        }
        let scope = Arc::new(read_scope(request)?);
        // What the credential does not grant is answered as what does not exist.
        let granted = self.service.scope_for(&scope, None, &request.principal.access);
        check_scope(&self.board.snapshot(), request, &granted)?;
        Ok(scope)
    }
}

fn is_initialize(message: &RpcMessage<'_>) -> bool {
    matches!(message, RpcMessage::Request { method, .. } if method == "initialize")
}

/// Responds to a notification of a stateless-era client. It is ignored, but headers that contradict it are refused.
fn accept_stateless_notification(request: &HttpRequest, method: &str) -> HttpResponse {
    match check_notification(&request.headers, method) {
        Ok(()) | Err(ModernFault::Version(_)) => accepted(),
        Err(ModernFault::Header(reason)) => {
            refuse(StatusCode::BAD_REQUEST, None, code::HEADER_MISMATCH, reason)
        }
    }
}
