//! The limits of one client, which do not affect others.

use std::time::Duration;

use futures::future::join_all;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{Reply, ScriptedServer, Tool};

use crate::support::{PATIENCE, World, later, until};

const INVALID_PARAMS: i64 = -32602;
const METHOD_NOT_FOUND: i64 = -32601;

/// A session-era server that sends a request and waits for longer than any test.
async fn asking() -> ScriptedServer {
    let asks = Tool::new("asks").asks().sleeps(60_000);
    ScriptedServer::builder().legacy().tools([asks]).start().await
}

async fn with_resources() -> ScriptedServer {
    let builder = ScriptedServer::builder().legacy().tools([Tool::new("t")]);
    builder.resources(["one://0"]).start().await
}

fn addresses(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|n| format!("one://{n}"))
}

#[tokio::test]
async fn one_principal_listens_on_256_streams_and_no_more() {
    let server = with_resources().await;
    let world = World::of(&[("one", &server)]).await;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let listen =
        async |world: &World| world.modern("subscriptions/listen", wanted.clone(), json!({})).await;
    let mut streams = Vec::new();
    for _ in 0..256 {
        streams.push(listen(&world).await);
    }
    assert!(streams.iter().all(|stream| stream.status == 200));
    assert_eq!(listen(&world).await.status, 429);
    assert_eq!(listen(&world.to_another()).await.status, 200);
    streams.pop();
    assert_eq!(listen(&world).await.status, 200, "who closes one may open another");
}

#[tokio::test]
async fn one_client_has_64_open_questions_and_the_next_one_is_refused() {
    let server = asking().await;
    let world = World::of(&[("old", &server)]).await;
    let session = world.open(json!({"elicitation": {}})).await;
    let mut open = join_all((0..64).map(|_| session.call("old__asks"))).await;
    for reading in &mut open {
        assert_eq!(reading.next().await.unwrap()["method"], "elicitation/create");
    }
    let is_refused = || {
        let stats = server.stats();
        stats.requests.iter().any(|seen| seen.body["error"]["code"] == METHOD_NOT_FOUND)
    };
    assert!(!is_refused());
    tokio::select! {
        _ = session.call("old__asks") => panic!("the client is not told of a question that it is not asked"),
        () = until(is_refused) => {}
    }
    let other = world.open(json!({"elicitation": {}})).await;
    let asked = other.call("old__asks").await.next().await.unwrap();
    assert_eq!(asked["method"], "elicitation/create");
}

#[tokio::test]
async fn of_one_principal_64_calls_wait_for_answers_and_the_oldest_gives_way() {
    let server = asking().await;
    let world = World::of(&[("old", &server)]).await;
    let call = |n: usize| json!({"name": "old__asks", "arguments": {"n": n}});
    let ask = async |world: &World, n: usize| {
        let asked = world.modern("tools/call", call(n), json!({})).await.result().await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        asked
    };
    // Older than all of them, but of another principal.
    ask(&world.to_another(), 0).await;
    let first = ask(&world, 1).await;
    join_all((2..=64).map(|n| ask(&world, n))).await;
    assert_eq!(server.stats().running_calls, 65);
    assert_eq!(server.stats().cancelled.len(), 0);
    ask(&world, 65).await;
    until(|| server.stats().cancelled.len() == 1 && server.stats().running_calls == 65).await;
    let (stats, mut late) = (server.stats(), call(1));
    let gone = stats.calls.iter().find(|call| call.id == stats.cancelled[0]).unwrap();
    assert_eq!(gone.n, Some(1));
    late["requestState"] = first["requestState"].clone();
    assert_eq!(world.modern("tools/call", late, json!({})).await.code().await, INVALID_PARAMS);
}

