//! Clients that were removed from memory after a long idle time, and return.

use std::time::Duration;

use futures::FutureExt as _;
use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_support::{ScriptedServer, Tool};

use crate::support::{World, later};

const LIST_CHANGED: &str = "notifications/tools/list_changed";
/// The minute after which an idle client is removed from memory, and the time until the next sweep.
const QUIET: Duration = Duration::from_secs(80);

#[tokio::test]
async fn a_client_that_was_quiet_for_a_minute_comes_back_and_is_told_what_changed() {
    let server = ScriptedServer::builder().legacy().tools([Tool::new("a")]).start().await;
    let world = World::of(&[("one", &server)]).await;
    let (quiet, there) = (world.open(json!({})).await, world.open(json!({})).await);
    let mut heard = there.listen().await;
    later(QUIET).await;
    server.set_tools_and_notify([Tool::new("a"), Tool::new("b")]).await;
    assert_eq!(heard.next().await.unwrap()["method"], LIST_CHANGED);
    let mut stream = quiet.listen().await;
    assert_eq!(stream.next().await.unwrap()["method"], LIST_CHANGED);
    assert_eq!(stream.next().now_or_never(), None, "it is told once");
    let list = quiet.ask("tools/list", json!({})).await.result().await;
    assert_eq!(list["tools"].as_array().unwrap().len(), 2, "{list}");
}

#[tokio::test]
async fn a_client_that_lost_its_stream_hears_of_changes_with_its_next_answer() {
    let server = ScriptedServer::builder().legacy().tools([Tool::new("a")]).start().await;
    let world = World::of(&[("one", &server)]).await;
    let (lost, there) = (world.open(json!({})).await, world.open(json!({})).await);
    let mut heard = there.listen().await;
    drop(lost.listen().await);
    server.set_tools_and_notify([Tool::new("a"), Tool::new("b")]).await;
    assert_eq!(heard.next().await.unwrap()["method"], LIST_CHANGED);
    // A client that accepts no event stream is told at its next chance.
    let alone = lost.ask_accepting("application/json", "ping", json!({})).await;
    assert!(!alone.is_stream);
    let told = lost.call("one__a").await;
    assert!(told.is_stream);
    let told = told.rest().await;
    assert_eq!(told[0]["method"], LIST_CHANGED, "{told:?}");
    assert!(told.last().unwrap()["result"].is_object(), "{told:?}");
    assert!(!lost.call("one__a").await.is_stream, "it is told once");
}

#[tokio::test]
async fn what_a_lost_stream_did_not_deliver_is_told_again() {
    let server = ScriptedServer::builder().legacy().tools([Tool::new("a")]).start().await;
    let world = World::of(&[("one", &server)]).await;
    let (lost, there) = (world.open(json!({})).await, world.open(json!({})).await);
    let mut heard = there.listen().await;
    let unread = lost.listen().await;
    server.set_tools_and_notify([Tool::new("a"), Tool::new("b")]).await;
    assert_eq!(heard.next().await.unwrap()["method"], LIST_CHANGED);
    drop(unread);
    let told = lost.ask("ping", json!({})).await.rest().await;
    assert_eq!((told.len(), &told[0]["method"]), (2, &json!(LIST_CHANGED)));
}

#[tokio::test]
async fn who_lists_the_tools_anyway_is_not_told_that_they_changed() {
    let server = ScriptedServer::builder().legacy().tools([Tool::new("a")]).start().await;
    let world = World::of(&[("one", &server)]).await;
    let (lost, there) = (world.open(json!({})).await, world.open(json!({})).await);
    let mut heard = there.listen().await;
    server.set_tools_and_notify([Tool::new("a"), Tool::new("b")]).await;
    assert_eq!(heard.next().await.unwrap()["method"], LIST_CHANGED);
    let list = lost.ask("tools/list", json!({})).await;
    assert!(!list.is_stream);
    assert_eq!(list.result().await["tools"].as_array().unwrap().len(), 2);
    assert!(!lost.ask("ping", json!({})).await.is_stream);
}
