//! A new configuration while the board serves.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;
use sqlx::{Connection as _, SqliteConnection};
use switchboard_model::ServerState;
use switchboard_runtime::{Board, ConfigSource, LiveConfig, Memory, ReloadOutcome};
use switchboard_test_support::{Fault, Reply, ScriptedServer, TempConfig, Tool, free_port};
use tokio::task::JoinSet;

use crate::support::{
    answer, board, board_on, dynamic, dynamic_at, end, names, plan, refused, request, revision,
    server, spawn_call, status, strict, text, until, with, yaml, yaml_with,
};

fn live(board: &Arc<Board>, path: PathBuf) -> Arc<LiveConfig> {
    let source = ConfigSource::find(Some(path), Vec::new());
    let loaded = source.load().unwrap();
    LiveConfig::new(board.clone(), source, loaded)
}

#[tokio::test]
async fn a_server_is_added_changed_and_removed_and_the_others_stay_connected() {
    let (a, b, c) = (
        server([Tool::echo("a")]).await,
        server([Tool::echo("b")]).await,
        server([Tool::echo("c")]).await,
    );
    let board = board(&yaml(&[], &[dynamic("a", &a)])).await;
    let start = revision(&board);

    board.apply(plan(&yaml(&[], &[dynamic("a", &a), dynamic("x", &b)]))).await.unwrap();
    assert_eq!((names(&board), revision(&board)), (vec!["a.a".into(), "x.b".into()], start + 1));
    assert_eq!(text(&board, "b", json!({})).await, "{}");

    board.apply(plan(&yaml(&[], &[dynamic("a", &a), dynamic("x", &c)]))).await.unwrap();
    assert_eq!((names(&board), revision(&board)), (vec!["a.a".into(), "x.c".into()], start + 2));
    assert_eq!(text(&board, "c", json!({})).await, "{}");
    until(|| b.open_sessions() == 0 && b.open_streams() == 0).await;

    board.apply(plan(&yaml(&[], &[dynamic("a", &a)]))).await.unwrap();
    assert_eq!((names(&board), revision(&board)), (vec!["a.a".to_owned()], start + 3));
    until(|| c.open_sessions() == 0 && c.open_streams() == 0).await;
    let counts = [&a, &b, &c].map(|server| server.stats().initialize_count);
    assert_eq!(counts, [1, 1, 1]);
    assert_eq!(board.plan().servers.len(), 1);
    end(&board).await;
}

#[tokio::test]
async fn policy_changes_need_no_reconnect_and_are_one_step() {
    let crm = server([Tool::echo("a"), Tool::echo("b")]).await;
    let board = board(&yaml(&[], &[dynamic("crm", &crm)])).await;
    let start = revision(&board);
    for (step, config) in [
        yaml(&["{name: a, max_instances: 1}"], &[dynamic("crm", &crm)]),
        yaml(&["{name: a}", "{name: b}"], &[strict("crm", &crm)]),
        yaml(&[], &[with(&dynamic("crm", &crm), "tool_denylist: [b]")]),
        yaml(&["{name: a, description: other}"], &[dynamic("crm", &crm)]),
    ]
    .iter()
    .enumerate()
    {
        board.apply(plan(config)).await.unwrap();
        assert_eq!(revision(&board), start + 1 + step as u64, "{config}");
    }
    assert_eq!(crm.stats().initialize_count, 1);
    end(&board).await;
}

#[tokio::test]
async fn a_required_server_that_cannot_be_reached_refuses_the_whole_configuration() {
    let (a, b) = (server([Tool::echo("a")]).await, server([Tool::echo("b")]).await);
    let board = board(&yaml(&[], &[dynamic("a", &a)])).await;
    let start = revision(&board);
    let gone = dynamic_at("gone", &format!("http://127.0.0.1:{}/mcp", free_port()));
    let next = yaml(&["{name: a, max_instances: 1}"], &[dynamic("b", &b), gone]);
    let message = refused(board.apply(plan(&next)).await);
    assert!(message.starts_with("Failed to connect to MCP server 'gone' at "), "{message}");
    assert!(message.contains("Connection refused"), "{message}");
    assert_eq!((names(&board), revision(&board)), (vec!["a.a".to_owned()], start));
    assert_eq!(board.catalog().tools()[0].limits.max_instances, 5);
    assert_eq!(text(&board, "a", json!({})).await, "{}");
    until(|| b.open_sessions() == 0 && b.open_streams() == 0).await;
    assert_eq!((a.stats().initialize_count, b.stats().initialize_count), (1, 1));
    end(&board).await;
}

