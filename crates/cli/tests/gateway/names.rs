//! Names of tools: prefixed, bare, or configured; and never that of a meta-tool.

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_support::Tool;

use crate::board::{META, META_NAMES};
use crate::peer::{BOTH, Peer};
use crate::support::{Home, dynamic, server};

fn yaml(gateway: &str, tools: &str, servers: &[String]) -> String {
    let servers = servers.join("\n      - ");
    format!(
        "switchboard:\n  gateway: {{{gateway}}}\n  toolbox:\n    tools: [{tools}]\n    mcps:\n      - {servers}\n"
    )
}

#[tokio::test]
async fn each_naming_shows_and_calls_the_right_tool() {
    let one = server([Tool::echo("get"), Tool::echo("a.b")]).await;
    let two = server([Tool::echo("get")]).await;
    let servers = [dynamic("one", &one.url()), dynamic("two", &two.url())];
    let named = "{name: one.get, expose_as: first_get}";
    let rows: [(&str, &str, &[&str], bool); 4] = [
        ("naming: prefixed", "", &["one__get", "one__a_b_", "two__get"], false),
        ("naming: prefixed", named, &["first_get", "one__a_b_", "two__get"], false),
        ("naming: bare", "", &["a.b", "get"], true),
        ("naming: bare", named, &["first_get", "a.b", "get"], false),
    ];
    for (gateway, tools, expected, warns) in rows {
        let home = Home::new(yaml(gateway, tools, &servers));
        let serve = home.serve().await;
        for era in BOTH {
            let client = Peer::open(era, &serve, "/mcp").await;
            let listed = client.list().await;
            assert_eq!(listed.len(), expected.len(), "{gateway} {tools}: {listed:?}");
            for (name, expected) in listed.iter().zip(expected) {
                let is_hashed = expected.ends_with('_');
                assert!(
                    name == expected || (is_hashed && name.starts_with(expected)),
                    "{listed:?}"
                );
                client.done(name, json!({"n": 1})).await;
            }
            let (first, second) = (one.stats().total_calls(), two.stats().total_calls());
            client.done(listed.last().unwrap(), json!({})).await;
            assert_eq!((one.stats().total_calls(), two.stats().total_calls()), (first, second + 1));
        }
        let warning = "tool 'one.get' is hidden by 'two.get'";
        assert_eq!(
            serve.stderr().matches(warning).count(),
            usize::from(warns),
            "{}",
            serve.stderr()
        );
    }
}

#[tokio::test]
async fn a_server_cannot_take_the_name_of_a_meta_tool() {
    let one = server([Tool::echo("call_tool"), Tool::echo("enable_toolset")]).await;
    let servers = [dynamic("one", &one.url())];
    let home = Home::new(yaml("naming: bare, exposure: dynamic, tool_sets: [one]", "", &servers));
    let serve = home.serve().await;
    for era in BOTH {
        let client = Peer::open(era, &serve, "/mcp").await;
        let listed = client.list().await;
        assert_eq!(listed[..META], META_NAMES);
        assert_eq!(listed.len(), META + 2);
        assert!(listed[META].starts_with("call_tool_"), "{listed:?}");
        assert!(listed[META + 1].starts_with("enable_toolset_"), "{listed:?}");
        let told = client.refused("call_tool", json!({})).await;
        assert_eq!(told, "say which tool in `name`");
        let before = one.stats().total_calls();
        client.done(&listed[META], json!({"n": 1})).await;
        client.done("call_tool", json!({"name": listed[META + 1], "arguments": {"n": 2}})).await;
        client.done("call_tool", json!({"name": "one.call_tool"})).await;
        assert_eq!(one.stats().total_calls(), before + 3);
    }
    // Nor can the configuration give it away.
    let taken = "{name: call_tool, expose_as: search_tools}";
    let ended = Home::new(yaml("", taken, &servers)).line("check").code;
    assert_ne!(ended, Some(0));
}
