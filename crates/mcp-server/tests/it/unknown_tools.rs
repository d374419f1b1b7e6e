//! Calls of unknown tools, and lists that changed without a notification.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_model::{Caller, Face, LiveAccess};
use switchboard_sessions::{ApiTools, Change, OwnServer, SessionCall, SessionReply};
use switchboard_test_support::{Fault, ScriptedServer, Stage, Tool};

use crate::support::{PATIENCE, World, plan};

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_tool_that_came_without_a_word_is_found_by_the_first_call() {
    let shop = ScriptedServer::builder().tools([Tool::new("old")]).start().await;
    let idle = ScriptedServer::builder().tools([Tool::new("idle")]).start().await;
    let world = World::of(&[("shop", &shop), ("idle", &idle)]).await;
    let session = world.open(json!({})).await;
    shop.set_tools([Tool::new("old"), Tool::new("fresh")]);
    let (lists, others) = (shop.stats().list_count, idle.stats().list_count);
    assert_eq!(session.call("shop__fresh").await.result().await["isError"], Value::Null);
    // Repeated calls of unknown tools do not make the servers list their tools each time.
    for name in ["shop__nope", "shop__nada", "shop.fresh.er"] {
        let told = session.call(name).await.result().await;
        assert_eq!(told["isError"], true, "{told}");
        assert!(text(&told).starts_with(&format!("there is no tool '{name}' here")), "{told}");
    }
    let call = json!({"name": "shop__nope", "arguments": {}});
    let told = world.modern("tools/call", call, json!({})).await.result().await;
    assert_eq!((&told["isError"], &told["resultType"]), (&json!(true), &json!("complete")));
    assert_eq!(shop.stats().list_count, lists + 1);
    assert_eq!(idle.stats().list_count, others, "its names begin otherwise");
}

#[tokio::test]
async fn callers_of_one_moment_share_one_listing() {
    let shop = ScriptedServer::builder().tools([Tool::new("old")]).start().await;
    let world = World::of(&[("shop", &shop)]).await;
    shop.set_tools([Tool::new("fresh")]);
    let lists = shop.stats().list_count;
    let call = json!({"name": "shop__fresh", "arguments": {}});
    let calls = (0..20).map(|_| world.modern("tools/call", call.clone(), json!({})));
    for answer in futures::future::join_all(calls).await {
        let answer = answer.result().await;
        assert_eq!(answer["isError"], Value::Null, "{answer}");
    }
    assert_eq!(shop.stats().list_count, lists + 1);
}

#[tokio::test]
async fn call_tool_and_describe_tool_find_it_too() {
    let shop = ScriptedServer::builder().tools([Tool::new("old")]).start().await;
    for meta in ["call_tool", "describe_tool"] {
        shop.set_tools([Tool::new("old")]);
        let world = World::with(&[("shop", &shop)], "{exposure: dynamic}").await;
        let session = world.open(json!({})).await;
        shop.set_tools([Tool::new("old"), Tool::new("fresh")]);
        let call = json!({"name": meta, "arguments": {"name": "shop.fresh"}});
        let answer = session.ask("tools/call", call).await.result().await;
        assert_ne!(answer["isError"], true, "{meta} {answer}");
    }
}

#[tokio::test]
async fn what_is_hidden_is_answered_like_what_never_was() {
    let shop = ScriptedServer::builder().tools([Tool::new("shown")]).start().await;
    let vault = ScriptedServer::builder().tools([Tool::new("open")]).start().await;
    let gateway = "{deny_toolsets: [vault]}";
    let world = World::with(&[("shop", &shop), ("vault", &vault)], gateway).await;
    let session = world.open(json!({})).await;
    let lists = vault.stats().list_count;
    let told = text(&session.call("vault__open").await.result().await).to_owned();
    let other = text(&session.call("vauld__open").await.result().await).to_owned();
    assert_eq!(told.replace("vault", "vauld"), other);
    assert_eq!(vault.stats().list_count, lists, "nothing is done for a hidden server");
}

