//! A gateway in this process, with clients of both eras.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Buf as _;
use futures::FutureExt as _;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use switchboard_auth::Principal;
use switchboard_config::{ConfigInput, ExposureSource, SourceFile, load, resolve_exposure};
use switchboard_mcp_server::{Gateway, GatewayBody, HttpRequest, Route};
use switchboard_model::{Caller, Face, Identity, LiveAccess, Plan, Role};
use switchboard_runtime::{
    Board, BoardOptions, ExposureRule, LocalTools, Memory, SignInPages, StartingBoard,
};
use switchboard_sessions::{Change, OwnServer, SessionService};
use switchboard_store::Store;
use switchboard_test_support::{AccountServer, ScriptedServer, wait_until};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio_util::task::TaskTracker;
use url::Url;

/// The timeout of steps that are expected to succeed, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(9);
const MODERN: &str = "2026-07-28";

pub(crate) async fn until(probe: impl Fn() -> bool) {
    wait_until(PATIENCE, async || probe().then_some(())).await;
}

/// Advances the simulated clock. Work outside of it, such as the response of a server, still takes real time.
pub(crate) async fn later(time: Duration) {
    // Tasks that were just started read the clock before it advances.
    tokio::task::yield_now().await;
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// Runs a future that must not wait for the simulated clock; one that does never ends. Work outside of it, such as a write
/// to the store, still takes real time.
pub(crate) async fn at_once<T>(future: impl Future<Output = T>) -> T {
    tokio::time::pause();
    // An idle runtime would advance the clock by itself.
    let busy = async {
        loop {
            tokio::task::yield_now().await;
        }
    };
    let done = tokio::select! {
        biased;
        done = future => done,
        never = busy => never,
    };
    tokio::time::resume();
    done
}

/// Whether a future waits for the simulated clock, and not only for work outside of it, such as a write to the store.
pub(crate) async fn waits_for_time(mut future: Pin<&mut impl Future>) -> bool {
    tokio::time::pause();
    let mut is_pending = true;
    for _ in 0..20_000 {
        is_pending = is_pending && future.as_mut().now_or_never().is_none();
        tokio::task::yield_now().await;
    }
    tokio::time::resume();
    is_pending
}

/// The plan of a configuration with these servers.
pub(crate) fn plan(servers: &[(&str, &ScriptedServer)]) -> Plan {
    plan_with(servers, "{}")
}

/// The same with a `gateway` section.
fn plan_with(servers: &[(&str, &ScriptedServer)], gateway: &str) -> Plan {
    let servers: Vec<_> = servers.iter().map(|(name, server)| (*name, server.url())).collect();
    plan_at(&servers, gateway)
}

/// The same for servers at these addresses.
fn plan_at(servers: &[(&str, String)], gateway: &str) -> Plan {
    plan_saying(servers, gateway, "")
}

/// The same with further settings in the entry of each server.
fn plan_saying(servers: &[(&str, String)], gateway: &str, more: &str) -> Plan {
    let entry = |(name, url): &(&str, String)| {
        let transport = if url.ends_with("/sse") { "sse" } else { "streamable_http" };
        format!(
            "\n      - {{name: {name}, url: \"{url}\", transport: {transport}, mode: dynamic, default_tool_config: {{max_instances: 100, timeout: 30s}}{more}}}"
        )
    };
    let servers: String = servers.iter().map(entry).collect();
    let text = format!(
        "switchboard:\n  gateway: {gateway}\n  toolbox:\n    max_concurrent: 200\n    mcps:{servers}\n"
    );
    let file = SourceFile { name: "test.yaml", directory: Path::new("."), text: &text };
    let read_secret = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    match load(&ConfigInput {
        file: Some(file),
        env: &[],
        read_secret: &read_secret,
        read_keyring: None,
    }) {
        Ok(loaded) => loaded.plan,
        Err(problems) => panic!("{problems}\n{text}"),
    }
}

/// A gateway with its servers, as one principal sees it.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) board: Arc<Board>,
    pub(crate) sessions: Arc<SessionService>,
    gateway: Arc<Gateway>,
    pub(crate) principal: Principal,
    /// The endpoint that is used.
    route: Route,
}

impl World {
    pub(crate) async fn of(servers: &[(&str, &ScriptedServer)]) -> Self {
        Self::with(servers, "{}").await
    }

    /// The same with a `gateway` section.
    pub(crate) async fn with(servers: &[(&str, &ScriptedServer)], gateway: &str) -> Self {
        let (world, starting) = Self::opening(servers, gateway).await;
        starting.finish(|_| {}).await.unwrap();
        world
    }

    /// The same with `connection: per_session`; `more` has further settings of the server.
    pub(crate) async fn per_session(server: &ScriptedServer, gateway: &str, more: &str) -> Self {
        let more = format!(", connection: per_session{more}");
        let plan = plan_saying(&[("own", server.url())], gateway, &more);
        Self::of_plan(plan).await
    }

