//! F2: servers that restart, forget their sessions, or start late.

use std::time::Duration;

use serde_json::json;
use switchboard_test_support::{Fault, ScriptedServer, Tool, wait_until};

use crate::client::{Events, Peer};
use crate::support::{Home, PATIENCE, dynamic, server, with};
use crate::world::{config, home};

const LIST_CHANGED: &str = "notifications/tools/list_changed";

#[tokio::test]
async fn f2_a_restart_during_a_call_is_told_and_the_next_call_works() {
    for builder in [ScriptedServer::builder().legacy(), ScriptedServer::builder().modern()] {
        let upstream =
            builder.tools([Tool::new("slow").sleeps(5_000), Tool::new("echo")]).start().await;
        let serve = home(&[("one", &upstream.url())], &[]).serve().await;
        let peer = Peer::of(&serve);
        let session = peer.open().await;
        let stopping = async {
            wait_until(PATIENCE, async || (upstream.stats().running_calls == 2).then_some(()))
                .await;
            upstream.restart_on_same_port().await;
        };
        let calls = async {
            tokio::join!(peer.call("one__slow", json!({})), session.call("one__slow", json!({})))
        };
        let ((modern, legacy), ()) = tokio::join!(calls, stopping);
        for answer in [modern, legacy] {
            assert_eq!(answer.result()["isError"], true, "{}", answer.body);
        }
        // The list stays available, and no client has to initialize again.
        assert_eq!(peer.tools().await.len(), 2);
        assert_eq!(session.tools().await.len(), 2);
        wait_until(PATIENCE, async || {
            (!session.call("one__echo", json!({})).await.is_refusal()).then_some(())
        })
        .await;
        // A connection that has just been found broken is replaced, and calls in that moment are told so.
        wait_until(PATIENCE, async || {
            (!peer.call("one__echo", json!({})).await.is_refusal()).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn f2_a_lost_session_is_healed_without_the_client_noticing() {
    let upstream = server([Tool::new("echo")]).await;
    let serve = home(&[("one", &upstream.url())], &[]).serve().await;
    let peer = Peer::of(&serve);
    let session = peer.open().await;
    for n in 0..3 {
        assert!(!session.call("one__echo", json!({"n": n})).await.is_refusal());
        upstream.drop_sessions();
        let healed = session.call("one__echo", json!({"n": n})).await;
        assert!(!healed.is_refusal(), "{}", healed.body);
        upstream.drop_sessions();
        assert!(!peer.call("one__echo", json!({"n": n})).await.is_refusal());
    }
    let ran: Vec<_> = upstream.stats().calls.iter().map(|call| call.n).collect();
    assert_eq!(ran.len(), 9, "each ran once: {ran:?}");
    assert!(upstream.stats().initialize_count >= 2);
}

/// No call is made, so only the notification stream can detect the restart.
#[tokio::test]
async fn f2_a_lost_session_is_healed_also_when_only_its_stream_tells() {
    let upstream = ScriptedServer::builder().legacy().tools([Tool::new("echo")]);
    let upstream = upstream.resources(["a://one"]).start().await;
    let serve = home(&[("one", &upstream.url())], &[]).serve().await;
    let session = Peer::of(&serve).open().await;
    let mut stream = session.listen().await;
    let subscribed = session.ask("resources/subscribe", json!({"uri": "a://one"})).await;
    assert!(subscribed.result().is_object(), "{}", subscribed.body);
    wait_until(PATIENCE, async || (upstream.watched() == ["a://one"]).then_some(())).await;
    upstream.drop_sessions();
    upstream.end_streams().await;
    assert!(upstream.watched().is_empty());
    // Long before the next look at the list.
    wait_until(PATIENCE, async || (upstream.watched() == ["a://one"]).then_some(())).await;
    wait_until(PATIENCE, async || (upstream.update_resource("a://one").await > 0).then_some(()))
        .await;
    while stream.next().await.unwrap()["method"] != "notifications/resources/updated" {}
}

#[tokio::test]
async fn f2_lists_are_served_while_a_server_is_away() {
    let upstream = server([Tool::new("echo")]).await;
    let serve = home(&[("one", &upstream.url())], &[]).serve().await;
    let peer = Peer::of(&serve);
    let session = peer.open().await;
    let mut stream = session.listen().await;
    upstream.stop().await;
    for _ in 0..10 {
        assert_eq!(peer.tools().await, ["one__echo"]);
        assert_eq!(session.tools().await, ["one__echo"]);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let away = peer.call("one__echo", json!({})).await;
    assert_eq!(away.result()["isError"], true, "{}", away.body);
    upstream.restart_on_same_port().await;
    wait_until(PATIENCE, async || {
        (!peer.call("one__echo", json!({})).await.is_refusal()).then_some(())
    })
    .await;
    // The list is the same before, during and after, so no client is notified.
    assert!(stream.within(Duration::from_millis(500)).await.is_err());
}

#[tokio::test]
async fn f2_a_server_that_comes_late_brings_its_tools_with_one_notification() {
    let (one, two) = (server([Tool::new("a")]).await, server([Tool::new("b")]).await);
    let late = ScriptedServer::builder()
        .tools(["c", "d", "e"].map(Tool::new))
        .fault(Fault::Refuse)
        .start()
        .await;
    let servers = [
        dynamic("one", &one.url()),
        dynamic("two", &two.url()),
        with(&dynamic("late", &late.url()), "required: false, connect_timeout: 2s"),
    ];
    let serve = Home::new(config(&servers, &[])).serve().await;
    let peer = Peer::of(&serve);
    let session = peer.open().await;
    assert_eq!(session.tools().await, ["one__a", "two__b"]);
    let mut legacy = session.listen().await;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let mut modern = Events::of(peer.modern_response("subscriptions/listen", wanted.clone()).await);
    assert_eq!(modern.next().await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    let narrow = peer.at(serve.at("/mcp/servers/one"));
    let mut other = Events::of(narrow.modern_response("subscriptions/listen", wanted).await);
    other.next().await.unwrap();
    late.clear_fault().await;
    for stream in [&mut legacy, &mut modern] {
        let told =
            tokio::time::timeout(Duration::from_secs(40), stream.within(Duration::from_secs(35)));
        let told = told.await.unwrap().expect("a change is told").unwrap();
        assert_eq!(told["method"], LIST_CHANGED, "{told}");
    }
    let all = ["one__a", "two__b", "late__c", "late__d", "late__e"];
    assert_eq!(session.tools().await, all);
    assert_eq!(peer.tools().await, all);
    for stream in [&mut legacy, &mut modern, &mut other] {
        let more = stream.within(Duration::from_millis(700)).await;
        assert!(
            more.is_err(),
            "one change, one notification, and only to whom it concerns: {more:?}"
        );
    }
}

#[tokio::test]
async fn f2_with_all_servers_down_the_gateway_still_answers() {
    let refusing = async || {
        ScriptedServer::builder().tools([Tool::new("a")]).fault(Fault::Refuse).start().await
    };
    let (one, two) = (refusing().await, refusing().await);
    let servers = [("one", &one), ("two", &two)].map(|(name, server)| {
        with(&dynamic(name, &server.url()), "required: false, connect_timeout: 1s")
    });
    let serve = Home::new(config(&servers, &[])).serve().await;
    let peer = Peer::of(&serve);
    let session = peer.open().await;
    assert_eq!(peer.tools().await, Vec::<String>::new());
    assert_eq!(session.tools().await, Vec::<String>::new());
    assert!(peer.call("one__a", json!({})).await.is_refusal());
    assert!(session.call("one__a", json!({})).await.is_refusal());
}
