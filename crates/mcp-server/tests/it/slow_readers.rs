//! The bounds of a streamed response whose client does not read.

use std::ops::RangeInclusive;

use serde_json::{Value, json};
use switchboard_test_support::{ScriptedServer, Tool, wait_until};

use crate::support::{PATIENCE, World, plan, until};

const MIB: usize = 1024 * 1024;

fn is_answer(message: &Value) -> bool {
    message["method"].is_null()
}

/// Each server request is two messages for the client: the request, and its cancellation.
async fn check(asks: Tool, questions: RangeInclusive<usize>) {
    let server =
        ScriptedServer::builder().tools([asks.sleeps(60_000), Tool::new("echo")]).start().await;
    let mut plan = plan(&[("one", &server)]);
    // Debug builds take their time for megabytes: the call must not end by its timeout.
    for limits in plan.servers.iter_mut().filter_map(|server| server.default_limits.as_mut()) {
        limits.timeout = Some(20 * PATIENCE);
    }
    let world = World::of_plan(plan).await;
    let session = world.open(json!({"elicitation": {}})).await;
    let unread = session.call("one__asks").await;
    wait_until(10 * PATIENCE, async || (server.stats().cancelled.len() == 1).then_some(())).await;
    let asked = server.stats().questions;
    assert!(questions.contains(&asked), "{asked} questions before the call was given up");
    assert_eq!(session.call("one__echo").await.result().await["structuredContent"], json!({}));
    // A client that reads again gets the few events that were sent, and the end of the stream.
    let left = unread.rest().await;
    assert!(left.len() < 32 && !left.iter().any(is_answer), "{} messages", left.len());
}

#[tokio::test]
async fn a_call_is_given_up_when_256_messages_wait_for_its_reader() {
    check(Tool::new("asks").asks_in_vain(2, 10), 128..=400).await;
}

#[tokio::test]
async fn a_call_is_given_up_when_32_mib_wait_for_its_reader() {
    check(Tool::new("asks").asks_in_vain(30, MIB), 32..=400).await;
}

#[tokio::test]
async fn of_signs_of_life_the_newest_192_wait_for_a_reader_and_then_the_answer() {
    let busy = Tool::new("busy").sleeps(3_000).progress_every(4);
    let server = ScriptedServer::builder().tools([busy]).start().await;
    let world = World::of(&[("one", &server)]).await;
    let meta = json!({"progressToken": 1});
    let session = world.open(json!({})).await;
    let call = json!({"name": "one__busy", "arguments": {}});
    let mut legacy = call.clone();
    legacy["_meta"] = meta.clone();
    let unread =
        [world.modern("tools/call", call, meta).await, session.ask("tools/call", legacy).await];
    until(|| server.stats().finished_calls == 2).await;
    for unread in unread {
        let mut messages = unread.rest().await;
        assert!(messages.pop().is_some_and(|last| is_answer(&last)), "{messages:?}");
        assert!((192..=224).contains(&messages.len()), "{} signs of life", messages.len());
        // Progress is numbered from one: if the newest had been dropped, the last number would be that of all.
        let newest = messages[messages.len() - 1]["params"]["progress"].as_u64().unwrap();
        assert!(newest > messages.len() as u64, "{newest} of {}", messages.len());
    }
}
