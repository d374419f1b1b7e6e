//! `enable_toolset` in dynamic exposure: the tools in the agent's next request, and the tools that `call_tool` reaches.

use reqwest::Client;
use serde_json::{Value, json};

use super::conversation::Conversation;
use super::program::{Agent, Link};
use super::{Transport, agents, home, tools, upstream};

async fn enabled_tools_can_be_called_at_once(agent: Agent, transport: Transport) {
    let server = upstream(tools()).await;
    let home = home("exposure: dynamic", &server.url());
    let mut talk = Conversation::start(agent, transport, &home).await;
    let turn = talk.turn().await;
    assert!(talk.offers(&turn, "enable_toolset"), "{:?}", turn.tools);
    assert!(!talk.offers(&turn, "demo__echo"), "{:?}", turn.tools);
    let turn = talk.call(turn, "enable_toolset", json!({"toolsetName": "demo"})).await;
    let enabled = turn.result();
    assert!(enabled.text.contains("call_tool") && !enabled.is_error, "{enabled:?}");
    match agent {
        // It lists once, when it starts.
        Agent::Codex => assert!(!talk.offers(&turn, "demo__echo"), "{:?}", turn.tools),
        // It has no session here, so its list stays; the answer has the definitions.
        Agent::Claude => assert!(enabled.text.contains("inputSchema"), "{enabled:?}"),
        Agent::Gemini => assert!(talk.offers(&turn, "demo__echo"), "{:?}", turn.tools),
    }
    let call = json!({"name": "demo__echo", "arguments": {"text": "hello"}});
    let turn = talk.call(turn, "call_tool", call).await;
    let answer = turn.result();
    assert!(answer.text.contains("hello") && !answer.is_error, "{answer:?}");
    let turn = talk.call(turn, "disable_toolset", json!({"toolsetName": "demo"})).await;
    // Nothing was switched for a client without a session.
    assert_eq!(turn.result().is_error, agent == Agent::Claude, "{:?}", turn.results);
    if agent == Agent::Gemini {
        assert!(!talk.offers(&turn, "demo__echo"), "{:?}", turn.tools);
    }
    talk.finish(turn).await;
}

/// Claude speaks the protocol without sessions. At the address of a session its list follows the toolsets, at times
/// one request late: the answer does not wait for clients of that era.
async fn a_session_lists_what_it_enabled(link: impl Fn(String) -> Link) {
    let server = upstream(tools()).await;
    let home = home("exposure: dynamic", &server.url());
    let serve = home.serve().await;
    let made = Client::builder().no_proxy().build().unwrap();
    let made = made.post(serve.at("/api/v1/sessions")).json(&json!({})).send().await.unwrap();
    let made: Value = made.json().await.unwrap();
    let url = serve.at(made["path"].as_str().unwrap());
    let mut talk = Conversation::linked(Agent::Claude, &home, &link(url)).await.beside(serve);
    let turn = talk.turn().await;
    assert!(!talk.offers(&turn, "demo__echo"), "{:?}", turn.tools);
    let turn = talk.call(turn, "enable_toolset", json!({"toolsetName": "demo"})).await;
    let turn = talk.until_offered(turn, "demo__echo", true).await;
    let turn = talk.call(turn, "demo__echo", json!({"text": "hello"})).await;
    let answer = turn.result();
    assert!(answer.text.contains("hello") && !answer.is_error, "{answer:?}");
    talk.finish(turn).await;
}

#[tokio::test]
async fn a_session_of_claude_lists_what_it_enabled() {
    a_session_lists_what_it_enabled(Link::Http).await;
}

#[tokio::test]
async fn a_session_of_claude_over_stdio_lists_what_it_enabled() {
    a_session_lists_what_it_enabled(Link::Bridge).await;
}

agents! { enabled_tools_can_be_called_at_once }
