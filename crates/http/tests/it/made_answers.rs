//! Lists and renderings: made once per revision, with `ETag` and 304, and compressed where the client asks.

use pretty_assertions::assert_eq;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use switchboard_auth::Role;
use switchboard_test_support::{Tool, wait_until};

use crate::api_server::{Api, ApiServer, PATIENCE, TwoServers, scripted, yaml};

async fn get(api: &Api, path: &str, header: Option<(&str, &str)>) -> Response {
    let request = api.request(Method::GET, path);
    let request = match header {
        Some((name, value)) => request.header(name, value),
        None => request,
    };
    tokio::time::timeout(PATIENCE, request.send()).await.unwrap().unwrap()
}

async fn tag_of(api: &Api, path: &str) -> String {
    let response = get(api, path, None).await;
    assert_eq!(response.status(), 200, "{path}");
    response.headers()["etag"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_client_that_has_the_present_version_gets_304_until_something_changes() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let work = api.new_session(json!({})).await;
    let tools = format!("{work}/tools");
    let paths = [
        "/api/v1/tools".to_owned(),
        "/api/v1/tools?all=true".to_owned(),
        "/api/v1/toolsets".to_owned(),
        tools.clone(),
        format!("{work}/tools?all=true"),
        format!("{work}/render?provider=anthropic&explain=true"),
        format!("{work}/renderings?providers=gemini,openai"),
    ];
    let mut tags = Vec::new();
    for path in &paths {
        let tag = tag_of(&api, path).await;
        let again = get(&api, path, Some(("if-none-match", &tag))).await;
        assert_eq!(again.status(), 304, "{path}");
        assert_eq!(again.headers()["etag"], tag.as_str(), "{path}");
        assert_eq!(again.text().await.unwrap(), "", "{path}");
        tags.push(tag);
    }
    api.put(&format!("{work}/toolsets/buy"), json!({"enabled": false})).await.good();
    for (path, tag) in paths.iter().zip(&tags) {
        let is_of_session = path.starts_with(&work);
        assert_eq!(tag_of(&api, path).await != *tag, is_of_session, "{path}");
    }
    let tag = tag_of(&api, &tools).await;
    let other = Tool::echo("find").description("Finds more");
    board.shop.set_tools_and_notify([other, Tool::echo("price"), Tool::echo("order")]).await;
    wait_until(PATIENCE, async || (tag_of(&api, &tools).await != tag).then_some(())).await;
    for (path, tag) in paths.iter().zip(&tags) {
        assert_ne!(tag_of(&api, path).await, *tag, "{path}");
    }
}

#[tokio::test]
async fn a_server_that_is_lost_changes_the_answers_that_say_so() {
    let shop = scripted([Tool::echo("find")]).await;
    let server = ApiServer::start(&yaml(&[], &[("shop", &shop)])).await;
    let api = server.api();
    let work = api.new_session(json!({})).await;
    let is_available =
        async |path: &str| api.get(path).await.good()["tools"][0]["available"] == true;
    let paths = ["/api/v1/tools".to_owned(), format!("{work}/tools")];
    for path in &paths {
        assert!(is_available(path).await, "{path}");
    }
    shop.stop().await;
    api.post("/api/v1/tools/shop.find/call", json!({})).await.problem(503, "unavailable");
    for path in &paths {
        wait_until(PATIENCE, async || (!is_available(path).await).then_some(())).await;
    }
}

#[tokio::test]
async fn callers_with_other_access_do_not_share_an_answer() {
    let shop = scripted([Tool::echo("find"), Tool::echo("order")]).await;
    let server = ApiServer::start(&yaml(&[], &[("shop", &shop)])).await;
    let admin = server.api_of("admin", Role::Admin).await;
    let narrowed = json!({"name": "bot", "access": {"tools": ["shop.find"]}});
    let made = admin.post("/api/v1/keys", narrowed).await.good();
    let bot = server.api().with_key(made["key"].as_str().unwrap());
    let client = server.api_of("client", Role::Client).await;
    let names = async |api: &Api| {
        let list = api.get("/api/v1/tools").await.good();
        let names = list["tools"].as_array().unwrap().iter();
        names.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for _ in 0..2 {
        assert_eq!(names(&admin).await, ["shop.find", "shop.order"]);
        assert_eq!(names(&bot).await, ["shop.find"]);
        assert_eq!(names(&client).await, ["shop.find", "shop.order"]);
    }
    let tag = tag_of(&admin, "/api/v1/tools").await;
    assert_eq!(get(&bot, "/api/v1/tools", Some(("if-none-match", &tag))).await.status(), 200);
    admin.patch("/api/v1/keys/bot", json!({"access": {"tools": ["shop.order"]}})).await.good();
    assert_eq!(names(&bot).await, ["shop.order"]);
}

#[tokio::test]
async fn a_session_of_the_same_id_is_another_one() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let tools = async |servers: Value| {
        let work = api.new_session(json!({"id": "work", "servers": servers})).await;
        let list = api.get(&format!("{work}/tools")).await.good();
        let count = list["tools"].as_array().unwrap().len();
        assert_eq!(api.send(Method::DELETE, &work, None).await.status, 204);
        count
    };
    assert_eq!(tools(json!(["shop"])).await, 4);
    assert_eq!(tools(json!(["notes"])).await, 2);
}

#[tokio::test]
async fn answers_are_compressed_where_the_client_asks_and_streams_are_not() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let gzip = Some(("accept-encoding", "gzip"));
    for path in ["/api/v1/tools", "/api/v1/openapi.json"] {
        let plain = get(&api, path, None).await;
        assert!(!plain.headers().contains_key("content-encoding"), "{path}");
        let plain = plain.bytes().await.unwrap();
        let packed = get(&api, path, gzip).await;
        assert_eq!(packed.headers()["content-encoding"], "gzip", "{path}");
        let packed = packed.bytes().await.unwrap();
        assert!(packed.len() < plain.len() / 2, "{path}: {} of {}", packed.len(), plain.len());
        assert_eq!(packed[..2], [0x1f, 0x8b], "{path}");
    }
    let events = get(&api, "/api/v1/events?follow=false", gzip).await;
    assert!(!events.headers().contains_key("content-encoding"));
}
