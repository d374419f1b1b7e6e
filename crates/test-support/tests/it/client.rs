//! A client of either era that sends exactly the given messages.

use std::time::Duration;

use futures::StreamExt as _;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use switchboard_test_support::ScriptedServer;

pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
    pub(crate) session: Option<String>,
}

impl Client {
    /// A client of 2026-07-28, or of a session-era server before `initialize`.
    pub(crate) fn new(server: &ScriptedServer) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { http, url: server.url(), session: None }
    }

    /// A client with an open session.
    pub(crate) async fn in_session(server: &ScriptedServer) -> Self {
        let mut client = Self::new(server);
        let response = client.legacy("initialize", initialize_params()).send().await.unwrap();
        let session = response.headers().get("mcp-session-id");
        client.session = session.map(|value| value.to_str().unwrap().to_owned());
        client
    }

    pub(crate) fn raw(&self, method: Method) -> RequestBuilder {
        let request = self
            .http
            .request(method, &self.url)
            .header("accept", "application/json, text/event-stream");
        match &self.session {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        }
    }

    pub(crate) fn post(&self, message: &Value) -> RequestBuilder {
        self.raw(Method::POST).json(message)
    }

    pub(crate) fn post_to(&self, path: &str, message: &Value) -> RequestBuilder {
        let base = self.url.strip_suffix("/sse").unwrap_or(&self.url);
        self.http.post(format!("{base}{path}")).json(message)
    }

    pub(crate) fn legacy(&self, method: &str, params: Value) -> RequestBuilder {
        self.post(&request(method, params))
    }

    pub(crate) fn modern(&self, method: &str, mut params: Value) -> RequestBuilder {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        let mut builder = self
            .post(&request(method, params.clone()))
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        if let Some(name) = params["name"].as_str() {
            builder = builder.header("mcp-name", name);
        }
        builder
    }

    /// The JSON response to a session-era request.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Value {
        self.legacy(method, params).send().await.unwrap().json().await.unwrap()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }
}

pub(crate) fn initialize_params() -> Value {
    json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "it", "version": "1"}})
}

pub(crate) fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// Reads `count` events, or fewer if the stream ends.
pub(crate) async fn events(response: Response, count: usize) -> Vec<Value> {
    let (mut pending, mut found) = (String::new(), Vec::new());
    let mut chunks = response.bytes_stream();
    while found.len() < count {
        let next = tokio::time::timeout(PATIENCE, chunks.next()).await.expect("an event comes");
        let Some(Ok(chunk)) = next else { break };
        pending.push_str(&String::from_utf8_lossy(&chunk));
        let Some((whole, rest)) = pending.rsplit_once("\n\n") else { continue };
        let data = whole.lines().filter_map(|line| line.strip_prefix("data: "));
        found.extend(data.map(|data| serde_json::from_str::<Value>(data).unwrap()));
        pending = rest.to_owned();
    }
    found
}
