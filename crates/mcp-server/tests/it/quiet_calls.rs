//! Calls without messages for a long time: the response headers must not wait for the result.

use std::pin::pin;
use std::time::Duration;

use futures::FutureExt as _;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{ScriptedServer, Tool};

use crate::support::{Reading, World, later, until};

const JSON: &str = "application/json";
const A_MOMENT: Duration = Duration::from_secs(1);
/// Longer than the time after which the headers are sent.
const A_WHILE: Duration = Duration::from_secs(4);
const A_COMMENT: Duration = Duration::from_secs(15);
/// Until the call has taken longer than its timeout of 30 s.
const REST_OF_THE_CALL: Duration = Duration::from_secs(14);

async fn slow_server() -> ScriptedServer {
    // Longer than the timeout, so that the server, which has a clock of its own, never responds first.
    let slow = Tool::new("slow").sleeps(60_000);
    ScriptedServer::builder().legacy().tools([Tool::new("fast"), slow]).start().await
}

/// Calls the slow tool, and checks that the response begins in time and ends with the timeout.
async fn check_stream(server: &ScriptedServer, asking: impl Future<Output = Reading>) {
    let mut asking = pin!(asking);
    assert!(asking.as_mut().now_or_never().is_none());
    until_running(server, &mut asking).await;
    later(A_MOMENT).await;
    assert!(asking.as_mut().now_or_never().is_none(), "a call that may be fast waits");
    later(A_WHILE).await;
    let mut reading = asking.await;
    assert_eq!((reading.status, reading.is_stream), (200, true));
    for silence in [A_COMMENT, REST_OF_THE_CALL] {
        assert_eq!(reading.piece().await.unwrap().chars().next(), Some(':'), "a comment");
        assert!(reading.piece().now_or_never().is_none());
        later(silence).await;
    }
    assert_late(&reading.result().await);
}

fn assert_late(result: &Value) {
    let said = result["content"][0]["text"].as_str().unwrap_or_default();
    assert!(said.contains("longer than its timeout"), "{result}");
}

async fn until_running<F: Future<Output = Reading> + Unpin>(
    server: &ScriptedServer,
    asking: &mut F,
) {
    let running = until(|| server.stats().running_calls == 1);
    tokio::select! {
        () = running => {}
        _ = asking => panic!("it was answered before it ran"),
    }
}

#[tokio::test]
async fn a_quiet_call_of_a_session_gets_its_headers_and_comments() {
    let server = slow_server().await;
    let world = World::of(&[("one", &server)]).await;
    let session = world.open(json!({})).await;
    check_stream(&server, session.call("one__slow")).await;
}

#[tokio::test]
async fn a_quiet_stateless_call_gets_its_headers_and_comments() {
    let server = slow_server().await;
    let world = World::of(&[("one", &server)]).await;
    let call = json!({"name": "one__slow", "arguments": {}});
    check_stream(&server, world.modern("tools/call", call, json!({}))).await;
}

#[tokio::test]
async fn a_fast_call_stays_plain_json() {
    let server = slow_server().await;
    let world = World::of(&[("one", &server)]).await;
    let session = world.open(json!({})).await;
    let answer = session.call("one__fast").await;
    assert!(!answer.is_stream);
    let result = answer.result().await;
    assert_ne!(result["isError"], true, "{result}");
}

#[tokio::test]
async fn who_reads_no_events_waits_for_the_answer_alone() {
    let server = slow_server().await;
    let world = World::of(&[("one", &server)]).await;
    let session = world.open(json!({})).await;
    let call = json!({"name": "one__slow", "arguments": {}});
    let mut asking = pin!(session.ask_accepting(JSON, "tools/call", call));
    until_running(&server, &mut asking).await;
    later(A_WHILE).await;
    assert!(asking.as_mut().now_or_never().is_none());
    later(A_COMMENT + REST_OF_THE_CALL).await;
    let answer = asking.await;
    assert!(!answer.is_stream);
    assert_late(&answer.result().await);
}