#[tokio::test]
async fn a_modern_server_asks_a_legacy_client_16_times_for_one_call() {
    let form = json!({"message": "more?", "requestedSchema": {"type": "object", "properties": {}}});
    let wanted = json!({"a": {"method": "elicitation/create", "params": form}});
    let wanted = json!({"resultType": "input_required", "inputRequests": wanted});
    let asks = Tool::new("asks").replies(Reply::Result(wanted));
    let server = ScriptedServer::builder().modern().tools([asks]).start().await;
    let world = World::of(&[("new", &server)]).await;
    let session = world.open(json!({"elicitation": {}})).await;
    let mut reading = session.call("new__asks").await;
    let mut asked = 0;
    let last = loop {
        let message = reading.next().await.unwrap();
        if message["method"] != "elicitation/create" {
            break message;
        }
        asked += 1;
        assert!(asked <= 16, "{message}");
        session.reply(&message["id"], json!({"action": "accept", "content": {}})).await;
    };
    assert_eq!((asked, server.stats().calls.len()), (16, 17));
    assert_eq!(last["result"]["isError"], true, "{last}");
}

#[tokio::test]
async fn one_client_or_stream_watches_256_resources_and_no_more() {
    let server = with_resources().await;
    let world = World::of(&[("one", &server)]).await;
    let listen = async |uris: Vec<String>| {
        let wanted = json!({"notifications": {"resourceSubscriptions": uris}});
        world.modern("subscriptions/listen", wanted, json!({})).await
    };
    let mut stream = listen(addresses(256).collect()).await;
    let acknowledged = stream.next().await.unwrap();
    let honoured = &acknowledged["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(honoured.as_array().unwrap().len(), 256);
    assert_eq!(listen(addresses(257).collect()).await.code().await, INVALID_PARAMS);

    let session = world.open(json!({})).await;
    let watch = async |method: &str, uri: &str| session.ask(method, json!({ "uri": uri })).await;
    for uri in addresses(256) {
        watch("resources/subscribe", &uri).await.result().await;
    }
    assert_eq!(watch("resources/subscribe", "one://256").await.code().await, INVALID_PARAMS);
    watch("resources/unsubscribe", "one://7").await.result().await;
    watch("resources/subscribe", "one://256").await.result().await;
}

#[tokio::test]
async fn a_client_without_a_stream_finds_the_last_16_messages_when_it_opens_one() {
    let server = with_resources().await;
    let world = World::of(&[("one", &server)]).await;
    let (away, there) = (world.open(json!({})).await, world.open(json!({})).await);
    let mut heard = there.listen().await;
    for uri in addresses(20) {
        for session in [&away, &there] {
            session.ask("resources/subscribe", json!({ "uri": uri })).await.result().await;
        }
    }
    let uri_of = |message: &Value| message["params"]["uri"].as_str().unwrap().to_owned();
    for uri in addresses(20) {
        server.update_resource(&uri).await;
        assert_eq!(uri_of(&heard.next().await.unwrap()), uri);
    }
    let mut late = away.listen().await;
    for uri in addresses(20).skip(4) {
        assert_eq!(uri_of(&late.next().await.unwrap()), uri);
    }
}

#[tokio::test]
async fn sessions_of_one_principal_in_memory_have_a_bound_of_their_own() {
    let server = with_resources().await;
    let world = World::with(&[("one", &server)], "{max_sessions_per_principal: 1}").await;
    let first = world.open(json!({})).await;
    // An idle client is removed from memory for it, and restored when it returns.
    let second = world.open(json!({})).await;
    first.ask("tools/list", json!({})).await.result().await;
    second.ask("tools/list", json!({})).await.result().await;
    let stream = second.listen().await;
    assert_eq!(world.knock(json!({})).await.status(), 503);
    assert_eq!(world.to_another().knock(json!({})).await.status(), 200);
    drop(stream);
    assert_eq!(world.knock(json!({})).await.status(), 200);
}

#[tokio::test]
async fn a_silent_stream_says_every_15_seconds_that_it_is_still_there() {
    let server = with_resources().await;
    let world = World::of(&[("one", &server)]).await;
    let session = world.open(json!({})).await;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let mut listener = world.modern("subscriptions/listen", wanted, json!({})).await;
    listener.next().await.unwrap();
    for mut stream in [session.listen().await, listener] {
        for _ in 0..2 {
            let mut piece = std::pin::pin!(stream.piece());
            assert!(futures::poll!(piece.as_mut()).is_pending());
            later(Duration::from_secs(15)).await;
            let piece = tokio::time::timeout(PATIENCE, piece).await.expect("a sign in time");
            assert_eq!(piece.as_deref(), Some(": still here\n\n"));
        }
    }
}
