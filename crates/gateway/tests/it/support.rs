//! A gateway in this process, and legacy and modern clients of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Buf as _;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use switchboard_auth::Principal;
use switchboard_config::{ExposureSource, Input, SourceFile, load, resolve_exposure};
use switchboard_gateway::{Gateway, GatewayBody, HttpRequest, Route};
use switchboard_model::Plan;
use switchboard_runtime::{Board, BoardOptions, LocalTools, Memory};
use switchboard_store::Store;
use switchboard_test_support::{ScriptedServer, wait_until};

/// Longer than anything that goes right takes, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(9);
const MODERN: &str = "2026-07-28";

pub(crate) async fn until(probe: impl Fn() -> bool) {
    wait_until(PATIENCE, async || probe().then_some(())).await;
}

/// Lets time pass that nobody has to wait for. What takes time elsewhere, such as an answer of a server, takes it still.
pub(crate) async fn later(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// What these servers are configured as.
pub(crate) fn plan(servers: &[(&str, &ScriptedServer)]) -> Plan {
    let entry = |(name, server): &(&str, &ScriptedServer)| {
        format!(
            "\n      - {{name: {name}, url: \"{}\", mode: dynamic, default_tool_config: {{max_instances: 5, timeout: 30s}}}}",
            server.url()
        )
    };
    let servers: String = servers.iter().map(entry).collect();
    let text = format!("switchboard:\n  toolbox:\n    max_concurrent: 64\n    mcps:{servers}\n");
    let file = SourceFile { name: "test.yaml", directory: Path::new("."), text: &text };
    let read_secret = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    match load(&Input { file: Some(file), env: &[], read_secret: &read_secret }) {
        Ok(loaded) => loaded.plan,
        Err(problems) => panic!("{problems}\n{text}"),
    }
}

/// A gateway with these servers behind it.
pub(crate) struct World {
    pub(crate) board: Arc<Board>,
    gateway: Arc<Gateway>,
}

impl World {
    pub(crate) async fn of(servers: &[(&str, &ScriptedServer)]) -> Self {
        let options = BoardOptions {
            store: Store::in_memory().await.unwrap(),
            memory: Memory::Keep,
            local_tools: LocalTools::built_in(),
            guard: None,
        };
        let board = Board::start(plan(servers), options, |_| {}).await.unwrap();
        let silent = ExposureSource::default();
        let rule = move |plan: &Plan| resolve_exposure(&silent, &silent, plan);
        let gateway = Gateway::start(board.clone(), Box::new(rule)).unwrap();
        Self { board, gateway }
    }

    async fn post(&self, headers: &[(&str, &str)], message: &Value) -> Response<GatewayBody> {
        self.gateway.post(request(headers), message.to_string().into()).await
    }

    /// Ends a session.
    pub(crate) async fn end(&self, session: Session<'_>) {
        let ended = self.gateway.delete(request(&[("mcp-session-id", &session.id)])).await;
        assert_eq!(ended.status(), 204);
    }

    /// A legacy session of a client that can do this.
    pub(crate) async fn open(&self, capabilities: Value) -> Session<'_> {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities});
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let answer = self.post(&[], &message).await;
        let id = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        Session { world: self, id, next: AtomicU64::new(1) }
    }

    /// A modern request; `meta` is what its `_meta` has besides.
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

fn request(headers: &[(&str, &str)]) -> HttpRequest {
    let mut all = HeaderMap::new();
    all.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in headers {
        all.insert(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
    }
    HttpRequest { route: Route::All, query: None, headers: all, principal: Principal::local() }
}

/// A legacy session.
pub(crate) struct Session<'w> {
    world: &'w World,
    id: String,
    next: AtomicU64,
}

impl Session<'_> {
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Reading {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        Reading::of(self.world.post(&[("mcp-session-id", &self.id)], &message).await)
    }

    pub(crate) async fn call(&self, tool: &str) -> Reading {
        self.ask("tools/call", json!({"name": tool, "arguments": {}})).await
    }
}

/// An answer of which nothing is taken that nobody asks for.
pub(crate) struct Reading {
    body: GatewayBody,
    text: String,
}

impl Reading {
    fn of(answer: Response<GatewayBody>) -> Self {
        assert_eq!(answer.status(), 200);
        Self { body: answer.into_body(), text: String::new() }
    }

    /// The next message; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let read = async {
            loop {
                if let Some((event, rest)) = self.text.split_once("\n\n") {
                    let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                    let message = data.map(|data| serde_json::from_str(data).unwrap());
                    self.text = rest.to_owned();
                    if message.is_some() {
                        return message;
                    }
                    continue;
                }
                let Some(frame) = self.body.frame().await else {
                    // What came without a stream is one message.
                    let whole = std::mem::take(&mut self.text);
                    return serde_json::from_str(&whole).ok();
                };
                let mut piece = frame.unwrap().into_data().unwrap();
                let piece = piece.copy_to_bytes(piece.remaining());
                self.text.push_str(std::str::from_utf8(&piece).unwrap());
            }
        };
        tokio::time::timeout(PATIENCE, read).await.expect("a message or the end comes in time")
    }

    /// All that is left, as it was written.
    pub(crate) async fn text(mut self) -> String {
        while let Some(frame) = self.body.frame().await {
            let mut piece = frame.unwrap().into_data().unwrap();
            let piece = piece.copy_to_bytes(piece.remaining());
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
        self.text
    }

    /// All that is left.
    pub(crate) async fn rest(mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await {
            messages.push(message);
        }
        messages
    }

    /// The result that has to come last.
    pub(crate) async fn result(self) -> Value {
        let last = self.rest().await.pop().expect("an answer");
        assert!(last["result"].is_object(), "{last}");
        last["result"].clone()
    }
}
