//! `connection: per_session`: whose roots the connection of a session has, and when it ends.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{Fault, ScriptedServer, Stage, Tool};

use crate::support::{PATIENCE, World, later, until};

const ROOTS: &str = "roots/list";

async fn legacy() -> ScriptedServer {
    ScriptedServer::builder().legacy().tools([Tool::echo("t")]).start().await
}

/// The messages that the server has received.
fn received(server: &ScriptedServer) -> Vec<Value> {
    server.stats().requests.iter().map(|seen| seen.body.clone()).collect()
}

#[tokio::test]
async fn a_connection_ends_with_the_session_that_its_client_ends() {
    let server = legacy().await;
    let world = World::per_session(&server, "{}", "").await;
    let (one, other) = (world.open(json!({})).await, world.open(json!({})).await);
    for session in [&one, &other] {
        session.call("own__t").await.result().await;
    }
    assert_eq!(server.open_sessions(), 3, "one lists");
    one.end().await;
    until(|| server.open_sessions() == 2).await;
    other.call("own__t").await.result().await;
    assert_eq!(server.stats().initialize_count, 3);
}

#[tokio::test]
async fn a_connection_ends_with_the_session_of_a_client_that_never_came_back() {
    let server = legacy().await;
    let world =
        World::per_session(&server, "{session_idle: 3m}", ", connection_idle_timeout: 10h").await;
    let session = world.open(json!({})).await;
    session.call("own__t").await.result().await;
    // Longer than an idle client without a server connection stays in memory.
    later(Duration::from_secs(80)).await;
    session.call("own__t").await.result().await;
    assert_eq!(server.open_sessions(), 2);
    for _ in 0..3 {
        later(Duration::from_secs(80)).await;
        // Idle clients are swept at intervals.
        tokio::task::yield_now().await;
    }
    until(|| server.open_sessions() == 1).await;
}

#[tokio::test]
async fn each_session_has_the_roots_of_its_client_over_http() {
    for server in [legacy().await, dual().await] {
        let world = World::per_session(&server, "{}", "").await;
        let client = world.open(json!({"roots": {"listChanged": true}})).await;
        let mut stream = client.listen().await;
        client.call("own__t").await.result().await;
        let declared = |message: &Value| {
            message["method"] == "initialize"
                && message["params"]["capabilities"] == json!({"roots": {"listChanged": true}})
        };
        assert!(received(&server).iter().any(declared), "{:#?}", received(&server));

        // The server may send requests at any time, also before it is called again.
        until(|| server.open_streams() == 2).await;
        assert_eq!(server.ask_on_streams(ROOTS).await, 2);
        let question = stream.next().await.unwrap();
        assert_eq!(question["method"], ROOTS);
        let roots = json!({"roots": [{"uri": "file:///home/ada"}]});
        client.reply(&question["id"], roots.clone()).await;
        until(|| received(&server).iter().any(|message| message["result"] == roots)).await;

        client.tell("notifications/roots/list_changed").await;
        let is_told = |message: &Value| message["method"] == "notifications/roots/list_changed";
        until(|| received(&server).iter().any(is_told)).await;
    }
}

/// A server of both eras.
async fn dual() -> ScriptedServer {
    ScriptedServer::builder().dual().tools([Tool::echo("t")]).start().await
}

#[tokio::test]
async fn a_server_of_the_stateless_era_alone_has_no_connections_of_sessions() {
    let server = ScriptedServer::builder().modern().tools([Tool::echo("t")]).start().await;
    let world = World::per_session(&server, "{}", "").await;
    for _ in 0..2 {
        let client = world.open(json!({"roots": {}})).await;
        for _ in 0..2 {
            client.call("own__t").await.result().await;
        }
    }
    assert!(server.stats().initialize_count <= 1, "asked once for all sessions");
}

#[tokio::test]
async fn a_change_waits_only_for_the_servers_that_it_attaches() {
    let (server, good) = (legacy().await, legacy().await);
    let silent = ScriptedServer::builder().fault(Fault::Hang(Stage::Any)).start().await;
    let gateway = "{}\n  security: {egress: {allow: [127.0.0.0/8]}}";
    let world = World::with(&[("one", &server)], gateway).await;
    world.attach("chat", &[("silent", silent.url())], Duration::ZERO).await;
    let servers = [("good", good.url())];
    let attaching = world.attach("chat", &servers, Duration::from_mins(5));
    // The connection to the silent server times out after 30 seconds.
    tokio::time::timeout(PATIENCE, attaching).await.expect("waits for no other server");
}
