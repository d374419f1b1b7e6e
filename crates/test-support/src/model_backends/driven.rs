//! A model that the test plays itself, for running whole agent programs.
//!
//! An agent sends far more than our own converters do (its own tools, its prompts, beta fields), at times that no list
//! of [`Step`]s can foresee, so nothing is checked here. Each request of the agent's main loop is passed to the test as
//! a [`ModelTurn`] with the offered tools and the results, and is answered with the [`Step`] that the test chooses.
//! Requests without tools (titles, quota checks) are answered with a short text.

use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::backend::Backend;
use super::heard::EventReceiver;
use super::offered::{ToolOutcome, offered_tools, tool_outcomes};
use super::service::{BODY_LIMIT, Manner, Route, counted, models_of, play, reply_json, route_of};
use super::state::Shared;
use super::step::Step;
use crate::own_runtime::serve;

/// Maximum number of requests that wait for the test; an agent has one or two at a time.
const WAITING: usize = 16;

/// The backends of one agent, on one loopback port. Dropping the value stops them.
#[derive(Debug)]
pub struct DrivenModel {
    address: SocketAddr,
    turns: mpsc::Receiver<ModelTurn>,
    /// Dropped with the model, which stops the serving thread.
    _stop: oneshot::Sender<()>,
}

/// A request of the agent's main loop that waits for its answer.
#[derive(Debug)]
pub struct ModelTurn {
    /// The names of the offered tools; those in a namespace as `namespace.name`.
    pub tools: Vec<String>,
    /// The results of the last calls.
    pub results: Vec<ToolOutcome>,
    pub body: Value,
    reply: oneshot::Sender<Step>,
}

#[derive(Debug)]
struct Driven {
    shared: Arc<Shared>,
    turns: mpsc::Sender<ModelTurn>,
}

impl ModelTurn {
    /// Answers the request. Does nothing if the agent is gone.
    pub fn answer(self, step: Step) {
        self.reply.send(step).ok();
    }

    /// The only result of the last call.
    #[track_caller]
    pub fn result(&self) -> &ToolOutcome {
        match self.results.as_slice() {
            [only] => only,
            others => panic!("one result was expected: {others:#?}"),
        }
    }
}

impl DrivenModel {
    pub async fn start() -> Self {
        let listener = StdTcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
        let address = listener.local_addr().expect("a bound listener has an address");
        let (turns, waiting) = mpsc::channel(WAITING);
        let driven = Arc::new(Driven { shared: Arc::default(), turns });
        let router = Router::new().fallback(handle).with_state(driven);
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = oneshot::channel();
        thread::Builder::new()
            .name("driven-model".to_owned())
            .spawn(move || serve(listener, |socket| socket, router, ready, stopped))
            .expect("a thread starts");
        is_ready.await.expect("the backends start");
        Self { address, turns: waiting, _stop: stop }
    }

    /// The address without a path.
    pub fn root_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next request of the agent's main loop; `None` after that time.
    pub async fn next_turn(&mut self, patience: Duration) -> Option<ModelTurn> {
        tokio::time::timeout(patience, self.turns.recv()).await.ok().flatten()
    }
}

async fn handle(State(driven): State<Arc<Driven>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, BODY_LIMIT).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    match route_of(&parts) {
        Some(Route::Answer(backend, manner)) => answer(&driven, backend, manner, body).await,
        Some(Route::CountTokens(backend)) => {
            reply_json(StatusCode::OK, &counted(backend, bytes.len()))
        }
        Some(Route::Models(backend)) => reply_json(StatusCode::OK, &models_of(backend)),
        Some(Route::CodeAssist(_) | Route::Script | Route::Seen | Route::Clear) | None => {
            StatusCode::NOT_FOUND.into_response()
        }
    }
}

async fn answer(driven: &Driven, backend: Backend, manner: Manner, body: Value) -> Response {
    let (model, streams) = match manner {
        Manner::AsTheBodySays => {
            (body["model"].as_str().unwrap_or_default().to_owned(), body["stream"] == true)
        }
        Manner::Streamed { model } => (model, true),
        Manner::Whole { model } => (model, false),
    };
    let tools = offered_tools(backend, &body);
    let heard = EventReceiver { model, streams, tools: tools.clone(), ..EventReceiver::default() };
    let step = if tools.is_empty() {
        Step::text("ok")
    } else {
        let (reply, replied) = oneshot::channel();
        let results = tool_outcomes(backend, &body);
        let turn = ModelTurn { tools, results, body, reply };
        // The receiver or the reply is gone: the test has ended.
        let (Ok(()), Ok(step)) = (driven.turns.send(turn).await, replied.await) else {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        };
        step
    };
    play(&driven.shared, backend, &step, &heard).await
}
