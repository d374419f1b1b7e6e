//! Sessions survive a restart of the process, and expire when they should.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_support::{ScriptedServer, Tool, wait_until};

use crate::board::{META, META_NAMES, QUOTES, market, meta_and, shop_tools, two_servers};
use crate::fixture::Fixture;
use crate::hearing::Hearing;
use crate::peer::{Era, Peer, new_session};
use crate::support::{Home, PATIENCE, Serve, dynamic, yaml};

/// Ends the program with this signal and starts it again.
async fn restart(home: &Home, mut serve: Serve, signal: &str) -> Serve {
    serve.signal(signal);
    serve.ended().await;
    home.serve().await
}

#[tokio::test]
async fn a_session_and_its_toolsets_survive_a_restart() {
    let board = market("exposure: dynamic").await;
    let mut serve = board.home.serve().await;
    let mut client = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let mut other = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let path = new_session(&serve, "kept").await;
    let mut modern = Peer::open(Era::Modern, &serve, &path).await;
    client.enable("quotes").await;
    modern.enable("esg").await;
    for signal in ["TERM", "KILL"] {
        let mut streams = [client.hear().await, modern.hear().await];
        if signal == "KILL" {
            // What is acknowledged is on the disk, however soon the end comes.
            client.enable("esg").await;
            client.disable("quotes").await;
        }
        serve = restart(&board.home, serve, signal).await;
        for stream in &mut streams {
            stream.ended().await;
        }
        for peer in [&mut client, &mut other, &mut modern] {
            peer.moved_to(&serve);
        }
        let expected = if signal == "TERM" { META + QUOTES } else { META + 3 };
        assert_eq!(client.list().await.len(), expected, "after {signal}");
        assert_eq!(other.list().await, META_NAMES, "after {signal}");
        assert_eq!(modern.list().await.len(), META + 3, "after {signal}");
        // Nothing changed while no client was connected.
        let hearing = client.hear().await;
        hearing.settles(0).await;
    }
    client.done("getESGRatings", json!({"symbol": "A"})).await;
    client.refused("getQuote", json!({"symbol": "A"})).await;
    client.enable("quotes").await;
    assert_eq!(client.list().await.len(), META + 3 + QUOTES);
}

#[tokio::test]
async fn what_changed_while_nobody_was_there_is_told_once() {
    let board = two_servers("").await;
    let mut serve = board.home.serve().await;
    let mut client = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let mut narrow = Peer::open(Era::Legacy, &serve, "/mcp/servers/notes").await;
    client.list().await;
    serve.signal("TERM");
    serve.ended().await;
    board.shop.set_tools(shop_tools().into_iter().chain([Tool::echo("refund")]));
    let serve = board.home.serve().await;
    wait_until(PATIENCE, async || {
        serve.tool_names().await.contains(&"shop.refund".to_owned()).then_some(())
    })
    .await;
    client.moved_to(&serve);
    narrow.moved_to(&serve);
    let hearing = client.hear().await;
    hearing.settles(1).await;
    assert_eq!(client.list().await.len(), 6);
    drop(hearing);
    client.hear().await.settles(0).await;
    narrow.hear().await.settles(0).await;
}

#[tokio::test]
async fn what_changed_while_a_client_was_away_is_told_once() {
    let board = two_servers("exposure: dynamic").await;
    let serve = board.home.serve().await;
    wait_until(PATIENCE, async || (board.shop.open_streams() > 0).then_some(())).await;
    let client = Peer::open(Era::Legacy, &serve, "/mcp").await;
    client.enable("shop").await;
    drop(client.hear().await);
    board.shop.set_tools_and_notify(shop_tools().into_iter().take(1)).await;
    wait_until(PATIENCE, async || (serve.tool_names().await.len() == 3).then_some(())).await;
    let hearing = client.hear().await;
    hearing.settles(1).await;
    assert_eq!(client.list().await, meta_and(&["shop__find"]));
}

#[tokio::test]
async fn what_a_client_was_not_told_before_a_restart_is_told_after_it() {
    let board = two_servers("").await;
    let serve = board.home.serve().await;
    wait_until(PATIENCE, async || (board.shop.open_streams() > 0).then_some(())).await;
    let mut client = Peer::open(Era::Legacy, &serve, "/mcp").await;
    client.list().await;
    board.shop.set_tools_and_notify(shop_tools().into_iter().take(1)).await;
    wait_until(PATIENCE, async || (serve.tool_names().await.len() == 3).then_some(())).await;
    let serve = restart(&board.home, serve, "TERM").await;
    client.moved_to(&serve);
    client.hear().await.settles(1).await;
    let serve = restart(&board.home, serve, "TERM").await;
    client.moved_to(&serve);
    client.hear().await.settles(0).await;
}

