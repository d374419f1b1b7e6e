//! Servers that are child processes.

use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_model::{CallErrorKind, ServerState};
use switchboard_test_support::peers::stdio_peer;
use switchboard_test_support::wait_until;

use crate::support::{
    PATIENCE, board, dynamic_at, end, failure, names, plan, refused, status, text, try_board,
    until, until_state, yaml,
};

fn child(name: &str, arguments: &[&str]) -> String {
    format!(
        "{{name: {name}, command: \"{}\", args: [{}], mode: dynamic, connect_timeout: 5s, \
         default_tool_config: {{max_instances: 5, timeout: 8s}}}}",
        stdio_peer().display(),
        arguments.iter().map(|argument| format!("\"{argument}\"")).collect::<Vec<_>>().join(", ")
    )
}

fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie has ended, it is only not yet buried.
    !stat.is_empty() && !stat.contains(") Z ")
}

async fn pid_in(file: &Path) -> String {
    wait_until(PATIENCE, async || Some(std::fs::read_to_string(file).ok()?.trim().to_owned())).await
}

#[tokio::test]
async fn a_failed_start_leaves_no_child() {
    let directory = tempfile::tempdir().unwrap();
    let pid_file = directory.path().join("pid");
    let gone = format!("http://127.0.0.1:{}/mcp", switchboard_test_support::free_port());
    let peer = child("peer", &["--pid-file", pid_file.to_str().unwrap()]);
    refused(try_board(&yaml(&[], &[peer, dynamic_at("gone", &gone)])).await);
    assert!(!is_running(&pid_in(&pid_file).await), "the start returned with a child left");
}

#[tokio::test]
async fn a_shutdown_ends_the_child() {
    let directory = tempfile::tempdir().unwrap();
    let pid_file = directory.path().join("pid");
    let peer = child("peer", &["--pid-file", pid_file.to_str().unwrap()]);
    let board = board(&yaml(&[], &[peer])).await;
    let pid = pid_in(&pid_file).await;
    assert!(is_running(&pid));
    end(&board).await;
    assert!(!is_running(&pid));
}

#[tokio::test]
async fn a_reload_that_removes_a_child_ends_it() {
    let directory = tempfile::tempdir().unwrap();
    let pid_file = directory.path().join("pid");
    let peer = child("peer", &["--pid-file", pid_file.to_str().unwrap()]);
    let board = board(&yaml(&["{name: sum_numbers}"], &[peer])).await;
    let pid = pid_in(&pid_file).await;
    board.apply(plan(&yaml(&["{name: sum_numbers}"], &[]))).await.unwrap();
    until(|| !is_running(&pid)).await;
    assert_eq!(names(&board), ["local.sum_numbers"]);
    end(&board).await;
}

#[tokio::test]
async fn a_child_that_crashes_is_started_again() {
    let board = board(&yaml(&[], &[child("peer", &[])])).await;
    let error = failure(&board, "crash", json!({})).await;
    assert_eq!(error.kind, CallErrorKind::Unavailable, "{error}");
    until_state(&board, "peer", ServerState::Unavailable).await;
    assert!(names(&board).contains(&"peer.echo".to_owned()));
    until_state(&board, "peer", ServerState::Ready).await;
    assert_eq!(text(&board, "echo", json!({"n": 1})).await, r#"{"n":1}"#);
    assert!(status(&board, "peer").error.is_none());
    end(&board).await;
}

#[tokio::test]
async fn a_tool_that_a_child_adds_appears() {
    let board = board(&yaml(&[], &[child("peer", &[])])).await;
    text(&board, "add_tool", json!({"name": "extra"})).await;
    until(|| names(&board).contains(&"peer.extra".to_owned())).await;
    assert_eq!(text(&board, "extra", json!({})).await, "extra");
    end(&board).await;
}
