//! Clients that connect while the board still connects its servers.

use std::pin::pin;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::join;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_model::ServerState;
use switchboard_runtime::{Memory, StartingBoard};
use switchboard_test_support::{Fault, ScriptedServer, Stage, Tool, wait_until};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::support::{PATIENCE, World, later, plan, until};

const LIST_CHANGED: &str = "notifications/tools/list_changed";
const NEARLY_ALL_THE_WAIT: Duration = Duration::from_secs(6);
const REST_OF_THE_WAIT: Duration = Duration::from_secs(2);

fn hello() -> Value {
    json!({"protocolVersion": "2025-11-25", "capabilities": {}})
}

fn names(list: &Value) -> Vec<&str> {
    let tools = list["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

async fn server(tool: &str) -> ScriptedServer {
    ScriptedServer::builder().legacy().tools([Tool::new(tool)]).start().await
}

/// An address at which the server responds once the gate is open.
async fn gated(server: &ScriptedServer, gate: &CancellationToken) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (port, gate) = (server.port(), gate.clone());
    TaskTracker::new().spawn(async move {
        let tasks = TaskTracker::new();
        while let Ok((mut client, _)) = listener.accept().await {
            let gate = gate.clone();
            tasks.spawn(async move {
                gate.cancelled().await;
                let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                let _lost = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    url
}

/// Finishes the start in the background.
fn finish(starting: StartingBoard) {
    TaskTracker::new().spawn(async move { starting.finish(|_| {}).await.unwrap() });
}

#[tokio::test]
async fn initialize_waits_for_the_tools_instead_of_being_refused() {
    let fast = server("a").await;
    let (world, starting) = World::opening(&[("fast", &fast)], "{}").await;
    let mut opening = pin!(world.open(json!({})));
    assert!(opening.as_mut().now_or_never().is_none());
    later(NEARLY_ALL_THE_WAIT).await;
    assert!(opening.as_mut().now_or_never().is_none(), "it still waits");
    let (session, started) = join(opening, starting.finish(|_| {})).await;
    started.unwrap();
    let list = session.ask("tools/list", json!({})).await.result().await;
    assert_eq!(names(&list), ["fast__a"]);
}

#[tokio::test]
async fn a_stateless_list_waits_and_discover_is_answered_soon() {
    let fast = server("a").await;
    let (world, starting) = World::opening(&[("fast", &fast)], "{}").await;
    let mut listing = pin!(world.modern("tools/list", json!({}), json!({})));
    let mut discovering = pin!(world.modern("server/discover", json!({}), json!({})));
    assert!(listing.as_mut().now_or_never().is_none());
    assert!(discovering.as_mut().now_or_never().is_none());
    later(Duration::from_secs(1)).await;
    let discovered = discovering.await.result().await;
    assert!(discovered["supportedVersions"].is_array(), "{discovered}");
    assert!(listing.as_mut().now_or_never().is_none(), "it still waits");
    let (listed, started) = join(listing, starting.finish(|_| {})).await;
    started.unwrap();
    assert_eq!(names(&listed.result().await), ["fast__a"]);
}

#[tokio::test]
async fn who_waited_long_enough_gets_what_is_ready_and_is_told_of_the_rest() {
    let (fast, slow) = (server("a").await, server("b").await);
    let gate = CancellationToken::new();
    let servers = [("fast", fast.url()), ("slow", gated(&slow, &gate).await)];
    let (world, starting) = World::opening_at(&servers, "{startup_wait: 8s}").await;
    finish(starting);
    until(|| fast.stats().list_count > 0).await;
    let mut opening = pin!(world.open(json!({})));
    assert!(opening.as_mut().now_or_never().is_none());
    later(NEARLY_ALL_THE_WAIT).await;
    assert!(opening.as_mut().now_or_never().is_none(), "it still waits");
    later(REST_OF_THE_WAIT).await;
    let session = opening.await;
    // The list of the fast server may not have arrived yet.
    let listed = async || {
        let list = session.ask("tools/list", json!({})).await.result().await;
        (names(&list) == ["fast__a"]).then_some(())
    };
    wait_until(PATIENCE, listed).await;
    assert_ne!(session.call("fast__a").await.result().await["isError"], true);
    let mut heard = session.listen().await;
    assert!(!world.board.startup().is_finished());
    gate.cancel();
    assert_eq!(heard.next().await.unwrap()["method"], LIST_CHANGED);
    let list = session.ask("tools/list", json!({})).await.result().await;
    assert_eq!(names(&list), ["fast__a", "slow__b"]);
}

#[tokio::test]
async fn over_lines_initialize_is_answered_at_once_and_the_list_waits() {
    let fast = server("a").await;
    let (world, starting) = World::opening(&[("fast", &fast)], "{}").await;
    let mut pipe = world.pipe();
    pipe.send(1, "initialize", hello()).await;
    tokio::task::yield_now().await;
    later(Duration::from_secs(1)).await;
    let answer = pipe.next().await;
    assert_eq!(answer["result"]["serverInfo"]["name"], "switchboard", "{answer}");
    pipe.send(2, "tools/list", json!({})).await;
    pipe.send(3, "ping", json!({})).await;
    assert_eq!(pipe.next().await["id"], 3, "a ping needs no tools");
    finish(starting);
    let answer = pipe.next().await;
    assert_eq!(answer["id"], 2, "nothing has changed for who has listed nothing: {answer}");
    assert_eq!(names(&answer["result"]), ["fast__a"]);
}

#[tokio::test]
async fn who_waits_for_a_board_that_does_not_start_is_told_so() {
    let fast = server("a").await;
    let (world, starting) = World::opening(&[("fast", &fast)], "{}").await;
    let mut knocking = pin!(world.knock(json!({})));
    assert!(knocking.as_mut().now_or_never().is_none());
    drop(starting);
    world.stop();
    assert_eq!(knocking.await.status(), 503);
}

#[tokio::test]
async fn a_single_command_waits_half_a_minute_for_a_server_that_is_not_required() {
    let hung = ScriptedServer::builder().fault(Fault::Hang(Stage::Any)).start().await;
    let mut plan = plan(&[("hung", &hung)]);
    for server in &mut plan.servers {
        server.required = false;
        server.spec.connect_timeout = Duration::from_mins(10);
    }
    let (world, starting) = World::opening_as(plan, Memory::ReadOnly).await;
    let mut starting = Box::pin(starting.finish(|_| {}));
    tokio::select! {
        started = &mut starting => panic!("{started:?}"),
        () = until(|| !hung.stats().requests.is_empty()) => {}
    }
    later(Duration::from_secs(31)).await;
    let started = tokio::time::timeout(PATIENCE, starting).await.expect("does not wait for it");
    started.unwrap();
    assert_eq!(world.board.servers()[0].1.state, ServerState::Connecting);
}
