//! Forty servers.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_model::ServerState;
use switchboard_runtime::{Board, StartEvent};
use switchboard_test_support::{Fault, ScriptedServer, Tool};
use tokio::time::Instant;

use crate::support::{
    board, dynamic, end, names, options, plan, started, status, text, until, until_state, with,
    yaml,
};

async fn forty() -> Vec<ScriptedServer> {
    let mut servers = Vec::new();
    for n in 0..40 {
        let tools = [Tool::echo(format!("tool_{n}"))];
        servers.push(ScriptedServer::builder().tools(tools).start().await);
    }
    servers
}

fn entries(servers: &[ScriptedServer]) -> Vec<String> {
    servers.iter().enumerate().map(|(n, server)| dynamic(&format!("s{n}"), server)).collect()
}

#[tokio::test]
async fn forty_servers_are_ready_soon_after_the_slowest() {
    let servers = forty().await;
    // Both the question for the era and the handshake are answered a second late.
    servers[17].set_fault(Fault::DelayInitialize(Duration::from_secs(1))).await;
    let mut attempts = Vec::new();
    let before = Instant::now();
    let starting = Board::start(plan(&yaml(&[], &entries(&servers))), options().await, |event| {
        if let StartEvent::Attempted(status) = event {
            attempts.push(*status);
        }
    });
    let board = started(starting.await);
    let took = before.elapsed();
    assert_eq!(attempts.len(), 40);
    let waited = attempts.iter().filter_map(|status| status.connect_time).max().unwrap();
    assert!(waited >= Duration::from_secs(2), "{waited:?}");
    // Far less on a machine that is not busy with the other tests.
    assert!(took < waited + Duration::from_secs(4), "{took:?} for {waited:?}");
    assert_eq!(names(&board).len(), 40);
    assert!(names(&board).contains(&"s17.tool_17".to_owned()));
    end(&board).await;
}

#[tokio::test]
async fn forty_slow_servers_take_as_long_as_one() {
    let servers = forty().await;
    for server in &servers {
        server.set_fault(Fault::DelayInitialize(Duration::from_secs(1))).await;
    }
    let before = Instant::now();
    let board = board(&yaml(&[], &entries(&servers))).await;
    let took = before.elapsed();
    assert!(took < Duration::from_secs(8), "{took:?}, one after the other it would be 80 s");
    assert_eq!(names(&board).len(), 40);
    end(&board).await;
}

#[tokio::test]
async fn one_of_forty_that_is_dead_and_not_required_degrades_and_comes_back() {
    let servers = forty().await;
    servers[5].set_fault(Fault::Refuse).await;
    let mut entries = entries(&servers);
    entries[5] = with(&entries[5], "required: false");
    let board = board(&yaml(&[], &entries)).await;
    assert_eq!(names(&board).len(), 39);
    assert_eq!(status(&board, "s5").state, ServerState::Unavailable);
    let ready = board.servers().iter().filter(|(_, s)| s.state == ServerState::Ready).count();
    assert_eq!(ready, 39);
    servers[5].clear_fault().await;
    until_state(&board, "s5", ServerState::Ready).await;
    until(|| names(&board).len() == 40).await;
    assert_eq!(text(&board, "tool_5", json!({})).await, "{}");
    end(&board).await;
}