#[tokio::test]
async fn a_list_that_does_not_come_holds_nobody_up_for_long() {
    let shop = ScriptedServer::builder().tools([Tool::new("old")]).start().await;
    let world = World::of(&[("shop", &shop)]).await;
    let session = world.open(json!({})).await;
    shop.set_fault(Fault::Hang(Stage::List)).await;
    let told = session.call("shop__nope").await.result().await;
    assert_eq!(told["isError"], true, "{told}");
}

#[tokio::test]
async fn the_http_api_finds_it_too_and_asks_no_hidden_server_for_clients() {
    let all = LiveAccess::default();
    let shop = ScriptedServer::builder().tools([Tool::new("old")]).start().await;
    let vault = ScriptedServer::builder().tools([Tool::new("open")]).start().await;
    let gateway = "{deny_toolsets: [vault]}";
    let world = World::with(&[("shop", &shop), ("vault", &vault)], gateway).await;
    shop.set_tools([Tool::new("old"), Tool::new("fresh")]);
    vault.set_tools([Tool::new("open"), Tool::new("fresh")]);
    let (shops, vaults) = (shop.stats().list_count, vault.stats().list_count);
    let rows = [
        ("shop.fresh", ApiTools::Permitted(&all), true),
        ("shop.nope", ApiTools::Permitted(&all), false),
        ("shop.nope", ApiTools::All, false),
        ("vault.open", ApiTools::Permitted(&all), false),
        ("vault.fresh", ApiTools::Permitted(&all), false),
    ];
    for (name, among, expected) in rows {
        assert_eq!(world.sessions.finds_for_api(name, among).await, expected, "{name} {among:?}");
    }
    assert_eq!(shop.stats().list_count, shops + 1, "one listing for all of them");
    assert_eq!(vault.stats().list_count, vaults, "nothing is done for a hidden server");
    assert!(world.sessions.finds_for_api("vault.fresh", ApiTools::All).await);
    assert!(!world.sessions.finds_for_api("vault.fresh", ApiTools::Permitted(&all)).await);
}

#[tokio::test]
async fn a_server_of_a_session_is_asked_for_that_session_only() {
    let shop = ScriptedServer::builder().tools([Tool::new("old")]).start().await;
    let own = ScriptedServer::builder().tools([Tool::new("old")]).start().await;
    let mut plan = plan(&[("shop", &shop)]);
    plan.security.egress.allow = vec!["127.0.0.0/8".parse().unwrap()];
    let world = World::of_plan(plan).await;
    let server = OwnServer { url: own.url(), is_sse: false, headers: [].into() };
    let change =
        Change { own_servers: [("mine".into(), Some(server))].into(), ..Change::default() };
    let session =
        world.sessions.new_session(Some("work"), "local", change, PATIENCE).await.unwrap();
    let call = |tool: &str| {
        let (tool, arguments, caller) = (tool.to_owned(), json!({}), Caller::local(Face::Http));
        let call = SessionCall {
            tool,
            arguments,
            caller,
            progress: None,
            seen: None,
            scope: None,
            conversation: None,
        };
        world.sessions.call_in(&session, call)
    };
    own.set_tools([Tool::new("old"), Tool::new("fresh")]);
    let lists = own.stats().list_count;
    // Another session does not reach the tool, and a known tool does not cause another list.
    let other =
        world.modern("tools/call", json!({"name": "mine__fresh", "arguments": {}}), json!({}));
    assert_eq!(other.await.result().await["isError"], true);
    assert!(matches!(call("mine.old").await, SessionReply::Called(..)));
    assert_eq!(own.stats().list_count, lists);
    assert!(matches!(call("mine.fresh").await, SessionReply::Called(..)));
    assert!(matches!(call("mine.nope").await, SessionReply::Refused(..)));
    assert_eq!(own.stats().list_count, lists + 1);
    let at_endpoint = world.in_session("work");
    let call = json!({"name": "mine__fresh", "arguments": {}});
    let answer = at_endpoint.modern("tools/call", call, json!({})).await.result().await;
    assert_eq!(answer["isError"], Value::Null, "{answer}");
}
