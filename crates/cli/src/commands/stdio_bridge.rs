//! `stdio --url`: forwards messages between standard input and output and a running instance, for clients that can only
//! start programs.
//!
//! The instance handles all requests. The bridge keeps only the state that HTTP has and stdio lacks: headers, the
//! session of a session-era client with its stream, and the running requests.

use std::collections::{BTreeMap, HashMap};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use parking_lot::{Mutex, MutexGuard};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use serde_json::Value;
use sse_stream::SseStream;
use switchboard_api::Problem;
use switchboard_config::mcp_address;
use switchboard_mcp_server::{LineReader, WAITING_LINES, write_lines};
use switchboard_model::Secret;
use switchboard_protocol::{
    EraClaim, ErrorBody, Headers, MODERN_VERSION, Members, Meta, Mirrors, RpcMessage, claim, code,
    encode_header, error_response, name_member, notification, read_message,
};
use tokio::io::AsyncRead;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::commands::serve::stop_on_signals;
use crate::failure::Failure;
use crate::instance_trust;
use crate::remote::{EVENT_STREAM, IS_IT_RUNNING, cause, connection, key_hint};

/// Maximum number of requests at the same time; further ones are refused.
const MAX_RUNNING: usize = 1024;
/// How long the first response of the instance may take.
const FIRST_ANSWER: Duration = Duration::from_secs(10);
/// How long open requests, and the end of the session, may take after the input has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The first and the longest pause before a lost stream is opened again.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

const JSON_OR_EVENTS: &str = "application/json, text/event-stream";
const PROBLEM: &str = "application/problem+json";
const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// Connects one client on stdio with one instance.
struct Bridge {
    http: reqwest::Client,
    url: Url,
    key: Option<Secret>,
    out: mpsc::Sender<String>,
    /// The session of a session-era client.
    session: Mutex<Option<BridgeSession>>,
    /// Held while a session is opened, so that two requests do not open two.
    opening: Semaphore,
    /// Running requests by id. Cancelling one closes its connection.
    running: Mutex<HashMap<String, Arc<CancellationToken>>>,
    /// Requests that are repeated in a new session.
    told: Mutex<ReplayedRequests>,
    requests: TaskTracker,
    streams: TaskTracker,
}

/// A session at the instance.
#[derive(Clone)]
struct BridgeSession {
    headers: HeaderMap,
    /// The `initialize` that opened it, to be repeated when the instance has forgotten the session.
    hello: Arc<str>,
    ended: CancellationToken,
}

/// Requests that change the state of a session.
#[derive(Clone, Default)]
struct ReplayedRequests {
    log_level: Option<String>,
    /// Keyed by the URI of the resource.
    subscribed: BTreeMap<String, String>,
}

impl ReplayedRequests {
    fn record(&mut self, method: &str, params: &Members<'_>, line: &str) {
        let uri = params.string("uri").unwrap_or_default();
        match method {
            "logging/setLevel" => self.log_level = Some(line.to_owned()),
            "resources/subscribe" => {
                self.subscribed.insert(uri.into_owned(), line.to_owned());
            }
            "resources/unsubscribe" => {
                self.subscribed.remove(&*uri);
            }
            _ => {}
        }
    }
}

/// The response that the client expects for a message.
enum Due {
    /// The response to the request with this id.
    Answer(String),
    /// Any messages: the input is a batch or invalid.
    Words,
    Nothing,
}

/// A message that is being forwarded.
struct Sent {
    due: Due,
    line: String,
    /// The headers of a stateless-era request; `None` if it belongs to the session.
    headers: Option<HeaderMap>,
}

