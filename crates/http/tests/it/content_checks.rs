//! Chat messages that agents report, and content checks of calls over the API.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::{Value, json};
use switchboard_auth::Role;
use switchboard_test_support::{ThreatAnswer, ThreatEndpoint, Tool};

use crate::api_server::{Answer, ApiServer, scripted, yaml};

const PATH: &str = "/agents/real-time-threat-protection/chat-message";

/// The body that the SDK sends.
fn message() -> Value {
    json!({
        "conversationId": "conv-1",
        "messageId": "msg-1",
        "userMessage": "What now?",
        "chatHistory": [
            {"id": null, "role": "user", "content": "Hello", "timestamp": null},
            {"id": "m0", "role": "assistant", "content": "Hi", "timestamp": "2026-01-02T03:04:05Z"},
        ],
    })
}

fn protected(endpoint: &ThreatEndpoint, more: &str) -> String {
    let yaml = yaml(&[], &[]);
    format!("{yaml}  threat_protection: {{endpoint: \"{}\"{more}}}\n", endpoint.url())
}

#[tokio::test]
async fn a_reported_message_is_recorded() {
    let server = ApiServer::start(&yaml(&[], &[])).await;
    let api = server.api();
    let answer = api.post(PATH, message()).await;
    assert_eq!(answer.status, 200);
    let answer = answer.good();
    assert_eq!(answer["blockAction"], false);
    let listed = api.get("/api/v1/content-checks").await.good();
    let record = &listed["checks"][0];
    assert_eq!(record["id"], answer["record"]);
    for (member, expected) in [
        ("hook", json!("received")),
        ("verdict", json!("none")),
        ("blocked", json!(false)),
        ("conversation", json!("conv-1")),
        ("message", json!("msg-1")),
        ("messages", json!(3)),
        ("principal", json!("local")),
        ("reason", json!(null)),
        ("tool", json!(null)),
    ] {
        assert_eq!(record[member], expected, "{member}");
    }
    assert!(!listed.to_string().contains("What now?"), "{listed}");
    let other = api.get("/api/v1/content-checks?conversation=other").await.good();
    assert_eq!(other["checks"], json!([]));
    let empty =
        json!({"chatHistory": [], "conversationId": "c", "messageId": "m", "userMessage": "u"});
    assert_eq!(api.post(PATH, empty).await.status, 200, "an empty history is sent too");
}

#[tokio::test]
async fn a_message_that_cannot_be_used_is_refused_with_its_reason() {
    let server = ApiServer::start(&yaml(&[], &[])).await;
    let api = server.api();
    let with = |member: &str, value: Value| {
        let mut message = message();
        message[member] = value;
        message
    };
    let content = json!([{"role": "user", "content": " "}]);
    let role = json!([{"role": "tool", "content": "x"}]);
    for (body, expected) in [
        (with("conversationId", json!("")), "conversationId"),
        (with("messageId", json!(" ")), "messageId"),
        (with("userMessage", json!("")), "userMessage"),
        (with("userMessage", json!(null)), "invalid type: null"),
        (with("chatHistory", content), "content cannot be empty or whitespace"),
        (with("chatHistory", role), "unknown variant `tool`"),
        (with("chatHistory", json!("x")), "chat"),
        (json!([]), "chat"),
    ] {
        let detail = api.post(PATH, body).await.problem(400, "bad_request");
        assert!(detail.contains(expected), "{detail}");
    }
    let broken = api.request(Method::POST, PATH).body("{").send().await.unwrap();
    assert_eq!(broken.status(), 400);
    api.get(PATH).await.problem(405, "method_not_allowed");
    assert_eq!(api.get("/api/v1/content-checks").await.good()["checks"], json!([]));
    for query in ["limit=0", "limit=1001", "what=x"] {
        let path = format!("/api/v1/content-checks?{query}");
        api.get(&path).await.problem(400, "bad_request");
    }
}