#[tokio::test]
async fn a_strict_violation_refuses_the_whole_configuration() {
    let (a, b) = (server([Tool::echo("a")]).await, server([Tool::echo("b")]).await);
    let board = board(&yaml(&[], &[dynamic("a", &a)])).await;
    let start = revision(&board);
    let next = yaml(&[], &[strict("a", &a), strict("b", &b)]);
    let message = refused(board.apply(plan(&next)).await);
    assert!(message.contains("Tool 'a' from MCP server 'a' is not configured"), "{message}");
    assert!(message.contains("Tool 'b' from MCP server 'b' is not configured"), "{message}");
    assert_eq!((names(&board), revision(&board)), (vec!["a.a".to_owned()], start));
    assert_eq!(text(&board, "a", json!({})).await, "{}");
    until(|| b.open_sessions() == 0 && b.open_streams() == 0).await;
    assert_eq!(a.stats().initialize_count, 1);
    end(&board).await;
}

#[tokio::test]
async fn a_server_that_is_away_and_not_required_may_be_added_and_a_lost_one_is_no_reason_to_refuse()
{
    let (a, b) = (server([Tool::echo("a")]).await, server([Tool::echo("b")]).await);
    let board = board(&yaml(&[], &[dynamic("a", &a)])).await;
    a.stop().await;
    board.refresh();
    until(|| status(&board, "a").state == ServerState::Unavailable).await;
    let away = ScriptedServer::builder().fault(Fault::Refuse).start().await;
    let away = with(&dynamic("away", &away), "required: false");
    board
        .apply(plan(&yaml(&[], &[dynamic("a", &a), dynamic("b", &b), away])))
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(names(&board), ["a.a", "b.b"]);
    assert_eq!(status(&board, "away").state, ServerState::Unavailable);
    end(&board).await;
}

#[tokio::test]
async fn a_running_call_outlives_the_removal_of_its_server() {
    let crm = server([Tool::echo("slow").sleeps(700)]).await;
    let board = board(&yaml(&["{name: sum_numbers}"], &[dynamic("crm", &crm)])).await;
    let mut tasks = JoinSet::new();
    spawn_call(&mut tasks, &board, request("slow", json!({})));
    until(|| crm.stats().running_calls == 1).await;
    board.apply(plan(&yaml(&["{name: sum_numbers}"], &[]))).await.unwrap();
    assert_eq!(names(&board), ["local.sum_numbers"]);
    assert_eq!(answer(&tasks.join_next().await.unwrap().unwrap()), "{}");
    until(|| crm.open_sessions() == 0).await;
    end(&board).await;
}

#[tokio::test]
async fn calls_that_wait_for_a_slot_outlive_a_change_of_their_server() {
    let crm = server([Tool::echo("slow").sleeps(150)]).await;
    let entry = "{name: slow, max_instances: 1, queue_timeout: 1m}";
    let board = board(&yaml(&[entry], &[dynamic("crm", &crm)])).await;
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        spawn_call(&mut tasks, &board, request("slow", json!({})));
    }
    until(|| crm.stats().running_calls == 1).await;
    // Another deadline is another spec, so the server is connected anew.
    let changed = with(&dynamic("crm", &crm), "connect_timeout: 4s");
    board.apply(plan(&yaml(&[entry], &[changed]))).await.unwrap();
    assert_eq!(crm.stats().initialize_count, 2);
    while let Some(report) = tasks.join_next().await {
        assert_eq!(answer(&report.unwrap()), "{}");
    }
    assert_eq!(crm.stats().peak_calls, 1, "old and new share the slots of the tool");
    until(|| crm.open_sessions() == 1).await;
    end(&board).await;
}

#[tokio::test]
async fn a_call_that_waits_for_a_slot_is_refused_when_its_tool_is_removed() {
    let crm = server([Tool::echo("slow").sleeps(700), Tool::echo("stays")]).await;
    let entry = "{name: slow, max_instances: 1, queue_timeout: 1m}";
    let board = board(&yaml(&[entry], &[dynamic("crm", &crm)])).await;
    let mut tasks = JoinSet::new();
    spawn_call(&mut tasks, &board, request("slow", json!({})));
    until(|| crm.stats().running_calls == 1).await;
    let mut waiting = std::pin::pin!(board.call(request("slow", json!({}))));
    assert!(futures::poll!(&mut waiting).is_pending());
    let without = with(&dynamic("crm", &crm), "tool_denylist: [slow]");
    board.apply(plan(&yaml(&[], &[without]))).await.unwrap();
    assert_eq!(answer(&tasks.join_next().await.unwrap().unwrap()), "{}");
    let error = waiting.await.result.unwrap_err();
    assert_eq!(
        error.message,
        "tool 'slow' of MCP server 'crm' was not called: the tool was removed while the call waited for a slot"
    );
    assert_eq!(crm.stats().total_calls(), 1);
    end(&board).await;
}

