//! F1: servers that misbehave. Every caller gets a clear answer in time, and the gateway keeps working.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_test_support::{
    Fault, Reply, ScriptedServer, ScriptedServerBuilder, Stage, Tool, wait_until,
};
use tokio::time::Instant;

use crate::client::{Answer, Peer, Session};
use crate::support::{Home, PATIENCE, Serve};
use crate::world::config;

/// What a call may take here, and what its answer may take longer on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_secs(15);

fn quick(name: &str, url: &str) -> String {
    format!(
        "{{name: {name}, url: \"{url}\", mode: dynamic, connect_timeout: 2s, required: false, \
         default_tool_config: {{max_instances: 10, timeout: 1s}}}}"
    )
}

struct World {
    upstream: ScriptedServer,
    /// Beside the one that misbehaves.
    steady: ScriptedServer,
    serve: Serve,
    peer: Peer,
    session: Session,
}

async fn world(builder: ScriptedServerBuilder, tools: Vec<Tool>) -> World {
    let upstream = builder.tools(tools).start().await;
    let steady = ScriptedServer::builder().tools([Tool::new("echo")]).start().await;
    let servers = [quick("bad", &upstream.url()), quick("steady", &steady.url())];
    let serve = Home::new(config(&servers, &[])).serve().await;
    let peer = Peer::of(&serve);
    let session = peer.open().await;
    World { upstream, steady, serve, peer, session }
}

impl World {
    async fn both(&self, tool: &str, arguments: &Value) -> [(Answer, Duration); 2] {
        let begun = Instant::now();
        let modern = self.peer.call(tool, arguments.clone()).await;
        let middle = begun.elapsed();
        let legacy = self.session.call(tool, arguments.clone()).await;
        [(modern, middle), (legacy, begun.elapsed().saturating_sub(middle))]
    }

    /// Both eras are told, in time, that it did not work.
    async fn fails(&self, what: &str) {
        for (answer, took) in self.both("bad__echo", &json!({})).await {
            assert!(answer.is_refusal(), "{what}: {}", answer.body);
            assert!(answer.status < 500, "{what}: {answer:?}");
            assert!(took < TIMEOUT + GRACE, "{what}: {took:?}");
            let told = answer.last();
            let text = told["result"]["content"][0]["text"].as_str();
            let text = text.or(told["error"]["message"].as_str()).unwrap();
            assert!(
                text.len() > 10 && text.len() < 4_000 && !text.contains("<form"),
                "{what}: {text}"
            );
        }
        let others = self.both("steady__echo", &json!({"n": 1})).await;
        assert!(others.iter().all(|(answer, _)| !answer.is_refusal()), "{what}: {others:?}");
    }

    async fn works_again(&self, what: &str) {
        wait_until(PATIENCE, async || {
            let answers = self.both("bad__echo", &json!({"n": 2})).await;
            answers.iter().all(|(answer, _)| !answer.is_refusal()).then_some(())
        })
        .await;
        assert_eq!(self.session.tools().await.len(), self.peer.tools().await.len(), "{what}");
    }
}

async fn faults_of_a_call(builder: ScriptedServerBuilder) {
    let mut world = world(builder, vec![Tool::new("echo")]).await;
    for fault in [
        Fault::Hang(Stage::Call),
        Fault::Status(Stage::Call, 500),
        Fault::Status(Stage::Call, 503),
        Fault::Status(Stage::Call, 401),
        Fault::Status(Stage::Call, 404),
        Fault::RateLimited(Stage::Call, 3600),
        Fault::LoginPage(Stage::Call),
        Fault::NotJson(Stage::Call),
        Fault::Redirect(Stage::Call, "http://169.254.169.254/latest/meta-data".into()),
        Fault::Redirect(Stage::Call, world.steady.url()),
        Fault::CloseMidBody(Stage::Call),
        Fault::HangAtConnect,
        Fault::Refuse,
    ] {
        let what = format!("{fault:?}");
        world.upstream.set_fault(fault).await;
        world.fails(&what).await;
        world.upstream.clear_fault().await;
        world.works_again(&what).await;
    }
    assert_eq!(world.steady.stats().total_calls(), 26, "nothing was led to another server");
    assert!(world.serve.is_running());
}

#[tokio::test]
async fn f1_faults_of_a_call_to_a_legacy_server_are_answered_clearly() {
    faults_of_a_call(ScriptedServer::builder().legacy()).await;
}

#[tokio::test]
async fn f1_faults_of_a_call_to_a_modern_server_are_answered_clearly() {
    faults_of_a_call(ScriptedServer::builder().modern()).await;
}

