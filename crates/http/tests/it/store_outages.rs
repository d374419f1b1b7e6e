//! A store that takes no writes: every request that writes says so with 503, and everything else goes on.

use futures::future::join_all;
use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Executor};

use crate::api_server::TwoServers;

/// One request of each kind that writes, below the path of the sessions.
fn requests() -> Vec<(Method, &'static str, Option<Value>)> {
    let hello = json!({"role": "user", "content": [{"type": "text", "text": "hello"}]});
    vec![
        (Method::POST, "", Some(json!({"id": "new"}))),
        (Method::PATCH, "/renamed", Some(json!({"title": "found", "toolsets": {"buy": false}}))),
        (Method::PUT, "/switched/toolsets/look", Some(json!({"enabled": false}))),
        (Method::PUT, "/bound/bindings", Some(json!({"servers": ["shop"]}))),
        (Method::PUT, "/imported/history", Some(json!({"version": 1, "messages": [hello]}))),
        (Method::POST, "/asked/turns", Some(json!({"message": "/say hello"}))),
        (Method::DELETE, "/doomed", None),
    ]
}

#[tokio::test]
async fn every_request_that_writes_is_refused_while_the_database_is_locked() {
    let board = TwoServers::start("").await;
    let (server, api) = (&board.server, board.server.api());
    // Each request has a session of its own, because changes of one session wait for each other.
    for id in ["doomed", "renamed", "switched", "bound", "imported", "asked"] {
        api.new_session(json!({ "id": id })).await;
    }
    let before = api.get("/api/v1/sessions").await.good();
    let database = server.directory.path().join("switchboard.db");
    let mut other = SqliteConnectOptions::new().filename(database).connect().await.unwrap();
    other.execute("BEGIN IMMEDIATE").await.unwrap();

    let refusals = requests().into_iter().map(|(method, tail, body)| {
        let (api, path) = (&api, format!("/api/v1/sessions{tail}"));
        async move { (format!("{method} {path}"), api.send(method, &path, body).await) }
    });
    for (request, answer) in join_all(refusals).await {
        let said = answer.problem(503, "store_unavailable");
        assert!(said.contains("its database was locked for too long"), "{request}: {said}");
        let place = server.directory.path().to_str().unwrap();
        assert!(!said.contains(place), "the place of the store is not told: {said}");
    }
    // Reading and calling go on, and nothing has changed.
    assert_eq!(api.get("/api/v1/sessions").await.good(), before);
    for id in ["imported", "asked"] {
        let history = api.get(&format!("/api/v1/sessions/{id}/history")).await.good();
        assert_eq!(history["messages"], json!([]), "{id}");
    }
    let call = "/api/v1/sessions/doomed/tools/shop__find/call";
    assert_eq!(api.post(call, json!({})).await.good()["outcome"], "ok");
    let ready = api.get("/readyz").await.good();
    assert_eq!(ready["status"], "degraded", "{ready}");
    assert_eq!(ready["store"]["reason"], "its database was locked for too long", "{ready}");

    other.execute("ROLLBACK").await.unwrap();
    server.store.outages().wait_for(Option::is_none).await.unwrap();
    assert_eq!(api.get("/readyz").await.good()["status"], "ready");
    for (method, tail, body) in requests() {
        api.send(method, &format!("/api/v1/sessions{tail}"), body).await.good();
    }
    let asked = api.get("/api/v1/sessions/asked/history").await.good();
    assert_eq!(asked["messages"].as_array().unwrap().len(), 2);
}
