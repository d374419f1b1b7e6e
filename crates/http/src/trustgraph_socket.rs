//! The WebSocket of TrustGraph's clients: `/trustgraph/api/v1/socket`.
//!
//! The first frame has the token, because the clients send no header. Then a client sends requests, each with an id of its
//! choice; they are answered side by side. A question for the agent is a turn with the strategy `react` in a session that
//! exists as long as the answer takes.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream::{FuturesUnordered, SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use switchboard_auth::{Gatekeeper, Principal};
use switchboard_model::{Face, ToolStrategy};
use switchboard_sessions::{Change, Session};
use switchboard_trustgraph::{
    AgentRequest, AgentStream, AuthFrame, SocketRequest, TrustGraphError,
};
use switchboard_turns::{LiveTurn, NewTurn, Words};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_util::sync::CancellationToken;

use crate::problem::ProblemResponse;
use crate::server_state::{MAX_TRUSTGRAPH_SOCKETS, Shared};
use crate::trustgraph::{TrustGraphServices, no_service};

/// The path of the socket. Its credentials come with the first frame.
pub(crate) const PATH: &str = "/trustgraph/api/v1/socket";
/// Larger frames end the connection.
const MAX_FRAME_BYTES: usize = 1 << 20;
/// How many requests of one socket are answered at the same time; further ones get an error.
const MAX_REQUESTS: usize = 16;
/// How many frames wait for a slow client; then the answers wait.
const WAITING_FRAMES: usize = 64;
/// How long the first frame may take.
const AUTH_WITHIN: Duration = Duration::from_secs(10);
/// How long a client may take to accept a frame.
const TAKE_WITHIN: Duration = Duration::from_secs(30);
/// How often the client is pinged and its credentials are checked again. A client that has sent nothing since the ping
/// before is gone.
const PING_EVERY: Duration = Duration::from_secs(20);

/// `GET /trustgraph/api/v1/socket`.
pub(crate) async fn socket(
    services: TrustGraphServices,
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, ProblemResponse> {
    let (mut parts, _body) = request.into_parts();
    let upgrade = match WebSocketUpgrade::from_request_parts(&mut parts, &shared).await {
        Ok(upgrade) => upgrade,
        Err(rejection) => {
            let detail = "this is a WebSocket: connect to it with a WebSocket client";
            let status = rejection.into_response().status();
            return Err(ProblemResponse::new("bad_request", status, detail));
        }
    };
    let Ok(permit) = shared.trustgraph_sockets.clone().try_acquire_owned() else {
        let detail = format!("{MAX_TRUSTGRAPH_SOCKETS} sockets are open already; try again later");
        return Err(ProblemResponse::new("busy", StatusCode::SERVICE_UNAVAILABLE, detail));
    };
    let upgrade = upgrade.max_message_size(MAX_FRAME_BYTES).max_frame_size(MAX_FRAME_BYTES);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let _permit = permit;
        serve(socket, services, shared.gatekeeper).await;
    }))
}

/// The credentials of a socket: the token of its first frame as the header that it stands for.
struct SocketCredentials {
    headers: HeaderMap,
    gatekeeper: Arc<Gatekeeper>,
}

