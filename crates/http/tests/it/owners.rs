//! Sessions, turns and conversations belong to their owner: for others they do not exist, operators see all.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::{Value, json};
use switchboard_auth::Role;

use crate::api_server::TwoServers;

/// Every request that names a session.
fn requests() -> Vec<(Method, &'static str, Option<Value>)> {
    let on = json!({"enabled": true});
    let nothing = json!({"version": 1, "messages": []});
    vec![
        (Method::GET, "", None),
        (Method::GET, "/tools", None),
        (Method::GET, "/toolsets", None),
        (Method::GET, "/snapshot", None),
        (Method::GET, "/render?provider=mcp", None),
        (Method::GET, "/renderings?providers=mcp", None),
        (Method::POST, "/preview", Some(json!({"title": "mine now"}))),
        (Method::POST, "/clone", Some(json!({}))),
        (Method::GET, "/events", None),
        (Method::PATCH, "", Some(json!({"title": "mine now"}))),
        (Method::PUT, "/bindings", Some(json!({"servers": ["shop"]}))),
        (Method::PUT, "/toolsets/buy", Some(on.clone())),
        (Method::PUT, "/tools/shop.find", Some(on)),
        (Method::PUT, "/servers/own", Some(json!({"url": "https://example.com/mcp"}))),
        (Method::DELETE, "/servers/own", None),
        (Method::POST, "/tools/shop.find/call", Some(json!({}))),
        (Method::GET, "/history", None),
        (Method::PUT, "/history", Some(nothing)),
        (Method::GET, "/turns", None),
        (Method::GET, "/turns/t", None),
        (Method::GET, "/turns/t/events", None),
        (Method::POST, "/turns/t/cancel", None),
        (Method::POST, "/turns", Some(json!({"message": "x"}))),
        (Method::DELETE, "", None),
    ]
}

#[tokio::test]
async fn a_session_of_another_owner_is_answered_like_one_that_does_not_exist() {
    let board = TwoServers::start("").await;
    let alice = board.server.api_of("alice", Role::Client).await;
    let bob = board.server.api_of("bob", Role::Client).await;
    let work = alice.new_session(json!({"id": "work"})).await;
    let turn = json!({"id": "t", "message": "/say hello"});
    alice.post(&format!("{work}/turns"), turn).await.good();
    let before = alice.get(&work).await.good();
    for (method, tail, body) in requests() {
        let path = format!("{work}{tail}");
        let theirs = bob.send(method.clone(), &path, body.clone()).await;
        let theirs = theirs.problem(404, "unknown_session");
        let none = bob.send(method.clone(), &path.replace("work", "nowhere"), body).await;
        let none = none.problem(404, "unknown_session");
        assert_eq!(theirs.replace("work", "nowhere"), none, "{method} {tail}");
    }
    assert_eq!(bob.get("/api/v1/sessions").await.good()["sessions"], json!([]));
    assert_eq!(alice.get(&work).await.good(), before, "nothing has changed");
    let history = alice.get(&format!("{work}/history")).await.good();
    assert_eq!(history["messages"].as_array().unwrap().len(), 2);
    // The id is taken for everybody.
    let taken = bob.post("/api/v1/sessions", json!({"id": "work"})).await;
    taken.problem(409, "session_exists");
    assert_eq!(board.shop.stats().total_calls(), 0);
}

#[tokio::test]
async fn an_operator_sees_and_changes_the_sessions_of_all() {
    let board = TwoServers::start("").await;
    let alice = board.server.api_of("alice", Role::Client).await;
    let operator = board.server.api_of("operator", Role::Operator).await;
    let work = alice.new_session(json!({"id": "work"})).await;
    let owner = alice.get(&work).await.good()["owner"].clone();
    let listed = operator.get("/api/v1/sessions").await.good();
    assert_eq!(
        (&listed["sessions"][0]["id"], &listed["sessions"][0]["owner"]),
        (&json!("work"), &owner)
    );
    operator.patch(&work, json!({"title": "seen"})).await.good();
    let called = operator.post(&format!("{work}/tools/shop__find/call"), json!({})).await.good();
    assert_eq!(called["outcome"], "ok");
    assert_eq!(alice.get(&work).await.good()["title"], "seen");
    // The record names the operator as the caller, and the session that it was in.
    let record = operator.get("/api/v1/calls?limit=1").await.good()["calls"][0].clone();
    assert_eq!(record["session"], "work", "{record:#}");
    assert_ne!(record["principal"], owner, "{record:#}");
    assert_eq!(operator.send(Method::DELETE, &work, None).await.status, 204);
    alice.get(&work).await.problem(404, "unknown_session");
}