#[tokio::test]
async fn negotiated_capabilities_survive_a_restart() {
    let fixture = Fixture::start("legacy");
    let home = Home::new(format!(
        "switchboard:\n  gateway: {{naming: bare}}\n  toolbox:\n    mcps:\n      - {}\n",
        dynamic("fixture", &fixture.url)
    ));
    let serve = home.serve().await;
    let can_answer = json!({"elicitation": {}});
    let opened = Peer::with_capabilities(Era::Legacy, &serve, "/mcp", &[], can_answer).await;
    let mut client = opened.unwrap();
    let mut mute = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let serve = restart(&home, serve, "TERM").await;
    client.moved_to(&serve);
    mute.moved_to(&serve);
    let call = json!({"name": "test_elicitation", "arguments": {"message": "Who are you?"}});
    let request = client.request_of("tools/call", call.clone());
    let stream = Hearing::of(client.post(&request).await);
    let question = stream.message(|message| message["method"] == "elicitation/create").await;
    assert_eq!(question["params"]["message"], "Who are you?");
    let content = json!({"username": "ada", "email": "ada@example.org"});
    let answer = json!({"jsonrpc": "2.0", "id": question["id"],
                        "result": {"action": "accept", "content": content}});
    assert_eq!(client.post(&answer).await.status(), 202);
    let done = stream.message(|message| message["id"] == request["id"]).await;
    assert!(done["result"].to_string().contains("ada"), "{done}");
    // Who said nothing of questions is not asked.
    let answers = mute.exchange("tools/call", call).await;
    assert_eq!(answers.len(), 1, "{answers:?}");
}

#[tokio::test]
async fn the_log_level_and_the_subscriptions_of_a_session_survive_a_restart() {
    const URI: &str = "shelf://r";
    let fixture = Fixture::start("legacy");
    let builder = ScriptedServer::builder().legacy().tools([Tool::new("t")]);
    let shelf = builder.resources([URI]).start().await;
    let servers = [dynamic("fixture", &fixture.url), dynamic("shelf", &shelf.url())];
    let home = Home::new(yaml(&[], &servers));
    let serve = home.serve().await;
    let mut client = Peer::open(Era::Legacy, &serve, "/mcp").await;
    for (method, params) in [
        ("logging/setLevel", json!({"level": "error"})),
        ("resources/subscribe", json!({"uri": URI})),
    ] {
        assert_eq!(client.ask(method, params).await["result"], json!({}), "{method}");
    }
    let serve = restart(&home, serve, "TERM").await;
    assert_eq!(shelf.watched(), [""; 0], "nobody is there");
    client.moved_to(&serve);
    let call = json!({"name": "fixture__test_tool_with_logging", "arguments": {}});
    let messages = client.exchange("tools/call", call).await;
    assert_eq!(messages.len(), 1, "what is less than an error is not told: {messages:?}");
    let hearing = client.hear().await;
    wait_until(PATIENCE, async || (shelf.watched() == [URI]).then_some(())).await;
    shelf.update_resource(URI).await;
    let updated = "notifications/resources/updated";
    let told = hearing.message(|message| message["method"] == updated).await;
    assert_eq!(told["params"]["uri"], URI);
}

#[tokio::test]
async fn a_session_that_is_unknown_ended_or_idle_is_404() {
    let board = two_servers("session_idle: 1s").await;
    let serve = board.home.serve().await;
    let mut nobody = Peer::open(Era::Legacy, &serve, "/mcp").await;
    nobody.session = Some("not-a-session-of-ours".into());
    assert_eq!(nobody.status().await, 404);
    assert_eq!(nobody.delete().await, 404);
    nobody.session = None;
    assert_eq!(nobody.status().await, 400);

    let ended = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let mut stream = ended.hear().await;
    assert_eq!(ended.delete().await, 204);
    stream.ended().await;
    assert_eq!(ended.status().await, 404);
    assert_eq!(ended.delete().await, 404);

    let idle = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let mut listens = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let stream = listens.hear().await;
    let busy = Peer::open(Era::Legacy, &serve, "/mcp").await;
    // Longer than the idle ones may stay.
    busy.done("shop__price", json!({"sleep_ms": 2_500})).await;
    assert_eq!(idle.status().await, 404);
    assert_eq!(listens.status().await, 200, "who listens is there");
    assert_eq!(busy.status().await, 200, "who waits is there");
    drop(stream);

    let serve = restart(&board.home, serve, "TERM").await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    listens.moved_to(&serve);
    assert_eq!(listens.status().await, 404, "also over a restart");
}

/// Whoever is seen is seen by the store too, without a stream or anything that changes.
#[tokio::test]
async fn who_only_asks_outlives_the_idle_time_also_over_a_restart() {
    let board = market("exposure: dynamic, session_idle: 8s").await;
    let serve = board.home.serve().await;
    let mut client = Peer::open(Era::Legacy, &serve, "/mcp").await;
    client.enable("quotes").await;
    for _ in 0..45 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(client.status().await, 200);
    }
    let serve = restart(&board.home, serve, "KILL").await;
    client.moved_to(&serve);
    assert_eq!(client.list().await.len(), META + QUOTES);
}

#[tokio::test]
async fn who_only_listened_has_as_much_time_to_come_back_as_anybody() {
    let board = two_servers("session_idle: 3s").await;
    let serve = board.home.serve().await;
    let client = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let stream = client.hear().await;
    tokio::time::sleep(Duration::from_millis(4_500)).await;
    drop(stream);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(client.status().await, 200);
}
