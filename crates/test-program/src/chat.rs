//! A session as a client of the HTTP API uses it.

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use switchboard_test_support::wait_until;

use crate::events::Events;
use crate::support::{PATIENCE, Serve};

/// All provider formats of tool declarations.
pub const PROVIDERS: [&str; 8] = [
    "mcp",
    "openai",
    "openai-chat",
    "anthropic",
    "gemini",
    "gemini-parameters",
    "langchain",
    "semantic-kernel",
];

/// The API of a running instance, with or without a key.
#[derive(Debug, Clone)]
pub struct Api {
    http: Client,
    url: String,
    key: Option<String>,
}

/// A response of the API.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub body: Value,
}

impl Answer {
    /// The body of a successful response.
    #[track_caller]
    pub fn good(self) -> Value {
        assert!(self.status.is_success(), "{} {:#}", self.status, self.body);
        self.body
    }

    /// The detail of a problem with this status and type.
    #[track_caller]
    pub fn refused(self, status: u16, kind: &str) -> String {
        assert_eq!(self.status.as_u16(), status, "{:#}", self.body);
        assert_eq!(self.body["status"], status, "{:#}", self.body);
        let of = self.body["type"].as_str().unwrap_or_default();
        assert!(of.ends_with(kind), "{kind} expected: {:#}", self.body);
        self.body["detail"].as_str().unwrap().to_owned()
    }
}

impl Api {
    pub fn of(serve: &Serve) -> Self {
        Self { http: serve.http.clone(), url: serve.url.clone(), key: None }
    }

    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self.clone() }
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}/api/v1{path}", self.url));
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    pub async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let status = response.status();
        let text = response.text().await.unwrap();
        let body = match text.as_str() {
            "" => Value::Null,
            text => serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")),
        };
        Answer { status, body }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await
    }

    pub async fn text(&self, path: &str) -> String {
        let response = self.request(Method::GET, path).send().await.unwrap();
        assert!(response.status().is_success(), "{path} {}", response.status());
        response.text().await.unwrap()
    }

    pub async fn sessions(&self) -> Vec<Value> {
        let list = self.get("/sessions").await.good();
        list["sessions"].as_array().unwrap().clone()
    }

    /// The only session that matches.
    #[track_caller]
    pub fn only_session(&self, fits: impl Fn(&Value) -> bool) -> impl Future<Output = Chat> {
        let place = std::panic::Location::caller();
        async move {
            let all = self.sessions().await;
            let mut found = all.iter().filter(|session| fits(session));
            let one = found.next().unwrap_or_else(|| panic!("{place}: none fits in {all:#?}"));
            assert!(found.next().is_none(), "{place}: several fit in {all:#?}");
            self.chat(one["id"].as_str().unwrap())
        }
    }

    pub async fn new_chat(&self, wanted: Value) -> Chat {
        let made = self.send(Method::POST, "/sessions", Some(wanted)).await.good();
        self.chat(made["id"].as_str().unwrap())
    }

    pub fn chat(&self, id: &str) -> Chat {
        Chat { api: self.clone(), id: id.to_owned() }
    }
}

/// One session.
#[derive(Debug, Clone)]
pub struct Chat {
    pub api: Api,
    pub id: String,
}

impl Chat {
    /// The same session at a restarted program.
    pub fn moved_to(&mut self, serve: &Serve) {
        serve.url.clone_into(&mut self.api.url);
    }

    /// The same session with another key.
    #[must_use]
    pub fn as_seen_with(&self, key: &str) -> Self {
        self.api.with_key(key).chat(&self.id)
    }

    pub fn path(&self, tail: &str) -> String {
        format!("/sessions/{}{tail}", self.id)
    }

    pub async fn get(&self, tail: &str) -> Value {
        self.api.get(&self.path(tail)).await.good()
    }

    pub async fn try_put(&self, tail: &str, body: Value) -> Answer {
        self.api.send(Method::PUT, &self.path(tail), Some(body)).await
    }

    pub async fn put(&self, tail: &str, body: Value) -> Value {
        self.try_put(tail, body).await.good()
    }

    pub async fn try_patch(&self, body: Value) -> Answer {
        self.api.send(Method::PATCH, &self.path(""), Some(body)).await
    }

    pub async fn patch(&self, body: Value) -> Value {
        self.try_patch(body).await.good()
    }

    pub async fn delete(&self, tail: &str) -> Answer {
        self.api.send(Method::DELETE, &self.path(tail), None).await
    }

    pub async fn view(&self) -> Value {
        self.get("").await
    }

    pub async fn revision(&self) -> u64 {
        self.view().await["tools_revision"].as_u64().unwrap()
    }

    /// The names of its tools, in order.
    pub async fn names(&self) -> Vec<String> {
        let tools = self.get("/tools").await;
        let tools = tools["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    pub async fn until_names(&self, expected: &[&str]) {
        let mut last = Vec::new();
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                last = self.names().await;
                if last == expected {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        });
        let found = found.await;
        assert!(found.is_ok(), "{expected:?} expected, {last:?} found");
    }

    pub async fn until_has(&self, tool: &str) {
        wait_until(PATIENCE, async || {
            self.names().await.iter().any(|name| name == tool).then_some(())
        })
        .await;
    }

    pub async fn render(&self, provider: &str, more: &str) -> Value {
        self.get(&format!("/render?provider={provider}{more}")).await
    }

    /// The value of `tools` in a provider's format.
    pub async fn bare(&self, provider: &str) -> String {
        self.api.text(&self.path(&format!("/render?provider={provider}&bare=true"))).await
    }

    /// The tool names in a provider's format, in order.
    pub async fn rendered(&self, provider: &str) -> Vec<String> {
        let tools: Value = serde_json::from_str(&self.bare(provider).await).unwrap();
        let tools = match provider {
            "gemini" | "gemini-parameters" => &tools[0]["functionDeclarations"],
            _ => &tools,
        };
        let named = tools.as_array().into_iter().flatten().map(|tool| match provider {
            "openai-chat" => &tool["function"]["name"],
            _ => &tool["name"],
        });
        named.map(|name| name.as_str().unwrap().to_owned()).collect()
    }

    pub async fn try_call(&self, tool: &str, body: Value) -> Answer {
        let path = self.path(&format!("/tools/{tool}/call"));
        self.api.send(Method::POST, &path, Some(body)).await
    }

    /// The result of a successful call.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.try_call(tool, json!({ "arguments": arguments })).await.good();
        assert_eq!(answer["outcome"], "ok", "{answer:#}");
        answer["result"].clone()
    }

    /// Subscribes to its revisions, after the last received event.
    pub async fn follow(&self, last: Option<&str>) -> Events {
        let mut request = self.api.request(Method::GET, &self.path("/events"));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events::of(response)
    }
}
