//! Connections beside the supervised one: in the other era, and one process for each session.

use std::sync::Arc;
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::Value;
use switchboard_model::{Caller, Era, Face, HintAudience};
use switchboard_runtime::{Board, ClientProfile, ForwardedContext, RawCall};
use switchboard_test_support::peers::stdio_peer;
use switchboard_test_support::{Reply, ScriptedServer, Tool, wait_until};

use crate::support::{PATIENCE, board, dynamic, end, plan, status, with, yaml};

/// The text of a result, or the message of an error.
async fn call(
    board: &Arc<Board>,
    tool: &str,
    session: Option<&str>,
    client: ClientProfile,
) -> String {
    let caller = Caller { session: session.map(Arc::from), ..Caller::local(Face::Mcp) };
    let call = RawCall {
        tool: tool.to_owned().into(),
        arguments: None,
        caller: Arc::new(caller),
        requested: None,
        passing: ForwardedContext { client, ..ForwardedContext::default() },
        events: None,
        check: None,
        conversation: None,
    };
    match board.call_raw(call).await.result {
        Ok(answer) => {
            let result: Value = serde_json::from_str(answer.as_str()).unwrap();
            result["content"][0]["text"].as_str().unwrap().to_owned()
        }
        Err(failed) => failed.error.message,
    }
}

fn of_era(era: Era, answers_requests: bool) -> ClientProfile {
    ClientProfile { era: Some(era), answers_requests, ..ClientProfile::default() }
}

#[tokio::test]
async fn a_client_that_can_be_asked_is_served_in_its_own_era() {
    let server = ScriptedServer::builder().dual().tools([Tool::echo("echo")]).start().await;
    let board = board(&yaml(&[], &[dynamic("both", &server)])).await;
    assert_eq!(status(&board, "both").era, Some(Era::Modern));
    for (client, sessions) in [
        (ClientProfile::default(), 0),
        (of_era(Era::Modern, true), 0),
        (of_era(Era::Legacy, false), 0),
        (of_era(Era::Legacy, true), 1),
        (of_era(Era::Legacy, true), 1),
        (ClientProfile { brings_input: true, ..of_era(Era::Legacy, true) }, 1),
    ] {
        let shown = format!("{client:?}");
        assert_eq!(call(&board, "both.echo", None, client).await, "{}", "{shown}");
        assert_eq!(server.stats().initialize_count, sessions, "{shown}");
    }
    end(&board).await;
}

#[tokio::test]
async fn a_server_of_the_stateless_era_alone_is_asked_once_for_a_session() {
    let server = ScriptedServer::builder().modern().tools([Tool::echo("echo")]).start().await;
    let board = board(&yaml(&[], &[dynamic("new", &server)])).await;
    for _ in 0..3 {
        assert_eq!(call(&board, "new.echo", None, of_era(Era::Legacy, true)).await, "{}");
    }
    assert!(server.stats().initialize_count <= 1, "{:?}", server.stats());
    end(&board).await;
}

#[tokio::test]
async fn only_a_call_that_needs_input_required_results_is_made_again_in_the_stateless_era() {
    let words = "InputRequiredResult requires negotiated protocol version 2026-07-28 or newer";
    for (code, message, is_made_again) in
        [(-32600, words, true), (-32602, "input required: `name`", false), (-32001, words, false)]
    {
        let reply = Reply::SessionEraError { code, message: message.into() };
        let tools = [Tool::new("asks").replies(reply)];
        let server = ScriptedServer::builder().dual().tools(tools).start().await;
        let board = board(&yaml(&[], &[dynamic("both", &server)])).await;
        let said = call(&board, "both.asks", None, of_era(Era::Legacy, true)).await;
        assert_eq!(said == "{}", is_made_again, "{code} {message}: {said}");
        let calls = if is_made_again { 2 } else { 1 };
        assert_eq!(server.stats().calls.len(), calls, "{code} {message}");
        end(&board).await;
    }
}

fn child(more: &str) -> String {
    with(
        &format!(
            "{{name: own, command: \"{}\", mode: dynamic, connect_timeout: 5s, \
             default_tool_config: {{max_instances: 5, timeout: 8s}}}}",
            stdio_peer().display()
        ),
        more,
    )
}

/// How many calls the process of a session has had, with this one.
async fn calls(board: &Arc<Board>, session: Option<&str>) -> String {
    let said = call(board, "own.stats", session, of_era(Era::Legacy, true)).await;
    match serde_json::from_str::<Value>(&said) {
        Ok(stats) => stats["calls"].to_string(),
        Err(_) => said,
    }
}

