//! F4: lists that change continuously, and tools that disappear at the wrong moment.

use std::time::Duration;

use serde_json::json;
use switchboard_test_support::{ScriptedServer, Tool, wait_until};

use crate::client::{Events, Peer};
use crate::support::PATIENCE;
use crate::world::{DATABASE_THREADS, Holdings, home};

const LIST_CHANGED: &str = "notifications/tools/list_changed";

#[tokio::test]
async fn f4_a_storm_of_list_changes_is_one_change_for_clients() {
    for builder in [ScriptedServer::builder().legacy(), ScriptedServer::builder().modern()] {
        let upstream = builder.tools([Tool::new("a")]).start().await;
        let serve = home(&[("one", &upstream.url())], &[]).serve().await;
        let peer = Peer::of(&serve);
        let session = peer.open().await;
        let mut legacy = session.listen().await;
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        let mut modern = Events::of(peer.modern_response("subscriptions/listen", wanted).await);
        modern.next().await.unwrap();
        wait_until(PATIENCE, async || (upstream.open_streams() == 1).then_some(())).await;
        let (before, lists) = (Holdings::of(serve.pid()), upstream.stats().list_count);
        // Nothing changed, however often it is said.
        upstream.notify_list_changed(1_000).await;
        let quiet = peer.call("one__a", json!({})).await;
        assert!(!quiet.is_refusal(), "{}", quiet.body);
        assert!(legacy.within(Duration::from_millis(1_500)).await.is_err());
        let asked = upstream.stats().list_count - lists;
        // A dozen times; more often where a thousand messages take seconds.
        assert!(asked <= 100, "the list was asked for {asked} times");
        // Something changed, said a thousand times.
        upstream.set_tools(["a", "b"].map(Tool::new));
        upstream.notify_list_changed(1_000).await;
        for stream in [&mut legacy, &mut modern] {
            assert_eq!(stream.next().await.unwrap()["method"], LIST_CHANGED);
        }
        assert_eq!(session.tools().await, ["one__a", "one__b"]);
        for stream in [&mut legacy, &mut modern] {
            let more = stream.within(Duration::from_millis(1_500)).await;
            assert!(more.is_err(), "{more:?}");
        }
        let after = Holdings::of(serve.pid());
        assert!(after.rss_kb < before.rss_kb + 30 * 1024, "{before:?} {after:?}");
        assert!(after.threads <= before.threads + DATABASE_THREADS, "{before:?} {after:?}");
    }
}

#[tokio::test]
async fn f4_a_tool_that_is_gone_between_list_and_call_is_said_to_be() {
    let upstream = ScriptedServer::builder().tools(["a", "b"].map(Tool::new)).start().await;
    let serve = home(&[("one", &upstream.url())], &[]).serve().await;
    let peer = Peer::of(&serve);
    let session = peer.open().await;
    assert_eq!(session.tools().await, ["one__a", "one__b"]);
    // Before the gateway knows: the server's own answer.
    upstream.set_tools([Tool::new("a")]);
    for answer in [peer.call("one__b", json!({})).await, session.call("one__b", json!({})).await] {
        assert!(answer.is_refusal(), "{}", answer.body);
    }
    // And after.
    wait_until(PATIENCE, async || {
        upstream.notify_list_changed(1).await;
        (session.tools().await == ["one__a"]).then_some(())
    })
    .await;
    for answer in [peer.call("one__b", json!({})).await, session.call("one__b", json!({})).await] {
        assert!(answer.is_unknown_tool(), "{}", answer.body);
    }
    assert!(!peer.call("one__a", json!({})).await.is_refusal());
}

#[tokio::test]
async fn f4_a_tool_that_goes_while_its_call_runs_still_answers() {
    let slow = Tool::new("slow").sleeps(1_500);
    let upstream = ScriptedServer::builder().tools([slow, Tool::new("a")]).start().await;
    let serve = home(&[("one", &upstream.url())], &[]).serve().await;
    let peer = Peer::of(&serve);
    let session = peer.open().await;
    let removing = async {
        wait_until(PATIENCE, async || (upstream.stats().running_calls == 2).then_some(())).await;
        upstream.set_tools_and_notify([Tool::new("a")]).await;
        wait_until(PATIENCE, async || (peer.tools().await == ["one__a"]).then_some(())).await;
        assert_eq!(upstream.stats().running_calls, 2, "the calls still run");
    };
    let calls = async {
        tokio::join!(
            peer.call("one__slow", json!({"n": 1})),
            session.call("one__slow", json!({"n": 2}))
        )
    };
    let ((modern, legacy), ()) = tokio::join!(calls, removing);
    assert_eq!(modern.result()["structuredContent"]["n"], 1, "{}", modern.body);
    assert_eq!(legacy.result()["structuredContent"]["n"], 2, "{}", legacy.body);
}