impl SocketCredentials {
    fn new(frame: &AuthFrame, gatekeeper: Arc<Gatekeeper>) -> Self {
        let mut headers = HeaderMap::new();
        if !frame.token.is_empty()
            && let Ok(mut value) = HeaderValue::try_from(format!("Bearer {}", frame.token))
        {
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        Self { headers, gatekeeper }
    }

    async fn principal(&self) -> Result<Principal, String> {
        self.gatekeeper.admit(&self.headers).await.map_err(|refusal| refusal.message().to_owned())
    }
}

async fn serve(socket: WebSocket, services: TrustGraphServices, gatekeeper: Arc<Gatekeeper>) {
    let (mut sink, mut stream) = socket.split();
    let Some(credentials) = authenticate(&mut sink, &mut stream, gatekeeper).await else {
        let _gone = sink.close().await;
        return;
    };
    let (frames, mut waiting) = mpsc::channel(WAITING_FRAMES);
    let ended = CancellationToken::new();
    let mut running = FuturesUnordered::new();
    let mut ping = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_alive = true;
    let mut stopping = std::pin::pin!(services.sessions.stopping());
    loop {
        tokio::select! {
            // A client that sends requests and takes no answers is read no further, and the ping ends it.
            received = stream.next(), if running.len() < MAX_REQUESTS + WAITING_FRAMES => {
                is_alive = true;
                match received {
                    Some(Ok(Message::Text(text))) => {
                        let answering = RequestInSocket {
                            services: services.clone(),
                            frames: frames.clone(),
                            ended: ended.clone(),
                        };
                        let is_full = running.len() >= MAX_REQUESTS;
                        let credentials = &credentials;
                        running.push(async move { answering.answer(&text, credentials, is_full).await });
                    }
                    Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                }
            }
            Some(frame) = waiting.recv() => {
                if !send(&mut sink, Message::Text(text_of(&frame))).await {
                    break;
                }
            }
            Some(()) = running.next(), if !running.is_empty() => {}
            _ = ping.tick() => {
                let is_refused = credentials.principal().await.is_err();
                if is_refused || !is_alive || !send(&mut sink, Message::Ping(bytes::Bytes::new())).await {
                    break;
                }
                is_alive = false;
            }
            () = &mut stopping => break,
        }
    }
    // Turns that nobody follows any more are cancelled, and their sessions removed.
    ended.cancel();
    drop(waiting);
    while running.next().await.is_some() {}
    let _gone = timeout(TAKE_WITHIN, sink.close()).await;
}

/// Reads the first frame and responds to it. `None` if the socket must be closed.
async fn authenticate(
    sink: &mut SplitSink<WebSocket, Message>,
    stream: &mut SplitStream<WebSocket>,
    gatekeeper: Arc<Gatekeeper>,
) -> Option<SocketCredentials> {
    let first = timeout(AUTH_WITHIN, stream.next()).await.ok()??.ok()?;
    let frame = match &first {
        Message::Text(text) => AuthFrame::read(text),
        Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Close(_) => None,
    };
    let admitted = match frame {
        None => Err("the first frame must be {\"type\": \"auth\", \"token\": \"...\"}".to_owned()),
        Some(frame) => {
            let credentials = SocketCredentials::new(&frame, gatekeeper);
            credentials.principal().await.map(|_| credentials)
        }
    };
    match admitted {
        Ok(credentials) => {
            let frame = json!({"type": "auth-ok", "default_workspace": "default"});
            send(sink, Message::Text(text_of(&frame))).await.then_some(credentials)
        }
        Err(error) => {
            let frame = json!({"type": "auth-failed", "error": error});
            send(sink, Message::Text(text_of(&frame))).await;
            None
        }
    }
}

fn text_of(frame: &Value) -> Utf8Bytes {
    frame.to_string().into()
}

/// Sends a frame within a bounded time. Returns whether the client has taken it.
async fn send(sink: &mut SplitSink<WebSocket, Message>, message: Message) -> bool {
    matches!(timeout(TAKE_WITHIN, sink.send(message)).await, Ok(Ok(())))
}

/// What answering one request needs.
struct RequestInSocket {
    services: TrustGraphServices,
    frames: mpsc::Sender<Value>,
    /// Cancelled when the socket has ended.
    ended: CancellationToken,
}

impl RequestInSocket {
    async fn answer(self, text: &str, credentials: &SocketCredentials, is_full: bool) {
        let request = match SocketRequest::read(text) {
            Ok(request) => request,
            Err(error) => return self.say(error.to_json()).await,
        };
        let id = request.id.clone();
        let is_agent = request.service == "agent";
        let answer = if is_full {
            let message = format!("at most {MAX_REQUESTS} requests are answered at the same time");
            Err(TrustGraphError::request(message))
        } else if is_agent {
            self.ask(request, credentials).await.map(|()| None)
        } else {
            let ended = self.ended.clone();
            match ended.run_until_cancelled(self.respond(request, credentials)).await {
                Some(answer) => answer.map(Some),
                None => return,
            }
        };
        let frame = match answer {
            Ok(None) => return,
            Ok(Some(response)) => json!({"id": id, "response": response, "complete": true}),
            Err(error) => {
                let mut frame = error.to_json();
                frame["id"] = json!(id);
                frame["complete"] = json!(true);
                frame
            }
        };
        self.say(frame).await;
    }