#[tokio::test]
async fn a_locked_store_holds_up_no_configuration_and_is_written_to_later() {
    let directory = tempfile::tempdir().unwrap();
    let (a, b) = (server([Tool::echo("a")]).await, server([Tool::echo("b")]).await);
    let both = yaml(&[], &[dynamic("a", &a), dynamic("b", &b)]);
    let board = board_on(directory.path(), Memory::Keep, &both).await;
    let start = revision(&board);

    let file = directory.path().join("switchboard.db");
    let mut writer = SqliteConnection::connect(&file.to_string_lossy()).await.unwrap();
    sqlx::query("BEGIN IMMEDIATE").execute(&mut writer).await.unwrap();
    let applied = board.apply(plan(&yaml(&[], &[dynamic("b", &b)])));
    tokio::time::timeout(Duration::from_secs(4), applied).await.expect("in time").unwrap();
    assert_eq!((names(&board), revision(&board)), (vec!["b.b".to_owned()], start + 1));
    sqlx::query("COMMIT").execute(&mut writer).await.unwrap();
    writer.close().await.unwrap();
    end(&board).await;

    let board = board_on(directory.path(), Memory::Keep, &yaml(&[], &[dynamic("b", &b)])).await;
    assert_eq!(revision(&board), start + 1, "the revision was written");
    end(&board).await;
}

#[tokio::test]
async fn a_change_whose_caller_leaves_is_taken_whole_or_not_at_all() {
    let (a, b) = (server([Tool::echo("a")]).await, server([Tool::echo("b")]).await);
    let slow = ScriptedServer::builder().fault(Fault::HangAtConnect).start().await;
    let board = board(&yaml(&[], &[dynamic("a", &a)])).await;
    {
        let next = plan(&yaml(&[], &[dynamic("b", &b), dynamic("slow", &slow)]));
        let applying = board.apply(next);
        tokio::pin!(applying);
        tokio::select! {
            _ = &mut applying => panic!("one server hangs"),
            () = until(|| b.stats().list_count == 1) => {}
        }
    }
    until(|| b.open_sessions() == 0 && b.open_streams() == 0).await;
    assert_eq!(names(&board), ["a.a"]);
    board.apply(plan(&yaml(&[], &[dynamic("b", &b)]))).await.unwrap();
    assert_eq!(names(&board), ["b.b"]);
    end(&board).await;
}

#[tokio::test]
async fn a_file_is_taken_over_refused_or_found_unchanged() {
    let crm = server([Tool::echo("a")]).await;
    let config = TempConfig::new(yaml(&[], &[dynamic("crm", &crm)]));
    let board = board(&yaml(&[], &[dynamic("crm", &crm)])).await;
    let live = live(&board, config.path());
    assert_eq!(live.reload().await, ReloadOutcome::Unchanged);

    config.rewrite(yaml(&["{name: sum_numbers}"], &[dynamic("crm", &crm)]));
    assert_eq!(live.reload().await, ReloadOutcome::Applied);
    assert_eq!(names(&board), ["local.sum_numbers", "crm.a"]);
    let start = revision(&board);

    for (broken, said) in [
        ("switchboard: {toolbox: {max_concurrent: 0}}".to_owned(), "max_concurrent"),
        ("switchboard: [".to_owned(), "switchboard.yaml"),
        (String::new(), "switchboard"),
        (yaml(&[], &[strict("crm", &crm)]), "Tool 'a' from MCP server 'crm' is not configured"),
    ] {
        config.rewrite(&broken);
        match live.reload().await {
            ReloadOutcome::Refused(reason) => assert!(reason.contains(said), "{reason}"),
            other => panic!("{other:?} for {broken}"),
        }
        assert_eq!((names(&board).len(), revision(&board)), (2, start));
    }
    std::fs::remove_file(config.path()).unwrap();
    assert!(matches!(live.reload().await, ReloadOutcome::Refused(_)));
    assert_eq!(text(&board, "a", json!({})).await, "{}");
    assert_eq!(crm.stats().initialize_count, 1);
    end(&board).await;
}

