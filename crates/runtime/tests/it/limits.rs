//! Tests of concurrency limits: how many calls run at once, in which order, and the cleanup of cancelled ones.

use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_model::{CallErrorKind, CallOutcome};
use switchboard_runtime::{Board, CallReport};
use switchboard_test_support::{Reply, ScriptedServer, Tool};
use tokio::task::JoinSet;

use crate::support::{
    answer, board, dynamic, end, plan, records, request, server, spawn_call, text, until, yaml,
    yaml_with,
};

async fn join_all(mut tasks: JoinSet<CallReport>) -> Vec<CallReport> {
    let mut reports = Vec::new();
    while let Some(report) = tasks.join_next().await {
        reports.push(report.unwrap());
    }
    reports
}

#[tokio::test]
async fn five_hundred_calls_keep_to_three_of_the_tool_and_ten_of_all_and_none_is_lost() {
    let crm = server([Tool::echo("narrow").sleeps(8), Tool::echo("wide").sleeps(20)]).await;
    let entries = [
        "{name: narrow, max_instances: 3, queue_timeout: 1m}",
        "{name: wide, max_instances: 50, queue_timeout: 1m}",
    ];
    let config = yaml_with("max_concurrent: 10", &entries, &[dynamic("crm", &crm)]);
    let board = board(&config).await;
    let mut tasks = JoinSet::new();
    for n in 0..500 {
        spawn_call(&mut tasks, &board, request("narrow", json!({"n": n})));
        if n % 5 < 2 {
            spawn_call(&mut tasks, &board, request("wide", json!({"n": n})));
        }
    }
    let reports = join_all(tasks).await;
    assert_eq!(reports.len(), 700);
    for report in &reports {
        assert!(answer(report).contains("\"n\""));
    }

    let stats = crm.stats();
    assert_eq!((stats.peak_of("narrow"), stats.peak_calls), (3, 10));
    assert_eq!((stats.total_calls(), stats.finished_calls), (700, 700));
    assert_eq!(stats.initialize_count, 1, "all of them over one connection");
    let order: Vec<i64> = stats
        .calls
        .iter()
        .filter(|call| call.tool == "narrow")
        .map(|call| call.n.unwrap())
        .collect();
    // Three run at the same time, so two may overtake on the wire; nobody else can.
    for (at, n) in (0_i64..).zip(&order) {
        assert!((at - n).abs() <= 2, "call {n} came at {at}");
    }
    assert_eq!(records(&board, 700).await.len(), 700);
    end(&board).await;
}

#[tokio::test]
async fn with_one_instance_the_order_of_the_callers_is_the_order_of_the_calls() {
    let crm = server([Tool::echo("single").sleeps(1)]).await;
    let entry = "{name: single, max_instances: 1, queue_timeout: 1m}";
    let board = board(&yaml(&[entry], &[dynamic("crm", &crm)])).await;
    let mut tasks = JoinSet::new();
    for n in 0..200 {
        spawn_call(&mut tasks, &board, request("single", json!({"n": n})));
    }
    join_all(tasks).await.iter().for_each(|report| drop(answer(report)));
    let order: Vec<_> = crm.stats().calls.iter().map(|call| call.n.unwrap()).collect();
    assert_eq!(order, (0..200).collect::<Vec<_>>());
    assert_eq!(crm.stats().peak_calls, 1);
    end(&board).await;
}

#[tokio::test]
async fn who_waits_for_a_busy_tool_does_not_hold_up_the_others() {
    let crm = server([Tool::new("stuck").replies(Reply::Hang), Tool::echo("free")]).await;
    let entry = "{name: stuck, max_instances: 1}";
    let config = yaml_with("max_concurrent: 2", &[entry], &[dynamic("crm", &crm)]);
    let board = board(&config).await;
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        spawn_call(&mut tasks, &board, request("stuck", json!({})));
    }
    until(|| crm.stats().running_calls == 1).await;
    assert_eq!(text(&board, "free", json!({})).await, "{}");
    tasks.shutdown().await;
    end(&board).await;
}

