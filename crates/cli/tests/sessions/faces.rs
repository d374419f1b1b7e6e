//! Changes by an MCP client are visible in the API, and changes in the API are visible to MCP clients.

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::board::{META_NAMES, NOTES, SHOP, meta_and, two_servers};
use crate::chat::Api;
use crate::peer::{BOTH, Era, Peer};

#[tokio::test]
async fn an_mcp_client_is_a_session_whose_id_is_not_its_secret() {
    let board = two_servers("").await;
    let serve = board.home.serve().await;
    let api = Api::of(&serve);
    let client = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let secret = client.session.clone().unwrap();
    let chat = api.only_session(|session| session["kind"] == "client").await;
    let all = json!(api.sessions().await).to_string();
    let listed = board.home.line(&format!("session list --url {}", serve.url)).expect(0).stdout;
    let row = listed.lines().find(|line| line.contains(&chat.id)).unwrap().to_owned();
    assert!(row.contains("twin 1") && row.contains("2025-11-25"), "{listed}");
    client.done("shop__find", json!({})).await;
    let calls = api.get("/calls?server=shop&limit=1").await.good();
    let call = &calls["calls"][0];
    assert_eq!((&call["client"], &call["session"]), (&json!("twin"), &json!(chat.id)), "{call}");
    assert_eq!(call["principal"], "local");
    assert!(!all.contains(&secret) && !secret.contains(&chat.id), "{all}");
    // The displayed id gives no access, and the secret id is not a session of the API.
    let mut thief = Peer::open(Era::Legacy, &serve, "/mcp").await;
    thief.session = Some(chat.id.clone());
    assert_eq!(thief.status().await, 404);
    api.get(&format!("/sessions/{secret}")).await.refused(404, "unknown_session");

    let hearing = client.hear().await;
    chat.put("/toolsets/buy", json!({"enabled": false})).await;
    hearing.settles(1).await;
    assert_eq!(client.list().await, ["shop__find", "notes__read", "notes__write"]);
    assert_eq!(client.list().await, chat.names().await);
    let refused = client.refused("shop__order", json!({})).await;
    assert!(refused.contains("toolset 'buy'"), "{refused}");
    chat.put("/tools/shop.order", json!({"enabled": true})).await;
    hearing.settles(2).await;
    client.done("shop__order", json!({})).await;
    chat.patch(json!({"title": "no tool changes"})).await;
    hearing.settles(2).await;
    assert_eq!(chat.revision().await, 3);

    assert_eq!(client.delete().await, 204);
    api.get(&chat.path("")).await.refused(404, "unknown_session");
    assert_eq!(api.sessions().await.len(), 1, "the other one is still there");
}

#[tokio::test]
async fn the_api_ends_the_session_of_a_client() {
    let board = two_servers("").await;
    let serve = board.home.serve().await;
    let api = Api::of(&serve);
    let client = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let mut hearing = client.hear().await;
    let chat = api.only_session(|session| session["kind"] == "client").await;
    assert_eq!(chat.delete("").await.status, 204);
    hearing.ended().await;
    assert_eq!(client.status().await, 404);
    assert_eq!(api.sessions().await, Vec::<serde_json::Value>::new());
}

#[tokio::test]
async fn what_a_client_enables_is_one_step_in_the_api() {
    let board = two_servers("exposure: dynamic").await;
    let serve = board.home.serve().await;
    let api = Api::of(&serve);
    let client = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let chat = api.only_session(|session| session["kind"] == "client").await;
    let (events, hearing) = (chat.follow(None).await, client.hear().await);
    assert_eq!(chat.names().await, [""; 0]);
    client.enable("look").await;
    hearing.settles(1).await;
    let event = events.settles(2).await.pop().unwrap();
    assert_eq!(event.data["tools_revision"], 2);
    assert_eq!(event.data["added"], json!(["shop__find", "shop__price"]));
    assert_eq!(chat.view().await["enabled_toolsets"], json!(["look"]));
    assert_eq!(client.list().await, meta_and(&["shop__find", "shop__price"]));
    // Refused switches are no steps.
    client.refused("enable_toolset", json!({"toolsetName": "look"})).await;
    client.refused("enable_toolset", json!({"toolsetName": "nowhere"})).await;
    client.disable("look").await;
    assert_eq!(chat.revision().await, 3);
    events.settles(3).await;
    hearing.settles(2).await;
    assert_eq!(client.list().await, META_NAMES);
}

#[tokio::test]
async fn clients_of_both_eras_share_what_the_api_switches() {
    let board = two_servers("exposure: dynamic").await;
    let serve = board.home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({"id": "shared"})).await;
    let mut peers = Vec::new();
    let mut hearings = Vec::new();
    for era in BOTH {
        let peer = Peer::open(era, &serve, "/mcp/sessions/shared").await;
        hearings.push(peer.hear().await);
        peers.push(peer);
    }
    let outside = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let mut told = 0;
    let check = async |expected: &[&'static str], told: usize| {
        for (peer, hearing) in peers.iter().zip(&hearings) {
            hearing.until(told).await;
            assert_eq!(hearing.changes(), told);
            assert_eq!(peer.list().await, meta_and(expected));
        }
        assert_eq!(chat.names().await, expected);
        assert_eq!(outside.list().await, META_NAMES);
    };
    check(&[], told).await;
    chat.put("/toolsets/notes", json!({"enabled": true})).await;
    told += 1;
    check(&NOTES, told).await;
    // What one of them switches shows for the other one and in the API.
    peers[0].enable("shop").await;
    told += 1;
    check(&[&NOTES[..], &SHOP].concat(), told).await;
    peers[1].disable("shop").await;
    told += 1;
    check(&NOTES, told).await;
    assert_eq!(chat.revision().await, 4);
    chat.put("/bindings", json!({"servers": ["shop"]})).await;
    told += 1;
    check(&[], told).await;
    for peer in &peers {
        let refused = peer.ask("tools/call", json!({"name": "notes__read", "arguments": {}})).await;
        assert_eq!(refused["result"]["isError"], true, "{refused}");
    }
    hearings[0].settles(told).await;
    assert_eq!(hearings[1].changes(), told);
    // The endpoint goes, and with it its clients.
    assert_eq!(chat.delete("").await.status, 204);
    for (peer, hearing) in peers.iter().zip(&mut hearings) {
        hearing.ended().await;
        assert_eq!(peer.status().await, 404);
    }
}
