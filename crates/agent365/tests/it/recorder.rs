//! An HTTP server in the test's process that records what it gets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// Path and query as they were written.
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
    delay: Duration,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<String>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), delay: Duration::ZERO }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

type Replies = dyn Fn(&Seen) -> Reply + Send + Sync;

#[derive(Clone)]
struct Recording {
    seen: Arc<Mutex<Vec<Seen>>>,
    replies: Arc<Replies>,
}

/// The server; it ends when it is dropped.
pub(crate) struct Recorder {
    url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    _serving: JoinSet<()>,
}

impl Recorder {
    pub(crate) async fn start(replies: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let recording = Recording { seen: seen.clone(), replies: Arc::new(replies) };
        let service = Router::new().fallback(record).with_state(recording);
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, service).await.unwrap() });
        Self { url, seen, _serving: serving }
    }

    /// Answers everything alike.
    pub(crate) async fn always(reply: Reply) -> Self {
        Self::start(move |_| reply.clone()).await
    }

    /// The address, without a slash at its end.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The requests since the last call.
    pub(crate) fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock())
    }
}

async fn record(
    State(recording): State<Recording>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let seen = Seen {
        method: method.to_string(),
        path: uri.to_string(),
        headers: headers
            .iter()
            .map(|(name, value)| (name.to_string(), text(value.as_bytes())))
            .collect(),
        body: text(&body),
    };
    let reply = (recording.replies)(&seen);
    recording.seen.lock().push(seen);
    tokio::time::sleep(reply.delay).await;
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(reply.body)).unwrap()
}