async fn hundred_callers_leave(crm: ScriptedServer) -> ScriptedServer {
    let entry = "{name: slow, max_instances: 10, timeout: 1m, queue_timeout: 1m}";
    let config = yaml_with("max_concurrent: 10", &[entry], &[dynamic("crm", &crm)]);
    let board = board(&config).await;
    let mut tasks = JoinSet::new();
    for n in 0..100 {
        spawn_call(&mut tasks, &board, request("slow", json!({"n": n})));
    }
    until(|| crm.stats().running_calls == 10).await;
    tasks.shutdown().await;
    until(|| crm.stats().running_calls == 0).await;
    assert_eq!(crm.stats().total_calls(), 10, "nobody who only waited reached the server");
    let kept = records(&board, 100).await;
    let cancelled = CallOutcome::Failed(CallErrorKind::Cancelled);
    assert_eq!(kept.iter().filter(|record| record.outcome == cancelled).count(), 100);
    assert_eq!(kept.iter().filter(|record| !record.run.is_zero()).count(), 10);

    // All slots are free again: ten run at the same time, and each of the next hundred gets its turn.
    let before = crm.stats().finished_calls;
    let mut tasks = JoinSet::new();
    for _ in 0..100 {
        spawn_call(&mut tasks, &board, request("slow", json!({"sleep_ms": 20})));
    }
    join_all(tasks).await.iter().for_each(|report| drop(answer(report)));
    assert_eq!(crm.stats().finished_calls, before + 100);
    assert_eq!(crm.stats().peak_calls, 10);
    end(&board).await;
    crm
}

#[tokio::test]
async fn a_hundred_callers_that_leave_free_every_slot_and_the_server_is_told() {
    let crm = server([Tool::echo("slow").sleeps(60_000)]).await;
    let crm = hundred_callers_leave(crm).await;
    let stats = crm.stats();
    let mut started: Vec<_> = stats.calls.iter().take(10).map(|call| call.id.to_string()).collect();
    let mut cancelled: Vec<_> = stats.cancelled.iter().map(ToString::to_string).collect();
    started.sort();
    cancelled.sort();
    assert_eq!(cancelled, started);
}

#[tokio::test]
async fn a_modern_server_sees_the_responses_of_callers_that_left_closed() {
    let tools = [Tool::echo("slow").sleeps(60_000)];
    let crm = ScriptedServer::builder().modern().tools(tools).start().await;
    let crm = hundred_callers_leave(crm).await;
    assert_eq!(crm.stats().dropped_calls.len(), 10);
}

/// Calls in the background that keep every slot busy until they are stopped.
fn keep_busy(board: &Arc<Board>, tool: &'static str, callers: usize) -> JoinSet<CallReport> {
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let board = board.clone();
        tasks.spawn(async move {
            loop {
                let report = board.call(request(tool, json!({}))).await;
                if report.result.is_err() {
                    return report;
                }
            }
        });
    }
    tasks
}

#[tokio::test]
async fn limits_that_change_while_calls_run_hold_from_the_next_call_on() {
    let crm = server([Tool::echo("narrow").sleeps(15), Tool::echo("probe")]).await;
    let config = |all: u32, own: u32| {
        let entry = format!("{{name: narrow, max_instances: {own}, queue_timeout: 1m}}");
        yaml_with(&format!("max_concurrent: {all}"), &[&entry], &[dynamic("crm", &crm)])
    };
    let board = board(&config(20, 8)).await;
    let mut busy = keep_busy(&board, "narrow", 24);
    until(|| crm.stats().peak_of("narrow") == 8).await;

    board.apply(plan(&config(20, 2))).await.unwrap();
    // What ran under the old limit has ended once these many more have started.
    let so_far = crm.stats().total_calls();
    until(|| crm.stats().total_calls() >= so_far + 20).await;
    for _ in 0..40 {
        assert!(crm.stats().running_calls <= 2, "{} run", crm.stats().running_calls);
        tokio::task::yield_now().await;
    }

    board.apply(plan(&config(20, 12))).await.unwrap();
    until(|| crm.stats().peak_of("narrow") == 12).await;
    board.apply(plan(&config(3, 12))).await.unwrap();
    let so_far = crm.stats().total_calls();
    until(|| crm.stats().total_calls() >= so_far + 30).await;
    for _ in 0..40 {
        assert!(crm.stats().running_calls <= 3, "{} run", crm.stats().running_calls);
        tokio::task::yield_now().await;
    }
    assert_eq!((crm.stats().peak_of("narrow"), crm.stats().peak_calls), (12, 12));
    assert!(busy.try_join_next().is_none(), "no call failed");
    busy.shutdown().await;
    assert_eq!(crm.stats().initialize_count, 1, "a limit is no reason to reconnect");
    end(&board).await;
}
