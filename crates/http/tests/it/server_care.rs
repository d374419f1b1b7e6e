//! Trying servers, reading lists again, logs, toolsets, and reloads over the API.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::json;
use switchboard_auth::Role;
use switchboard_test_support::{Tool, wait_until};

use crate::api_server::{ApiServer, PATIENCE, TwoServers, scripted, yaml};

#[tokio::test]
async fn a_server_is_tried_within_the_egress_rules_and_stays_unknown() {
    let shop = scripted([Tool::echo("find"), Tool::echo("order")]).await;
    let open = "  security: {egress: {allow: [\"127.0.0.1\"]}}\n";
    let server = ApiServer::start(&format!("{}{open}", yaml(&["{name: sum_numbers}"], &[]))).await;
    let api = server.api_of("operator", Role::Operator).await;
    let found = api.post("/api/v1/server-tests", json!({"url": shop.url()})).await.good();
    assert_eq!(
        (&found["ok"], &found["tools"]),
        (&json!(true), &json!(["find", "order"])),
        "{found:#}"
    );
    assert_eq!(api.get("/api/v1/servers").await.good()["servers"], json!([]));
    shop.stop().await;
    let lost = api.post("/api/v1/server-tests", json!({"url": shop.url()})).await.good();
    assert_eq!((&lost["ok"], &lost["steps"][1]["ok"]), (&json!(false), &json!(false)), "{lost:#}");
    assert!(lost["steps"][1]["detail"].is_string(), "{lost:#}");
    for (body, status) in [
        (json!({"url": "not an address"}), 422),
        (json!({"command": "true"}), 422),
        (json!({"url": "https://example.com/mcp", "command": "true"}), 422),
    ] {
        assert_eq!(api.post("/api/v1/server-tests", body.clone()).await.status, status, "{body}");
    }
    let client = server.api_of("client", Role::Client).await;
    client.post("/api/v1/server-tests", json!({"url": shop.url()})).await.problem(403, "forbidden");
}

#[tokio::test]
async fn an_address_of_this_machine_is_refused_without_a_rule_for_it() {
    let shop = scripted([Tool::echo("find")]).await;
    let server = ApiServer::start(&yaml(&["{name: sum_numbers}"], &[])).await;
    let api = server.api();
    let refused = api.post("/api/v1/server-tests", json!({"url": shop.url()})).await.good();
    assert_eq!((&refused["ok"], &refused["steps"][0]["ok"]), (&json!(false), &json!(false)));
    assert_eq!(shop.stats().initialize_count + shop.stats().discover_count, 0, "nothing was sent");
}

#[tokio::test]
async fn a_refresh_reads_the_tools_again() {
    let shop = scripted([Tool::echo("find")]).await;
    let server = ApiServer::start(&yaml(&[], &[("shop", &shop)])).await;
    let api = server.api();
    shop.set_tools([Tool::echo("find"), Tool::echo("order")]);
    let answer = api.send(Method::POST, "/api/v1/servers/shop/refresh", None).await;
    assert_eq!((answer.status, &answer.body["name"]), (202, &json!("shop")));
    wait_until(PATIENCE, async || {
        let list = api.get("/api/v1/tools").await.good();
        (list["tools"].as_array().unwrap().len() == 2).then_some(())
    })
    .await;
    let none = "/api/v1/servers/none/refresh";
    api.send(Method::POST, none, None).await.problem(404, "unknown_server");
    let log = api.get("/api/v1/servers/shop/log?lines=5").await.good();
    assert_eq!(log, json!({"lines": []}), "it is no program");
    api.get("/api/v1/servers/shop/log?lines=0").await.problem(400, "bad_request");
    let shown = api.get("/api/v1/servers/shop").await.good();
    assert!(shown["since_ms"].as_i64().unwrap() > 0 && shown["in_flight"] == 0, "{shown:#}");
}

#[tokio::test]
async fn a_toolset_is_shown_with_its_rules_and_one_can_be_tried() {
    let board = TwoServers::start("deny_toolsets: [buy]").await;
    let operator = board.server.api_of("operator", Role::Operator).await;
    let client = board.server.api_of("client", Role::Client).await;
    let look = operator.get("/api/v1/toolsets/look").await.good();
    assert_eq!(look["members"], json!(["shop.find"]), "{look:#}");
    assert_eq!(look["rules"], json!({"tools": ["find", "price"], "servers": []}));
    assert!(look["tokens"]["anthropic"].as_u64().unwrap() > 0, "{look:#}");
    assert_eq!(client.get("/api/v1/toolsets/look").await.good()["rules"], json!(null));
    for hidden in ["buy", "none"] {
        client.get(&format!("/api/v1/toolsets/{hidden}")).await.problem(404, "unknown_toolset");
    }
    let rules = json!({"tools": ["shop.*"], "servers": ["notes"]});
    let members = async |api: &crate::api_server::Api| {
        let tried = api.post("/api/v1/toolset-previews", rules.clone()).await.good();
        let members = tried["members"].as_array().unwrap().iter();
        let mut members: Vec<_> = members.map(|it| it.as_str().unwrap().to_owned()).collect();
        members.sort();
        members
    };
    let visible = ["notes.read", "notes.write", "shop.find", "shop.slow"];
    assert_eq!(members(&client).await, visible);
    assert_eq!(members(&operator).await.len(), 6);
}

#[tokio::test]
async fn a_reload_says_what_became_of_the_file() {
    let server = ApiServer::start(&yaml(&["{name: sum_numbers}"], &[])).await;
    let api = server.api();
    let reload = async || api.send(Method::POST, "/api/v1/config/reload", None).await.good();
    assert_eq!(reload().await, json!({"outcome": "unchanged", "revision": 1, "errors": []}));
    std::fs::write(server.file(), yaml(&["{name: current_time}"], &[])).unwrap();
    assert_eq!(reload().await, json!({"outcome": "applied", "revision": 2, "errors": []}));
    std::fs::write(server.file(), "switchboard: {toolbox: {mcps: 7}}").unwrap();
    let refused = reload().await;
    assert_eq!((&refused["outcome"], &refused["revision"]), (&json!("refused"), &json!(2)));
    assert_eq!(refused["errors"][0]["path"], "/switchboard/toolbox/mcps", "{refused:#}");
    let schema = api.get("/api/v1/config/schema").await.good();
    assert!(schema["properties"].is_object(), "{schema:#}");
}