pub(crate) async fn run(url: &str) -> Result<ExitCode, Failure> {
    let url = mcp_address(Some(url)).map_err(|why| Failure::usage(format!("--url: {why}")))?;
    let (http, key) = connection(&url)?;
    let (out, messages) = mpsc::channel(WAITING_LINES);
    let bridge = Arc::new(Bridge {
        http,
        url,
        key,
        out,
        session: Mutex::default(),
        opening: Semaphore::new(1),
        running: Mutex::default(),
        told: Mutex::default(),
        requests: TaskTracker::new(),
        streams: TaskTracker::new(),
    });
    bridge.check_connection().await?;
    let tasks = TaskTracker::new();
    let stop = stop_on_signals(&tasks)?;
    let writing = tasks.spawn(write_lines(tokio::io::stdout(), messages));
    let read = stop.run_until_cancelled(bridge.read_lines(tokio::io::stdin())).await;
    bridge.requests.close();
    let _unanswered = tokio::time::timeout(LAST_ANSWERS, bridge.requests.wait()).await;
    let _unheard = tokio::time::timeout(LAST_WORDS, bridge.end()).await;
    drop(bridge);
    // Requests that still run keep the writer open, so this wait is limited.
    let _unread = tokio::time::timeout(LAST_WORDS, writing).await;
    if let Some(Err(error)) = read {
        return Err(Failure::start(format!("standard input cannot be read: {error}")));
    }
    #[expect(clippy::exit, reason = "the thread that reads standard input would keep us alive")]
    std::process::exit(0)
}

impl Bridge {
    /// Checks that the instance answers, speaks MCP and accepts the credentials.
    async fn check_connection(&self) -> Result<(), Failure> {
        let mut headers = modern_headers("server/discover", &Members::default());
        headers.insert(Headers::VERSION, HeaderValue::from_static(MODERN_VERSION));
        let asking = tokio::time::timeout(FIRST_ANSWER, self.post(DISCOVER, &headers));
        let answered = asking.await.unwrap_or_else(|_| Err(self.unreachable("no answer")));
        let response = answered.map_err(Failure::unreachable)?;
        let status = response.status();
        let said: Value = response.json().await.unwrap_or_default();
        if status.is_success() && said["result"]["supportedVersions"].is_array() {
            return Ok(());
        }
        let said = said["error"]["message"].as_str().unwrap_or("is it a Switchboard?");
        Err(Failure::unreachable(format!("{} answered HTTP {status}: {said}", self.url)))
    }

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

    async fn take(self: &Arc<Self>, line: &str) {
        let Ok(message) = read_message(line.as_bytes()) else {
            return self.begin(Sent { due: Due::Words, line: line.into(), headers: None }).await;
        };
        let era = claim(&message, None);
        let (due, headers) = match message {
            // All later messages belong to the session that `initialize` opens.
            RpcMessage::Request { id, .. } if era == EraClaim::Handshake => {
                return self.initialize(id, line).await;
            }
            RpcMessage::Request { id, method, params } => {
                let params = Members::read(params.unwrap_or("{}")).unwrap_or_default();
                let headers =
                    (era == EraClaim::Stateless).then(|| modern_headers(&method, &params));
                if headers.is_none() {
                    self.told().record(&method, &params, line);
                }
                (Due::Answer(id.to_owned()), headers)
            }
            RpcMessage::Notification { method, params } => {
                let params = Members::read(params.unwrap_or("{}")).unwrap_or_default();
                let id = params.get("requestId").filter(|_| method == "notifications/cancelled");
                let token = id.and_then(|id| self.running().get(id).cloned());
                if let Some(token) = token {
                    return token.cancel();
                }
                (Due::Nothing, None)
            }
            RpcMessage::Response { .. } => (Due::Nothing, None),
        };
        self.begin(Sent { due, line: line.into(), headers }).await;
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<CancellationToken>>> {
        self.running.lock()
    }

    fn told(&self) -> MutexGuard<'_, ReplayedRequests> {
        self.told.lock()
    }

