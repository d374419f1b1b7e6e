//! Handwritten MCP clients of both eras, because a library would refuse to send most of what is needed here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{PATIENCE, Serve};

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";

/// A client that sends requests to one endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) http: Client,
    pub(crate) url: String,
    headers: HeaderMap,
    capabilities: Value,
    meta: Value,
}

/// The answer to one request, read to its end.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Peer {
    pub(crate) fn of(serve: &Serve) -> Self {
        Self {
            http: Client::builder().no_proxy().build().unwrap(),
            url: serve.at("/mcp"),
            headers: HeaderMap::new(),
            capabilities: json!({}),
            meta: json!({}),
        }
    }

    /// The same one at another endpoint.
    pub(crate) fn at(&self, url: impl Into<String>) -> Self {
        Self { url: url.into(), ..self.clone() }
    }

    /// The same one with one more header.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut peer = self.clone();
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        peer.headers.append(HeaderName::try_from(name).unwrap(), value);
        peer
    }

    pub(crate) fn with_key(&self, key: &str) -> Self {
        self.with("authorization", &format!("Bearer {key}"))
    }

    /// One that answers elicitation, sampling and roots.
    pub(crate) fn able(&self) -> Self {
        self.able_to(json!({"elicitation": {}, "sampling": {}, "roots": {}}))
    }

    pub(crate) fn able_to(&self, capabilities: Value) -> Self {
        Self { capabilities, ..self.clone() }
    }

    /// With more in the `_meta` of its requests.
    pub(crate) fn meta(&self, meta: Value) -> Self {
        Self { meta, ..self.clone() }
    }

    /// A modern request with everything that it must have.
    pub(crate) fn modern_message(&self, method: &str, params: &Value) -> Value {
        let mut params = params.clone();
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            "io.modelcontextprotocol/clientInfo": {"name": "attacker", "version": "1"},
        });
        meta.as_object_mut().unwrap().extend(self.meta.as_object().unwrap().clone());
        params["_meta"] = meta;
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    }

    pub(crate) fn modern_headers(method: &str, params: &Value) -> Vec<(String, String)> {
        let mut headers = vec![
            ("mcp-protocol-version".to_owned(), MODERN.to_owned()),
            ("mcp-method".to_owned(), method.to_owned()),
        ];
        let name = params["name"].as_str().or(params["uri"].as_str());
        headers.extend(name.map(|name| ("mcp-name".to_owned(), name.to_owned())));
        headers
    }

    pub(crate) async fn modern(&self, method: &str, params: Value) -> Answer {
        Answer::of(self.modern_response(method, params).await).await
    }

    /// The same, still to be read.
    pub(crate) async fn modern_response(&self, method: &str, params: Value) -> Response {
        let headers = Self::modern_headers(method, &params);
        let body = self.modern_message(method, &params).to_string();
        self.request(Method::POST, &headers).body(body).send().await.unwrap()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Answer {
        self.modern("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Names of the tools that a modern list shows.
    pub(crate) async fn tools(&self) -> Vec<String> {
        names(&self.modern("tools/list", json!({})).await.result()["tools"])
    }

    /// Any body with any headers.
    pub(crate) async fn post(
        &self,
        body: impl Into<reqwest::Body>,
        headers: &[(String, String)],
    ) -> Answer {
        Answer::of(self.request(Method::POST, headers).body(body).send().await.unwrap()).await
    }

    pub(crate) fn request(
        &self,
        method: Method,
        headers: &[(String, String)],
    ) -> reqwest::RequestBuilder {
        let mut all = HeaderMap::new();
        all.insert("content-type", HeaderValue::from_static("application/json"));
        all.insert("accept", HeaderValue::from_static("application/json, text/event-stream"));
        for (name, value) in &self.headers {
            if name == "content-type" || name == "accept" {
                all.insert(name, value.clone());
            } else {
                all.append(name, value.clone());
            }
        }
        for (name, value) in headers {
            let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
            all.append(HeaderName::try_from(name.as_str()).unwrap(), value);
        }
        self.http.request(method, &self.url).headers(all)
    }

    /// A legacy session.
    pub(crate) async fn open(&self) -> Session {
        self.open_version(LEGACY).await
    }

    pub(crate) async fn open_version(&self, version: &str) -> Session {
        let answer = self.initialize(version).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let id = answer.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let peer = self.with("mcp-session-id", &id);
        let session = Session { peer, id, greeting: answer.result(), next: Arc::default() };
        session.notify("notifications/initialized", json!({})).await;
        session
    }

    pub(crate) async fn initialize(&self, version: &str) -> Answer {
        let params = json!({
            "protocolVersion": version, "capabilities": self.capabilities,
            "clientInfo": {"name": "attacker", "version": "1"},
        });
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        self.post(message.to_string(), &[]).await
    }
}

impl Answer {
    pub(crate) async fn of(response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = tokio::time::timeout(PATIENCE, response.text()).await.unwrap().unwrap();
        Self { status, headers, body }
    }

    /// All messages, of a JSON body or of a stream.
    pub(crate) fn messages(&self) -> Vec<Value> {
        let is_stream =
            self.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
        if !is_stream {
            return vec![serde_json::from_str(&self.body).unwrap_or_default()];
        }
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        data.map(|data| serde_json::from_str(data.trim()).unwrap()).collect()
    }

    /// The response itself, which is the last message.
    #[track_caller]
    pub(crate) fn last(&self) -> Value {
        self.messages().pop().unwrap_or_else(|| panic!("an empty stream: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn result(&self) -> Value {
        let last = self.last();
        assert!(last["result"].is_object(), "{} {}", self.status, self.body);
        last["result"].clone()
    }

    /// The code of the JSON-RPC error; 0 when there is none.
    pub(crate) fn code(&self) -> i64 {
        self.last()["error"]["code"].as_i64().unwrap_or_default()
    }

    /// Whether it says clearly that something went wrong: a status, an error, or a tool's error.
    pub(crate) fn is_refusal(&self) -> bool {
        self.status >= 400 || self.code() != 0 || self.last()["result"]["isError"] == true
    }

    /// Whether it says to the model that there is no such tool.
    pub(crate) fn is_unknown_tool(&self) -> bool {
        self.last()["result"]["isError"] == true && self.text().starts_with("there is no tool '")
    }

    pub(crate) fn text(&self) -> String {
        self.result()["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }
}

/// A legacy session.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) peer: Peer,
    pub(crate) id: String,
    /// What `initialize` was answered with.
    pub(crate) greeting: Value,
    next: Arc<AtomicU64>,
}

impl Session {
    pub(crate) fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) async fn ask(&self, method: &str, params: Value) -> Answer {
        Answer::of(self.ask_response(self.next_id(), method, params).await).await
    }

    pub(crate) async fn ask_response(&self, id: u64, method: &str, params: Value) -> Response {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.peer.request(Method::POST, &[]).body(message.to_string()).send().await.unwrap()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Answer {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    pub(crate) async fn tools(&self) -> Vec<String> {
        names(&self.ask("tools/list", json!({})).await.result()["tools"])
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let answer = self.peer.post(message.to_string(), &[]).await;
        assert_eq!(answer.status, 202, "{}", answer.body);
    }

    pub(crate) async fn reply(&self, id: &Value, result: Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
        assert_eq!(self.peer.post(message.to_string(), &[]).await.status, 202);
    }

    /// The stream of server-initiated messages.
    pub(crate) async fn listen(&self) -> Events {
        let response = self.peer.request(Method::GET, &[]).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        Events::of(response)
    }

    pub(crate) async fn delete(&self) -> Answer {
        Answer::of(self.peer.request(Method::DELETE, &[]).send().await.unwrap()).await
    }
}

/// A stream that is read message by message.
#[derive(Debug)]
pub(crate) struct Events {
    response: Response,
    text: String,
}

impl Events {
    pub(crate) fn of(response: Response) -> Self {
        Self { response, text: String::new() }
    }

    /// The next message; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        self.within(PATIENCE).await.expect("a message or the end comes in time")
    }

    /// The next message, if it comes in this time.
    pub(crate) async fn within(&mut self, patience: Duration) -> Result<Option<Value>, ()> {
        let end = tokio::time::Instant::now() + patience;
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data:"));
                let message = data.map(|data| serde_json::from_str(data.trim()).unwrap());
                let rest = rest.to_owned();
                self.text = rest;
                if let Some(message) = message {
                    return Ok(Some(message));
                }
                continue;
            }
            match tokio::time::timeout_at(end, self.response.chunk()).await {
                Err(_) => return Err(()),
                Ok(Ok(Some(chunk))) => self.text.push_str(std::str::from_utf8(&chunk).unwrap()),
                Ok(Ok(None) | Err(_)) => return Ok(None),
            }
        }
    }
}

pub(crate) fn names(tools: &Value) -> Vec<String> {
    let tools = tools.as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Sends these bytes and reads until the other side closes or says nothing for a while.
pub(crate) async fn raw(serve: &Serve, bytes: &[u8]) -> String {
    let address = serve.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The answer may come before everything was sent.
    let _cut_off = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    // The first byte may take its time; once it is there, the rest is there or is not going to come.
    let mut patience = PATIENCE;
    while let Ok(Ok(read @ 1..)) = tokio::time::timeout(patience, stream.read(&mut buffer)).await {
        answer.extend_from_slice(&buffer[..read]);
        patience = Duration::from_millis(1500);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

pub(crate) fn status_of(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}
