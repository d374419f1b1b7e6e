//! A handwritten MCP client of either era.

use std::sync::atomic::{AtomicU64, Ordering};

use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use crate::hearing::{Hearing, message};
use crate::support::Serve;

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
}

pub const BOTH: [Era; 2] = [Era::Legacy, Era::Modern];

/// A client of one endpoint, with its own connections.
#[derive(Debug)]
pub struct Peer {
    era: Era,
    http: Client,
    path: String,
    url: String,
    headers: Vec<(String, String)>,
    pub session: Option<String>,
    next: AtomicU64,
}

impl Peer {
    /// Opens a client; in the session era it sends `initialize`.
    pub async fn open(era: Era, serve: &Serve, path: &str) -> Self {
        let opened = Self::try_open(era, serve, path, &[]).await;
        opened.unwrap_or_else(|(status, body)| panic!("{path} answers {status}: {body}"))
    }

    /// The same with headers for every request. Returns the response if it is refused.
    pub async fn try_open(
        era: Era,
        serve: &Serve,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Self, (StatusCode, Value)> {
        Self::with_capabilities(era, serve, path, headers, json!({})).await
    }

    pub async fn with_capabilities(
        era: Era,
        serve: &Serve,
        path: &str,
        headers: &[(&str, &str)],
        capabilities: Value,
    ) -> Result<Self, (StatusCode, Value)> {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let mut peer = Self {
            era,
            http: Client::builder().no_proxy().build().unwrap(),
            path: path.to_owned(),
            url: serve.at(path),
            headers: headers.collect(),
            session: None,
            next: AtomicU64::new(1),
        };
        let (method, params) = match era {
            Era::Legacy => (
                "initialize",
                json!({"protocolVersion": LEGACY, "capabilities": capabilities,
                       "clientInfo": {"name": "twin", "version": "1"}}),
            ),
            Era::Modern => ("server/discover", json!({})),
        };
        let response = peer.post(&peer.request_of(method, params)).await;
        if !response.status().is_success() {
            return Err((response.status(), response.json().await.unwrap()));
        }
        let session = response.headers().get("mcp-session-id");
        peer.session = session.map(|id| id.to_str().unwrap().to_owned());
        assert_eq!(peer.session.is_some(), era == Era::Legacy);
        if era == Era::Legacy {
            let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            assert_eq!(peer.post(&ready).await.status(), StatusCode::ACCEPTED);
        }
        Ok(peer)
    }

    /// The same client at a restarted gateway.
    pub fn moved_to(&mut self, serve: &Serve) {
        self.url = serve.at(&self.path);
    }

    pub fn request_of(&self, method: &str, mut params: Value) -> Value {
        if self.era == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "twin", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }

    pub async fn post(&self, message: &Value) -> Response {
        let mut request = self.dressed(self.http.post(&self.url));
        request = request.header("accept", "application/json, text/event-stream");
        if self.era == Era::Modern {
            request = request.header("mcp-method", message["method"].as_str().unwrap());
            if let Some(name) = message["params"]["name"].as_str() {
                request = request.header("mcp-name", name);
            }
        }
        request.json(message).send().await.unwrap()
    }

    fn dressed(&self, mut request: RequestBuilder) -> RequestBuilder {
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        let version = if self.era == Era::Modern { MODERN } else { LEGACY };
        request.header("mcp-protocol-version", version)
    }

    /// All messages of a response, the result last.
    pub async fn exchange(&self, method: &str, params: Value) -> Vec<Value> {
        let response = self.post(&self.request_of(method, params)).await;
        let is_stream = response.headers()["content-type"] == "text/event-stream";
        let text = response.text().await.unwrap();
        if is_stream {
            return text.lines().filter_map(|line| message(line.as_bytes())).collect();
        }
        let read = serde_json::from_str(&text);
        vec![read.unwrap_or_else(|error| panic!("{method}: {error} in {text}"))]
    }

    /// The JSON-RPC response to a request.
    pub async fn ask(&self, method: &str, params: Value) -> Value {
        self.exchange(method, params).await.pop().unwrap()
    }

    /// The HTTP status of a small request.
    pub async fn status(&self) -> StatusCode {
        self.post(&self.request_of("tools/list", json!({}))).await.status()
    }

    pub async fn list(&self) -> Vec<String> {
        let answer = self.ask("tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array();
        let tools = tools.unwrap_or_else(|| panic!("no list of tools: {answer}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The result of a call; panics on a protocol error.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.ask("tools/call", params).await;
        assert!(answer["result"].is_object(), "{tool}: {answer}");
        answer["result"].clone()
    }

    /// The text of a successful call.
    pub async fn done(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_ne!(result["isError"], true, "{tool}: {result}");
        text(&result)
    }

    /// The text of a call with `isError`.
    pub async fn refused(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{tool}: {result}");
        text(&result)
    }

    pub async fn enable(&self, set: &str) -> Value {
        let told = self.done("enable_toolset", json!({ "toolsetName": set })).await;
        serde_json::from_str(&told).unwrap()
    }

    pub async fn disable(&self, set: &str) -> Value {
        let told = self.done("disable_toolset", json!({ "toolsetName": set })).await;
        serde_json::from_str(&told).unwrap()
    }

    /// Opens the notification stream of its era.
    pub async fn hear(&self) -> Hearing {
        let response = match self.era {
            Era::Legacy => {
                let request = self.dressed(self.http.get(&self.url));
                request.header("accept", "text/event-stream").send().await.unwrap()
            }
            Era::Modern => {
                let wanted = json!({"notifications": {"toolsListChanged": true}});
                self.post(&self.request_of("subscriptions/listen", wanted)).await
            }
        };
        assert_eq!(response.status(), StatusCode::OK);
        let hearing = Hearing::of(response);
        if self.era == Era::Modern {
            let acknowledged = "notifications/subscriptions/acknowledged";
            hearing.message(|message| message["method"] == acknowledged).await;
        }
        hearing
    }

    pub async fn delete(&self) -> StatusCode {
        self.dressed(self.http.delete(&self.url)).send().await.unwrap().status()
    }
}

pub fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// Creates a session endpoint and returns its path.
pub async fn new_session(serve: &Serve, id: &str) -> String {
    let request = serve.http.post(serve.at("/api/v1/sessions")).json(&json!({ "id": id }));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
    let made: Value = response.json().await.unwrap();
    made["path"].as_str().unwrap().to_owned()
}
