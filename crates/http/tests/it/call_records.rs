//! Records of calls over the API: who sees which, one by one, and the export.

use std::sync::Arc;
use std::time::Duration;

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::{Value, json};
use switchboard_auth::Role;
use switchboard_model::{
    CallId, CallOutcome, CallRecord, CanonicalName, Face, RecordedCaller, RecordedContent,
    RecordedPolicy, ServerName,
};
use switchboard_store::Store;

use crate::api_server::{Api, ApiServer, TwoServers, yaml};

async fn calls(api: &Api, query: &str) -> Vec<Value> {
    let list = api.get(&format!("/api/v1/calls?{query}")).await.good();
    list["calls"].as_array().unwrap().clone()
}

fn tools(calls: &[Value]) -> Vec<&str> {
    calls.iter().map(|call| call["requested"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_client_sees_its_own_records_and_an_operator_all() {
    let board = TwoServers::start("").await;
    let alice = board.server.api_of("alice", Role::Client).await;
    let bob = board.server.api_of("bob", Role::Client).await;
    let operator = board.server.api_of("operator", Role::Operator).await;
    let work = alice.new_session(json!({"id": "work"})).await;
    alice.post("/api/v1/tools/shop.find/call", json!({})).await.good();
    bob.post("/api/v1/tools/nowhere/call", json!({})).await.problem(404, "unknown_tool");
    operator.post(&format!("{work}/tools/shop__find/call"), json!({})).await.good();
    assert_eq!(tools(&calls(&alice, "").await), ["shop__find", "shop.find"]);
    let of_bob = calls(&bob, "").await;
    assert_eq!(tools(&of_bob), ["nowhere"], "a refusal is recorded, too");
    assert_eq!(tools(&calls(&operator, "").await), ["shop__find", "nowhere", "shop.find"]);

    let all = calls(&operator, "").await;
    let inside = &all[0];
    assert_eq!((&inside["key"], &inside["server"]), (&json!("operator"), &json!("shop")));
    assert_eq!(inside["owner"], all[2]["principal"], "alice owns the session: {inside:#}");
    assert_eq!(inside["policy"]["mode"], "dynamic", "{inside:#}");
    let alices = all[2]["person"].as_str().unwrap();
    assert_eq!(tools(&calls(&operator, &format!("person={alices}")).await), ["shop.find"]);
    let query = format!("owner={alices}");
    assert_eq!(tools(&calls(&operator, &query).await), ["shop__find", "shop.find"]);
    assert_eq!(
        tools(&calls(&operator, "principal=bob").await),
        ["nowhere"],
        "by the name of the key"
    );
    let until = all[2]["started_at"].as_str().unwrap();
    assert_eq!(calls(&operator, &format!("until={until}")).await, Vec::<Value>::new());
    let others = calls(&alice, "principal=bob").await;
    assert_eq!(others, Vec::<Value>::new(), "a filter shows nothing more");

    let path = |call: &Value| format!("/api/v1/calls/{}", call["id"].as_str().unwrap());
    assert_eq!(&alice.get(&path(inside)).await.good(), inside);
    let theirs = bob.get(&path(inside)).await.problem(404, "unknown_record");
    let none = bob.get("/api/v1/calls/nowhere").await.problem(404, "unknown_record");
    assert_eq!(theirs.replace(inside["id"].as_str().unwrap(), "nowhere"), none);
    assert_eq!(bob.get(&path(&of_bob[0])).await.good(), of_bob[0]);
    bob.get("/api/v1/calls/export").await.problem(403, "forbidden");
}

async fn export(api: &Api, query: &str) -> Vec<Value> {
    let request = api.request(Method::GET, &format!("/api/v1/calls/export?{query}"));
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let text = response.text().await.unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn an_export_has_the_records_as_the_list_shows_them_and_can_be_continued() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    for _ in 0..3 {
        api.post("/api/v1/tools/shop.find/call", json!({})).await.good();
    }
    let mut listed = calls(&api, "").await;
    listed.reverse();
    assert_eq!(export(&api, "").await, listed);
    assert_eq!(export(&api, "tool=nowhere").await, Vec::<Value>::new());
    let after = listed[1]["id"].as_str().unwrap();
    assert_eq!(export(&api, &format!("after={after}")).await, listed[2..]);
    let unknown = format!("after={}", "f".repeat(36));
    api.get(&format!("/api/v1/calls/export?{unknown}")).await.problem(404, "unknown_record");
    api.get("/api/v1/calls/export?since=yesterday").await.problem(400, "bad_request");
    api.get("/api/v1/calls/export?limit=3").await.problem(400, "bad_request");
}

/// A record of the largest usual size.
fn large(n: usize) -> CallRecord {
    let who: Arc<str> = "jwt:https://login.example.com|client|subject".into();
    CallRecord {
        id: CallId(format!("0190f3c2-0000-7000-8000-{n:012}")),
        started_at_ms: jiff::Timestamp::now().as_millisecond(),
        face: Face::Mcp,
        caller: RecordedCaller {
            principal: Some(who.clone()),
            person: Some(who.clone()),
            owner: Some(who),
            ..RecordedCaller::default()
        },
        session: Some("work".into()),
        tool: Some(CanonicalName::new(&ServerName::new("crm"), "find")),
        requested: "crm__find".into(),
        revision: 3,
        policy: Some(RecordedPolicy {
            configured: Some("merged".into()),
            mode: Some("strict".into()),
            digest: "0123456789abcdef".into(),
        }),
        argument_digest: "a".repeat(64),
        outcome: CallOutcome::Ok,
        message: None,
        wait: Duration::from_micros(7),
        run: Duration::from_millis(12),
        result_bytes: 99,
        result_handle: None,
        arguments: n.is_multiple_of(100).then(|| RecordedContent::cut("x".repeat(8192), 8192)),
        result: None,
    }
}

async fn fill(store: &Store, count: usize) {
    for from in (0..count).step_by(1000) {
        let some: Vec<_> = (from..from + 1000).map(large).collect();
        store.record_calls(&some).await.unwrap();
    }
}

/// The memory that this process has for itself, in KiB.
fn own_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_hundred_thousand_records_are_exported_in_little_memory() {
    let server = ApiServer::start(&yaml(&["{name: sum_numbers}"], &[])).await;
    // As many as are kept by default.
    fill(&server.store, 100_000).await;
    // The first export fills caches.
    let request =
        |query: &str| server.api().request(Method::GET, &format!("/api/v1/calls/export?{query}"));
    request("tool=none").send().await.unwrap().bytes().await.unwrap();
    let before = own_memory();
    let mut response = request("").send().await.unwrap();
    let (mut lines, mut bytes, mut most) = (0, 0, 0);
    while let Some(piece) = response.chunk().await.unwrap() {
        bytes += piece.len();
        lines += piece.split(|byte| *byte == b'\n').count() - 1;
        most = most.max(own_memory().saturating_sub(before));
    }
    assert_eq!(lines, 100_000);
    assert!(bytes > 60 << 20, "{bytes} bytes");
    assert!(most < 24 << 10, "the export of {bytes} bytes took {most} KiB");
}
