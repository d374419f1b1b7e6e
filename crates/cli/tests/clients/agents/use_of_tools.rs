//! A list, a call, a failing call and an image.

use serde_json::json;

use super::conversation::Conversation;
use super::program::Agent;
use super::{Transport, agents, home, tools, upstream};

async fn lists_calls_errors_and_images(agent: Agent, transport: Transport) {
    let server = upstream(tools()).await;
    let home = home("", &server.url());
    let mut talk = Conversation::start(agent, transport, &home).await;
    let turn = talk.turn().await;
    assert_eq!(talk.offered(&turn), 3, "{:?}", turn.tools);
    let turn = talk.call(turn, "demo__echo", json!({"text": "hello"})).await;
    let answer = turn.result();
    assert!(answer.text.contains("hello") && !answer.is_error, "{answer:?}");
    let turn = talk.call(turn, "demo__refuse", json!({})).await;
    let answer = turn.result();
    assert!(answer.text.contains("the tool said no"), "{answer:?}");
    // The Responses API has no mark for errors.
    assert_eq!(answer.is_error, agent != Agent::Codex, "{answer:?}");
    let turn = talk.call(turn, "demo__picture", json!({})).await;
    assert_eq!(turn.result().images, 1, "{:?}", turn.results);
    talk.finish(turn).await;
}

agents! { lists_calls_errors_and_images }
