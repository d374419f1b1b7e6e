//! Session-era clients that switch toolsets, list tools, and try to call hidden ones.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::ledger::count;
use crate::program::{Got, Place};
use crate::sessions::judge;

const VERSION: &str = "2025-11-25";

/// A client, and what it was promised.
#[derive(Debug)]
pub(crate) struct Client {
    session: String,
    /// Whether the toolset `buy` may be on, and may be off.
    may_be_on: bool,
    may_be_off: bool,
}

pub(crate) async fn work(place: Arc<Place>) -> Client {
    let mut client = Client::open(&place).await;
    let mut step = 0_u64;
    while !place.is_stopped() {
        step += 1;
        match step % 4 {
            0 => client.switch(&place, !client.may_be_on).await,
            1 => client.list(&place).await,
            2 => client.reach(&place, "tools/call", json!({"name": "vault__open"})).await,
            _ => {
                let arguments = json!({"name": "vault__open", "arguments": {}});
                let call = json!({"name": "call_tool", "arguments": arguments});
                client.reach(&place, "tools/call", call).await;
            }
        }
    }
    client
}

impl Client {
    async fn open(place: &Place) -> Self {
        loop {
            let hello = json!({"protocolVersion": VERSION, "capabilities": {},
                               "clientInfo": {"name": "load", "version": "1"}});
            let was_writing = !place.is_store_failing();
            let request = message(place, "initialize", &hello);
            let session = async {
                let response = request.send().await.ok()?;
                let id = response.headers().get("mcp-session-id")?.to_str().ok()?.to_owned();
                response.status().is_success().then_some(id)
            };
            let session = session.await;
            // While the store fails, a crash may lose the session of a client, so such a session is not checked.
            if let Some(session) = session.filter(|_| was_writing && !place.is_store_failing()) {
                count(&place.ledger.acknowledged);
                return Self { session, may_be_on: false, may_be_off: true };
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn ask(&self, place: &Place, method: &str, params: Value) -> Got {
        let request = message(place, method, &params).header("mcp-session-id", &self.session);
        let got = place.send(request.header("mcp-protocol-version", VERSION)).await;
        if let Got::Answer(StatusCode::NOT_FOUND, body) = &got {
            place.ledger.violation(format!("the session of a client is lost: {body}"));
        }
        got
    }

    async fn switch(&mut self, place: &Place, is_on: bool) {
        let tool = if is_on { "enable_toolset" } else { "disable_toolset" };
        let params = json!({"name": tool, "arguments": {"toolsetName": "buy"}});
        let got = self.ask(place, "tools/call", params).await;
        let is_done = match &got {
            // A refusal of a tool is no refusal of HTTP.
            Got::Answer(StatusCode::OK, body) if body["result"]["isError"] == true => {
                count(&place.ledger.refused);
                Some(false)
            }
            got => judge(place, got, &[200], tool),
        };
        match is_done {
            Some(true) => (self.may_be_on, self.may_be_off) = (is_on, !is_on),
            Some(false) => {}
            None => (self.may_be_on, self.may_be_off) = (true, true),
        }
    }

    async fn list(&self, place: &Place) {
        let Got::Answer(StatusCode::OK, body) = self.ask(place, "tools/list", json!({})).await
        else {
            return;
        };
        let Some(tools) = body["result"]["tools"].as_array() else { return };
        let names: Vec<_> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        count(&place.ledger.lists);
        count(&place.ledger.compared);
        if names.iter().any(|name| name.contains("vault")) {
            place.ledger.violation(format!("what is hidden is listed: {names:?}"));
        }
        let is_on = names.contains(&"shop__order");
        if (is_on && !self.may_be_on) || (!is_on && !self.may_be_off) {
            place.ledger.violation(format!("the toolset `buy` is on: {is_on}, known is {self:?}"));
        }
    }

    /// Tries to call what is hidden.
    async fn reach(&self, place: &Place, method: &str, params: Value) {
        count(&place.ledger.attempts);
        let Got::Answer(StatusCode::OK, body) = self.ask(place, method, params).await else {
            return;
        };
        let is_refused = body["error"].is_object() || body["result"]["isError"] == true;
        if !is_refused {
            place.ledger.violation(format!("what is hidden was called: {body}"));
        }
    }

    pub(crate) async fn verify(&self, place: &Place) {
        let before = place.ledger.lists.load(std::sync::atomic::Ordering::Relaxed);
        self.list(place).await;
        if place.ledger.lists.load(std::sync::atomic::Ordering::Relaxed) == before {
            place.ledger.violation("a client cannot list its tools at the end".into());
        }
    }
}

fn message(place: &Place, method: &str, params: &Value) -> reqwest::RequestBuilder {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = place.request(Method::POST, "/mcp").json(&message);
    request.header("accept", "application/json, text/event-stream")
}