    /// The answer of a service that has one answer.
    async fn respond(
        &self,
        request: SocketRequest,
        credentials: &SocketCredentials,
    ) -> Result<Value, TrustGraphError> {
        request.check_workspace()?;
        let principal = credentials.principal().await.map_err(TrustGraphError::request)?;
        match request.service.as_str() {
            "config" => self.services.config(&principal, request.request).await,
            "mcp-tool" => self.services.call(&principal, request.request).await,
            other => Err(no_service(other)),
        }
    }

    /// Lets the agent answer, and sends its frames.
    async fn ask(
        &self,
        request: SocketRequest,
        credentials: &SocketCredentials,
    ) -> Result<(), TrustGraphError> {
        request.check_workspace()?;
        let id = request.id;
        let question = AgentRequest::read(request.request)?;
        let principal = credentials.principal().await.map_err(TrustGraphError::request)?;
        let sessions = &self.services.sessions;
        sessions.note_access(&principal.id, &principal.access);
        let session = sessions.new_session(None, &principal.id, Change::default(), Duration::ZERO);
        let session = session.await.map_err(|error| TrustGraphError::agent(error.to_string()))?;
        let answered = self.run(&session, &principal, id, question).await;
        self.remove(&session).await;
        answered
    }

    async fn run(
        &self,
        session: &Arc<Session>,
        principal: &Principal,
        id: String,
        question: AgentRequest,
    ) -> Result<(), TrustGraphError> {
        let turn = NewTurn {
            message: Some(Words::Text(question.question)),
            strategy: Some(ToolStrategy::React),
            groups: question.groups,
            state: question.state,
            ..NewTurn::default()
        };
        let turn = self.services.turns.begin(session, principal.caller(Face::Http), turn).await;
        let turn = turn.map_err(|error| TrustGraphError::agent(error.to_string()))?;
        let stream = AgentStream::new(id, turn.id.clone(), question.is_streaming);
        if self.ended.run_until_cancelled(self.follow(&turn, stream)).await.is_none() {
            turn.cancel();
        }
        Ok(())
    }

    /// Sends the frames of a turn until it has ended.
    async fn follow(&self, turn: &LiveTurn, mut stream: AgentStream) {
        let mut news = turn.follow();
        let mut told = 0;
        loop {
            news.borrow_and_update();
            let is_over = turn.end().is_some();
            for event in turn.events_after(told) {
                told = event.id;
                let event = serde_json::from_slice(&event.json).unwrap_or_default();
                for frame in stream.frames(&event) {
                    self.say(frame).await;
                }
            }
            let has_all = told >= *news.borrow();
            if (is_over && has_all) || news.changed().await.is_err() {
                return;
            }
        }
    }

    async fn remove(&self, session: &Arc<Session>) {
        let turns = &self.services.turns;
        let ended = turns.end_of(&session.id).await.map_err(|error| error.to_string());
        let removed = match ended {
            Ok(()) => {
                let removed = self.services.sessions.end_session(session).await;
                removed.map_err(|error| error.to_string())
            }
            Err(error) => Err(error),
        };
        turns.forget(&session.id);
        if let Err(error) = removed {
            tracing::warn!(error, "the session of an agent's answer could not be removed");
        }
    }

    /// Queues a frame. After the socket has ended, frames are dropped.
    async fn say(&self, frame: Value) {
        let _ended = self.frames.send(frame).await;
    }
}
