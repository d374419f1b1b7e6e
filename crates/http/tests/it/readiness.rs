//! `/healthz` and `/readyz`, while the board starts and afterwards, and what they show to whom.

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_auth::Role;
use switchboard_test_support::{Tool, wait_until};

use crate::api_server::{Api, ApiServer, PATIENCE, scripted, yaml};

#[tokio::test]
async fn the_api_answers_503_until_the_board_has_started() {
    let server = ApiServer::without_board().await;
    let api = server.api();
    assert_eq!(api.get("/healthz").await.good(), json!("ok\n"));
    assert_eq!(api.get("/api/v1/openapi.json").await.status, 200);
    for path in ["/readyz", "/api/v1/tools", "/api/v1/sessions", "/api/v1/sessions/a/turns"] {
        let said = api.get(path).await.problem(503, "starting");
        assert!(said.contains("try again in a moment"), "{path}: {said}");
    }
    server.start_board(&yaml(&["{name: sum_numbers}"], &[])).await;
    let ready = api.get("/readyz").await.good();
    assert_eq!(ready, json!({"status": "ready", "revision": 1, "tools": 1, "unavailable": []}));
    let body = json!({"arguments": {"a": 1, "b": 2}});
    let called = api.post("/api/v1/tools/sum_numbers/call", body).await.good();
    assert_eq!(called["result"]["content"][0]["text"], "3");
}

#[tokio::test]
async fn an_unavailable_server_is_named_to_those_that_may_know_it() {
    let (one, hidden) = (scripted([Tool::echo("a")]).await, scripted([Tool::echo("b")]).await);
    let config = yaml(&[], &[("one", &one), ("hidden", &hidden)]);
    let server =
        ApiServer::start(&format!("{config}  gateway: {{deny_toolsets: [hidden]}}\n")).await;
    let operator = server.api_of("operator", Role::Operator).await;
    let client = server.api_of("client", Role::Client).await;
    for (server, tool) in [(&one, "one.a"), (&hidden, "hidden.b")] {
        server.stop().await;
        let path = format!("/api/v1/tools/{tool}/call");
        operator.post(&path, json!({})).await.problem(503, "unavailable");
    }
    let unavailable = wait_until(PATIENCE, async || {
        let ready = operator.get("/readyz").await.good();
        let unavailable = ready["unavailable"].as_array().unwrap().len();
        (unavailable == 2).then_some(ready)
    })
    .await;
    assert_eq!(unavailable["status"], "degraded");
    let names = async |api: &Api| {
        let ready = api.get("/readyz").await.good();
        assert_eq!(ready["status"], "degraded");
        ready["unavailable"].clone()
    };
    assert_eq!(names(&client).await, json!(["one"]));
    assert_eq!(names(&server.api()).await, json!([]), "without credentials no name is shown");
}
