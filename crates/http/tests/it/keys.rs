//! API keys over the API, and what a narrowed key sees of the API.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::{Value, json};
use switchboard_auth::Role;
use switchboard_test_support::Tool;

use crate::api_server::{Api, ApiServer, scripted, yaml};

/// A board with two servers, and an administrator.
async fn start() -> (ApiServer, Api) {
    let shop = scripted([Tool::echo("find").description("of-shop"), Tool::echo("order")]).await;
    let vault = scripted([Tool::echo("open").description("of-vault")]).await;
    let server = ApiServer::start(&yaml(&[], &[("shop", &shop), ("vault", &vault)])).await;
    // They live as long as the test.
    std::mem::forget((shop, vault));
    let admin = server.api_of("admin", Role::Admin).await;
    (server, admin)
}

async fn key(admin: &Api, name: &str, access: Value) -> Api {
    let made = admin.post("/api/v1/keys", json!({"name": name, "access": access})).await;
    assert_eq!(made.status, 201, "{:#}", made.body);
    admin.clone().with_key(made.body["key"].as_str().unwrap())
}

fn names(list: &Value, key: &str) -> Vec<String> {
    let entries = list[key].as_array().unwrap().iter();
    entries.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_narrowed_key_finds_nothing_else_on_any_path() {
    let (_server, admin) = start().await;
    let api = key(&admin, "bot", json!({"toolsets": ["shop"], "deny": ["order"]})).await;
    assert_eq!(names(&api.get("/api/v1/tools").await.good(), "tools"), ["shop.find"]);
    assert_eq!(names(&api.get("/api/v1/servers").await.good(), "servers"), ["shop"]);
    assert_eq!(names(&api.get("/api/v1/toolsets").await.good(), "toolsets"), ["shop"]);
    let work = api.new_session(json!({"id": "work"})).await;
    let session = json!({"message": "x", "provider": "demo"});
    let requests = [
        (Method::GET, "/api/v1/tools".to_owned(), None),
        (Method::GET, "/api/v1/calls".to_owned(), None),
        (Method::GET, "/api/v1/tools/vault.open".into(), None),
        (Method::GET, "/api/v1/tools/shop.order".into(), None),
        (Method::POST, "/api/v1/tools/vault.open/call".into(), Some(json!({}))),
        (Method::POST, "/api/v1/tools/vault.open/check".into(), Some(json!({}))),
        (Method::POST, "/api/v1/tools/open/call".into(), Some(json!({}))),
        (Method::GET, "/api/v1/tools?all=true".into(), None),
        (Method::GET, "/api/v1/tools/vault.open/renderings".into(), None),
        (Method::GET, "/api/v1/stats/calls?by=tool".into(), None),
        (Method::GET, "/api/v1/stats/now".into(), None),
        (Method::GET, format!("{work}/tools?all=true"), None),
        (Method::GET, format!("{work}/renderings"), None),
        (Method::POST, format!("{work}/preview"), Some(json!({"tools": {"vault.open": true}}))),
        (Method::GET, "/api/v1/servers".into(), None),
        (Method::GET, "/api/v1/toolsets".into(), None),
        (Method::GET, "/api/v1/agents".into(), None),
        (Method::GET, work.clone(), None),
        (Method::GET, format!("{work}/tools"), None),
        (Method::GET, format!("{work}/toolsets"), None),
        (Method::GET, format!("{work}/snapshot"), None),
        (Method::GET, format!("{work}/render?provider=openai-chat"), None),
        (Method::POST, format!("{work}/tools/vault.open/call"), Some(json!({}))),
        (Method::POST, format!("{work}/tools/vault__open/call"), Some(json!({}))),
        (Method::PUT, format!("{work}/tools/vault.open"), Some(json!({"enabled": true}))),
        (Method::PUT, format!("{work}/toolsets/vault"), Some(json!({"enabled": true}))),
        (Method::PUT, format!("{work}/bindings"), Some(json!({"servers": ["vault"]}))),
        (Method::POST, format!("{work}/turns"), Some(session)),
    ];
    for (method, path, body) in requests {
        let answer = api.send(method.clone(), &path, body.clone()).await;
        let text = answer.body.to_string();
        let named =
            path.contains("vault") || body.is_some_and(|it| it.to_string().contains("vault"));
        assert!(!text.contains("of-vault"), "{method} {path}: {text}");
        assert!(named || !text.contains("vault"), "{method} {path}: {text}");
        assert!(path.contains("order") || !text.contains("order"), "{method} {path}: {text}");
    }
    // Unknown and not granted are answered alike.
    let hidden = api.get("/api/v1/tools/vault.open").await.problem(404, "unknown_tool");
    let unknown = api.get("/api/v1/tools/vault.none").await.problem(404, "unknown_tool");
    assert_eq!(hidden.replace("open", "none"), unknown);
}

#[tokio::test]
async fn a_change_of_a_key_is_in_force_when_it_is_answered() {
    let (server, admin) = start().await;
    let api = key(&admin, "bot", json!({})).await;
    let work = api.new_session(json!({"id": "work"})).await;
    let tools = async |api: &Api| {
        let list = api.get(&format!("{work}/tools")).await.good();
        (names(&list, "tools").len(), list["tools_revision"].as_u64().unwrap())
    };
    let (all, before) = tools(&api).await;
    assert_eq!(all, 3);
    let change = json!({"access": {"toolsets": ["vault"]}, "user": "anna"});
    let changed = admin.patch("/api/v1/keys/bot", change).await.good();
    assert_eq!(
        (&changed["user"], &changed["access"]["toolsets"]),
        (&json!("anna"), &json!(["vault"]))
    );
    assert_eq!(tools(&api).await, (1, before + 1));
    let called = api.post("/api/v1/tools/shop.find/call", json!({})).await;
    called.problem(404, "unknown_tool");
    admin.patch("/api/v1/keys/bot", json!({"access": {"toolsets": null}})).await.good();
    assert_eq!(tools(&api).await, (3, before + 2));

    let gone = admin.send(Method::DELETE, "/api/v1/keys/bot", None).await;
    assert_eq!(gone.status, 204);
    api.get("/api/v1/tools").await.problem(401, "unauthorized");
    let shown =
        admin.get(&format!("/api/v1/keys/{}", changed["id"].as_str().unwrap())).await.good();
    assert_eq!(shown["state"], "revoked");
    drop(server);
}

#[tokio::test]
async fn a_rate_is_answered_with_429_and_the_time_to_wait() {
    let (_server, admin) = start().await;
    let api = key(&admin, "bot", json!({"rate": "1/h"})).await;
    let call = || api.post("/api/v1/tools/shop.find/call", json!({}));
    call().await.good();
    let refused = call().await;
    assert_eq!(refused.headers["retry-after"], "3600");
    assert_eq!(refused.body["retry_after"], 3600);
    let said = refused.problem(429, "rate_limited");
    assert!(said.contains("1/h by this caller"), "{said}");
    let records = admin.get("/api/v1/calls?outcome=rate_limited").await.good();
    assert_eq!(records["calls"].as_array().unwrap().len(), 1, "{records}");
}

#[tokio::test]
async fn bad_keys_are_refused_and_nothing_is_made() {
    let (_server, admin) = start().await;
    for (body, said) in [
        (json!({"name": "x", "access": {"toolsets": ["shopp"]}}), "there is no toolset 'shopp'"),
        (json!({"name": "x", "access": {"rate": "0/min"}}), "permits no call"),
        (json!({"name": "x", "access": {"rate": "-1/min"}}), "not from 1 to"),
        (json!({"name": "x", "access": {"rate": "9/week"}}), "unknown period"),
        (json!({"name": "x", "access": {"max_instances": 0}}), "at least 1"),
        (json!({"name": "x", "role": "root"}), "is not a role"),
        (json!({"name": "x", "expires": "soon"}), "is not a duration"),
        (json!({"name": "x", "user": "a b"}), "the user of a key"),
        (json!({"name": "a/b"}), "the name of a key"),
        (json!({"name": "x", "acces": {}}), "unknown field"),
    ] {
        let refused = admin.post("/api/v1/keys", body.clone()).await.problem(422, "bad_request");
        assert!(refused.contains(said), "{body}: {refused}");
    }
    let keys = admin.get("/api/v1/keys").await.good();
    assert_eq!(names(&keys, "keys"), ["admin"]);
    admin.post("/api/v1/keys", json!({"name": "admin"})).await.problem(409, "conflict");
    admin.patch("/api/v1/keys/nobody", json!({})).await.problem(404, "unknown_key");
    let sent = admin.get("/api/v1/keys/sbk_secret").await.problem(404, "unknown_key");
    assert!(!sent.contains("sbk_"), "{sent}");
}

#[tokio::test]
async fn a_narrowed_operator_counts_as_a_client_and_keys_are_for_administrators() {
    let (server, admin) = start().await;
    let operator = server.api_of("operator", Role::Operator).await;
    operator.get("/api/v1/keys").await.problem(403, "forbidden");
    operator.get("/metrics").await.good();
    admin.patch("/api/v1/keys/operator", json!({"access": {"toolsets": ["shop"]}})).await.good();
    let said = operator.get("/metrics").await.problem(403, "forbidden");
    assert!(said.contains("the credentials have client"), "{said}");
    let mine = admin.new_session(json!({"id": "mine"})).await;
    operator.get(&mine).await.problem(404, "unknown_session");
    // An administrator keeps its role, and sees only what is granted.
    admin.patch("/api/v1/keys/admin", json!({"access": {"toolsets": ["vault"]}})).await.good();
    assert_eq!(names(&admin.get("/api/v1/tools").await.good(), "tools"), ["vault.open"]);
    admin.patch("/api/v1/keys/admin", json!({"access": {"toolsets": null}})).await.good();
    assert_eq!(names(&admin.get("/api/v1/tools").await.good(), "tools").len(), 3);
}
