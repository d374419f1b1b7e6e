//! The scripted server as tests use it: build, start, change, stop, and read its records.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;

use crate::fault::Fault;
use crate::http::router;
use crate::listener::ScriptedListener;
use crate::own_runtime::serve;
use crate::shelf::{Interests, Shelf};
use crate::state::{Answers, Era, Script, Sessions, Shared, Subscriptions, Transport};
use crate::stats::Stats;
use crate::tool::Tool;

/// How long a notification waits for a client that does not read.
const NOTIFY_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct ScriptedServerBuilder {
    script: Script,
    tools: Vec<Tool>,
    shelf: Shelf,
    fault: Option<Fault>,
}

/// A scripted MCP server on a loopback port. Dropping it kills it.
#[derive(Debug)]
pub struct ScriptedServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    engine: Mutex<Option<Engine>>,
}

/// The thread whose runtime holds the listener and all connections. Dropping the value asks the thread to end; `done`
/// reports when it has.
#[derive(Debug)]
struct Engine {
    stop: oneshot::Sender<()>,
    done: oneshot::Receiver<()>,
}

impl ScriptedServerBuilder {
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Offers prompts with these names.
    #[must_use]
    pub fn prompts<const N: usize>(mut self, names: [&str; N]) -> Self {
        self.script.has_prompts = true;
        self.shelf.prompts = names.map(str::to_owned).into();
        self
    }

    /// Adds these entries, unchecked, to the lists of prompts, resources and templates.
    #[must_use]
    pub fn entries(mut self, entries: [Vec<Value>; 3]) -> Self {
        (self.script.has_prompts, self.script.has_resources) = (true, true);
        self.shelf.entries = entries;
        self
    }

    /// Offers resources with these URIs, which can be subscribed to.
    #[must_use]
    pub fn resources<const N: usize>(mut self, uris: [&str; N]) -> Self {
        self.script.has_resources = true;
        self.shelf.resources = uris.map(str::to_owned).into();
        self
    }

    /// Answers every request of a method with exactly this result.
    #[must_use]
    pub fn answers_exactly(mut self, method: &'static str, result: impl Into<String>) -> Self {
        self.script.exact.insert(method, result.into());
        self
    }

    /// Supports `logging/setLevel`, and logs the level that was set.
    #[must_use]
    pub fn logging(mut self) -> Self {
        self.script.has_logging = true;
        self
    }

    /// `initialize`, sessions and a GET stream; the default.
    #[must_use]
    pub fn legacy(mut self) -> Self {
        self.script.era = Era::Legacy;
        self
    }

    /// Only 2026-07-28: `server/discover`, required headers and `_meta`, no sessions.
    #[must_use]
    pub fn modern(mut self) -> Self {
        self.script.era = Era::Modern;
        self
    }

    /// Both eras, chosen per request.
    #[must_use]
    pub fn dual(mut self) -> Self {
        self.script.era = Era::Dual;
        self
    }

    /// Uses the HTTP+SSE transport of 2024-11-05 at `/sse` only.
    #[must_use]
    pub fn sse_transport(mut self) -> Self {
        self.script.transport = Transport::HttpSse;
        self
    }

    /// Session era without `Mcp-Session-Id`, and so without a GET stream.
    #[must_use]
    pub fn without_sessions(mut self) -> Self {
        self.script.sessions = Sessions::None;
        self
    }

    /// Stateless era with `listChanged` but without `subscriptions/listen`, as some real servers do.
    #[must_use]
    pub fn without_subscriptions(mut self) -> Self {
        self.script.subscriptions = Subscriptions::Unknown;
        self
    }

    /// Answers every request with an event stream, as many real servers do.
    #[must_use]
    pub fn answers_as_events(mut self) -> Self {
        self.script.answers = Answers::Events;
        self
    }