    /// A gateway with a server at which each person has an account.
    pub(crate) async fn with_accounts(server: &AccountServer, per: &str) -> Self {
        let more = format!(", auth: {{oauth: {{per: {per}}}}}");
        // One call at a time: a call that keeps its slot stops all others.
        let plan =
            Plan { max_concurrent: 1, ..plan_saying(&[("tracker", server.url())], "{}", &more) };
        let world = Self::of_plan(plan).await;
        let base: Url = "http://127.0.0.1:1".parse().unwrap();
        let pages = SignInPages { base, needs_proof: true };
        world.board.accounts().serve_pages(move || Some(pages.clone()));
        world
    }

    /// The caller of this world's requests.
    pub(crate) fn caller(&self) -> Caller {
        self.principal.caller(Face::Mcp)
    }

    /// The same for this plan.
    pub(crate) async fn of_plan(plan: Plan) -> Self {
        let (world, starting) = Self::opening_with(plan).await;
        starting.finish(|_| {}).await.unwrap();
        world
    }

    /// A gateway whose board is still starting, until the test finishes the start.
    pub(crate) async fn opening(
        servers: &[(&str, &ScriptedServer)],
        gateway: &str,
    ) -> (Self, StartingBoard) {
        Self::opening_with(plan_with(servers, gateway)).await
    }

    /// The same with servers at these addresses.
    pub(crate) async fn opening_at(
        servers: &[(&str, String)],
        gateway: &str,
    ) -> (Self, StartingBoard) {
        Self::opening_with(plan_at(servers, gateway)).await
    }

    async fn opening_with(plan: Plan) -> (Self, StartingBoard) {
        Self::opening_as(plan, Memory::Keep).await
    }

    /// The same for the board of a server process, or of a single command.
    pub(crate) async fn opening_as(plan: Plan, memory: Memory) -> (Self, StartingBoard) {
        let options = BoardOptions {
            store: Store::in_memory().await.unwrap(),
            memory,
            local_tools: LocalTools::built_in(),
            exposure: ExposureRule::new(|plan| {
                let silent = ExposureSource::default();
                resolve_exposure(&silent, &silent, plan)
            }),
            guard: None,
        };
        let starting = Board::open(plan, options).await.unwrap();
        let board = starting.board().clone();
        let sessions = SessionService::start(board.clone());
        let gateway = Gateway::start(sessions.clone());
        (
            Self { board, sessions, gateway, principal: Principal::local(), route: Route::All },
            starting,
        )
    }

    /// Attaches servers to a session and waits for them; creates the session if needed.
    pub(crate) async fn attach(&self, session: &str, servers: &[(&str, String)], wait: Duration) {
        let own = |url: &String| OwnServer {
            url: url.clone(),
            is_sse: false,
            headers: std::collections::BTreeMap::new(),
        };
        let own_servers = servers.iter().map(|(name, url)| ((*name).into(), Some(own(url))));
        let change = Change { own_servers: own_servers.collect(), ..Change::default() };
        let owner = &self.principal.id;
        if let Ok(session) = self.sessions.session(session, Some(owner)).await {
            self.sessions.change_session(&session, None, change, wait).await.unwrap();
        } else {
            self.sessions.new_session(Some(session), owner, change, wait).await.unwrap();
        }
    }

    /// Stops the gateway, before or after the board has started.
    pub(crate) fn stop(&self) {
        self.gateway.end_streams();
    }

    /// A client over pipes, which the gateway serves as long as this lives.
    pub(crate) fn pipe(&self) -> Pipe {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (input, output) = tokio::io::split(theirs);
        let gateway = self.gateway.clone();
        let tasks = TaskTracker::new();
        tasks.spawn(async move { gateway.serve_lines(input, output).await });
        Pipe(BufReader::new(ours))
    }

    /// The same gateway, as another principal sees it.
    pub(crate) fn to_another(&self) -> Self {
        let principal = Principal { id: "another".into(), ..self.principal.clone() };
        Self { principal, ..self.clone() }
    }

    /// The same gateway, through the endpoint of a session.
    pub(crate) fn in_session(&self, id: &str) -> Self {
        self.at(Route::Session(id.into()))
    }

    /// The same gateway, through another endpoint.
    pub(crate) fn at(&self, route: Route) -> Self {
        Self { route, ..self.clone() }
    }

    /// The same gateway, with the credentials of an API key of the role client.
    pub(crate) fn with_key(&self, id: &str, name: &str) -> Self {
        let principal = Principal {
            id: format!("key:{id}").into(),
            role: Role::Client,
            name: Some(name.into()),
            identity: Arc::new(Identity::of_key(id, &name.into(), None)),
            access: LiveAccess::default(),
        };
        Self { principal, ..self.clone() }
    }