#[tokio::test]
async fn without_credentials_messages_come_from_this_machine_only_unless_configured() {
    let endpoint = ThreatEndpoint::start().await;
    for is_open in [false, true] {
        let server =
            ApiServer::start(&protected(&endpoint, &format!(", accept_without_key: {is_open}")))
                .await;
        let operator = server.api_of("operator", Role::Operator).await;
        let (nobody, client) = (server.api(), server.api_of("client", Role::Client).await);
        assert_eq!(nobody.post(PATH, message()).await.status, 200);
        assert_eq!(client.post(PATH, message()).await.status, 200);
        let wrong = nobody.request(Method::POST, PATH).json(&message()).bearer_auth("wrong");
        assert_eq!(Answer::of(wrong).await.status, 401, "credentials that are there are checked");
        for header in ["x-forwarded-for", "forwarded", "via", "x-real-ip"] {
            let request = nobody.request(Method::POST, PATH).json(&message());
            let proxied = Answer::of(request.header(header, "10.0.0.1")).await;
            assert_eq!(proxied.status, if is_open { 200 } else { 401 }, "{header}");
        }
        assert_eq!(nobody.get("/api/v1/content-checks").await.status, 401);
        assert_eq!(client.get("/api/v1/content-checks").await.status, 403);
        let checks = operator.get("/api/v1/content-checks").await.good()["checks"].clone();
        let principals: Vec<_> =
            checks.as_array().unwrap().iter().map(|it| it["principal"].clone()).collect();
        assert!(principals.last().unwrap().is_null(), "{principals:?}");
        assert!(principals.iter().any(|id| id.as_str().is_some_and(|id| id.starts_with("key:"))));
    }
}

#[tokio::test]
async fn the_verdict_of_the_endpoint_is_returned() {
    let endpoint = ThreatEndpoint::start().await;
    let server = ApiServer::start(&protected(&endpoint, ", timeout: 300ms, redact: [Hello]")).await;
    let api = server.api();
    assert_eq!(api.post(PATH, message()).await.good()["blockAction"], false);
    let request = endpoint.requests().swap_remove(0);
    assert_eq!((&*request.hook, request.user_message()), ("received", "What now?"));
    assert_eq!(request.body["chatHistory"][0]["content"], "***");
    assert_eq!(request.body["conversationId"], "conv-1");

    endpoint.judge(|_| ThreatAnswer::Refuse("an attack"));
    let answer = api.post(PATH, message()).await.good();
    assert_eq!(answer["blockAction"], true);
    assert_eq!(answer["reason"], "the content check refused it: an attack (code 112)");
    endpoint.judge(|_| ThreatAnswer::Hang);
    let answer = api.post(PATH, message()).await.good();
    assert_eq!(answer["blockAction"], true, "it fails closed");
    let checks = api.get("/api/v1/content-checks").await.good();
    let verdicts: Vec<_> =
        checks["checks"].as_array().unwrap().iter().map(|it| it["verdict"].clone()).collect();
    assert_eq!(verdicts, ["failed", "refused", "allowed"]);
}

#[tokio::test]
async fn a_board_that_is_its_own_endpoint_passes_a_message_on_once() {
    let server = ApiServer::without_board().await;
    let yaml = yaml(&[], &[]);
    let own = format!("http://{}{PATH}", server.address);
    server.start_board(&format!("{yaml}  threat_protection: {{endpoint: \"{own}\"}}\n")).await;
    let api = server.api();
    assert_eq!(api.post(PATH, message()).await.good()["blockAction"], false);
    let checks = api.get("/api/v1/content-checks").await.good();
    assert_eq!(checks["checks"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_blocked_call_is_a_problem_of_its_own_kind() {
    let endpoint = ThreatEndpoint::judging(|_| ThreatAnswer::Refuse("no")).await;
    let shop = scripted([Tool::new("buy")]).await;
    let tool = "{name: buy, content_check: {before_call: block}}";
    let yaml = yaml(&[tool], &[("shop", &shop)]);
    let yaml = format!("{yaml}  threat_protection: {{endpoint: \"{}\"}}\n", endpoint.url());
    let server = ApiServer::start(&yaml).await;
    let api = server.api();
    let detail = api.post("/api/v1/tools/shop.buy/call", json!({})).await.problem(403, "blocked");
    let text = "tool 'buy' of MCP server 'shop' was not called: the content check refused it: no (code 112)";
    assert_eq!(detail, text);
    let session = api.new_session(json!({})).await;
    let path = format!("{session}/tools/shop__buy/call");
    api.post(&path, json!({})).await.problem(403, "blocked");
    assert_eq!(shop.stats().total_calls(), 0);
    let calls = api.get("/api/v1/calls?outcome=blocked").await.good();
    assert_eq!(calls["calls"].as_array().unwrap().len(), 2);
    let checks = api.get("/api/v1/content-checks").await.good();
    assert_eq!(checks["checks"][0]["tool"], "shop.buy");
}