    #[must_use]
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.script.server_name = name.into();
        self
    }

    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.script.instructions = Some(text.into());
        self
    }

    /// Answers 401 to requests without this bearer token.
    #[must_use]
    pub fn requires_bearer(mut self, token: impl Into<String>) -> Self {
        self.script.bearer = Arc::new(Mutex::new(Some(token.into())));
        self
    }

    /// The caching hints of stateless-era lists, prompts and resources; 0 and `private` by default.
    #[must_use]
    pub fn cache(mut self, ttl_ms: u64, scope: impl Into<String>) -> Self {
        self.script.ttl_ms = ttl_ms;
        self.script.cache_scope = scope.into();
        self
    }

    #[must_use]
    pub fn tools_per_page(mut self, count: usize) -> Self {
        self.script.tools_per_page = Some(count.max(1));
        self
    }

    /// Lists that many pages of generated tools (`tool_0000000` and on) in place of the given ones. They cannot be
    /// called.
    #[must_use]
    pub fn pages(mut self, count: usize) -> Self {
        self.script.generated_pages = count;
        self
    }

    /// Starts with this fault; see [`ScriptedServer::set_fault`].
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    pub async fn start(self) -> ScriptedServer {
        let listener = StdTcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
        let address = listener.local_addr().expect("a bound listener has an address");
        let refuses = self.fault == Some(Fault::Refuse);
        let shared = Arc::new(Shared::new(self.script, self.tools, self.shelf, self.fault));
        let server = ScriptedServer { shared, address, engine: Mutex::new(None) };
        if !refuses {
            server.run(listener).await;
        }
        server
    }
}

impl ScriptedServer {
    pub fn builder() -> ScriptedServerBuilder {
        let script = Script {
            era: Era::Legacy,
            transport: Transport::StreamableHttp,
            sessions: Sessions::Required,
            answers: Answers::Json,
            server_name: "scripted".to_owned(),
            instructions: None,
            bearer: Arc::default(),
            ttl_ms: 0,
            cache_scope: "private".to_owned(),
            tools_per_page: None,
            generated_pages: 0,
            subscriptions: Subscriptions::Served,
            has_prompts: false,
            has_resources: false,
            has_logging: false,
            exact: BTreeMap::new(),
        };
        ScriptedServerBuilder { script, tools: Vec::new(), shelf: Shelf::default(), fault: None }
    }

