//! A change of toolsets is answered only when the client has listed its tools again.

use std::pin::pin;
use std::time::Duration;

use futures::FutureExt as _;
use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_support::{ScriptedServer, Tool};

use crate::support::{Reading, Session, World, at_once, later, waits_for_time};

const LIST_CHANGED: &str = "notifications/tools/list_changed";
/// Longer than the response waits for the client to request and read the list.
const TOO_LATE: Duration = Duration::from_secs(2);
const READ: Duration = Duration::from_millis(100);

async fn server() -> ScriptedServer {
    ScriptedServer::builder().legacy().tools([Tool::new("a")]).start().await
}

async fn dynamic(server: &ScriptedServer) -> World {
    World::with(&[("one", server)], "{exposure: dynamic}").await
}

fn switch(session: &Session<'_>, tool: &'static str) -> impl Future<Output = Reading> {
    let call = json!({"name": tool, "arguments": {"toolsetName": "one"}});
    session.ask("tools/call", call)
}

/// The message of a successful change of toolsets.
async fn message(reading: Reading) -> String {
    let result = reading.result().await;
    assert_ne!(result["isError"], true, "{result}");
    result["structuredContent"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_answer_comes_after_the_new_list() {
    let server = server().await;
    let world = dynamic(&server).await;
    let session = world.open(json!({})).await;
    let mut heard = session.listen().await;
    for (tool, tools) in [("enable_toolset", 8), ("disable_toolset", 7)] {
        let mut switching = pin!(switch(&session, tool));
        assert!(waits_for_time(switching.as_mut()).await, "{tool} waits for the list");
        assert_eq!(heard.next().await.unwrap()["method"], LIST_CHANGED);
        let list = session.ask("tools/list", json!({})).await.result().await;
        assert_eq!(list["tools"].as_array().unwrap().len(), tools);
        assert!(switching.as_mut().now_or_never().is_none(), "the list is on its way");
        later(READ).await;
        message(switching.await).await;
    }
}

#[tokio::test]
async fn a_client_that_lists_too_late_is_not_waited_for_for_ever() {
    let server = server().await;
    let world = dynamic(&server).await;
    let session = world.open(json!({})).await;
    let _stream = session.listen().await;
    for tool in ["enable_toolset", "disable_toolset"] {
        let mut switching = pin!(switch(&session, tool));
        assert!(switching.as_mut().now_or_never().is_none());
        later(TOO_LATE).await;
        message(switching.await).await;
    }
    // The client was late twice.
    assert!(message(at_once(switch(&session, "enable_toolset")).await).await.contains("call_tool"));
}

#[tokio::test]
async fn a_client_that_cannot_hear_of_the_change_does_not_wait() {
    let server = server().await;
    let world = dynamic(&server).await;
    let session = world.open(json!({})).await;
    let answer = at_once(switch(&session, "enable_toolset")).await;
    assert!(answer.is_stream, "it hears of the change here");
    let said = answer.rest().await;
    assert_eq!((said.len(), &said[0]["method"]), (2, &json!(LIST_CHANGED)));
    let call = json!({"name": "call_tool", "arguments": {"name": "one__a", "arguments": {}}});
    let called = session.ask("tools/call", call).await.result().await;
    assert_ne!(called["isError"], true, "{called}");
}

#[tokio::test]
async fn a_switch_that_is_refused_does_not_wait() {
    let server = server().await;
    let world = dynamic(&server).await;
    let session = world.open(json!({})).await;
    let _stream = session.listen().await;
    let refused = at_once(switch(&session, "disable_toolset")).await.result().await;
    assert_eq!(refused["isError"], true, "{refused}");
}

#[tokio::test]
async fn over_lines_the_answer_comes_after_the_new_list_too() {
    let server = server().await;
    let world = dynamic(&server).await;
    let mut pipe = world.pipe();
    pipe.send(1, "initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}})).await;
    assert_eq!(pipe.next().await["id"], 1);
    let call = json!({"name": "enable_toolset", "arguments": {"toolsetName": "one"}});
    pipe.send(2, "tools/call", call).await;
    assert_eq!(pipe.next().await["method"], LIST_CHANGED);
    pipe.send(3, "tools/list", json!({})).await;
    let list = pipe.next().await;
    assert_eq!((&list["id"], list["result"]["tools"].as_array().unwrap().len()), (&json!(3), 8));
    assert_eq!(pipe.next().await["id"], 2);
}

#[tokio::test]
async fn a_stateless_client_that_listens_lists_before_the_answer_too() {
    let server = server().await;
    let gateway = "{exposure: dynamic, stateless_state: principal}";
    let world = World::with(&[("one", &server)], gateway).await;
    let call = json!({"name": "enable_toolset", "arguments": {"toolsetName": "one"}});
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let mut heard = world.modern("subscriptions/listen", filter, json!({})).await;
    let acknowledged = heard.next().await.unwrap();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    let mut switching = pin!(world.modern("tools/call", call, json!({})));
    assert!(switching.as_mut().now_or_never().is_none());
    let told = async {
        tokio::select! {
            told = heard.next() => told.unwrap(),
            _ = switching.as_mut() => panic!("it was answered before the list was asked for"),
        }
    };
    assert_eq!(told.await["method"], LIST_CHANGED);
    let list = world.modern("tools/list", json!({}), json!({})).await.result().await;
    assert_eq!(list["tools"].as_array().unwrap().len(), 8);
    assert!(message(switching.await).await.contains("call_tool"));
}

#[tokio::test]
async fn a_stateless_client_gets_the_definitions_of_new_tools_and_the_names_of_those_that_are_gone()
{
    let server = server().await;
    let gateway = "{exposure: dynamic, stateless_state: principal}";
    let world = World::with(&[("one", &server)], gateway).await;
    for (tool, is_definition) in [("enable_toolset", true), ("disable_toolset", false)] {
        let call = json!({"name": tool, "arguments": {"toolsetName": "one"}});
        let result = world.modern("tools/call", call, json!({})).await.result().await;
        let told = &result["structuredContent"]["tools"][0];
        assert_eq!(told["inputSchema"].is_object(), is_definition, "{tool}: {result}");
        assert!(told["name"] == "one__a" || told == "one__a", "{tool}: {result}");
    }
}
