//! Tests of time limits: which one applies, the error message, and the cancellation that the server gets.

use std::sync::Arc;

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};
use switchboard_model::{CallErrorKind, CallOutcome, Caller, Face, ToolDescriptor, ToolResult};
use switchboard_runtime::{
    Board, BoardOptions, CallRequest, ForwardedContext, LocalTool, LocalTools, RawCall, RawReport,
    ToolChoice,
};
use switchboard_test_support::{Reply, ScriptedServer, Tool};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::support::{
    answer, board, call, dynamic, end, failure, options, plan, records, request, server,
    spawn_call, started, text, until, yaml, yaml_with,
};

#[tokio::test]
async fn a_call_that_runs_too_long_is_cancelled_on_the_server_and_says_which_limit() {
    let crm = server([Tool::new("hangs").replies(Reply::Hang)]).await;
    let board = board(&yaml(&["{name: hangs, timeout: 200ms}"], &[dynamic("crm", &crm)])).await;
    let report = call(&board, "hangs", json!({})).await;
    let error = report.result.unwrap_err();
    assert_eq!(error.kind, CallErrorKind::Timeout);
    assert_eq!(
        error.message,
        "tool 'hangs' of MCP server 'crm' was running longer than its timeout of 200ms and was cancelled"
    );
    assert!(report.run >= Duration::from_millis(200) && report.wait < Duration::from_millis(200));
    until(|| crm.stats().cancelled.len() == 1 && crm.stats().running_calls == 0).await;
    assert_eq!(crm.stats().cancelled[0], crm.stats().calls[0].id);
    let record = &records(&board, 1).await[0];
    assert_eq!(record.outcome, CallOutcome::Failed(CallErrorKind::Timeout));
    end(&board).await;
}

/// Calls as a client does that wants to hear of no progress.
async fn call_quietly(board: &Board, tool: &str) -> RawReport {
    let call = RawCall {
        tool: ToolChoice::Named(tool.to_owned()),
        arguments: None,
        caller: Arc::new(Caller::local(Face::Mcp)),
        requested: None,
        passing: ForwardedContext::default(),
        events: None,
        check: None,
        conversation: None,
    };
    board.call_raw(call).await
}

#[tokio::test]
async fn a_call_that_reports_progress_may_outlive_its_timeout_up_to_the_longest_time() {
    let works = |name: &str| Tool::echo(name).sleeps(1500).progress_every(100);
    for builder in [ScriptedServer::builder().legacy(), ScriptedServer::builder().modern()] {
        let crm = builder
            .tools([works("goes_on"), works("switched_off"), works("too_long")])
            .start()
            .await;
        let tools = [
            "{name: goes_on, timeout: 700ms}",
            "{name: switched_off, timeout: 700ms, max_timeout: 700ms}",
            "{name: too_long, timeout: 700ms, max_timeout: 1s}",
        ];
        let board = board(&yaml(&tools, &[dynamic("crm", &crm)])).await;
        let (done, off, late) = tokio::join!(
            call_quietly(&board, "goes_on"),
            call_quietly(&board, "switched_off"),
            call_quietly(&board, "too_long"),
        );
        assert!(done.result.is_ok(), "{:?}", done.result);
        let message = |report: RawReport| report.result.unwrap_err().error.message;
        assert_eq!(
            message(off),
            "tool 'switched_off' of MCP server 'crm' was running longer than its timeout of 700ms and was cancelled"
        );
        assert_eq!(
            message(late),
            "tool 'too_long' of MCP server 'crm' was running, with progress, longer than its max_timeout of 1s \
             and was cancelled"
        );
        end(&board).await;
    }
}

#[tokio::test]
async fn a_modern_server_hears_of_a_timeout_too() {
    let tools = [Tool::new("hangs").replies(Reply::Hang)];
    let crm = ScriptedServer::builder().modern().tools(tools).start().await;
    let board = board(&yaml(&["{name: hangs, timeout: 200ms}"], &[dynamic("crm", &crm)])).await;
    assert_eq!(failure(&board, "hangs", json!({})).await.kind, CallErrorKind::Timeout);
    until(|| crm.stats().running_calls == 0).await;
    end(&board).await;
}