    /// The URL for clients. It stays the same over a restart.
    pub fn url(&self) -> String {
        let path = match self.shared.script.transport {
            Transport::StreamableHttp => "mcp",
            Transport::HttpSse => "sse",
        };
        format!("http://{}/{path}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Stops at once: the port refuses connections, open connections break, sessions are lost.
    pub async fn stop(&self) {
        let engine = self.engine.lock().unwrap().take();
        if let Some(Engine { stop, done }) = engine {
            stop.send(()).ok();
            done.await.ok();
        }
        self.shared.forget_connections();
    }

    /// Restarts on the same port without its sessions. Counts and tools are kept.
    pub async fn restart_on_same_port(&self) {
        self.stop().await;
        if self.shared.current_fault() == Some(Fault::Refuse) {
            self.shared.set_fault(None, None);
        }
        let listener = StdTcpListener::bind(self.address).expect("the port is still free");
        self.run(listener).await;
    }

    /// Sets a fault. [`Fault::Refuse`] stops the server until the fault is replaced or cleared.
    pub async fn set_fault(&self, fault: Fault) {
        self.change_fault(Some(fault), None).await;
    }

    /// Sets a fault that applies `count` times.
    pub async fn set_fault_times(&self, count: usize, fault: Fault) {
        self.change_fault(Some(fault), Some(count)).await;
    }

    pub async fn clear_fault(&self) {
        self.change_fault(None, None).await;
    }

    /// Accepts only this token from now on.
    pub fn set_bearer(&self, token: impl Into<String>) {
        *self.shared.script.bearer.lock().expect("nobody panics with it") = Some(token.into());
    }

    /// Replaces the tools without a notification.
    pub fn set_tools(&self, tools: impl IntoIterator<Item = Tool>) {
        self.shared.set_tools(tools.into_iter().collect());
    }

    pub async fn set_tools_and_notify(&self, tools: impl IntoIterator<Item = Tool>) {
        self.set_tools(tools);
        self.notify_list_changed(1).await;
    }

    /// Sends `count` list changes on every open stream. Returns the number of delivered notifications: none if no
    /// stream is open.
    pub async fn notify_list_changed(&self, count: usize) -> usize {
        let storm = async {
            let mut delivered = 0;
            for _ in 0..count {
                delivered += self.shared.notify_list_changed().await;
            }
            delivered
        };
        tokio::time::timeout(NOTIFY_PATIENCE, storm).await.expect("clients read notifications")
    }

    /// Replaces the prompts and sends a notification. Returns the number of streams that got it.
    pub async fn set_prompts<const N: usize>(&self, names: [&str; N]) -> usize {
        self.shared.change_shelf(|shelf| shelf.prompts = names.map(str::to_owned).into());
        let is_told = |_: Option<&str>, interests: &Interests| interests.prompts;
        let method = "notifications/prompts/list_changed";
        self.shared.notify(method, &serde_json::json!({}), is_told).await
    }

    /// Replaces the resources and sends a notification. Returns the number of streams that got it.
    pub async fn set_resources<const N: usize>(&self, uris: [&str; N]) -> usize {
        self.shared.change_shelf(|shelf| shelf.resources = uris.map(str::to_owned).into());
        let is_told = |_: Option<&str>, interests: &Interests| interests.resources;
        let method = "notifications/resources/list_changed";
        self.shared.notify(method, &serde_json::json!({}), is_told).await
    }

    /// Sends `resources/updated` to subscribers. Returns the number of streams that got it.
    pub async fn update_resource(&self, uri: &str) -> usize {
        self.shared.notify_updated(uri).await
    }

    /// Sends a log message that belongs to no call. Returns the number of streams that got it.
    pub async fn log(&self, text: &str) -> usize {
        let params = serde_json::json!({"level": "error", "data": text});
        self.shared.notify("notifications/message", &params, |_, _| true).await
    }

    /// Sends a request outside of calls, such as `roots/list`. Returns the number of streams that got it; the answers
    /// are among the recorded requests.
    pub async fn ask_on_streams(&self, method: &str) -> usize {
        self.shared.ask_on_streams(method).await
    }

    /// The resources with a subscription.
    pub fn watched(&self) -> Vec<String> {
        self.shared.watched().into_iter().collect()
    }

    /// Number of open notification streams.
    pub fn open_streams(&self) -> usize {
        self.shared.open_stream_count()
    }

    /// Closes the notification streams regularly; sessions stay.
    pub async fn end_streams(&self) {
        self.shared.end_streams().await;
    }

    pub fn open_sessions(&self) -> usize {
        self.shared.session_count()
    }

    /// Removes all sessions, so that their next request gets 404.
    pub fn drop_sessions(&self) {
        self.shared.forget_connections();
    }

    pub fn stats(&self) -> Stats {
        self.shared.recorder.snapshot()
    }

    async fn change_fault(&self, fault: Option<Fault>, remaining: Option<usize>) {
        let refused = self.shared.current_fault() == Some(Fault::Refuse);
        let refuses = fault == Some(Fault::Refuse);
        self.shared.set_fault(fault, remaining);
        if refuses {
            self.stop().await;
        } else if refused {
            self.restart_on_same_port().await;
        }
    }

    async fn run(&self, listener: StdTcpListener) {
        let (stop, stopped) = oneshot::channel();
        let (finished, done) = oneshot::channel();
        let (ready, is_ready) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        thread::Builder::new()
            .name("scripted-server".to_owned())
            .spawn(move || {
                let service = router(Arc::clone(&shared));
                let scripted = |socket| ScriptedListener { socket, shared, parked: Vec::new() };
                serve(listener, scripted, service, ready, stopped);
                finished.send(()).ok();
            })
            .expect("a thread starts");
        *self.engine.lock().unwrap() = Some(Engine { stop, done });
        is_ready.await.expect("the server starts");
    }
}
