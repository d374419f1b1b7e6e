//! A board that is served over HTTP in this process, and a client of its API.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, Method};
use serde_json::Value;
use switchboard_auth::{Gatekeeper, GatekeeperOptions, KeyDraft, NewKey, Role};
use switchboard_config::{ExposureSource, resolve_exposure};
use switchboard_http::{BoardPlace, HostPolicy, ServeOptions, serve};
use switchboard_runtime::{
    Board, BoardOptions, ConfigSource, ExposureRule, LiveConfig, LocalTools, Memory,
};
use switchboard_sessions::SessionService;
use switchboard_store::Store;
use switchboard_telemetry::install_metrics;
use switchboard_test_support::{ScriptedServer, Tool, wait_until};
use switchboard_turns::Turns;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::recording_mcp::RecordingMcp;

/// The timeout of steps that are expected to succeed, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A running HTTP server with its store.
pub(crate) struct ApiServer {
    pub(crate) address: SocketAddr,
    pub(crate) mcp: Arc<RecordingMcp>,
    pub(crate) store: Store,
    pub(crate) directory: TempDir,
    pub(crate) gatekeeper: Arc<Gatekeeper>,
    place: BoardPlace,
    pub(crate) serving: TaskTracker,
    stop: CancellationToken,
    _stop_when_dropped: DropGuard,
}

impl ApiServer {
    /// Serves the board of this configuration.
    pub(crate) async fn start(yaml: &str) -> Self {
        let server = Self::without_board().await;
        server.start_board(yaml).await;
        server
    }

    /// Serves while the board has not started.
    pub(crate) async fn without_board() -> Self {
        Self::without_board_but(GatekeeperOptions::default()).await
    }

    /// Serves with these credentials while the board has not started.
    pub(crate) async fn without_board_but(options: GatekeeperOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).await.unwrap();
        let gatekeeper = Gatekeeper::new(store.clone(), options).await.unwrap();
        let place = BoardPlace::default();
        let options = ServeOptions {
            board: place.clone(),
            metrics: install_metrics(),
            hosts: HostPolicy::default(),
            gatekeeper: gatekeeper.clone(),
            tls: None,
            drain: PATIENCE,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mcp, stop) = (Arc::new(RecordingMcp::default()), CancellationToken::new());
        let serving = TaskTracker::new();
        serving.spawn(serve(listener, options, mcp.clone(), stop.clone().cancelled_owned()));
        serving.close();
        let guard = stop.clone().drop_guard();
        Self {
            address,
            mcp,
            store,
            directory,
            gatekeeper,
            place,
            serving,
            stop,
            _stop_when_dropped: guard,
        }
    }

    /// Starts the board and hands it to the server.
    pub(crate) async fn start_board(&self, yaml: &str) -> Arc<SessionService> {
        std::fs::write(self.file(), yaml).unwrap();
        let source = ConfigSource::find(Some(self.file()), Vec::new());
        let loaded = source.load().unwrap_or_else(|problems| panic!("{problems}\n{yaml}"));
        let plan = loaded.plan.clone();
        let options = BoardOptions {
            store: self.store.clone(),
            memory: Memory::Keep,
            local_tools: LocalTools::built_in(),
            exposure: ExposureRule::new(|plan| {
                let silent = ExposureSource::default();
                resolve_exposure(&silent, &silent, plan)
            }),
            guard: None,
        };
        let board = Board::start(plan, options, |_| {}).await.unwrap();
        let sessions = SessionService::start(board.clone());
        let turns = Turns::start(&board, sessions.clone(), &|_| None);
        self.place.set_config(LiveConfig::new(board.clone(), source, loaded));
        self.place.fill(board, sessions.clone(), turns);
        sessions
    }

    /// Replaces the configuration file and reads it again.
    pub(crate) async fn reload(&self, yaml: &str) {
        std::fs::write(self.file(), yaml).unwrap();
        self.place.config().unwrap().reload().await;
    }

    /// The configuration in force.
    pub(crate) fn config(&self) -> Arc<LiveConfig> {
        self.place.config().unwrap().clone()
    }

    /// The configuration file.
    pub(crate) fn file(&self) -> PathBuf {
        self.directory.path().join("test.yaml")
    }

    /// The API without credentials.
    pub(crate) fn api(&self) -> Api {
        let http = Client::builder().no_proxy().build().unwrap();
        Api { http, url: format!("http://{}", self.address), key: None }
    }

    /// The API with a new key. From now on requests without a key are refused.
    pub(crate) async fn api_of(&self, name: &str, role: Role) -> Api {
        let made = NewKey::add(&self.store, KeyDraft::new(name, role)).await.unwrap();
        self.gatekeeper.refresh().await.unwrap();
        Api { key: Some(made.key.expose().to_owned()), ..self.api() }
    }

    /// The response to bytes that no HTTP library would send: status and body.
    pub(crate) async fn send_raw(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let reading = stream.read_to_string(&mut answer);
        tokio::time::timeout(PATIENCE, reading).await.unwrap().unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        (head.split_whitespace().nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Begins the shutdown.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }
}