    fn session(&self) -> MutexGuard<'_, Option<BridgeSession>> {
        self.session.lock()
    }

    async fn send(&self, message: String) {
        // A failure means that the writer is gone, and so is the client.
        let _gone = self.out.send(message).await;
    }

    async fn refuse(&self, id: Option<&str>, code: i64, message: impl Into<String>) {
        self.send(error_response(id, &ErrorBody::new(code, message))).await;
    }

    /// Starts forwarding a message, unless too many are running.
    async fn begin(self: &Arc<Self>, sent: Sent) {
        let token = Arc::new(CancellationToken::new());
        if let Due::Answer(id) = &sent.due
            && let Err((code, message)) = self.admit(id, token.clone())
        {
            return self.refuse(Some(id), code, message).await;
        }
        let method = sent.headers.as_ref().and_then(|headers| headers.get(Headers::METHOD));
        let listens = method.is_some_and(|method| method == "subscriptions/listen");
        let tracker = if listens { &self.streams } else { &self.requests };
        let bridge = self.clone();
        tracker.spawn(async move {
            let relayed = token.run_until_cancelled(bridge.relay(&sent)).await.unwrap_or(Ok(()));
            let id = match &sent.due {
                Due::Answer(id) => Some(id.as_str()),
                Due::Words => None,
                Due::Nothing => return,
            };
            if let Some(id) = id {
                let mut running = bridge.running();
                // The client may have reused the id since the response.
                if running.get(id).is_some_and(|its| Arc::ptr_eq(its, &token)) {
                    running.remove(id);
                }
            }
            if let Err(reason) = relayed {
                bridge.refuse(id, code::INTERNAL_ERROR, reason).await;
            }
        });
    }

    fn admit(&self, id: &str, token: Arc<CancellationToken>) -> Result<(), (i64, &'static str)> {
        let mut running = self.running();
        if running.contains_key(id) {
            return Err((code::INVALID_REQUEST, "a request of this id is still running"));
        }
        if running.len() >= MAX_RUNNING {
            return Err((code::INTERNAL_ERROR, "too many requests are running"));
        }
        running.insert(id.to_owned(), token);
        Ok(())
    }

    /// Forwards a message and its response. The error says why there is no response.
    async fn relay(self: &Arc<Self>, sent: &Sent) -> Result<(), String> {
        let Some(headers) = &sent.headers else {
            let session = self.session().clone();
            let headers = session.as_ref().map(|session| session.headers.clone());
            let response = self.post(&sent.line, &headers.unwrap_or_default()).await?;
            let response = match session {
                // The request was not accepted, because the instance has forgotten the session.
                Some(lost) if response.status() == StatusCode::NOT_FOUND => {
                    let headers = self.open_again(&lost).await?;
                    self.post(&sent.line, &headers).await?
                }
                _ => response,
            };
            return self.pass_on(&sent.due, messages(response)).await;
        };
        let mut response = self.post(&sent.line, headers).await?;
        let is_call = headers.get(Headers::METHOD).is_some_and(|method| method == "tools/call");
        if is_call && response.status() == StatusCode::BAD_REQUEST {
            let refusal = response.text().await.map_err(|error| self.lost(&error))?;
            // Some tools require arguments in headers too, which clients over stdio do not send.
            let said: Value = serde_json::from_str(&refusal).unwrap_or_default();
            let more = if said["error"]["code"] == code::HEADER_MISMATCH {
                self.mirrored(&sent.line, headers).await
            } else {
                None
            };
            let Some(headers) = more else {
                let refusal = stream::iter([Ok(refusal)]).boxed();
                return self.pass_on(&sent.due, refusal).await;
            };
            response = self.post(&sent.line, &headers).await?;
        }
        self.pass_on(&sent.due, messages(response)).await
    }

    /// The headers of a call, with the argument headers that the tool requires.
    async fn mirrored(&self, call: &str, headers: &HeaderMap) -> Option<HeaderMap> {
        let call: Value = serde_json::from_str(call).ok()?;
        let params = &call["params"];
        let list = serde_json::json!({"jsonrpc": "2.0", "id": 0, "method": "tools/list",
                                      "params": {"_meta": params["_meta"]}});
        let mut more = headers.clone();
        more.insert(Headers::METHOD, HeaderValue::from_static("tools/list"));
        more.remove(Headers::NAME);
        let listed: Value = self.post(&list.to_string(), &more).await.ok()?.json().await.ok()?;
        let mut tools = listed["result"]["tools"].as_array()?.iter();
        let tool = tools.find(|tool| tool["name"] == params["name"])?;
        let mirrors = Mirrors::of_schema(&tool["inputSchema"]).ok()?;
        let mut all = headers.clone();
        all.extend(mirrors.headers(params["arguments"].as_object()?));
        Some(all)
    }

    async fn pass_on(&self, due: &Due, mut messages: Messages) -> Result<(), String> {
        let id = match due {
            Due::Answer(id) => Some(id.as_str()),
            Due::Words => None,
            Due::Nothing => return Ok(()),
        };
        let mut is_answered = id.is_none();
        while let Some(message) = messages.next().await {
            let message = message.map_err(|error| self.unreachable(&error))?;
            if let (Some(id), Ok(RpcMessage::Response { id: of, .. })) =
                (id, read_message(message.as_bytes()))
                && id == of
            {
                is_answered = true;
                // Removed before the response is sent, because the client may reuse the id after it.
                self.running().remove(id);
            }
            self.send(message).await;
        }
        if is_answered { Ok(()) } else { Err(self.unreachable("it ended before it answered")) }
    }

    async fn initialize(self: &Arc<Self>, id: &str, line: &str) {
        let _turn = self.opening.acquire().await;
        self.end().await;
        *self.told() = ReplayedRequests::default();
        match self.open(line).await {
            Ok((opened, answer)) => {
                *self.session() = opened;
                self.send(answer).await;
            }
            Err(reason) => self.refuse(Some(id), code::INTERNAL_ERROR, reason).await,
        }
    }

    /// Opens a session and returns it with the response; without a session if the instance refuses.
    async fn open(
        self: &Arc<Self>,
        hello: &str,
    ) -> Result<(Option<BridgeSession>, String), String> {
        let response = self.post(hello, &HeaderMap::new()).await?;
        let id = response.headers().get(Headers::SESSION).cloned();
        let answer = messages(response).next().await;
        let answer = answer.unwrap_or_else(|| Err("it gave no answer".into()));
        let answer = answer.map_err(|error| self.unreachable(&error))?;
        let Some(id) = id else { return Ok((None, answer)) };
        let mut headers = HeaderMap::from_iter([(Headers::SESSION, id)]);
        let said: Value = serde_json::from_str(&answer).unwrap_or_default();
        if let Some(version) = said["result"]["protocolVersion"].as_str() {
            headers.insert(Headers::VERSION, encode_header(version));
        }
        let session =
            BridgeSession { headers, hello: hello.into(), ended: CancellationToken::new() };
        self.follow(session.clone());
        Ok((Some(session), answer))
    }

    fn follow(self: &Arc<Self>, session: BridgeSession) {
        let bridge = self.clone();
        self.streams.spawn(async move {
            session.ended.run_until_cancelled(bridge.forward_stream(&session)).await;
        });
    }

    /// Opens a new session in place of one that the instance has forgotten, unless another request already did. It runs
    /// in a task of its own, because the caller may be cancelled, or may be the stream of the old session.
    async fn open_again(self: &Arc<Self>, lost: &BridgeSession) -> Result<HeaderMap, String> {
        let (bridge, lost) = (self.clone(), lost.clone());
        let opening = self.requests.spawn(async move { bridge.replace(&lost).await });
        opening.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    async fn replace(self: &Arc<Self>, lost: &BridgeSession) -> Result<HeaderMap, String> {
        let _turn = self.opening.acquire().await;
        let present = self.session().as_ref().map(|session| session.headers.clone());
        if let Some(present) = present.filter(|present| *present != lost.headers) {
            return Ok(present);
        }
        let (Some(opened), _) = self.open(&lost.hello).await? else {
            return Err(format!("{} has lost the session and refuses a new one", self.url));
        };
        let headers = opened.headers.clone();
        if let Err(reason) = self.replay_requests(&headers).await {
            // A session without the replayed requests would lack state that the client relies on.
            self.end_session(&opened).await;
            return Err(reason);
        }
        *self.session() = Some(opened);
        lost.ended.cancel();
        // Toolsets that were enabled in the old session are lost, so all lists may have changed.
        for what in ["tools", "prompts", "resources"] {
            self.send(notification(&format!("notifications/{what}/list_changed"), None)).await;
        }
        Ok(headers)
    }

    /// Repeats the recorded requests in a new session.
    async fn replay_requests(&self, headers: &HeaderMap) -> Result<(), String> {
        self.post(&notification("notifications/initialized", None), headers).await?;
        let told = self.told().clone();
        for line in told.log_level.iter().chain(told.subscribed.values()) {
            // The client got its response in the old session; an error of the repeated request is not reported to it.
            let answer = self.post(line, headers).await?;
            let _read = messages(answer).collect::<Vec<_>>().await;
        }
        Ok(())
    }

    /// Forwards server-initiated messages to the client, and opens the stream again when it is lost.
    async fn forward_stream(self: &Arc<Self>, session: &BridgeSession) {
        let mut pause = FIRST_PAUSE;
        loop {
            let request = self.http.get(self.url.clone()).header(ACCEPT, EVENT_STREAM);
            match self.dressed(request, &session.headers).send().await {
                Ok(response)
                    if response.status().is_success() && has_type(&response, EVENT_STREAM) =>
                {
                    pause = FIRST_PAUSE;
                    let mut messages = messages(response);
                    while let Some(Ok(message)) = messages.next().await {
                        self.send(message).await;
                    }
                }
                Ok(response) if response.status() == StatusCode::NOT_FOUND => {
                    if self.open_again(session).await.is_ok() {
                        return;
                    }
                }
                Ok(response) if response.status() == StatusCode::METHOD_NOT_ALLOWED => return,
                Ok(_) | Err(_) => {}
            }
            tokio::time::sleep(pause).await;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    /// Ends the session, if there is one.
    async fn end(&self) {
        let session = self.session().take();
        if let Some(session) = session {
            self.end_session(&session).await;
        }
    }

    async fn end_session(&self, session: &BridgeSession) {
        session.ended.cancel();
        // If this fails, the instance expires the session by itself.
        let _unheard =
            self.dressed(self.http.delete(self.url.clone()), &session.headers).send().await;
    }

    fn dressed(&self, request: RequestBuilder, headers: &HeaderMap) -> RequestBuilder {
        let request = request.headers(headers.clone());
        match &self.key {
            Some(key) => request.bearer_auth(key.expose()),
            None => request,
        }
    }

    /// Sends a message; the error says why there is no MCP response.
    async fn post(&self, message: &str, headers: &HeaderMap) -> Result<Response, String> {
        let request = self.http.post(self.url.clone()).body(message.to_owned());
        let request =
            request.header(CONTENT_TYPE, "application/json").header(ACCEPT, JSON_OR_EVENTS);
        let response = self.dressed(request, headers).send().await;
        let response = response.map_err(|error| self.lost(&error))?;
        let status = response.status();
        if !has_type(&response, PROBLEM) {
            let is_said = response.headers().contains_key(CONTENT_TYPE);
            if is_said
                && !["application/json", EVENT_STREAM].iter().any(|it| has_type(&response, it))
            {
                // From a proxy on the way; its body would mean nothing to the client.
                return Err(format!(
                    "{} answered HTTP {status}, which is not an MCP response",
                    self.url
                ));
            }
            return Ok(response);
        }
        let problem: Problem = response.json().await.map_err(|error| self.lost(&error))?;
        let key = (status == StatusCode::UNAUTHORIZED).then(|| key_hint(self.key.is_some()));
        let hint = key.or(problem.hint).map(|hint| format!("; {hint}")).unwrap_or_default();
        Err(format!("{} answered HTTP {status}: {}{hint}", self.url, problem.detail))
    }

    fn lost(&self, error: &reqwest::Error) -> String {
        self.unreachable(&cause(error))
    }

    fn unreachable(&self, why: &str) -> String {
        let hint = instance_trust::hint(why).unwrap_or(IS_IT_RUNNING);
        format!("cannot reach {}: {why}; {hint}", self.url)
    }
}

/// The headers that a stateless-era request needs over HTTP.
fn modern_headers(method: &str, params: &Members<'_>) -> HeaderMap {
    let mut headers = HeaderMap::from_iter([(Headers::METHOD, encode_header(method))]);
    if let Some(version) = Meta::of(params).ok().and_then(|meta| meta.version) {
        headers.insert(Headers::VERSION, encode_header(&version));
    }
    if let Some(name) = name_member(method).and_then(|member| params.string(member)) {
        headers.insert(Headers::NAME, encode_header(&name));
    }
    headers
}

fn has_type(response: &Response, wanted: &str) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with(wanted))
}

type Messages = BoxStream<'static, Result<String, String>>;

/// The messages of a response, sent as JSON or as an event stream.
fn messages(response: Response) -> Messages {
    if has_type(&response, EVENT_STREAM) {
        let events = SseStream::from_bytes_stream(response.bytes_stream());
        let messages = events.filter_map(async |event| match event {
            Ok(event) => event.data.map(Ok),
            Err(error) => Some(Err(error.to_string())),
        });
        return messages.boxed();
    }
    let whole = stream::once(async move { response.text().await.map_err(|error| cause(&error)) });
    whole.filter(|text| std::future::ready(!matches!(text, Ok(text) if text.is_empty()))).boxed()
}
