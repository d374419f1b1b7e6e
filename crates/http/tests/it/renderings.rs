//! Tools as several providers get them, in one answer.

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_auth::Role;

use crate::api_server::TwoServers;

#[tokio::test]
async fn the_renderings_of_a_session_are_of_one_revision_and_name_each_tool() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let work = api.new_session(json!({"servers": ["notes"]})).await;
    let all = api.get(&format!("{work}/renderings?providers=gemini,anthropic,gemini")).await.good();
    assert_eq!(all["tools_revision"], 1);
    let renderings = all["renderings"].as_array().unwrap();
    assert_eq!(renderings.len(), 2);
    let declared = [("gemini", json!("notes__read")), ("anthropic", json!("notes__read"))];
    for (rendering, (provider, name)) in renderings.iter().zip(declared) {
        assert_eq!(rendering["provider"], provider);
        let tool = &rendering["explained"][0];
        assert_eq!(tool["canonical_name"], "notes.read", "{tool:#}");
        assert_eq!(tool["declaration"]["name"], name, "{tool:#}");
        let single =
            api.get(&format!("{work}/render?provider={provider}&explain=true")).await.good();
        assert_eq!(*rendering, single, "as one alone");
    }
    let every = api.get(&format!("{work}/renderings")).await.good();
    let renderers = api.get("/api/v1/renderers").await.good();
    let names = |list: &serde_json::Value, key: &str, name: &str| {
        let list = list[key].as_array().unwrap().iter();
        list.map(|it| it[name].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&every, "renderings", "provider"), names(&renderers, "renderers", "name"));
    let openai = &renderers["renderers"][1];
    assert_eq!((&openai["name"], &openai["max_tools"]), (&json!("openai"), &json!(128)));
    api.get(&format!("{work}/renderings?providers=none")).await.problem(400, "bad_request");
}

#[tokio::test]
async fn a_tool_is_rendered_without_a_session_for_those_who_may_see_it() {
    let board = TwoServers::start("deny_toolsets: [buy]").await;
    let client = board.server.api_of("client", Role::Client).await;
    let path = "/api/v1/tools/find/renderings?providers=openai-chat,react";
    let found = client.get(path).await.good();
    assert_eq!(found["name"], "shop.find");
    let chat = &found["renderings"][0];
    assert_eq!(chat["declaration"]["function"]["name"], "shop__find");
    assert!(chat["tokens"].as_u64().unwrap() > 0 && chat["not_shown"].is_null(), "{chat:#}");
    let hidden =
        client.get("/api/v1/tools/shop.order/renderings").await.problem(404, "unknown_tool");
    let none = client.get("/api/v1/tools/shop.none/renderings").await.problem(404, "unknown_tool");
    assert_eq!(hidden.replace("order", "none"), none);
}
