//! Declared tools keep their position, byte for byte, so that prompt caches stay valid.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{ScriptedServer, Tool, wait_until};

use crate::board::shop_tools;
use crate::chat::{Api, Chat, PROVIDERS};
use crate::support::{Home, PATIENCE, dynamic, server, yaml};

fn tools(count: usize) -> Vec<Tool> {
    let schema = json!({"type": "object", "properties": {"a key": {"type": "string"}, "n": {"type": "integer"}}, "required": ["n"]});
    (0..count).map(|n| Tool::echo(format!("tool_{n:03}")).schema(schema.clone())).collect()
}

/// Two servers, so that whatever the first one gets comes in the middle of the catalog.
async fn world(count: usize) -> (ScriptedServer, ScriptedServer, Home) {
    let first = server(tools(count / 2)).await;
    let second = server(tools(count - count / 2)).await;
    let entries = [dynamic("first", &first.url()), dynamic("second", &second.url())];
    let home = Home::new(yaml(&[], &entries));
    (first, second, home)
}

async fn all_bare(chat: &Chat) -> Vec<String> {
    let mut all = Vec::new();
    for provider in PROVIDERS {
        all.push(chat.bare(provider).await);
    }
    all
}

/// The text without the brackets that close it.
fn open(json: &str) -> &str {
    json.trim_end_matches([']', '}'])
}

async fn added_tool_is_behind(count: usize, providers: &[&str]) {
    let (first, _second, home) = world(count).await;
    let serve = home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({})).await;
    let before_names = chat.names().await;
    assert_eq!(before_names.len(), count);
    let before = all_bare(&chat).await;
    wait_until(PATIENCE, async || (first.open_streams() > 0).then_some(())).await;
    let mut more = tools(count / 2);
    more.insert(count / 4, Tool::echo("in_the_middle"));
    first.set_tools_and_notify(more.clone()).await;
    chat.until_has("first__in_the_middle").await;
    // The catalog has it in the middle, the session behind all others.
    let catalog = serve.tool_names().await;
    assert_ne!(catalog.last().unwrap(), "first.in_the_middle");
    assert_eq!(chat.revision().await, 2);
    let with_it = [before_names.clone(), vec!["first__in_the_middle".to_owned()]].concat();
    assert_eq!(chat.names().await, with_it);
    for (provider, before) in PROVIDERS.iter().zip(&before) {
        if !providers.contains(provider) {
            continue;
        }
        let after = chat.bare(provider).await;
        let (old, new) = (open(before), open(&after));
        // The last schema ends in brackets too: they are the same text in both.
        assert!(after.starts_with(old), "{provider} has changed what was there");
        assert!(new.contains("in_the_middle") && new.len() > old.len(), "{provider}");
        let list: Value = serde_json::from_str(&after).unwrap();
        let at = after.find("first__in_the_middle").unwrap();
        assert!(at >= old.len(), "{provider} puts it among the others: {list}");
        assert_eq!(chat.rendered(provider).await, with_it, "{provider}");
    }
    // Without it everything is as it was before it came.
    first.set_tools_and_notify(tools(count / 2)).await;
    chat.until_names(&before_names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert_eq!(all_bare(&chat).await, before);
}

#[tokio::test]
async fn a_tool_that_comes_leaves_every_byte_of_200_others_where_it_was() {
    let unlimited: Vec<_> =
        PROVIDERS.into_iter().filter(|provider| !provider.starts_with("openai")).collect();
    added_tool_is_behind(200, &unlimited).await;
}

#[tokio::test]
async fn a_tool_that_comes_leaves_every_byte_of_100_others_where_it_was() {
    added_tool_is_behind(100, &PROVIDERS).await;
}

#[tokio::test]
async fn what_goes_and_comes_again_is_at_the_end() {
    let shop = server(shop_tools()).await;
    let home = Home::new(yaml(&[], &[dynamic("shop", &shop.url())]));
    let serve = home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({})).await;
    let check = async |expected: &[&str]| {
        chat.until_names(expected).await;
        for provider in PROVIDERS {
            assert_eq!(chat.rendered(provider).await, expected, "{provider}");
        }
    };
    check(&["shop__find", "shop__price", "shop__order"]).await;
    chat.put("/tools/shop__find", json!({"enabled": false})).await;
    check(&["shop__price", "shop__order"]).await;
    chat.put("/tools/shop__find", json!({"enabled": true})).await;
    check(&["shop__price", "shop__order", "shop__find"]).await;
    wait_until(PATIENCE, async || (shop.open_streams() > 0).then_some(())).await;
    shop.set_tools_and_notify(shop_tools().into_iter().filter(|tool| tool.name != "price")).await;
    check(&["shop__order", "shop__find"]).await;
    shop.set_tools_and_notify(shop_tools()).await;
    check(&["shop__order", "shop__find", "shop__price"]).await;
    assert_eq!(chat.revision().await, 5);
    // Who comes now finds the order of the catalog.
    let new = Api::of(&serve).new_chat(json!({})).await;
    assert_eq!(new.names().await, ["shop__find", "shop__price", "shop__order"]);
}

#[tokio::test]
async fn tools_of_a_server_that_comes_and_goes_stay_declared() {
    let (shop, steady) = (server(shop_tools()).await, server([Tool::echo("read")]).await);
    let entries = [dynamic("shop", &shop.url()), dynamic("notes", &steady.url())];
    let home = Home::new(yaml(&[], &entries));
    let serve = home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({})).await;
    let events = chat.follow(None).await;
    let before = all_bare(&chat).await;
    let available = async || -> Vec<bool> {
        let tools = chat.get("/tools").await;
        let tools = tools["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["available"].as_bool().unwrap()).collect()
    };
    assert_eq!(available().await, [true; 4]);
    for _ in 0..2 {
        shop.stop().await;
        let refused = chat.try_call("shop__find", json!({})).await.refused(503, "unavailable");
        assert!(refused.contains("shop"), "{refused}");
        wait_until(PATIENCE, async || {
            (available().await == [false, false, false, true]).then_some(())
        })
        .await;
        assert_eq!(all_bare(&chat).await, before);
        chat.call("notes__read", json!({})).await;
        shop.restart_on_same_port().await;
        wait_until(PATIENCE, async || (available().await == [true; 4]).then_some(())).await;
        chat.call("shop__find", json!({})).await;
        assert_eq!(all_bare(&chat).await, before);
    }
    events.settles(1).await;
    assert_eq!(chat.revision().await, 1);
}