async fn strange_replies(builder: ScriptedServerBuilder) {
    let rpc = Reply::RpcError { code: -32_050, message: "the server's own words".into() };
    let tools = vec![
        Tool::new("echo"),
        Tool::new("hang").replies(Reply::Hang),
        Tool::new("break").replies(Reply::CloseMidBody),
        Tool::new("wrong_id").replies(Reply::WrongId),
        Tool::new("twice").replies(Reply::Twice),
        Tool::new("rpc").replies(rpc),
        Tool::new("fails").replies(Reply::ToolError("no such customer".into())),
        Tool::new("strange").replies(Reply::UnknownContent),
        Tool::new("late").sleeps(1_800).ignores_cancel(),
    ];
    let mut world = world(builder, tools).await;
    for tool in ["hang", "break", "wrong_id", "late"] {
        for (answer, took) in world.both(&format!("bad__{tool}"), &json!({})).await {
            assert!(answer.is_refusal(), "{tool}: {}", answer.body);
            assert!(took < TIMEOUT + GRACE, "{tool}: {took:?}");
        }
    }
    for (answer, _) in world.both("bad__twice", &json!({"n": 7})).await {
        assert_eq!(answer.messages().len(), 1, "{answer:?}");
        assert_eq!(answer.result()["structuredContent"]["n"], 7);
    }
    for (answer, _) in world.both("bad__rpc", &json!({})).await {
        assert_eq!(answer.code(), -32_050);
        assert!(answer.body.contains("the server's own words"));
    }
    for (answer, _) in world.both("bad__fails", &json!({})).await {
        assert_eq!(
            (answer.text().as_str(), &answer.result()["isError"]),
            ("no such customer", &json!(true))
        );
    }
    for (answer, _) in world.both("bad__strange", &json!({})).await {
        assert!(!answer.is_refusal(), "{}", answer.body);
    }
    // Late responses of the calls above arrive now and match no request.
    wait_until(PATIENCE, async || (world.upstream.stats().running_calls == 0).then_some(())).await;
    for (answer, _) in world.both("bad__echo", &json!({"n": 8})).await {
        assert_eq!(answer.result()["structuredContent"]["n"], 8);
    }
    assert!(world.serve.is_running());
}

#[tokio::test]
async fn f1_strange_replies_of_a_legacy_server_reach_only_who_asked() {
    strange_replies(ScriptedServer::builder().legacy()).await;
}

#[tokio::test]
async fn f1_strange_replies_of_a_modern_server_reach_only_who_asked() {
    strange_replies(ScriptedServer::builder().modern()).await;
}

#[tokio::test]
async fn f1_strange_replies_on_streams_reach_only_who_asked() {
    strange_replies(ScriptedServer::builder().legacy().answers_as_events()).await;
}

#[tokio::test]
async fn f1_a_flood_of_notifications_neither_stalls_nor_grows() {
    let flood = Tool::new("flood").sleeps(400).progress_every(1);
    let world = world(ScriptedServer::builder().legacy(), vec![Tool::new("echo"), flood]).await;
    let before = crate::world::Holdings::of(world.serve.pid());
    let peer = world.peer.meta(json!({"progressToken": "t"}));
    let call = json!({"name": "bad__flood", "arguments": {}});
    let (flooded, quick) =
        tokio::join!(peer.modern("tools/call", call), world.peer.call("bad__echo", json!({})));
    assert!(!quick.is_refusal());
    assert!(!flooded.is_refusal(), "{}", flooded.body);
    assert!(flooded.messages().len() > 10, "{}", flooded.messages().len());
    // A caller that wants no progress gets none.
    assert_eq!(world.session.call("bad__flood", json!({})).await.messages().len(), 1);
    let after = crate::world::Holdings::of(world.serve.pid());
    assert!(after.rss_kb < before.rss_kb + 50 * 1024, "{before:?} {after:?}");
}

#[tokio::test]
async fn f1_a_burst_of_failures_ends_with_the_burst() {
    let world = world(ScriptedServer::builder().legacy(), vec![Tool::new("echo")]).await;
    world.upstream.set_fault_times(20, Fault::Status(Stage::Call, 500)).await;
    let calls = (0..20).map(|n| world.peer.call("bad__echo", json!({"n": n})));
    for answer in futures::future::join_all(calls).await {
        assert!(answer.status < 500 && !answer.body.is_empty(), "{answer:?}");
    }
    world.upstream.clear_fault().await;
    world.works_again("a burst").await;
}
