//! An agent that connects while the board still waits for a slow server gets that server's tools.

use std::time::Duration;

use serde_json::json;
use switchboard_test_support::{free_port, wait_until};
use tokio::net::TcpStream;

use super::conversation::Conversation;
use super::gate::Gate;
use super::program::{Agent, Link};
use super::{Transport, agents, home, tools, upstream};

const PATIENCE: Duration = Duration::from_mins(1);
/// How long the server delays its responses once the agent is connected. Shorter than the startup timeout of every
/// agent.
const SLOWNESS: Duration = Duration::from_secs(3);

async fn an_agent_that_comes_early_has_the_tools(agent: Agent, transport: Transport) {
    let server = upstream(tools()).await;
    let gate = Gate::before(server.port()).await;
    let home = home("", &gate.url());
    let mut talk = match transport {
        Transport::Http => {
            let port = free_port();
            let listen = format!("127.0.0.1:{port}");
            let serve = home.start_serve_at(&listen, &[]);
            gate.reached(PATIENCE).await;
            wait_until(PATIENCE, async || TcpStream::connect(&listen).await.ok()).await;
            let link = Link::Http(format!("http://{listen}/mcp"));
            let talk = Conversation::linked(agent, &home, &link).await;
            wait_until(PATIENCE, async || has_connection(port).then_some(())).await;
            talk.beside(serve)
        }
        Transport::Stdio => {
            let talk = Conversation::linked(agent, &home, &Link::OwnBoard).await;
            gate.reached(PATIENCE).await;
            talk
        }
    };
    tokio::time::sleep(SLOWNESS).await;
    gate.open();
    let turn = talk.turn().await;
    assert_eq!(talk.offered(&turn), 3, "{:?}", turn.tools);
    let turn = talk.call(turn, "demo__echo", json!({"text": "hello"})).await;
    let answer = turn.result();
    assert!(answer.text.contains("hello") && !answer.is_error, "{answer:?}");
    talk.finish(turn).await;
}

/// Whether a connection to this local port is established.
fn has_connection(port: u16) -> bool {
    let local = format!(":{port:04X}");
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    table.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields[1].ends_with(&local) && fields[3] == "01"
    })
}

agents! { an_agent_that_comes_early_has_the_tools }
