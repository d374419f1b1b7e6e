//! The board is restarted in the middle of a conversation.

use serde_json::json;
use switchboard_test_support::free_port;

use super::conversation::Conversation;
use super::program::{Agent, Link};
use super::{Transport, agents, home, tools, upstream};

/// Over stdio the agent's program is the way to the board: a board of its own ends with the agent.
async fn a_restarted_board_answers_the_next_call(agent: Agent, transport: Transport) {
    let server = upstream(tools()).await;
    let home = home("", &server.url());
    let listen = format!("127.0.0.1:{}", free_port());
    let mut serve = home.start_serve_at(&listen, &[]);
    serve.ready().await;
    let url = serve.at("/mcp");
    let link = match transport {
        Transport::Http => Link::Http(url),
        Transport::Stdio => Link::Bridge(url),
    };
    let mut talk = Conversation::linked(agent, &home, &link).await;
    let turn = talk.turn().await;
    let turn = talk.call(turn, "demo__echo", json!({"text": "before"})).await;
    assert!(turn.result().text.contains("before"), "{:?}", turn.results);
    drop(serve);
    let mut serve = home.start_serve_at(&listen, &[]);
    serve.ready().await;
    let turn = talk.call(turn, "demo__echo", json!({"text": "after"})).await;
    let answer = turn.result();
    assert!(answer.text.contains("after") && !answer.is_error, "{answer:?}");
    talk.finish(turn).await;
}

agents! { a_restarted_board_answers_the_next_call }
