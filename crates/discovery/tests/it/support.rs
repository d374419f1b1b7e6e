//! Plans, contexts, and a gateway that answers what a test wants.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use parking_lot::Mutex;
use switchboard_discovery::{Discovery, DiscoveryContext, SourceStatus};
use switchboard_model::{
    DiscoveryPlan, GatewaySource, RegistryPlace, Secret, SourceKind, SourcePlan, SourcePolicy,
};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The answer of the fake gateway.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Body(u16, &'static str, String),
    Redirect(String),
    /// Answers after this time.
    Slow(Duration),
}

impl Answer {
    pub(crate) fn json(body: impl Into<String>) -> Self {
        Self::Body(200, "application/json", body.into())
    }
}

/// A request that the fake gateway got.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default()
    }
}

/// An HTTP server that answers as it is told and records what it is asked.
#[derive(Debug)]
pub(crate) struct FakeGateway {
    pub(crate) url: String,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    answer: Mutex<Answer>,
    /// Answers for single paths with their query.
    paths: Mutex<HashMap<String, Answer>>,
    seen: Mutex<Vec<Seen>>,
}

impl FakeGateway {
    pub(crate) async fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (answer, paths, seen) = (Mutex::new(answer), Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { answer, paths, seen });
        let router = Router::new().fallback(respond).with_state(shared.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, shared, _tasks: tasks }
    }

    pub(crate) fn answer(&self, answer: Answer) {
        *self.shared.answer.lock() = answer;
    }

    pub(crate) fn answer_at(&self, path: &str, answer: Answer) {
        self.shared.paths.lock().insert(path.into(), answer);
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().clone()
    }
}

async fn respond(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let path = request.uri().to_string();
    let headers = request.headers().clone();
    shared.seen.lock().push(Seen { path: path.clone(), headers });
    let own = shared.paths.lock().get(&path).cloned();
    let answer = own.unwrap_or_else(|| shared.answer.lock().clone());
    let (status, kind, body) = match answer {
        Answer::Body(status, kind, body) => (status, kind, body),
        Answer::Redirect(target) => {
            let redirect = Response::builder().status(302).header(header::LOCATION, target);
            return redirect.body(Body::empty()).unwrap();
        }
        Answer::Slow(time) => {
            tokio::time::sleep(time).await;
            (200, "application/json", "[]".into())
        }
    };
    let status = StatusCode::from_u16(status).unwrap();
    let answer = Response::builder().status(status).header(header::CONTENT_TYPE, kind);
    answer.body(Body::from(body)).unwrap()
}

/// The body of a gateway that lists these servers.
pub(crate) fn list(servers: &[(&str, &str)]) -> String {
    let entries: Vec<_> = servers
        .iter()
        .map(|(name, url)| serde_json::json!({"mcpServerName": name, "url": url}))
        .collect();
    serde_json::json!({"mcpServers": entries}).to_string()
}

pub(crate) fn gateway(url: &str) -> SourceKind {
    SourceKind::Gateway(GatewaySource {
        url: Some(url.parse().unwrap()),
        agent_id: Some("agent-1".into()),
        token: Some(Secret::new("s3cret-token")),
        path_template: None,
    })
}

pub(crate) fn registry(url: &str) -> SourceKind {
    SourceKind::Registry(RegistryPlace::Url { url: url.parse().unwrap(), token: None })
}

/// A plan with one source, named `it`, that is refreshed often.
pub(crate) fn plan_of(kind: SourceKind) -> DiscoveryPlan {
    let source = SourcePlan {
        name: "it".into(),
        kind,
        refresh: Duration::from_millis(20),
        policy: SourcePolicy::default(),
    };
    DiscoveryPlan { auto: false, sources: vec![source], ..DiscoveryPlan::default() }
}

/// A context with these variables, in a working directory without anything in it unless one is given.
pub(crate) fn context(
    variables: &[(&str, &str)],
    working: &Path,
    configuration: Option<&Path>,
) -> DiscoveryContext {
    let variables: HashMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let lookup = move |name: &str| variables.get(name).cloned();
    DiscoveryContext::new(lookup, working.to_owned(), configuration.map(Path::to_owned))
}

/// The state of the only source of a plan after one look.
pub(crate) async fn look(kind: SourceKind) -> SourceStatus {
    look_with(kind, &[]).await
}

pub(crate) async fn look_with(kind: SourceKind, variables: &[(&str, &str)]) -> SourceStatus {
    let directory = tempfile::tempdir().unwrap();
    let context = context(variables, directory.path(), None);
    let (mut sources, _) = Discovery::look(&plan_of(kind), &context).await;
    sources.remove(0)
}

pub(crate) fn names(status: &SourceStatus) -> Vec<&str> {
    status.servers.iter().map(|server| server.name.as_str()).collect()
}

pub(crate) fn error(status: &SourceStatus) -> &str {
    status.failure.as_ref().map(|failure| failure.message.as_str()).unwrap_or_default()
}
