//! A threat-protection endpoint that records what it is sent and answers as a test says.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A request that the endpoint received.
#[derive(Debug, Clone)]
pub struct ThreatRequest {
    /// The header `x-switchboard-hook`.
    pub hook: String,
    pub authorization: Option<String>,
    pub body: Value,
}

impl ThreatRequest {
    /// The last message of the history, which is what is judged.
    pub fn content(&self) -> &str {
        let history = self.body["chatHistory"].as_array();
        history.and_then(|all| all.last()?["content"].as_str()).unwrap_or_default()
    }

    /// The user's message.
    pub fn user_message(&self) -> &str {
        self.body["userMessage"].as_str().unwrap_or_default()
    }
}

/// What the endpoint answers.
#[derive(Debug, Clone)]
pub enum ThreatAnswer {
    Allow,
    Refuse(&'static str),
    /// A refusal after this time.
    RefuseAfter(Duration, &'static str),
    /// This status with this body.
    Raw(u16, &'static str),
    /// Nothing, ever.
    Hang,
}

type Judge = dyn Fn(&ThreatRequest) -> ThreatAnswer + Send + Sync;

struct Desk {
    judge: Mutex<Arc<Judge>>,
    requests: Mutex<Vec<ThreatRequest>>,
}

/// A running endpoint. Dropping it stops it.
pub struct ThreatEndpoint {
    url: String,
    desk: Arc<Desk>,
    stop: CancellationToken,
    _tasks: TaskTracker,
}

impl fmt::Debug for ThreatEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreatEndpoint").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Drop for ThreatEndpoint {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl ThreatEndpoint {
    /// Starts an endpoint that allows everything.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub async fn start() -> Self {
        Self::judging(|_| ThreatAnswer::Allow).await
    }

    /// Starts an endpoint that answers as this function says.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub async fn judging(
        judge: impl Fn(&ThreatRequest) -> ThreatAnswer + Send + Sync + 'static,
    ) -> Self {
        let judge: Arc<Judge> = Arc::new(judge);
        let desk = Arc::new(Desk { judge: Mutex::new(judge), requests: Mutex::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/threats", listener.local_addr().unwrap());
        let router = Router::new().route("/threats", post(answer)).with_state(desk.clone());
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let serving = axum::serve(listener, router);
        let stopped = stop.clone();
        tasks.spawn(async move {
            let _ended = stopped.run_until_cancelled(serving.into_future()).await;
        });
        Self { url, desk, stop, _tasks: tasks }
    }

    /// Answers as this function says from now on.
    pub fn judge(&self, judge: impl Fn(&ThreatRequest) -> ThreatAnswer + Send + Sync + 'static) {
        *self.desk.judge.lock() = Arc::new(judge);
    }

    /// The address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<ThreatRequest> {
        self.desk.requests.lock().clone()
    }

    /// The hooks of the requests so far.
    pub fn hooks(&self) -> Vec<String> {
        self.requests().into_iter().map(|request| request.hook).collect()
    }

    /// Everything that was sent to it, as text.
    pub fn received(&self) -> String {
        let bodies = self.requests().into_iter().map(|request| request.body.to_string());
        bodies.collect::<Vec<_>>().join("\n")
    }
}

async fn answer(State(desk): State<Arc<Desk>>, headers: HeaderMap, body: Bytes) -> Response {
    let header = |name: &str| Some(headers.get(name)?.to_str().unwrap().to_owned());
    let request = ThreatRequest {
        hook: header("x-switchboard-hook").unwrap_or_default(),
        authorization: header(header::AUTHORIZATION.as_str()),
        body: serde_json::from_slice(&body).unwrap(),
    };
    let judge = desk.judge.lock().clone();
    let verdict = judge(&request);
    desk.requests.lock().push(request);
    match verdict {
        ThreatAnswer::Allow => json!({"blockAction": false}).to_string().into_response(),
        ThreatAnswer::Refuse(reason) => refusal(reason),
        ThreatAnswer::RefuseAfter(time, reason) => {
            tokio::time::sleep(time).await;
            refusal(reason)
        }
        ThreatAnswer::Raw(status, body) => {
            (StatusCode::from_u16(status).unwrap(), body).into_response()
        }
        ThreatAnswer::Hang => std::future::pending().await,
    }
}

fn refusal(reason: &str) -> Response {
    let refusal = json!({"blockAction": true, "reason": reason, "reasonCode": 112});
    refusal.to_string().into_response()
}
