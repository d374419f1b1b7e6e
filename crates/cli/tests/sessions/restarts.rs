//! Sessions are unchanged after a restart, orderly or not.

use std::collections::BTreeMap;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{Tool, wait_until};

use crate::board::{shop_tools, two_servers, two_servers_yaml};
use crate::chat::{Api, Chat, PROVIDERS};
use crate::peer::{Era, Peer};
use crate::support::{Home, PATIENCE, Serve};

pub(crate) async fn restart(home: &Home, mut serve: Serve, signal: &str) -> Serve {
    serve.signal(signal);
    serve.ended().await;
    home.serve().await
}

/// Everything that the API says about a session.
pub(crate) async fn everything(chat: &Chat) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for tail in ["", "/tools", "/toolsets", "/snapshot"] {
        all.insert(tail.to_owned(), chat.get(tail).await);
    }
    let snapshot = all.get_mut("/snapshot").unwrap();
    for tool in snapshot["tools"].as_array_mut().unwrap() {
        // When it was seen is about its server and not about the session.
        let seen = tool.as_object_mut().unwrap().remove("last_seen_at").unwrap();
        let seen: jiff::Timestamp = seen.as_str().unwrap().parse().unwrap();
        assert!(seen <= jiff::Timestamp::now(), "{seen} {tool}");
    }
    for provider in PROVIDERS {
        all.insert(provider.to_owned(), chat.bare(provider).await.into());
    }
    all
}

#[tokio::test]
async fn everything_about_a_session_survives_a_restart_and_a_crash() {
    let board = two_servers("").await;
    let mut serve = board.home.serve().await;
    let api = Api::of(&serve);
    let mut chats = vec![
        api.new_chat(json!({"id": "plain"})).await,
        api.new_chat(json!({
            "id": "full", "title": "Quarterly \u{1F642} report", "provider": "anthropic", "model": "m-1",
            "servers": ["shop"], "toolsets": {"buy": false}, "tools": {"shop.order": true},
            "allow": {"openai": ["shop__f*"], "gemini": ["order"]},
        }))
        .await,
        api.new_chat(json!({"title": "without a name"})).await,
    ];
    wait_until(PATIENCE, async || (board.shop.open_streams() > 0).then_some(())).await;
    // Tools that the catalog puts in front are behind in the sessions that were there before.
    let more = [Tool::echo("aardvark"), Tool::echo("basket")].into_iter().chain(shop_tools());
    board.shop.set_tools_and_notify(more).await;
    chats[0].until_has("shop__aardvark").await;
    chats.push(api.new_chat(json!({"id": "late"})).await);
    let orders = [chats[0].names().await, chats[3].names().await];
    assert_ne!(orders[0], orders[1]);
    chats[1].put("/tools/shop.price", json!({"enabled": true})).await;
    for signal in ["TERM", "KILL", "KILL"] {
        let mut before = Vec::new();
        // The last change is acknowledged, and then it is dark.
        for chat in &chats {
            let title = format!("before {signal}");
            chat.patch(json!({"model": title})).await;
            before.push(everything(chat).await);
        }
        let listed = Api::of(&serve).sessions().await;
        serve = restart(&board.home, serve, signal).await;
        let after = Api::of(&serve).sessions().await;
        assert_eq!(after, listed, "the list after {signal}");
        for (chat, before) in chats.iter_mut().zip(before) {
            chat.moved_to(&serve);
            assert_eq!(everything(chat).await, before, "{} after {signal}", chat.id);
            let current = chat.revision().await;
            let events = chat.follow(Some(&current.to_string())).await;
            assert_eq!(events.heard(), [], "nothing happened");
        }
    }
    assert_eq!(chats[0].names().await, orders[0]);
    chats[0].put("/toolsets/buy", json!({"enabled": false})).await;
    chats[0].call("shop__find", json!({})).await;
}

#[tokio::test]
async fn a_deleted_session_stays_gone() {
    let board = two_servers("").await;
    let mut serve = board.home.serve().await;
    for signal in ["TERM", "KILL"] {
        let mut chat = Api::of(&serve).new_chat(json!({"id": "brief"})).await;
        assert_eq!(chat.delete("").await.status, 204);
        serve = restart(&board.home, serve, signal).await;
        chat.moved_to(&serve);
        chat.api.get(&chat.path("")).await.refused(404, "unknown_session");
        assert_eq!(chat.api.sessions().await, Vec::<Value>::new());
    }
}

#[tokio::test]
async fn what_changed_while_it_was_down_is_one_step() {
    let board = two_servers("").await;
    let mut serve = board.home.serve().await;
    let mut chat = Api::of(&serve).new_chat(json!({})).await;
    let before = chat.names().await;
    for (at, signal) in [(2, "TERM"), (3, "KILL")] {
        serve.signal(signal);
        serve.ended().await;
        let more = (1..at).map(|n| Tool::echo(format!("added_{n}")));
        board.shop.set_tools(more.chain(shop_tools()));
        serve = board.home.serve().await;
        chat.moved_to(&serve);
        chat.until_has(&format!("shop__added_{}", at - 1)).await;
        assert_eq!(chat.revision().await, at);
        assert_eq!(chat.names().await[..before.len()], before, "in their order");
        // Nobody knows any more what the step was.
        let heard = chat.follow(Some(&(at - 1).to_string())).await.settles(1).await;
        assert_eq!((&*heard[0].name, &*heard[0].id), ("reset", &*at.to_string()));
    }
}

#[tokio::test]
async fn earlier_names_lead_to_their_tools_also_after_restarts() {
    let board = two_servers("naming: bare").await;
    let mut serve = board.home.serve().await;
    let mut chat = Api::of(&serve).new_chat(json!({})).await;
    chat.until_names(&["find", "price", "order", "read", "write"]).await;
    board.home.rewrite(two_servers_yaml("", &board.shop.url(), &board.notes.url()));
    serve.signal("HUP");
    let renamed = ["shop__find", "shop__price", "shop__order", "notes__read", "notes__write"];
    chat.until_names(&renamed).await;
    assert_eq!(chat.revision().await, 2);
    for signal in ["TERM", "KILL"] {
        serve = restart(&board.home, serve, signal).await;
        chat.moved_to(&serve);
        // An MCP client has no other way than the name.
        let client = Peer::open(Era::Modern, &serve, &format!("/mcp/sessions/{}", chat.id)).await;
        client.done("order", json!({"n": 7})).await;
        for name in ["order", "shop__order"] {
            chat.call(name, json!({"n": 7})).await;
        }
        assert_eq!(chat.names().await, renamed);
        assert_eq!(chat.revision().await, 2);
    }
    let calls = board.shop.stats().calls;
    assert!(calls.len() == 6 && calls.iter().all(|call| call.tool == "order"), "{calls:?}");
}
