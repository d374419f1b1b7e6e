//! Access to tools in a session: policy, enabled toolsets, names, allow lists and meta-tools.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::json;
use switchboard_test_support::Tool;

use crate::board::{META_NAMES, meta_and, shop_tools, two_servers};
use crate::chat::{Api, PROVIDERS};
use crate::peer::{BOTH, Peer};
use crate::support::{Home, dynamic, server};

#[tokio::test]
async fn what_policy_hides_is_reachable_in_a_session_by_no_way() {
    for exposure in ["legacy", "dynamic"] {
        let board =
            two_servers(&format!("exposure: {exposure}, deny_toolsets: [notes, buy]")).await;
        let serve = board.home.serve().await;
        let api = Api::of(&serve);
        let chat = api.new_chat(json!({"id": "work", "toolsets": {"look": true}})).await;
        // `price` is in a set that is denied and in one that is not.
        let before = chat.names().await;
        assert!(before.iter().all(|name| name.starts_with("shop__")), "{before:?}");
        assert!(!before.contains(&"shop__order".to_owned()), "{before:?}");
        for hidden in ["notes__read", "notes.read", "read", "shop__order", "shop.order", "order"] {
            chat.try_call(hidden, json!({})).await.refused(404, "unknown_tool");
            let refused = chat.try_put(&format!("/tools/{hidden}"), json!({"enabled": true})).await;
            let said = refused.refused(422, "bad_request");
            let (_, hint) = said.split_once("did you mean").unwrap_or_default();
            assert!(!hint.contains("notes") && !hint.contains("order"), "{hidden}: {said}");
            chat.try_patch(json!({"tools": {hidden: true}})).await.refused(422, "bad_request");
            let made = json!({"tools": {hidden: true}});
            api.send(Method::POST, "/sessions", Some(made)).await.refused(422, "bad_request");
            // An allow list only narrows.
            chat.patch(json!({"allow": {"openai": [hidden, "*"]}})).await;
            assert!(!chat.bare("openai").await.contains("\"notes__read\""));
            for era in BOTH {
                let client = Peer::open(era, &serve, "/mcp/sessions/work").await;
                let params = json!({"name": hidden, "arguments": {}});
                let answer = client.ask("tools/call", params).await;
                assert_eq!(answer["result"]["isError"], true, "{hidden}: {answer}");
            }
            if exposure == "dynamic" {
                let body = json!({"arguments": {"name": hidden, "arguments": {}}});
                let answer = chat.try_call("call_tool", body).await.good();
                assert_eq!(answer["outcome"], "tool_error", "{hidden}: {answer}");
            }
        }
        for set in ["notes", "buy"] {
            let tail = format!("/toolsets/{set}");
            let refused = chat.try_put(&tail, json!({"enabled": true})).await;
            let said = refused.refused(422, "bad_request");
            assert_eq!(
                said,
                format!("there is no toolset '{set}' here; there are: {}", "look, shop")
            );
        }
        let said = chat.try_patch(json!({"servers": ["notes"]})).await.refused(422, "bad_request");
        assert_eq!(said, "there is no MCP server 'notes' here; there are: shop");
        chat.patch(json!({"allow": {"openai": null}})).await;
        for tail in ["/tools", "/toolsets", "/snapshot", "/render?provider=mcp"] {
            let text = chat.get(tail).await.to_string();
            assert!(!text.contains("notes") && !text.contains("order"), "{tail}: {text}");
        }
        assert_eq!(board.notes.stats().total_calls() + board.shop.stats().total_calls(), 0);
    }
}

#[tokio::test]
async fn a_call_of_what_is_switched_off_says_what_would_switch_it_on() {
    let board = two_servers("").await;
    let serve = board.home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({})).await;
    chat.patch(json!({"toolsets": {"buy": false}, "tools": {"notes.read": false}})).await;
    for name in ["shop__order", "shop.order"] {
        let said = chat.try_call(name, json!({})).await.refused(404, "unknown_tool");
        assert!(said.contains("toolset 'buy'"), "{name}: {said}");
    }
    for name in ["notes__read", "notes.read"] {
        let said = chat.try_call(name, json!({})).await.refused(404, "unknown_tool");
        assert!(said.contains("switched off"), "{name}: {said}");
    }
    let said = chat.try_call("shop__fnd", json!({})).await.refused(404, "unknown_tool");
    assert!(said.contains("shop__find"), "{said}");
    assert_eq!(board.shop.stats().total_calls() + board.notes.stats().total_calls(), 0);
}

#[tokio::test]
async fn no_meta_tool_runs_what_somebody_switched_off() {
    let board = two_servers("exposure: dynamic, tool_sets: [notes]").await;
    let serve = board.home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({"id": "work"})).await;
    chat.patch(json!({"tools": {"notes.read": false}})).await;
    let told = "tool 'notes__read' is switched off in this session; `switchboard session enable` switches it on again";
    let said = chat.try_call("notes__read", json!({})).await.refused(404, "unknown_tool");
    assert_eq!(said, told);
    for name in ["notes__read", "notes.read"] {
        let body = json!({"arguments": {"name": name, "arguments": {}}});
        let answer = chat.try_call("call_tool", body).await.good();
        assert_eq!(answer["outcome"], "tool_error", "{name}: {answer}");
        assert!(answer.to_string().contains(told), "{name}: {answer}");
        for era in BOTH {
            let client = Peer::open(era, &serve, "/mcp/sessions/work").await;
            assert_eq!(client.refused("notes__read", json!({})).await, told, "{era:?}");
            assert_eq!(client.refused("call_tool", json!({ "name": name })).await, told, "{era:?}");
            for (meta, arguments) in [
                ("describe_tool", json!({ "name": name })),
                ("search_tools", json!({"query": "read", "limit": 1})),
            ] {
                let said = client.done(meta, arguments).await;
                assert!(said.contains("\"switchedOff\":true"), "{era:?} {meta}: {said}");
            }
            // A set that is off is no such switch.
            client.done("call_tool", json!({"name": "shop__find"})).await;
        }
    }
    assert_eq!(board.notes.stats().total_calls(), 0);
    chat.patch(json!({"tools": {"notes.read": true}})).await;
    chat.call("call_tool", json!({"name": "notes__read"})).await;
    assert_eq!(board.notes.stats().total_calls(), 1);
}

