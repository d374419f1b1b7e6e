//! Tests of the shutdown of a board.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_model::{CallErrorKind, CallOutcome};
use switchboard_runtime::Memory;
use switchboard_store::{CallFilter, Store};
use switchboard_test_support::{Reply, Tool};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::support::{
    answer, board_on, dynamic, end, failure, plan, request, server, spawn_call, text, until, yaml,
};

#[tokio::test]
async fn running_calls_finish_before_the_board_ends_and_every_record_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let crm = server([Tool::echo("slow").sleeps(500), Tool::echo("quick")]).await;
    let config = yaml(&[], &[dynamic("crm", &crm)]);
    let board = board_on(directory.path(), Memory::Keep, &config).await;
    for n in 0..300 {
        text(&board, "quick", json!({"n": n})).await;
    }
    let mut tasks = JoinSet::new();
    for _ in 0..5 {
        spawn_call(&mut tasks, &board, request("slow", json!({})));
    }
    until(|| crm.stats().running_calls == 5).await;
    board.shutdown(Duration::from_secs(8)).await;
    assert_eq!(crm.stats().running_calls, 0, "the board waited for them");
    while let Some(report) = tasks.join_next().await {
        assert_eq!(answer(&report.unwrap()), "{}");
    }
    assert_eq!(crm.open_sessions(), 0);
    until(|| crm.open_streams() == 0).await;

    let store = Store::open(directory.path()).await.unwrap();
    let kept = store.recent_calls(&CallFilter::newest(1000)).await.unwrap();
    assert_eq!(kept.len(), 305);
    assert!(kept.iter().all(|record| record.outcome == CallOutcome::Ok));
}

#[tokio::test]
async fn calls_that_do_not_finish_in_time_are_cancelled_and_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let crm = server([Tool::new("hangs").replies(Reply::Hang)]).await;
    let config = yaml(&["{name: hangs, max_instances: 2}"], &[dynamic("crm", &crm)]);
    let board = board_on(directory.path(), Memory::Keep, &config).await;
    let mut tasks = JoinSet::new();
    for _ in 0..5 {
        spawn_call(&mut tasks, &board, request("hangs", json!({})));
    }
    until(|| crm.stats().running_calls == 2).await;
    let before = Instant::now();
    board.shutdown(Duration::from_millis(100)).await;
    assert!(before.elapsed() < Duration::from_secs(4), "{:?}", before.elapsed());
    while let Some(report) = tasks.join_next().await {
        let error = report.unwrap().result.unwrap_err();
        assert_eq!(error.kind, CallErrorKind::Cancelled, "{error}");
        assert!(error.message.contains("shutting down"), "{error}");
    }
    until(|| crm.stats().closed_responses.len() == 2).await;
    assert_eq!(crm.open_sessions(), 0);
    let store = Store::open(directory.path()).await.unwrap();
    let kept = store.recent_calls(&CallFilter::newest(1000)).await.unwrap();
    let cancelled = CallOutcome::Failed(CallErrorKind::Cancelled);
    assert_eq!(kept.iter().map(|record| record.outcome).collect::<Vec<_>>(), [cancelled; 5]);
}

#[tokio::test]
async fn a_board_that_shuts_down_takes_no_new_calls() {
    let directory = tempfile::tempdir().unwrap();
    let crm = server([Tool::echo("slow").sleeps(400)]).await;
    let config = yaml(&["{name: sum_numbers}"], &[dynamic("crm", &crm)]);
    let board = board_on(directory.path(), Memory::Keep, &config).await;
    let mut tasks = JoinSet::new();
    spawn_call(&mut tasks, &board, request("slow", json!({})));
    until(|| crm.stats().running_calls == 1).await;
    let refused = async {
        // Polled after the shutdown has begun.
        tokio::task::yield_now().await;
        failure(&board, "sum_numbers", json!({"a": 1, "b": 1})).await
    };
    let ((), error) = tokio::join!(board.shutdown(Duration::from_secs(8)), refused);
    assert_eq!(error.kind, CallErrorKind::Unavailable);
    assert!(error.message.contains("shutting down"), "{error}");
    assert_eq!(answer(&tasks.join_next().await.unwrap().unwrap()), "{}");
}

#[tokio::test]
async fn a_server_that_was_just_removed_ends_with_the_board() {
    let directory = tempfile::tempdir().unwrap();
    let crm = server([Tool::new("hangs").replies(Reply::Hang)]).await;
    let config = yaml(&["{name: sum_numbers}"], &[dynamic("crm", &crm)]);
    let board = board_on(directory.path(), Memory::Keep, &config).await;
    let mut tasks = JoinSet::new();
    spawn_call(&mut tasks, &board, request("hangs", json!({})));
    until(|| crm.stats().running_calls == 1).await;
    board.apply(plan(&yaml(&["{name: sum_numbers}"], &[]))).await.unwrap();
    board.shutdown(Duration::from_millis(100)).await;
    assert_eq!(crm.open_sessions(), 0);
    end(&board).await;
}

#[tokio::test]
async fn a_board_that_is_dropped_lets_go_of_its_servers() {
    let directory = tempfile::tempdir().unwrap();
    let crm = server([Tool::echo("a")]).await;
    let board = board_on(directory.path(), Memory::Keep, &yaml(&[], &[dynamic("crm", &crm)])).await;
    until(|| crm.open_streams() == 1).await;
    drop(board);
    until(|| crm.open_sessions() == 0 && crm.open_streams() == 0).await;
}
