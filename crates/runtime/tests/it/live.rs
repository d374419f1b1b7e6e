//! Tests with servers that change, fail, exit and return while the board runs.

use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_model::{CallErrorKind, ServerState};
use switchboard_runtime::Board;
use switchboard_test_support::{Fault, ScriptedServer, Stage, Tool};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::support::{
    answer, board, call, dynamic, end, failure, names, request, revision, server, spawn_call,
    status, text, until, until_state, with, yaml,
};

fn tools(names: &[&str]) -> Vec<Tool> {
    names.iter().copied().map(Tool::echo).collect()
}

/// A board on one server whose notifications are being listened to.
async fn listening(crm: &ScriptedServer) -> Arc<Board> {
    let board = board(&yaml(&[], &[dynamic("crm", crm)])).await;
    until(|| crm.open_streams() == 1).await;
    board
}

async fn adds_and_removes(crm: ScriptedServer) {
    let board = listening(&crm).await;
    let start = revision(&board);
    crm.set_tools_and_notify(tools(&["a", "b"])).await;
    until(|| names(&board) == ["crm.a", "crm.b"]).await;
    assert_eq!(revision(&board), start + 1);
    assert_eq!(text(&board, "b", json!({"n": 1})).await, r#"{"n":1}"#);

    crm.set_tools_and_notify(tools(&["b"])).await;
    until(|| names(&board) == ["crm.b"]).await;
    assert_eq!(revision(&board), start + 2);
    assert_eq!(failure(&board, "crm.a", json!({})).await.kind, CallErrorKind::UnknownTool);
    end(&board).await;
}

#[tokio::test]
async fn a_notified_change_of_a_legacy_server_is_one_revision_step() {
    adds_and_removes(server(tools(&["a"])).await).await;
}

#[tokio::test]
async fn a_notified_change_of_a_modern_server_is_one_revision_step() {
    adds_and_removes(ScriptedServer::builder().modern().tools(tools(&["a"])).start().await).await;
}

#[tokio::test]
async fn a_storm_of_notifications_is_few_listings_and_one_step() {
    let crm = server(tools(&["a"])).await;
    let board = listening(&crm).await;
    let (start, lists) = (revision(&board), crm.stats().list_count);
    crm.set_tools(tools(&["a", "b"]));
    let before = Instant::now();
    assert_eq!(crm.notify_list_changed(1000).await, 1000);
    until(|| names(&board).len() == 2).await;
    crm.set_tools_and_notify(tools(&["a", "b", "c"])).await;
    until(|| names(&board).len() == 3).await;
    assert_eq!(revision(&board), start + 2, "one step for the storm and one for the last change");
    let taken = (crm.stats().list_count - lists) as u128;
    // A burst settles for 50 ms before it is looked at.
    let most = before.elapsed().as_millis() / 50 + 2;
    assert!(taken <= most.min(25), "{taken} listings where {most} are enough");
    end(&board).await;
}

#[tokio::test]
async fn a_notification_without_a_change_is_no_step() {
    let crm = server(tools(&["a"])).await;
    let board = listening(&crm).await;
    let (start, lists) = (revision(&board), crm.stats().list_count);
    crm.notify_list_changed(1).await;
    until(|| crm.stats().list_count > lists).await;
    crm.set_tools_and_notify(tools(&["a", "b"])).await;
    until(|| names(&board).len() == 2).await;
    assert_eq!(revision(&board), start + 1);
    end(&board).await;
}

#[tokio::test]
async fn a_change_that_nobody_announces_is_found_by_polling_and_by_a_refresh() {
    let crm = server(tools(&["a"])).await;
    let polled = with(&dynamic("polled", &crm), "poll_interval: 1s");
    let board = board(&yaml(&[], &[polled, dynamic("asked", &crm)])).await;
    crm.set_tools(tools(&["a", "b"]));
    until(|| names(&board) == ["polled.a", "polled.b", "asked.a"]).await;
    board.refresh();
    until(|| names(&board).len() == 4).await;
    end(&board).await;
}

#[tokio::test]
async fn a_list_that_fails_changes_nothing_and_cuts_off_no_call() {
    for fault in [
        Fault::Status(Stage::List, 500),
        Fault::Status(Stage::List, 429),
        Fault::NotJson(Stage::List),
        Fault::LoginPage(Stage::List),
        Fault::CloseMidBody(Stage::List),
        Fault::SecondPageFails,
        Fault::CursorLoop,
        Fault::EndlessPages,
    ] {
        let crm = server([Tool::echo("a"), Tool::echo("slow").sleeps(400)]).await;
        let board = listening(&crm).await;
        let (start, seen) = (revision(&board), crm.stats().requests.len());
        let mut running = JoinSet::new();
        spawn_call(&mut running, &board, request("slow", json!({})));
        until(|| crm.stats().running_calls == 1).await;

        crm.set_fault(fault.clone()).await;
        crm.set_tools(tools(&["other"]));
        crm.notify_list_changed(1).await;
        let asked = |request: &&switchboard_test_support::SeenRequest| {
            request.method.as_deref() == Some("tools/list")
        };
        until(|| crm.stats().requests.iter().skip(seen).any(|request| asked(&request))).await;
        let report = running.join_next().await.unwrap().unwrap();
        assert_eq!(answer(&report), "{}", "{fault:?}");
        assert_eq!(names(&board), ["crm.a", "crm.slow"], "{fault:?}");
        assert_eq!(revision(&board), start, "{fault:?}");

        crm.clear_fault().await;
        until(|| crm.open_streams() > 0).await;
        crm.notify_list_changed(1).await;
        until(|| names(&board) == ["crm.other"]).await;
        assert_eq!(revision(&board), start + 1, "{fault:?}");
        end(&board).await;
    }
}

#[tokio::test]
async fn a_list_that_breaks_off_once_loses_no_server() {
    let crm = server(tools(&["a"])).await;
    let board = listening(&crm).await;
    crm.set_fault_times(1, Fault::CloseMidBody(Stage::List)).await;
    crm.set_tools(tools(&["a", "b"]));
    crm.notify_list_changed(1).await;
    until(|| names(&board).len() == 2).await;
    assert_eq!(crm.stats().initialize_count, 1, "the connection was given up");
    end(&board).await;
}

#[tokio::test]
async fn a_server_that_dies_keeps_its_tools_and_serves_again_when_it_returns() {
    let crm = server(tools(&["a"])).await;
    let other = server(tools(&["other"])).await;
    let board = board(&yaml(&[], &[dynamic("crm", &crm), dynamic("other", &other)])).await;
    assert_eq!(text(&board, "a", json!({})).await, "{}");
    let start = revision(&board);

    crm.stop().await;
    let error = failure(&board, "a", json!({})).await;
    assert_eq!(error.kind, CallErrorKind::Unavailable, "{error}");
    until_state(&board, "crm", ServerState::Unavailable).await;
    let error = failure(&board, "a", json!({})).await;
    assert_eq!(error.kind, CallErrorKind::Unavailable);
    assert!(error.message.starts_with("tool 'a' of MCP server 'crm' is unavailable: "), "{error}");
    assert!(error.hint().is_some());
    assert_eq!(names(&board), ["crm.a", "other.other"]);
    assert_eq!(text(&board, "other", json!({})).await, "{}");

    crm.restart_on_same_port().await;
    until_state(&board, "crm", ServerState::Ready).await;
    assert_eq!(text(&board, "a", json!({"n": 2})).await, r#"{"n":2}"#);
    assert_eq!(revision(&board), start);
    assert_eq!(other.stats().initialize_count, 1);
    end(&board).await;
}

#[tokio::test]
async fn a_server_that_comes_back_with_other_tools_is_one_step() {
    let crm = server(tools(&["a"])).await;
    let board = board(&yaml(&[], &[dynamic("crm", &crm)])).await;
    let start = revision(&board);
    crm.stop().await;
    failure(&board, "a", json!({})).await;
    until_state(&board, "crm", ServerState::Unavailable).await;
    crm.set_tools(tools(&["b"]));
    crm.restart_on_same_port().await;
    until(|| names(&board) == ["crm.b"]).await;
    assert_eq!(revision(&board), start + 1);
    end(&board).await;
}

#[tokio::test]
async fn a_server_that_forgot_its_sessions_is_initialised_again_and_no_call_fails() {
    let crm = server(tools(&["a"])).await;
    let board = listening(&crm).await;
    crm.drop_sessions();
    for n in 0..5 {
        assert_eq!(text(&board, "a", json!({"n": n})).await, format!(r#"{{"n":{n}}}"#));
    }
    assert_eq!(crm.stats().initialize_count, 2);
    assert_eq!(status(&board, "crm").state, ServerState::Ready);
    end(&board).await;
}

#[tokio::test]
async fn a_call_in_progress_when_its_server_dies_fails_as_unavailable() {
    let crm = server([Tool::echo("slow").sleeps(60_000)]).await;
    let board = listening(&crm).await;
    let mut running = JoinSet::new();
    spawn_call(&mut running, &board, request("slow", json!({})));
    until(|| crm.stats().running_calls == 1).await;
    crm.stop().await;
    let error = running.join_next().await.unwrap().unwrap().result.unwrap_err();
    assert_eq!(error.kind, CallErrorKind::Unavailable, "{error}");
    crm.restart_on_same_port().await;
    until_state(&board, "crm", ServerState::Ready).await;
    let report = call(&board, "slow", json!({"sleep_ms": 1})).await;
    assert_eq!(answer(&report), r#"{"sleep_ms":1}"#);
    end(&board).await;
}

#[tokio::test]
async fn a_server_that_stops_answering_its_list_is_given_up_and_comes_back() {
    let crm = server([Tool::echo("a")]).await;
    let entry = with(&dynamic("crm", &crm), "connect_timeout: 300ms");
    let board = board(&yaml(&[], &[entry])).await;
    crm.set_fault(Fault::Hang(Stage::List)).await;
    board.refresh();
    until_state(&board, "crm", ServerState::Unavailable).await;
    let error = status(&board, "crm").error.unwrap();
    assert_eq!(error.message, "no answer to tools/list within 300ms");
    assert_eq!(names(&board), ["crm.a"], "the last known list stays");
    crm.clear_fault().await;
    until_state(&board, "crm", ServerState::Ready).await;
    assert_eq!(text(&board, "a", json!({})).await, "{}");
    end(&board).await;
}