#[tokio::test]
async fn each_session_has_a_process_of_its_own() {
    let board = board(&yaml(&[], &[child("process: per_session")])).await;
    for (session, expected) in [
        (Some("a"), "1"),
        (Some("a"), "2"),
        (Some("b"), "1"),
        (None, "1"),
        (Some("a"), "3"),
        (None, "2"),
    ] {
        assert_eq!(calls(&board, session).await, expected, "{session:?}");
    }
    assert_eq!(status(&board, "own").session_processes, 2);
    // It ends with its session, and another one begins anew.
    board.end_session("a");
    let is_one = async || (status(&board, "own").session_processes == 1).then_some(());
    wait_until(PATIENCE, is_one).await;
    assert_eq!(calls(&board, Some("a")).await, "1");
    assert_eq!(calls(&board, Some("b")).await, "2");
    end(&board).await;
}

#[tokio::test]
async fn the_process_that_has_been_idle_for_longest_gives_way_to_that_of_another_session() {
    let most = "process: per_session, max_processes: 2";
    let board = board(&yaml(&[], &[child(most)])).await;
    for (session, expected) in
        [("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), ("a", "3"), ("b", "1"), ("a", "4")]
    {
        assert_eq!(calls(&board, Some(session)).await, expected, "{session}");
        assert!(status(&board, "own").session_processes <= 2);
    }
    // The place of a session that has ended is free at once.
    board.end_session("a");
    assert_eq!(calls(&board, Some("d")).await, "1");
    assert_eq!(calls(&board, Some("b")).await, "2");
    end(&board).await;
}

#[tokio::test]
async fn a_session_is_refused_only_while_the_processes_of_all_others_are_busy() {
    let server = ScriptedServer::builder().legacy();
    let server = server.tools([Tool::echo("t"), Tool::new("hangs").replies(Reply::Hang)]);
    let server = server.start().await;
    let own = with(&dynamic("own", &server), "connection: per_session, max_connections: 1");
    let board = board(&yaml(&[], &[own])).await;
    let client = || of_era(Era::Legacy, true);
    let mut busy = Box::pin(call(&board, "own.hangs", Some("a"), client()));
    let is_running = async {
        wait_until(PATIENCE, async || (server.stats().running_calls == 1).then_some(())).await;
    };
    tokio::select! {
        said = &mut busy => panic!("{said}"),
        () = is_running => {}
    }
    let request = RawCall {
        tool: "own.t".to_owned().into(),
        arguments: None,
        caller: Arc::new(Caller::local(Face::Mcp).in_session("b".into(), "local".into())),
        requested: None,
        passing: ForwardedContext { client: client(), ..ForwardedContext::default() },
        events: None,
        check: None,
        conversation: None,
    };
    let refused = board.call_raw(request).await.result.unwrap_err().error;
    assert!(refused.message.contains("as many as its `max_connections` allows"), "{refused}");
    let caller = "and all of them are in use; try again when a call has ended";
    assert!(refused.for_caller().ends_with(caller), "{}", refused.for_caller());
    let operator = refused.hints.iter().filter(|hint| hint.audience == HintAudience::Operator);
    let operator: Vec<_> = operator.map(|hint| hint.text.as_str()).collect();
    assert_eq!(operator, ["raise `max_connections` in the configuration"]);
    assert_eq!(call(&board, "own.t", Some("a"), client()).await, "{}", "the other goes on");
    drop(busy);
    wait_until(PATIENCE, async || {
        (call(&board, "own.t", Some("b"), client()).await == "{}").then_some(())
    })
    .await;
    end(&board).await;
}

#[tokio::test]
async fn a_process_that_nobody_uses_ends_and_comes_back() {
    let soon = "process: per_session, process_idle_timeout: 100ms";
    let board = board(&yaml(&[], &[child(soon)])).await;
    assert_eq!(calls(&board, Some("a")).await, "1");
    let is_none = async || (status(&board, "own").session_processes == 0).then_some(());
    wait_until(PATIENCE, is_none).await;
    assert_eq!(calls(&board, Some("a")).await, "1");
    end(&board).await;
}

#[tokio::test]
async fn a_process_that_ended_by_itself_is_started_again() {
    let board = board(&yaml(&[], &[child("process: per_session")])).await;
    assert_eq!(calls(&board, Some("a")).await, "1");
    let crashed = call(&board, "own.crash", Some("a"), ClientProfile::default()).await;
    assert!(crashed.contains("the process ended"), "{crashed}");
    assert_eq!(calls(&board, Some("a")).await, "1");
    assert_eq!(calls(&board, None).await, "1", "the others were not touched");
    end(&board).await;
}

#[tokio::test]
async fn a_reload_of_a_server_ends_the_processes_of_its_sessions() {
    let board = board(&yaml(&[], &[child("process: per_session")])).await;
    assert_eq!(calls(&board, Some("a")).await, "1");
    board.apply(plan(&yaml(&[], &[child("process: shared")]))).await.unwrap();
    assert_eq!(calls(&board, Some("a")).await, "1");
    assert_eq!(calls(&board, Some("b")).await, "2", "one process for all");
    tokio::time::timeout(Duration::from_secs(20), end(&board)).await.unwrap();
}