/// A client of the API.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    pub(crate) http: Client,
    pub(crate) url: String,
    key: Option<String>,
}

/// A response of the API.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Api {
    /// The same with this key.
    pub(crate) fn with_key(self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self }
    }

    /// The API key.
    pub(crate) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.url));
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let request = self.request(method, path);
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        Answer::of(request).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PUT, path, Some(body)).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PATCH, path, Some(body)).await
    }

    /// Creates a session; returns its path.
    pub(crate) async fn new_session(&self, wanted: Value) -> String {
        let made = self.post("/api/v1/sessions", wanted).await;
        assert_eq!(made.status, 201, "{:#}", made.body);
        format!("/api/v1/sessions/{}", made.body["id"].as_str().unwrap())
    }
}

impl Answer {
    /// The response to a request; JSON where the body is JSON, else a text.
    pub(crate) async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = tokio::time::timeout(PATIENCE, request.send()).await.unwrap().unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Self { status, headers, body }
    }

    /// The body of a successful response.
    #[track_caller]
    pub(crate) fn good(self) -> Value {
        assert!((200..300).contains(&self.status), "{} {:#}", self.status, self.body);
        self.body
    }

    /// The `detail` of a problem document of this status and kind.
    #[track_caller]
    pub(crate) fn problem(self, status: u16, kind: &str) -> String {
        assert_eq!(self.status, status, "{:#}", self.body);
        assert_eq!(self.headers["content-type"], "application/problem+json", "{:#}", self.body);
        assert_eq!(self.body["type"], format!("urn:switchboard:problem:{kind}"), "{:#}", self.body);
        assert_eq!(self.body["title"], kind.replace('_', " "));
        assert_eq!(self.body["status"], status);
        self.body["detail"].as_str().unwrap().to_owned()
    }
}

pub(crate) async fn scripted(tools: impl IntoIterator<Item = Tool>) -> ScriptedServer {
    ScriptedServer::builder().tools(tools).start().await
}

/// A configuration with dynamic servers at these addresses; `tools` has the entries of `toolbox.tools`.
pub(crate) fn yaml(tools: &[&str], servers: &[(&str, &ScriptedServer)]) -> String {
    yaml_with("max_concurrent: 64", tools, servers)
}

/// The same with this member of `toolbox` in place of `max_concurrent`.
pub(crate) fn yaml_with(
    toolbox: &str,
    tools: &[&str],
    servers: &[(&str, &ScriptedServer)],
) -> String {
    let servers = servers.iter().map(|(name, server)| {
        format!(
            "{{name: {name}, url: \"{}\", mode: dynamic, default_tool_config: {{max_instances: 10, timeout: 30s}}}}",
            server.url()
        )
    });
    let servers: Vec<_> = servers.collect();
    format!(
        "switchboard:\n  toolbox:\n    {toolbox}\n    tools: [{}]\n    mcps: [{}]\n",
        tools.join(", "),
        servers.join(", ")
    )
}

/// Two servers, `shop` and `notes`, and the toolsets `look` (find, price) and `buy` (order, price).
pub(crate) struct TwoServers {
    pub(crate) shop: ScriptedServer,
    pub(crate) server: ApiServer,
    _notes: ScriptedServer,
}

impl TwoServers {
    /// Serves them with these members of the `gateway` section.
    pub(crate) async fn start(gateway: &str) -> Self {
        let slow = Tool::echo("slow").sleeps(300);
        let shop =
            scripted([Tool::echo("find"), Tool::echo("price"), Tool::echo("order"), slow]).await;
        let notes = scripted([Tool::echo("read"), Tool::echo("write")]).await;
        let toolbox = yaml(&[], &[("shop", &shop), ("notes", &notes)]);
        let server = ApiServer::start(&format!(
            "{toolbox}  gateway: {{{gateway}}}\n  toolsets:\n    \
             - {{name: look, description: Looks, tools: [find, price]}}\n    \
             - {{name: buy, description: Buys, tools: [order, price]}}\n"
        ))
        .await;
        Self { shop, server, _notes: notes }
    }
}

pub(crate) async fn until(probe: impl Fn() -> bool) {
    wait_until(PATIENCE, async || probe().then_some(())).await;
}