/// Callers that go on until they are told to stop; what fails is counted and shown.
struct Load {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    tasks: JoinSet<Vec<String>>,
}

impl Load {
    fn start(board: &Arc<Board>, callers: &[(&'static str, serde_json::Value)]) -> Self {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut tasks = JoinSet::new();
        for (tool, arguments) in callers.iter().cloned() {
            let (board, stop, done) = (board.clone(), stop.clone(), done.clone());
            tasks.spawn(async move {
                let mut failed = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let report = board.call(request(tool, arguments.clone())).await;
                    done.fetch_add(1, Ordering::Relaxed);
                    if let Err(error) = report.result {
                        failed.push(error.message);
                    }
                    // A local call never waits; the others want a turn too.
                    tokio::task::yield_now().await;
                }
                failed
            });
        }
        Self { stop, done, tasks }
    }

    fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    async fn end(mut self) -> (usize, Vec<String>) {
        self.stop.store(true, Ordering::Relaxed);
        let mut failed = Vec::new();
        while let Some(failures) = self.tasks.join_next().await {
            failed.extend(failures.unwrap());
        }
        (self.done.load(Ordering::Relaxed), failed)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_while_configurations_come_and_go() {
    const CALLS: usize = 10_000;
    const CALLS_UPSTREAM: usize = 1_500;
    let (stays, moves) = (server([Tool::echo("stays")]).await, server([Tool::echo("moves")]).await);
    let comes = server([Tool::new("comes").replies(Reply::Text("hello".into()))]).await;
    let stays_entry = dynamic("stays", &stays);
    let config = |step: usize| {
        let moving =
            with(&dynamic("moves", &moves), &format!("connect_timeout: {}s", 4 + step % 2));
        let mut servers = vec![stays_entry.clone(), moving];
        if step.is_multiple_of(3) {
            servers.push(dynamic("comes", &comes));
        }
        let entry = format!("{{name: stays, max_instances: {}, queue_timeout: 1m}}", 2 + step % 5);
        let toolbox = format!("max_concurrent: {}", 8 + step % 4);
        yaml_with(&toolbox, &[&entry, "{name: sum_numbers}"], &servers)
    };
    let file = TempConfig::new(config(0));
    let board = board(&config(0)).await;
    let live = live(&board, file.path());
    let sum = ("sum_numbers", json!({"a": 1, "b": 2}));
    let callers = [
        ("stays", json!({"n": 1})),
        ("stays", json!({"n": 2})),
        ("stays", json!({"n": 3})),
        ("moves.moves", json!({"n": 4})),
        ("moves", json!({"n": 5})),
        sum.clone(),
        sum.clone(),
        sum.clone(),
        sum.clone(),
        sum,
    ];
    let load = Load::start(&board, &callers);
    let mut step = 0;
    let upstream = || stays.stats().total_calls() + moves.stats().total_calls();
    // However fast the calls are, there are enough configurations for them to meet, and however slow servers are
    // beside local tools, enough calls of theirs.
    while load.done() < CALLS || step <= 10 || upstream() <= CALLS_UPSTREAM {
        step += 1;
        assert!(step < 1_000, "{} of {} calls went upstream", upstream(), load.done());
        match step % 4 {
            0 => {
                // A file that is broken for a moment, and one that an editor left beside it.
                file.rewrite("switchboard: {toolbox: [");
                file.file(".switchboard.yaml.swp", "nonsense");
                assert!(matches!(live.reload().await, ReloadOutcome::Refused(_)));
            }
            1 => board.refresh(),
            _ => {}
        }
        file.rewrite(config(step));
        let outcome = live.reload().await;
        assert!(
            matches!(outcome, ReloadOutcome::Applied | ReloadOutcome::Unchanged),
            "{outcome:?}"
        );
        let so_far = load.done();
        until(|| load.done() >= so_far + 150).await;
    }
    let (done, failed) = load.end().await;
    assert!(failed.is_empty(), "{} of {done} failed: {:?}", failed.len(), failed.first());
    assert!(step > 10, "{step} configurations");
    assert_eq!(stays.stats().initialize_count, 1, "what did not change stays connected");
    assert!(moves.stats().initialize_count > 5);
    board.shutdown(Duration::from_secs(5)).await;
}
