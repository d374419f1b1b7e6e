//! Tests of changing lists: several notifications in a row count as one change, also after the stream was lost.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use switchboard_mcp_client::Connection;
use switchboard_test_support::{ScriptedServer, ScriptedServerBuilder, Tool, wait_until};

use crate::support::{PATIENCE, call, connect, http, names, open, peer, sse};

fn kinds() -> [(&'static str, ScriptedServerBuilder); 3] {
    let new = || ScriptedServer::builder().tools([Tool::echo("echo")]);
    [("legacy", new().legacy()), ("modern", new().modern()), ("HTTP+SSE", new().sse_transport())]
}

async fn start(server: ScriptedServerBuilder) -> (ScriptedServer, Arc<Connection>) {
    let server = server.start().await;
    let url = server.url();
    let spec = if url.ends_with("/sse") { sse(&url) } else { http(&url) };
    let connection = open(&spec).await.unwrap().0;
    listening(&server).await;
    (server, connection)
}

async fn listening(server: &ScriptedServer) {
    wait_until(PATIENCE, async || (server.open_streams() == 1).then_some(())).await;
}

async fn changed(connection: &Connection) {
    tokio::time::timeout(PATIENCE, connection.changed()).await.expect("a change is noticed");
}

#[tokio::test]
async fn a_changed_list_is_noticed() {
    for (kind, server) in kinds() {
        let (server, connection) = start(server).await;
        server.set_tools_and_notify([Tool::echo("new")]).await;
        changed(&connection).await;
        assert_eq!(names(&connection.list_tools().await.unwrap()), ["new"], "{kind}");
    }
    for flags in [[].as_slice(), &["--modern"], &["--dual"]] {
        let (connection, _) = open(&peer(flags)).await.unwrap();
        wait_until(PATIENCE, async || {
            call(&connection, "add_tool", json!({"name": "new"})).await.unwrap();
            tokio::time::timeout(Duration::from_millis(100), connection.changed()).await.ok()
        })
        .await;
        let list = connection.list_tools().await.unwrap();
        assert!(names(&list).contains(&"new"), "{flags:?}");
        connection.close().await;
    }
}

#[tokio::test]
async fn a_storm_of_changes_wakes_few_times() {
    for (kind, server) in kinds() {
        let (server, connection) = start(server).await;
        let storm = async {
            server.set_tools([Tool::echo("last")]);
            server.notify_list_changed(1000).await;
        };
        let listing = async {
            let mut wakes = 0;
            loop {
                tokio::time::timeout(PATIENCE, connection.changed()).await.expect(kind);
                wakes += 1;
                let list = connection.list_tools().await.unwrap();
                if names(&list) == ["last"] && server.stats().list_count > 1 {
                    return wakes;
                }
            }
        };
        let ((), _first) = tokio::join!(storm, listing);
        // Whatever is left of a thousand is one permit, or a few while the rest still arrives.
        let mut wakes = 1;
        while tokio::time::timeout(Duration::from_millis(200), connection.changed()).await.is_ok() {
            wakes += 1;
            connection.list_tools().await.unwrap();
        }
        assert!(wakes < 100, "{kind}: {wakes} listings for one storm");
        assert!(!connection.is_closed(), "{kind}");
    }
}

#[tokio::test]
async fn a_stream_that_the_server_ends_is_opened_again() {
    for (kind, server) in kinds().into_iter().take(2) {
        let (server, connection) = start(server).await;
        server.end_streams().await;
        listening(&server).await;
        if kind == "modern" {
            // Nobody knows what was missed in between.
            changed(&connection).await;
        }
        server.set_tools_and_notify([Tool::echo("new")]).await;
        changed(&connection).await;
    }
}

#[tokio::test]
async fn the_end_of_the_only_stream_ends_an_old_connection() {
    let (server, connection) = start(kinds().into_iter().nth(2).unwrap().1).await;
    server.end_streams().await;
    tokio::time::timeout(PATIENCE, connection.closed()).await.expect("the end is noticed");
    assert_eq!(connection.end_reason(), "the server closed it");
}

#[tokio::test]
async fn a_server_that_cannot_be_listened_to_is_asked_once() {
    let server = ScriptedServer::builder().modern().without_subscriptions();
    let server = server.tools([Tool::echo("echo")]).start().await;
    let connection = connect(&server).await;
    let asked = || {
        let method = |method: &Option<String>| method.as_deref() == Some("subscriptions/listen");
        server.stats().requests.iter().filter(|request| method(&request.method)).count()
    };
    wait_until(PATIENCE, async || (asked() == 1).then_some(())).await;
    // The first pause before another attempt would be half a second.
    let again = wait_until(PATIENCE, async || (asked() == 2).then_some(()));
    assert!(tokio::time::timeout(Duration::from_millis(900), again).await.is_err());
    assert!(!connection.is_closed());
}
