//! Tools are added and removed during a session, through the API and by servers: each change is in the next rendering,
//! increments the revision once and sends one event.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::{Value, json};
use switchboard_test_support::{ScriptedServer, Tool, wait_until};

use crate::board::{NOTES, SHOP, shop_tools, two_servers};
use crate::chat::{Api, Chat, PROVIDERS};
use crate::events::Events;
use crate::support::PATIENCE;

/// A change through the API, and the exposed names that come and go with it.
struct Change {
    method: Method,
    tail: &'static str,
    body: Value,
    added: Vec<&'static str>,
    removed: Vec<&'static str>,
}

fn change(
    method: Method,
    tail: &'static str,
    body: Value,
    added: &[&'static str],
    removed: &[&'static str],
) -> Change {
    Change { method, tail, body, added: added.to_vec(), removed: removed.to_vec() }
}

fn changes() -> Vec<Change> {
    let put = || Method::PUT;
    let priced = ["shop__price", "shop__order"];
    vec![
        change(Method::PATCH, "", json!({"toolsets": {"buy": false}}), &[], &priced),
        change(put(), "/toolsets/buy", json!({"enabled": true}), &priced, &[]),
        change(put(), "/toolsets/notes", json!({"enabled": false}), &[], &NOTES),
        change(Method::PATCH, "", json!({"toolsets": {"notes": true}}), &NOTES, &[]),
        change(put(), "/tools/notes__write", json!({"enabled": false}), &[], &["notes__write"]),
        change(put(), "/tools/notes.write", json!({"enabled": null}), &["notes__write"], &[]),
        change(put(), "/bindings", json!({"servers": ["notes"]}), &[], &SHOP),
        change(put(), "/bindings", json!({"servers": null}), &SHOP, &[]),
        change(
            Method::PATCH,
            "",
            json!({"title": "All at once", "servers": ["shop"], "toolsets": {"buy": false},
                   "tools": {"shop.order": true}}),
            &[],
            &["shop__price", "notes__read", "notes__write"],
        ),
    ]
}

/// Every shape shows what the session has, in its order.
async fn assert_rendered(chat: &Chat) {
    let names = chat.names().await;
    for provider in PROVIDERS {
        assert_eq!(chat.rendered(provider).await, names, "{provider}");
    }
}

#[track_caller]
fn assert_event(event: &crate::events::Event, revision: u64, cause: &str, names: [&[&str]; 3]) {
    assert_eq!((event.name.as_str(), event.id.as_str()), ("revision", &*revision.to_string()));
    assert_eq!(event.data["tools_revision"], revision);
    assert_eq!(event.data["cause"], cause);
    for (key, expected) in ["added", "removed", "changed"].into_iter().zip(names) {
        let mut told: Vec<&str> =
            event.data[key].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let mut expected = expected.to_vec();
        told.sort_unstable();
        expected.sort_unstable();
        assert_eq!(told, expected, "{key} of {:#}", event.data);
    }
}

#[tokio::test]
async fn every_change_through_the_api_is_one_step_one_event_and_in_the_next_rendering() {
    let board = two_servers("").await;
    let serve = board.home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({"id": "work"})).await;
    let other = Api::of(&serve).new_chat(json!({"id": "other"})).await;
    let (events, others) = (chat.follow(None).await, other.follow(None).await);
    assert_eq!(events.settles(1).await[0].name, "current");
    let mut revision = chat.revision().await;
    assert_eq!(revision, 1);
    for (at, wanted) in changes().into_iter().enumerate() {
        let before = chat.names().await;
        let path = chat.path(wanted.tail);
        let answer = chat.api.send(wanted.method, &path, Some(wanted.body)).await.good();
        revision += 1;
        assert_eq!(answer["tools_revision"], revision, "{path}: {answer:#}");
        let stays = before.iter().filter(|name| !wanted.removed.contains(&name.as_str()));
        let expected: Vec<_> = stays.map(String::as_str).chain(wanted.added.clone()).collect();
        assert_eq!(chat.names().await, expected, "{path}");
        wait_until(PATIENCE, async || (events.heard().len() == at + 2).then_some(())).await;
        let event = events.heard().pop().unwrap();
        assert_event(&event, revision, "session", [&wanted.added, &wanted.removed, &[]]);
    }
    assert_rendered(&chat).await;
    events.settles(changes().len() + 1).await;
    assert_eq!(others.heard().len(), 1, "nobody else is told: {:?}", others.heard());
    assert_eq!(other.names().await, [&SHOP[..], &NOTES].concat());
}

/// A server that sends change notifications.
async fn listening(server: &ScriptedServer) {
    wait_until(PATIENCE, async || (server.open_streams() > 0).then_some(())).await;
}

/// Waits for the next event, and sees that it stays the only one.
async fn next_event(events: &Events, count: &mut usize) -> crate::events::Event {
    *count += 1;
    events.settles(*count).await.pop().unwrap()
}

#[tokio::test]
async fn every_change_of_a_server_is_one_step_one_event_and_in_the_next_rendering() {
    let board = two_servers("").await;
    let serve = board.home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({"id": "work"})).await;
    let bound = Api::of(&serve).new_chat(json!({"servers": ["notes"]})).await;
    let (events, others) = (chat.follow(None).await, bound.follow(None).await);
    listening(&board.shop).await;
    let mut count = 1;
    let more = |tools: &[&str]| {
        shop_tools()
            .into_iter()
            .chain(tools.iter().map(|name| Tool::echo(*name)).collect::<Vec<_>>())
    };

    board.shop.set_tools_and_notify(more(&["refund"])).await;
    let event = next_event(&events, &mut count).await;
    assert_event(&event, 2, "catalog", [&["shop__refund"], &[], &[]]);
    assert_eq!(chat.names().await, [&SHOP[..], &NOTES, &["shop__refund"]].concat());
    assert_rendered(&chat).await;

    let described = more(&["refund"]).map(|tool| match tool.name.as_str() {
        "price" => tool.description("Says another thing."),
        _ => tool,
    });
    board.shop.set_tools_and_notify(described).await;
    let event = next_event(&events, &mut count).await;
    assert_event(&event, 3, "catalog", [&[], &[], &["shop__price"]]);
    assert!(chat.bare("openai").await.contains("Says another thing."));

    board.shop.set_tools_and_notify(more(&[])).await;
    let event = next_event(&events, &mut count).await;
    assert_event(&event, 4, "catalog", [&[], &["shop__refund"], &["shop__price"]]);
    assert_eq!(chat.names().await, [&SHOP[..], &NOTES].concat());
    assert_rendered(&chat).await;

    // The same list, announced three times, also in another order.
    let lists = board.shop.stats().list_count;
    board.shop.notify_list_changed(3).await;
    wait_until(PATIENCE, async || (board.shop.stats().list_count > lists).then_some(())).await;
    let lists = board.shop.stats().list_count;
    board.shop.set_tools_and_notify(shop_tools().into_iter().rev()).await;
    wait_until(PATIENCE, async || (board.shop.stats().list_count > lists).then_some(())).await;
    events.settles(count).await;
    assert_eq!(chat.revision().await, 4);
    assert_eq!(chat.names().await, [&SHOP[..], &NOTES].concat());
    // Who is bound to another server saw none of it.
    assert_eq!((others.heard().len(), bound.revision().await), (1, 1));
}

#[tokio::test]
async fn deltas_say_what_changed_since_a_revision_that_is_known() {
    let board = two_servers("").await;
    let serve = board.home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({})).await;
    chat.put("/toolsets/notes", json!({"enabled": false})).await;
    for provider in PROVIDERS {
        let rendering = chat.render(provider, "&since=1").await;
        let delta = rendering["delta"].to_string();
        assert!(delta.contains("notes__read") && delta.contains("notes__write"), "{delta}");
        assert!(!delta.contains("shop__"), "{provider}: {delta}");
        let unknown = chat.render(provider, "&since=99").await;
        assert_eq!(unknown["delta"], Value::Null, "{provider}: {unknown:#}");
        assert!(unknown["tools"].to_string().contains("shop__find"));
    }
}
