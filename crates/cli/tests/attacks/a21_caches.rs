//! A21: responses that depend on the caller are marked as private, and none is served to another caller.

use futures::future::join_all;
use serde_json::json;
use switchboard_test_support::{ScriptedServer, Tool};

use crate::client::Peer;
use crate::fixture::Fixture;
use crate::support::server;
use crate::world::{home, key};

#[tokio::test]
async fn a21_lists_are_private_whatever_the_servers_say() {
    let public = ScriptedServer::builder()
        .modern()
        .cache(60_000, "public")
        .tools([Tool::new("a")])
        .start()
        .await;
    let fixture = Fixture::start("modern");
    let home = home(&[("one", &public.url()), ("fix", &fixture.url)], &[]);
    let key = key(&home, "alice", "client");
    let serve = home.serve().await;
    let peer = Peer::of(&serve).with_key(&key);
    let narrowed = [
        peer.clone(),
        peer.with("x-mcp-toolsets", "one"),
        peer.with("x-mcp-tools", "one__a"),
        peer.with("x-mcp-readonly", "true"),
        peer.at(serve.at("/mcp/servers/one")),
    ];
    for peer in narrowed {
        for method in [
            "tools/list",
            "prompts/list",
            "resources/list",
            "resources/templates/list",
            "server/discover",
        ] {
            let result = peer.modern(method, json!({})).await.result();
            assert_eq!(result["cacheScope"], "private", "{method} {result}");
            assert!(result["ttlMs"].is_u64(), "{method} {result}");
        }
    }
    let read = peer.modern("resources/read", json!({"uri": "test://static-text"})).await.result();
    assert_eq!(read["cacheScope"], "private", "{read}");
}

#[tokio::test]
async fn a21_what_a_server_calls_public_is_private_here() {
    let public = ScriptedServer::builder()
        .modern()
        .cache(60_000, "public")
        .tools([Tool::new("a")])
        .prompts(["p"])
        .resources(["one://r"])
        .start()
        .await;
    let home = home(&[("one", &public.url())], &[]);
    let key = key(&home, "alice", "client");
    let serve = home.serve().await;
    let peer = Peer::of(&serve).with_key(&key);
    for (method, params, member) in [
        ("resources/read", json!({"uri": "one://r"}), "contents"),
        ("prompts/get", json!({"name": "one__p"}), "messages"),
    ] {
        let answer = peer.modern(method, params).await;
        let result = answer.result();
        assert_eq!(result["cacheScope"], "private", "{method} {result}");
        assert_eq!(answer.body.matches("cacheScope").count(), 1, "{method} {}", answer.body);
        // How long it may be kept is for the server to say.
        assert_eq!(result["ttlMs"], 60_000, "{method} {result}");
        assert_eq!(result[member].as_array().unwrap().len(), 1, "{method} {result}");
        assert_eq!(result["resultType"], "complete", "{method} {result}");
    }
}

#[tokio::test]
async fn a21_two_principals_switch_and_see_only_their_own() {
    let (x, y) = (server([Tool::new("of_x")]).await, server([Tool::new("of_y")]).await);
    let gateway = "gateway: {exposure: dynamic, stateless_state: principal}";
    let home = home(&[("x", &x.url()), ("y", &y.url())], &[gateway]);
    let keys = ["alice", "bob"].map(|name| key(&home, name, "client"));
    let serve = home.serve().await;
    let [alice, bob] = keys.each_ref().map(|key| Peer::of(&serve).with_key(key));
    let nothing = bob.tools().await;
    assert_eq!(alice.tools().await, nothing);
    assert!(!alice.call("enable_toolset", json!({"toolsetName": "x"})).await.is_refusal());
    assert!(!bob.call("enable_toolset", json!({"toolsetName": "y"})).await.is_refusal());
    for _ in 0..3 {
        let (seen, other) = (alice.tools().await, bob.tools().await);
        assert!(seen.contains(&"x__of_x".into()) && !seen.contains(&"y__of_y".into()), "{seen:?}");
        assert!(
            other.contains(&"y__of_y".into()) && !other.contains(&"x__of_x".into()),
            "{other:?}"
        );
    }
    assert!(!alice.call("x__of_x", json!({})).await.is_refusal());
    assert!(bob.call("x__of_x", json!({})).await.is_refusal());
    // Narrowing by one header is not remembered for the next request.
    let narrow = alice.with("x-mcp-tools", "y__of_y").tools().await;
    assert!(!narrow.contains(&"x__of_x".into()), "{narrow:?}");
    assert!(alice.tools().await.contains(&"x__of_x".into()));
    // A session of the legacy era begins with nothing of what the modern one of the same key enabled for others.
    assert!(!bob.open().await.tools().await.contains(&"x__of_x".into()));
    assert_eq!(x.stats().total_calls(), 1);
}

#[tokio::test]
async fn a21_results_go_to_who_asked_also_under_equal_ids() {
    let upstreams = [
        server([Tool::new("echo").sleeps(20)]).await,
        ScriptedServer::builder().modern().tools([Tool::new("echo").sleeps(20)]).start().await,
    ];
    let home = home(
        &[("old", &upstreams[0].url()), ("new", &upstreams[1].url())],
        &["gateway: {max_sessions: 50}"],
    );
    let keys = ["alice", "bob"].map(|name| key(&home, name, "client"));
    let serve = home.serve().await;
    let peers = keys.each_ref().map(|key| Peer::of(&serve).with_key(key));
    let sessions = [peers[0].open().await, peers[1].open().await];
    // All requests have the same id 1 in their own eyes.
    let calls = (0..60_usize).map(|n| {
        let (peer, session) = (peers[n % 2].clone(), sessions[n % 2].clone());
        let tool = ["old__echo", "new__echo"][(n / 2) % 2];
        async move {
            let arguments = json!({"n": n, "whose": n % 2});
            let answer = if n % 3 == 0 {
                session.call(tool, arguments).await
            } else {
                peer.call(tool, arguments).await
            };
            assert_eq!(answer.result()["structuredContent"], json!({"n": n, "whose": n % 2}));
        }
    });
    join_all(calls).await;
    let total: usize = upstreams.iter().map(|upstream| upstream.stats().total_calls()).sum();
    assert_eq!(total, 60, "nothing was answered from a cache");
}
