//! Test support: a provider on this machine, a model request, and a reader without a wire format.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use switchboard_chat::{FaultKind, Message, ModelEvent, ModelFault, Reply, Source};
use switchboard_model::{ModelSettings, ProviderAuth, ProviderKind, ProviderPlan, Secret};
use switchboard_render::{Provider, Rendering};
use switchboard_wire::{ModelRequest, Tools};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use url::Url;

use crate::built_in::Completed;
use crate::stream::Reads;
use crate::{ModelStream, ProviderEndpoint, ProviderOrigin, Providers};

/// Returns each piece of bytes as text, except zeros, and ends at a piece that ends with `END`.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    is_done: bool,
}

impl Reads for Plain {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) {
        if bytes.first() == Some(&0) {
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        if let Some(fault) = text.strip_prefix("FAIL ") {
            let fault = ModelFault::new(FaultKind::Provider, fault);
            out.push(ModelEvent::Failed(Box::new(fault)));
            self.is_done = true;
            return;
        }
        self.is_done = text.ends_with("END");
        out.push(ModelEvent::Text(text.into_owned()));
        if self.is_done {
            out.push(ModelEvent::Finished(Box::default()));
        }
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) {
        self.is_done = true;
        let fault = ModelFault::new(FaultKind::Interrupted, "the stream ended too early");
        out.push(ModelEvent::Failed(Box::new(fault)));
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}

/// A model request with the data that it borrows.
pub(crate) struct Question {
    source: Source,
    messages: Vec<Message>,
    tools: Tools,
    settings: ModelSettings,
}

impl Question {
    pub(crate) fn new(kind: ProviderKind, text: &str) -> Self {
        Self {
            source: Source { kind, provider: "p".into(), model: "m".into(), credential: None },
            messages: vec![Message::user(text)],
            tools: Tools::only(Arc::new(Rendering::new(Provider::OpenAi, []))),
            settings: ModelSettings::default(),
        }
    }

    pub(crate) fn ask(&self) -> ModelRequest<'_> {
        ModelRequest {
            source: &self.source,
            messages: &self.messages,
            replay: 0..self.messages.len(),
            tools: &self.tools,
            settings: &self.settings,
            stop: None,
            session: "sess_1",
            turn: "turn_1",
            project: None,
            is_bearer: false,
        }
    }
}

/// All events up to the end.
pub(crate) async fn all(mut stream: ModelStream) -> Vec<ModelEvent> {
    let mut events = Vec::new();
    while let Some(more) = stream.next().await {
        assert!(!more.is_empty());
        events.extend(more);
    }
    assert!(stream.next().await.is_none(), "the end stays the end");
    events
}

pub(crate) fn reply(events: &[ModelEvent]) -> &Reply {
    match events.last() {
        Some(ModelEvent::Finished(reply)) => reply,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn fault(events: &[ModelEvent]) -> &ModelFault {
    match events.last() {
        Some(ModelEvent::Failed(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

/// The API key of all test providers.
pub(crate) const KEY: &str = "hunter2-s3cret";

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

/// A provider on this machine that answers by path.
pub(crate) struct Server {
    pub(crate) base: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    _tasks: JoinSet<()>,
}

pub(crate) type Answers = fn(&str, usize) -> Response;

impl Server {
    pub(crate) async fn start(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let app = Router::new().fallback(serve).with_state((seen.clone(), answers));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { base, seen, _tasks: tasks }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(
    State((seen, answers)): State<(Arc<Mutex<Vec<Seen>>>, Answers)>,
    request: Request,
) -> Response {
    let path = request.uri().to_string();
    let headers = request.headers().clone();
    let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let count = {
        let mut seen = seen.lock().unwrap();
        seen.push(Seen { path: path.clone(), headers, body });
        seen.len()
    };
    answers(&path, count)
}

pub(crate) fn plan(kind: ProviderKind, base: &str) -> ProviderPlan {
    ProviderPlan {
        base_url: Some(Url::parse(base).unwrap()),
        auth: ProviderAuth::Bearer(Secret::new(KEY)),
        ..ProviderPlan::new("test", kind)
    }
}

pub(crate) fn endpoint(plan: ProviderPlan) -> Arc<ProviderEndpoint> {
    Providers::new(&[plan], &|_| None).find("test").unwrap()
}

/// The same provider over both clients: the loopback client and reqwest.
pub(crate) fn endpoints(plan: &ProviderPlan) -> [Arc<ProviderEndpoint>; 2] {
    let completed = Completed { plan: plan.clone(), missing: None, unreadable: None };
    let far = ProviderEndpoint::new(ProviderOrigin::Configured, completed, Arc::default(), None)
        .by_the_long_way();
    [endpoint(plan.clone()), Arc::new(far)]
}
