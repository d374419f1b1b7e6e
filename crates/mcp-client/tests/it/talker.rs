//! A session-era HTTP server that sends log messages, progress and requests, and can drop responses and sessions.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

/// What it notices, and what the tests tell it.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    pub(crate) sessions: HashSet<String>,
    pub(crate) opened: usize,
    /// Whether new sessions are forgotten as soon as they are opened.
    pub(crate) forgets: bool,
    pub(crate) requests: Vec<Value>,
    pub(crate) resumed_from: Vec<String>,
    questions: HashMap<String, oneshot::Sender<Value>>,
    stream: Option<mpsc::Sender<String>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Talker {
    talk: Arc<Mutex<Talk>>,
    tasks: TaskTracker,
    pub(crate) url: String,
}

impl Talker {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let talker = Self { talk: Arc::default(), tasks: TaskTracker::new(), url };
        let router = Router::new().fallback(handle).with_state(talker.clone());
        talker.tasks.spawn(async move { axum::serve(listener, router).await });
        talker
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&mut Talk) -> T) -> T {
        look(&mut self.talk.lock().unwrap())
    }

    /// Whether the stream of notifications is open.
    pub(crate) fn is_heard(&self) -> bool {
        self.look(|talk| talk.stream.as_ref().is_some_and(|stream| !stream.is_closed()))
    }

    /// How often a tool was called.
    pub(crate) fn calls(&self) -> usize {
        let is_call = |request: &&Value| request["method"] == "tools/call";
        self.look(|talk| talk.requests.iter().filter(is_call).count())
    }

    /// Says something on the stream of notifications.
    pub(crate) async fn say(&self, message: &Value) {
        let stream = self.look(|talk| talk.stream.clone()).unwrap();
        stream.send(event("", message)).await.unwrap();
    }

    /// Asks something on the stream of notifications.
    pub(crate) async fn ask(&self, id: &str, method: &str) -> Value {
        let answered = self.wait_for(id);
        self.say(&question(id, method)).await;
        answered.await.unwrap()
    }

    fn wait_for(&self, id: &str) -> oneshot::Receiver<Value> {
        let (sender, receiver) = oneshot::channel();
        self.look(|talk| talk.questions.insert(id.to_owned(), sender));
        receiver
    }

    fn initialize(&self, message: &Value) -> Response {
        let session = self.look(|talk| {
            talk.requests.push(message.clone());
            talk.opened += 1;
            let session = format!("s{}", talk.opened);
            if !talk.forgets {
                talk.sessions.insert(session.clone());
            }
            session
        });
        let capabilities = json!({"tools": {}, "logging": {}, "completions": {}, "prompts": {},
            "resources": {"subscribe": true, "listChanged": true}});
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
            "serverInfo": {"name": "talker", "version": "1"}, "instructions": "Talk."});
        let mut response = answer(&message["id"], &result);
        response.headers_mut().insert("mcp-session-id", session.parse().unwrap());
        response
    }

    /// The stream of notifications, or the rest of an answer. The first attempt brings nothing either.
    async fn listen(&self, last_event: Option<&HeaderValue>) -> Response {
        let (sender, received) = mpsc::channel(16);
        let Some(last_event) = last_event else {
            self.look(|talk| talk.stream = Some(sender));
            return events(received);
        };
        let id = last_event.to_str().unwrap().to_owned();
        let result = json!({"resumed": true, "content": []});
        let rest = event("", &json!({"jsonrpc": "2.0", "id": id, "result": result}));
        let attempts = self.look(|talk| {
            talk.resumed_from.push(id);
            talk.resumed_from.len()
        });
        if attempts > 1 {
            sender.send(rest).await.unwrap();
        }
        events(received)
    }

    async fn work(&self, message: &Value, stream: mpsc::Sender<String>) {
        let (id, params) = (&message["id"], &message["params"]);
        let say = async |bookmark: &str, message: Value| {
            stream.send(event(bookmark, &message)).await.ok();
        };
        let log = json!({"level": "info", "data": {"for": id}});
        say("", json!({"jsonrpc": "2.0", "method": "notifications/message", "params": log})).await;
        let token = &params["_meta"]["progressToken"];
        let progress = json!({"progressToken": token, "progress": 1, "unheard": "of"});
        say("", json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}))
            .await;
        let result = match params["name"].as_str().unwrap() {
            "ask" => {
                let name = format!("q-{}", id.as_str().unwrap());
                let answered = self.wait_for(&name);
                say("", question(&name, "elicitation/create")).await;
                answered.await.unwrap()
            }
            "break" => {
                // A bookmark, and a pause that a test can wait for.
                stream
                    .send(format!("id: {}\nretry: 10\ndata: \n\n", id.as_str().unwrap()))
                    .await
                    .ok();
                return;
            }
            "hang" => std::future::pending().await,
            _ => json!({}),
        };
        say("", json!({"jsonrpc": "2.0", "id": id, "result": {"answer": result, "content": []}}))
            .await;
    }
}

