//! Tests with servers that send without end: the time limits of a call hold, and other calls are not slowed down.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_model::CallErrorKind;
use switchboard_runtime::Board;
use switchboard_test_support::{
    Flood, ScriptedServer, ScriptedServerBuilder, Tool, peers, wait_until,
};
use tokio::time::Instant;

use crate::support::{PATIENCE, board, call, dynamic, end, failure, server, text, until, yaml};

/// Much longer than the limit of the call, and longer than the test may take.
const FLOOD_MS: u64 = 40_000;

fn flooding(flood: Flood) -> ScriptedServerBuilder {
    ScriptedServer::builder().tools([Tool::new("talk").floods(flood).sleeps(FLOOD_MS)])
}

fn entry(talk: &ScriptedServer, transport: &str, limits: &str) -> String {
    format!(
        "{{name: talk, url: \"{}\", transport: {transport}, mode: dynamic, \
         default_tool_config: {{max_instances: 1, {limits}}}}}",
        talk.url()
    )
}

/// Calls the flooding tool; while it runs, another tool answers, and again and again.
async fn check(board: &Board, arguments: serde_json::Value, case: &str) {
    let start = Instant::now();
    let others = async {
        let mut answered = 0;
        while start.elapsed() < Duration::from_millis(900) {
            assert_eq!(text(board, "quiet", json!({})).await, "{}");
            answered += 1;
        }
        answered
    };
    let (error, answered) = tokio::join!(failure(board, "talk.talk", arguments), others);
    assert_eq!(error.kind, CallErrorKind::Timeout, "{case}: {error}");
    // The machine may be busy; without the limit it would last for the whole flood.
    assert!(start.elapsed() < Duration::from_millis(FLOOD_MS / 2), "{case}: {:?}", start.elapsed());
    assert!(answered > 3, "{case}: other calls answered {answered} times in a second");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_limit_of_a_call_wins_against_every_flood() {
    let quiet = server([Tool::echo("quiet")]).await;
    for (name, flood, transport) in [
        ("comments, session era", Flood::Comments, ScriptedServerBuilder::legacy as fn(_) -> _),
        ("comments, stateless era", Flood::Comments, ScriptedServerBuilder::modern),
        ("comments, HTTP+SSE", Flood::Comments, ScriptedServerBuilder::sse_transport),
        ("logs, session era", Flood::Logs, ScriptedServerBuilder::legacy),
        ("logs, stateless era", Flood::Logs, ScriptedServerBuilder::modern),
        ("logs, HTTP+SSE", Flood::Logs, ScriptedServerBuilder::sse_transport),
        ("progress that never grows", Flood::StuckProgress, ScriptedServerBuilder::legacy),
        (
            "progress that never grows, HTTP+SSE",
            Flood::StuckProgress,
            ScriptedServerBuilder::sse_transport,
        ),
    ] {
        let talk = transport(flooding(flood)).start().await;
        let transport = if name.contains("HTTP+SSE") { "sse" } else { "streamable_http" };
        let entry = entry(&talk, transport, "timeout: 1s");
        let board = board(&yaml(&[], &[entry, dynamic("quiet", &quiet)])).await;
        check(&board, json!({}), name).await;
        // The server is told.
        until(|| talk.stats().running_calls == 0).await;
        end(&board).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_progress_ends_at_the_longest_time() {
    let quiet = server([Tool::echo("quiet")]).await;
    let talk = flooding(Flood::Progress).legacy().start().await;
    let entry = entry(&talk, "streamable_http", "timeout: 500ms, max_timeout: 1s");
    let board = board(&yaml(&[], &[entry, dynamic("quiet", &quiet)])).await;
    let error = failure(&board, "talk.talk", json!({})).await;
    assert_eq!(
        error.message,
        "tool 'talk' of MCP server 'talk' was running, with progress, longer than its max_timeout of 1s and was cancelled"
    );
    end(&board).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_never_stops_talking_is_cancelled_in_time() {
    let quiet = server([Tool::echo("quiet")]).await;
    let peer = peers::stdio_peer();
    let entry = format!(
        "{{name: talk, command: \"{}\", mode: dynamic, tool_allowlist: [sleep, stats], \
         default_tool_config: {{max_instances: 1, timeout: 1s}}}}",
        peer.display()
    );
    for kind in ["logs", "progress"] {
        let board = board(&yaml(&[], &[entry.clone(), dynamic("quiet", &quiet)])).await;
        let start = Instant::now();
        let error = failure(&board, "talk.sleep", json!({"ms": FLOOD_MS, "flood": kind})).await;
        assert_eq!(error.kind, CallErrorKind::Timeout, "{kind}: {error}");
        assert!(
            start.elapsed() < Duration::from_millis(FLOOD_MS / 2),
            "{kind}: {:?}",
            start.elapsed()
        );
        // It was told, and the connection lives on.
        wait_until(PATIENCE, async || {
            let answer = call(&board, "talk.stats", json!({})).await;
            let said = answer.result.ok()?.content.first()?["text"].as_str()?.to_owned();
            said.contains(r#""cancelled":["sb-"#).then_some(())
        })
        .await;
        assert_eq!(text(&board, "quiet", json!({})).await, "{}");
        end(&board).await;
    }
}