#[tokio::test]
async fn a_provider_is_shown_what_its_list_allows_and_the_others_all() {
    let board = two_servers("").await;
    let serve = board.home.serve().await;
    let api = Api::of(&serve);
    let allow = json!({"openai": ["shop__*"], "anthropic": ["notes.read", "f?nd"], "gemini": []});
    let chat = api.new_chat(json!({ "allow": allow })).await;
    let all = chat.names().await;
    assert_eq!(all.len(), 5);
    for (provider, expected) in [
        ("openai", vec!["shop__find", "shop__price", "shop__order"]),
        ("anthropic", vec!["shop__find", "notes__read"]),
        ("gemini", vec![]),
    ] {
        assert_eq!(chat.rendered(provider).await, expected, "{provider}");
    }
    for provider in ["mcp", "openai-chat", "gemini-parameters", "langchain", "semantic-kernel"] {
        assert_eq!(chat.rendered(provider).await, all, "{provider}");
    }
    // A change of it is a step, for the bytes of that provider change.
    let view = chat.patch(json!({"allow": {"openai": null}})).await;
    assert_eq!(view["tools_revision"], 2);
    assert_eq!(chat.rendered("openai").await, all);
    for (bad, said) in [
        (json!({"allow": {"acme": ["*"]}}), "there is no provider `acme`"),
        (json!({"allow": {"openai": vec!["x"; 1025]}}), "more than 1024"),
    ] {
        let refused = chat.try_patch(bad).await.refused(422, "bad_request");
        assert!(refused.contains(said), "{refused}");
    }
    let refused = api.get(&chat.path("/render?provider=acme")).await.refused(400, "bad_request");
    assert!(refused.contains("anthropic"), "{refused}");
}

#[tokio::test]
async fn models_of_every_provider_can_use_the_tools_about_tools() {
    let board = two_servers("exposure: dynamic").await;
    let serve = board.home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({})).await;
    for provider in PROVIDERS {
        assert_eq!(chat.rendered(provider).await, META_NAMES, "{provider}");
    }
    let events = chat.follow(None).await;
    let result = chat.call("enable_toolset", json!({"toolsetName": "look"})).await;
    assert_eq!(result["structuredContent"]["success"], true, "{result:#}");
    let event = events.settles(2).await.pop().unwrap();
    assert_eq!(event.data["added"], json!(["shop__find", "shop__price"]));
    for provider in PROVIDERS {
        assert_eq!(chat.rendered(provider).await, meta_and(&["shop__find", "shop__price"]));
    }
    chat.call("shop__find", json!({"n": 1})).await;
    let found = chat.call("search_tools", json!({"query": "write"})).await;
    assert!(found.to_string().contains("notes__write"), "{found:#}");
    chat.call("call_tool", json!({"name": "notes__write", "arguments": {"n": 2}})).await;
    assert_eq!(board.notes.stats().calls[0].n, Some(2));
    for (tool, arguments) in [
        ("enable_toolset", json!({"toolsetName": "look"})),
        ("enable_toolset", json!({"toolsetName": "nowhere"})),
        ("enable_toolset", json!({})),
        ("enable_toolset", json!([1])),
        ("describe_tool", json!({"name": "nowhere"})),
        ("call_tool", json!({})),
    ] {
        let answer = chat.try_call(tool, json!({ "arguments": arguments })).await.good();
        assert_eq!(answer["outcome"], "tool_error", "{tool} {arguments}: {answer:#}");
    }
    assert_eq!(chat.revision().await, 2);
    let told = chat.call("disable_toolset", json!({"toolsetName": "look"})).await;
    assert_eq!(told["structuredContent"]["success"], true);
    assert_eq!(chat.revision().await, 3);
}

/// `reserved meta-tool names cannot be taken`, and what a session brings takes no name from the others.
#[tokio::test]
async fn nobody_takes_the_name_of_another_tool() {
    let shop = server(shop_tools()).await;
    let twin = server([Tool::echo("p__find"), Tool::echo("call_tool")]).await;
    let home = Home::new(format!(
        "switchboard:\n  security: {{egress: {{allow: [\"127.0.0.0/8\"]}}}}\n  toolbox:\n    mcps:\n      - {}\n      - {}\n",
        dynamic("shop", &shop.url()),
        dynamic("plain", &twin.url())
    ));
    let serve = home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({})).await;
    let own = server([Tool::echo("find")]).await;
    let before = chat.names().await;
    // `sho` + `p__find` cannot be told from `shop` + `find` when they are joined carelessly.
    chat.put("/servers/plain__p", json!({"url": own.url()})).await;
    let names = switchboard_test_support::wait_until(crate::support::PATIENCE, async || {
        let names = chat.names().await;
        (names.len() > before.len()).then_some(names)
    })
    .await;
    assert_eq!(names[..before.len()], before);
    assert_ne!(names[before.len()], "plain__p__find");
    chat.call("plain__p__find", json!({})).await;
    assert_eq!((twin.stats().total_calls(), own.stats().total_calls()), (1, 0));
    chat.call(&names[before.len()], json!({})).await;
    assert_eq!((twin.stats().total_calls(), own.stats().total_calls()), (1, 1));
}
