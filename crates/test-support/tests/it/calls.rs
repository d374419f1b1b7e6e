//! The behaviour of tools, and the records of their calls.

use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use switchboard_test_support::{Reply, ScriptedServer, Tool, wait_until};

use crate::client::{Client, PATIENCE, events};

#[tokio::test]
async fn each_reply_is_what_it_says() {
    let unknown = json!({"content": [{"type": "hologram", "beams": 3}]});
    let cases = [
        (Reply::Echo, "/result/structuredContent/x", json!(5)),
        (Reply::Text("hello".into()), "/result/content/0/text", json!("hello")),
        (Reply::Result(unknown.clone()), "/result", unknown.clone()),
        (Reply::ToolError("no".into()), "/result/isError", json!(true)),
        (Reply::RpcError { code: -32050, message: "m".into() }, "/error/code", json!(-32050)),
        (Reply::Huge(200_000), "/result/content/0/text", json!("x".repeat(200_000))),
        (Reply::WrongId, "/id", json!("nobody-asked-for-this")),
        (Reply::UnknownContent, "/result", unknown),
    ];
    for (reply, pointer, expected) in cases {
        let label = format!("{reply:?}");
        let tool = Tool::new("t").replies(reply);
        let server = ScriptedServer::builder().tools([tool]).start().await;
        let answer = Client::in_session(&server).await.call("t", json!({"x": 5})).await;
        assert_eq!(answer.pointer(pointer), Some(&expected), "{label}");
    }
}

#[tokio::test]
async fn broken_and_doubled_answers() {
    let tools = [
        Tool::new("half").replies(Reply::CloseMidBody),
        Tool::new("twice").replies(Reply::Twice),
        Tool::new("hangs").replies(Reply::Hang),
    ];
    let server = ScriptedServer::builder().tools(tools).start().await;
    let client = Client::in_session(&server).await;
    let call = |tool: &str| client.legacy("tools/call", json!({"name": tool})).send();

    let half = call("half").await.unwrap();
    assert_eq!(half.status(), 200);
    assert!(half.bytes().await.is_err(), "the body breaks off");

    let twice = events(call("twice").await.unwrap(), 3).await;
    assert_eq!(twice.len(), 2);
    assert_eq!(twice[0], twice[1]);

    let hangs = tokio::time::timeout(Duration::from_millis(150), call("hangs")).await;
    assert!(hangs.is_err(), "no answer comes");
}

#[tokio::test]
async fn concurrency_and_order_are_counted() {
    let tools = [Tool::new("slow").sleeps(300), Tool::new("other").sleeps(300)];
    let server = ScriptedServer::builder().tools(tools).start().await;
    let client = Client::in_session(&server).await;
    join_all(["slow", "slow", "slow", "other"].map(|tool| client.call(tool, json!({})))).await;
    for n in [7, 8] {
        client.call("slow", json!({"n": n, "sleep_ms": 1})).await;
    }
    let stats = server.stats();
    assert_eq!((stats.peak_calls, stats.peak_of("slow"), stats.peak_of("other")), (4, 3, 1));
    assert_eq!((stats.total_calls(), stats.finished_calls, stats.running_calls), (6, 6, 0));
    let numbered: Vec<i64> = stats.calls.iter().filter_map(|call| call.n).collect();
    assert_eq!(numbered, [7, 8]);
}

#[tokio::test]
async fn progress_comes_on_the_response_stream() {
    let slow = Tool::new("slow").sleeps(200).progress_every(40);
    let server = ScriptedServer::builder().dual().tools([slow]).start().await;
    let params = json!({"name": "slow", "_meta": {"progressToken": "p1"}});
    let legacy = Client::in_session(&server).await.legacy("tools/call", params.clone());
    let modern = Client::new(&server).modern("tools/call", params);
    for request in [legacy, modern] {
        let events = events(request.send().await.unwrap(), usize::MAX).await;
        let (answer, progress) = events.split_last().unwrap();
        assert!((2..=4).contains(&progress.len()), "{events:?}");
        assert!(progress.iter().all(|event| event["params"]["progressToken"] == "p1"));
        assert!(answer["result"].is_object());
    }
}

#[tokio::test]
async fn a_cancelled_call_ends_in_both_eras() {
    let tools = [Tool::new("hangs").replies(Reply::Hang)];
    let server = ScriptedServer::builder().dual().tools(tools).start().await;
    let started = |count| {
        let server = &server;
        async move || (server.stats().total_calls() == count).then_some(())
    };

    let client = Client::in_session(&server).await;
    let cancel = async {
        wait_until(PATIENCE, started(1)).await;
        assert_eq!(server.stats().running_calls, 1);
        let params = json!({"requestId": 1});
        let message =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        assert_eq!(client.post(&message).send().await.unwrap().status(), 202);
    };
    let call = client.legacy("tools/call", json!({"name": "hangs"})).send();
    let (response, ()) = tokio::join!(call, cancel);
    assert_eq!(response.unwrap().text().await.unwrap(), "", "a cancelled call has no answer");
    let stats = server.stats();
    assert_eq!((stats.cancelled, stats.running_calls), (vec![json!(1)], 0));

    let modern = Client::new(&server);
    let call = modern.modern("tools/call", json!({"name": "hangs"})).send();
    tokio::select! {
        _ = call => panic!("it does not answer"),
        () = wait_until(PATIENCE, started(2)) => {}
    }
    let dropped = async || Some(server.stats().dropped_calls).filter(|dropped| !dropped.is_empty());
    assert_eq!(wait_until(PATIENCE, dropped).await, [json!(1)]);
    assert_eq!(server.stats().running_calls, 0);
}

#[tokio::test]
async fn a_legacy_call_survives_its_reader_and_can_ignore_cancellation() {
    let slow = Tool::new("slow").sleeps(300).ignores_cancel();
    let server = ScriptedServer::builder().tools([slow]).start().await;
    let client = Client::in_session(&server).await;
    let call = client.legacy("tools/call", json!({"name": "slow"})).send();
    let running = async || (server.stats().running_calls == 1).then_some(());
    tokio::select! {
        _ = call => panic!("it is slow"),
        () = wait_until(PATIENCE, running) => {}
    }
    let finished = async || (server.stats().finished_calls == 1).then_some(());
    wait_until(PATIENCE, finished).await;
    let stats = server.stats();
    assert_eq!(
        (stats.closed_responses, stats.dropped_calls),
        (vec![json!(1)], Vec::<Value>::new())
    );
}