    fn request(&self, headers: &[(&str, &str)]) -> HttpRequest {
        let mut all = HeaderMap::new();
        all.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in headers {
            all.insert(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        let principal = self.principal.clone();
        HttpRequest { route: self.route.clone(), query: None, headers: all, principal }
    }

    async fn post(&self, headers: &[(&str, &str)], message: &Value) -> Response<GatewayBody> {
        self.gateway.post(self.request(headers), message.to_string().into()).await
    }

    /// Opens a session of the session era, with these client capabilities.
    pub(crate) async fn open(&self, capabilities: Value) -> Session<'_> {
        let answer = self.knock(capabilities).await;
        assert_eq!(answer.status(), 200);
        let id = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        Session { world: self, id, next: AtomicU64::new(1) }
    }

    /// Sends `initialize`.
    pub(crate) async fn knock(&self, capabilities: Value) -> Response<GatewayBody> {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities});
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        self.post(&[], &message).await
    }

    /// Sends a stateless-era request; `meta` has further members of its `_meta`.
    pub(crate) async fn modern(&self, method: &str, params: Value, meta: Value) -> Reading {
        let mut params = params;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        });
        params["_meta"].as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
        let name =
            params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default().to_owned();
        let mut headers = vec![("mcp-protocol-version", MODERN), ("mcp-method", method)];
        headers.extend((!name.is_empty()).then_some(("mcp-name", name.as_str())));
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        Reading::of(self.post(&headers, &message).await)
    }
}

/// A client over pipes.
pub(crate) struct Pipe(BufReader<DuplexStream>);

impl Pipe {
    pub(crate) async fn send(&mut self, id: u64, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.0.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    pub(crate) async fn next(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

/// A client of the session era.
pub(crate) struct Session<'w> {
    world: &'w World,
    id: String,
    next: AtomicU64,
}

impl Session<'_> {
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Reading {
        self.ask_accepting("application/json, text/event-stream", method, params).await
    }

    /// The same for a client that accepts only this media type.
    pub(crate) async fn ask_accepting(&self, kinds: &str, method: &str, params: Value) -> Reading {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let headers = [("mcp-session-id", self.id.as_str()), ("accept", kinds)];
        Reading::of(self.world.post(&headers, &message).await)
    }

    pub(crate) async fn reply(&self, id: &Value, result: Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
        let taken = self.world.post(&[("mcp-session-id", &self.id)], &message).await;
        assert_eq!(taken.status(), 202);
    }

    pub(crate) async fn tell(&self, method: &str) {
        let message = json!({"jsonrpc": "2.0", "method": method});
        let taken = self.world.post(&[("mcp-session-id", &self.id)], &message).await;
        assert_eq!(taken.status(), 202);
    }

    /// The event stream of the client.
    pub(crate) async fn listen(&self) -> Reading {
        let request = self.world.request(&[("mcp-session-id", &self.id)]);
        Reading::of(self.world.gateway.get(request).await)
    }

    /// Ends the session.
    pub(crate) async fn end(self) {
        let request = self.world.request(&[("mcp-session-id", &self.id)]);
        assert_eq!(self.world.gateway.delete(request).await.status(), 204);
    }

    pub(crate) async fn call(&self, tool: &str) -> Reading {
        self.ask("tools/call", json!({"name": tool, "arguments": {}})).await
    }
}

/// A response that is read only as far as the test asks for it.
pub(crate) struct Reading {
    pub(crate) status: u16,
    pub(crate) is_stream: bool,
    body: GatewayBody,
    text: String,
}

impl Reading {
    fn of(answer: Response<GatewayBody>) -> Self {
        let status = answer.status().as_u16();
        let is_stream = answer
            .headers()
            .get(http::header::CONTENT_TYPE)
            .is_some_and(|kind| kind == "text/event-stream");
        Self { status, is_stream, body: answer.into_body(), text: String::new() }
    }

    /// The next chunk as it was written.
    pub(crate) async fn piece(&mut self) -> Option<String> {
        let mut piece = self.body.frame().await?.unwrap().into_data().unwrap();
        let piece = piece.copy_to_bytes(piece.remaining());
        Some(String::from_utf8(piece.into()).unwrap())
    }

    /// The next message; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let read = async {
            loop {
                if let Some((event, rest)) = self.text.split_once("\n\n") {
                    let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                    let message = data.map(|data| serde_json::from_str(data).unwrap());
                    let rest = rest.to_owned();
                    self.text = rest;
                    if message.is_some() {
                        return message;
                    }
                    continue;
                }
                let Some(piece) = self.piece().await else {
                    // A response without an event stream is one message.
                    let whole = std::mem::take(&mut self.text);
                    return serde_json::from_str(&whole).ok();
                };
                self.text.push_str(&piece);
            }
        };
        tokio::time::timeout(PATIENCE, read).await.expect("a message or the end comes in time")
    }

    /// The rest of the response as it was written.
    pub(crate) async fn text(mut self) -> String {
        while let Some(piece) = self.piece().await {
            self.text.push_str(&piece);
        }
        self.text
    }

    /// The remaining messages.
    pub(crate) async fn rest(mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await {
            messages.push(message);
        }
        messages
    }

    /// The code of the expected error.
    pub(crate) async fn code(self) -> i64 {
        let last = self.rest().await.pop().expect("an answer");
        last["error"]["code"].as_i64().unwrap_or_else(|| panic!("{last}"))
    }

    /// The expected result, which must be the last message.
    pub(crate) async fn result(self) -> Value {
        let last = self.rest().await.pop().expect("an answer");
        assert!(last["result"].is_object(), "{last}");
        last["result"].clone()
    }
}
