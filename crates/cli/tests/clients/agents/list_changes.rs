//! A server adds a tool in the middle of a conversation.

use serde_json::json;
use switchboard_test_support::Tool;

use super::conversation::Conversation;
use super::program::Agent;
use super::{Transport, agents, home, tools, upstream};

async fn a_tool_that_comes_later_can_be_called(agent: Agent, transport: Transport) {
    let server = upstream(tools()).await;
    let exposure = if agent.lists_again() { "" } else { "exposure: dynamic" };
    let home = home(exposure, &server.url());
    let mut talk = Conversation::start(agent, transport, &home).await;
    let turn = talk.turn().await;
    assert!(!talk.offers(&turn, "demo__another"), "{:?}", turn.tools);
    server.set_tools_and_notify(tools().into_iter().chain([Tool::echo("another")])).await;
    let hello = json!({"text": "hello"});
    let turn = if agent.lists_again() {
        let turn = talk.until_offered(turn, "demo__another", true).await;
        talk.call(turn, "demo__another", hello).await
    } else {
        // Codex lists once, when it starts. `call_tool`, which is always there, reaches what came later.
        let call = json!({"name": "demo__another", "arguments": hello});
        talk.until_answered(turn, "call_tool", &call, |answer| answer.text.contains("hello")).await
    };
    let answer = turn.result();
    assert!(answer.text.contains("hello") && !answer.is_error, "{answer:?}");
    talk.finish(turn).await;
}

async fn a_tool_that_goes_is_an_error_for_its_call_only(agent: Agent, transport: Transport) {
    let server = upstream(tools()).await;
    let home = home("", &server.url());
    let mut talk = Conversation::start(agent, transport, &home).await;
    let turn = talk.turn().await;
    server.set_tools_and_notify(tools().into_iter().filter(|tool| tool.name != "picture")).await;
    let turn = match agent {
        Agent::Gemini => talk.until_offered(turn, "demo__picture", false).await,
        // They go on offering what the conversation began with.
        Agent::Codex | Agent::Claude => {
            let nothing = json!({});
            talk.until_answered(turn, "demo__picture", &nothing, |answer| answer.images == 0).await
        }
    };
    let turn = talk.call(turn, "demo__echo", json!({"text": "hello"})).await;
    let answer = turn.result();
    assert!(answer.text.contains("hello") && !answer.is_error, "{answer:?}");
    talk.finish(turn).await;
}

agents! {
    a_tool_that_comes_later_can_be_called
    a_tool_that_goes_is_an_error_for_its_call_only
}