fn question(id: &str, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"message": id}})
}

fn event(bookmark: &str, message: &Value) -> String {
    format!("id: {bookmark}\ndata: {message}\n\n")
}

fn events(received: mpsc::Receiver<String>) -> Response {
    let body = futures::stream::unfold(received, |mut received| async move {
        Some((Ok::<_, Infallible>(received.recv().await?), received))
    });
    ([("content-type", "text/event-stream")], Body::from_stream(body.boxed())).into_response()
}

fn answer(id: &Value, result: &Value) -> Response {
    let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    ([("content-type", "application/json")], body).into_response()
}

/// The first of two pages, or the last.
fn page(message: &Value, member: &str, items: Value) -> Response {
    let mut page = json!({});
    page[member] = items;
    if message["params"]["cursor"].is_null() {
        page["nextCursor"] = json!("more");
    }
    answer(&message["id"], &page)
}

async fn handle(
    State(talker): State<Talker>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (id, kind) = (&message["id"], message["method"].as_str().unwrap_or_default());
    if kind == "server/discover" {
        return StatusCode::BAD_REQUEST.into_response();
    }
    if kind == "initialize" {
        return talker.initialize(&message);
    }
    let session = headers.get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
    let is_known = |session: &String| talker.look(|talk| talk.sessions.contains(session));
    if !session.as_ref().is_some_and(is_known) && kind != "notifications/initialized" {
        return StatusCode::NOT_FOUND.into_response();
    }
    let version = headers.get("mcp-protocol-version").map(|version| version.to_str().unwrap());
    assert_eq!(version, Some("2025-11-25"), "{method} {kind} {message}");
    if method == Method::GET {
        return talker.listen(headers.get("last-event-id")).await;
    }
    talker.look(|talk| talk.requests.push(message.clone()));
    match kind {
        "" => {
            let waiting = id.as_str().and_then(|id| talker.look(|talk| talk.questions.remove(id)));
            if let Some(waiting) = waiting {
                waiting.send(message).ok();
            }
            StatusCode::ACCEPTED.into_response()
        }
        "ping" | "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" => {
            answer(id, &json!({}))
        }
        "tools/list" => answer(id, &json!({"tools": []})),
        "prompts/list" => {
            page(&message, "prompts", json!([{"name": "p", "later": 1.0}, {"nameless": true}]))
        }
        "resources/list" => page(&message, "resources", json!([{"uri": "file:///a"}])),
        "resources/templates/list" => {
            page(&message, "resourceTemplates", json!([{"uriTemplate": "file:///{p}"}]))
        }
        "tools/call" if message["params"]["name"] == "exact" => {
            let text = message["params"]["arguments"]["text"].as_str().unwrap();
            let body =
                format!("{{ \"result\" : {text} ,\"id\":{id}, \"jsonrpc\":\"2.0\", \"new\": 1}}");
            ([("content-type", "Application/JSON; charset=utf-8")], body).into_response()
        }
        "tools/call" => {
            let (sender, received) = mpsc::channel(16);
            talker.clone().tasks.spawn(async move { talker.work(&message, sender).await });
            events(received)
        }
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

/// Long enough for something to be noticed that must not be there.
pub(crate) const MOMENT: Duration = Duration::from_millis(200);