#[tokio::test]
async fn waiting_for_the_tool_and_waiting_for_the_board_are_told_apart_from_running() {
    let crm =
        server([Tool::echo("narrow").sleeps(60_000), Tool::echo("wide").sleeps(60_000)]).await;
    let config = yaml_with(
        "max_concurrent: 2",
        &[
            "{name: narrow, max_instances: 1, timeout: 8s, queue_timeout: 150ms}",
            "{name: wide, max_instances: 5, timeout: 8s, queue_timeout: 150ms}",
        ],
        &[dynamic("crm", &crm)],
    );
    let board = board(&config).await;
    let mut running = JoinSet::new();
    spawn_call(&mut running, &board, request("narrow", json!({})));
    until(|| crm.stats().running_calls == 1).await;
    let report = call(&board, "narrow", json!({})).await;
    let error = report.result.unwrap_err();
    assert_eq!(error.kind, CallErrorKind::QueueTimeout);
    assert_eq!(
        error.message,
        "tool 'narrow' of MCP server 'crm' waited longer than its queue_timeout of 150ms and was not run: \
         all 1 of its max_instances are in use"
    );
    assert!(report.wait >= Duration::from_millis(150) && report.run.is_zero());

    spawn_call(&mut running, &board, request("wide", json!({})));
    until(|| crm.stats().running_calls == 2).await;
    let error = failure(&board, "wide", json!({})).await;
    assert_eq!(error.kind, CallErrorKind::QueueTimeout);
    assert_eq!(
        error.message,
        "tool 'wide' of MCP server 'crm' waited longer than its queue_timeout of 150ms and was not run: \
         all 2 slots of max_concurrent are in use"
    );
    assert_eq!(crm.stats().total_calls(), 2, "who only waited never reached the server");
    running.shutdown().await;
    assert_eq!(text(&board, "narrow", json!({"sleep_ms": 1})).await, r#"{"sleep_ms":1}"#);
    end(&board).await;
}

#[tokio::test]
async fn silence_runs_out_before_the_timeout_and_says_so() {
    let crm = server([Tool::echo("quiet").sleeps(60_000)]).await;
    let entry = "{name: quiet, timeout: 8s, inactivity_timeout: 200ms}";
    let board = board(&yaml(&[entry], &[dynamic("crm", &crm)])).await;
    let error = failure(&board, "quiet", json!({})).await;
    assert_eq!(error.kind, CallErrorKind::InactivityTimeout);
    assert_eq!(
        error.message,
        "tool 'quiet' of MCP server 'crm' was running but gave no sign of life for its inactivity_timeout \
         of 200ms and was cancelled"
    );
    until(|| crm.stats().cancelled.len() == 1 && crm.stats().running_calls == 0).await;
    end(&board).await;
}

#[tokio::test]
async fn progress_keeps_a_call_alive_and_is_passed_on() {
    let crm = server([Tool::echo("busy").sleeps(900).progress_every(50)]).await;
    let entry = "{name: busy, timeout: 8s, inactivity_timeout: 450ms}";
    let board = board(&yaml(&[entry], &[dynamic("crm", &crm)])).await;
    let (progress, mut signs) = mpsc::channel(64);
    let request = CallRequest { progress: Some(progress), ..request("busy", json!({})) };
    assert_eq!(answer(&board.call(request).await), "{}");
    let first = signs.recv().await.unwrap();
    assert_eq!((first.progress, first.message.as_deref()), (1.0, Some("under way")));
    assert!(signs.len() > 5, "{} signs", signs.len());
    end(&board).await;
}

#[tokio::test]
async fn progress_never_extends_the_longest_time() {
    let crm = server([Tool::echo("chatty").sleeps(60_000).progress_every(1)]).await;
    let entry = "{name: chatty, timeout: 400ms, max_timeout: 400ms, inactivity_timeout: 300ms}";
    let board = board(&yaml(&[entry], &[dynamic("crm", &crm)])).await;
    let before = Instant::now();
    let error = failure(&board, "chatty", json!({})).await;
    assert_eq!(error.kind, CallErrorKind::Timeout, "{error}");
    assert!(before.elapsed() < Duration::from_secs(3));
    end(&board).await;
}

/// Sleeps for as long as it is told.
#[derive(Debug)]
struct Sleeper;

impl LocalTool for Sleeper {
    fn descriptor(&self) -> ToolDescriptor {
        ToolDescriptor::named("sleeper")
    }

    fn run(&self, arguments: Map<String, Value>) -> BoxFuture<'static, ToolResult> {
        let pause = arguments.get("ms").and_then(Value::as_u64).unwrap_or(60_000);
        async move {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            ToolResult::text("awake")
        }
        .boxed()
    }
}

#[tokio::test]
async fn local_tools_obey_timeout_instances_and_queue() {
    let local_tools = LocalTools::built_in().with(Sleeper);
    let options = BoardOptions { local_tools, ..options().await };
    let entry = "{name: sleeper, max_instances: 1, timeout: 500ms, queue_timeout: 100ms}";
    let board = started(Board::start(plan(&yaml(&[entry], &[])), options, |_| {}).await);
    let mut tasks = JoinSet::new();
    for _ in 0..2 {
        spawn_call(&mut tasks, &board, request("sleeper", json!({})));
    }
    let mut messages = Vec::new();
    while let Some(report) = tasks.join_next().await {
        messages.push(report.unwrap().result.unwrap_err().message);
    }
    assert_eq!(
        messages,
        [
            "tool 'sleeper' (local tool) waited longer than its queue_timeout of 100ms and was not run: all 1 \
             of its max_instances are in use",
            "tool 'sleeper' (local tool) was running longer than its timeout of 500ms and was cancelled",
        ]
    );
    assert_eq!(text(&board, "sleeper", json!({"ms": 1})).await, "awake");
    end(&board).await;
}
