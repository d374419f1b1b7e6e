//! Servers that sources name, on a running board.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_discovery::{Discovery, DiscoveryContext};
use switchboard_model::{FoundServer, HttpTransport, ServerState, SourceServers};
use switchboard_runtime::{Board, ConfigSource, LiveConfig, ReloadOutcome, follow_discovery};
use switchboard_test_support::{ScriptedServer, TempConfig, Tool, wait_until};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Level;

use crate::support::{
    Logs, PATIENCE, board, call, dynamic, end, names, revision, server, status, strict, text,
    until, yaml,
};

/// A configuration with this `discovery` section after the servers.
fn with_discovery(servers: &[String], discovery: &str) -> String {
    format!("{}  discovery: {discovery}\n", yaml(&[], servers))
}

async fn live(text: &str) -> (TempConfig, Arc<LiveConfig>) {
    let file = TempConfig::new(text);
    let source = ConfigSource::find(Some(file.path()), Vec::new());
    let loaded = source.load().unwrap();
    let config = LiveConfig::new(board(text).await, source, loaded);
    (file, config)
}

fn found(name: &str, url: &str) -> FoundServer {
    FoundServer {
        name: name.into(),
        url: url.parse().unwrap(),
        transport: HttpTransport::StreamableHttp,
        headers: BTreeMap::new(),
    }
}

fn of_file(servers: Vec<FoundServer>) -> Vec<SourceServers> {
    vec![SourceServers { source: "a".into(), is_file: true, servers }]
}

const SOURCE_A: &str = "{auto: false, sources: [{name: a, type: manifest}]}";

#[tokio::test]
async fn what_a_source_names_is_added_changed_and_removed_in_one_step_each() {
    let (own, one, two) = (
        server([Tool::echo("own")]).await,
        server([Tool::echo("x"), Tool::echo("y")]).await,
        server([Tool::echo("z")]).await,
    );
    let (_file, config) = live(&with_discovery(&[dynamic("own", &own)], SOURCE_A)).await;
    let board = config.board();
    let start = revision(board);

    let servers = || vec![found("Mail Tools", &one.url()), found("two", &two.url())];
    assert!(config.put_discovered(of_file(servers())).await);
    assert_eq!(revision(board), start + 1, "one step, however many servers");
    let mail = board.plan().servers[1].spec.name.to_string();
    assert!(mail.starts_with("Mail-Tools-"), "{mail}");
    let expected = [format!("{mail}.x"), format!("{mail}.y"), "two.z".into(), "own.own".into()];
    assert_eq!(names(board), expected);
    assert_eq!(text(board, "z", json!({})).await, "{}");
    let from = board.plan().servers[1].discovered.clone().unwrap();
    assert_eq!((from.source.as_str(), from.original_name.as_str()), ("a", "Mail Tools"));

    assert!(!config.put_discovered(of_file(servers())).await, "an unchanged refresh does nothing");
    assert_eq!(revision(board), start + 1);
    assert_eq!((one.stats().initialize_count, two.stats().initialize_count), (1, 1));

    assert!(config.put_discovered(of_file(vec![found("two", &one.url())])).await);
    assert_eq!((names(board).len(), revision(board)), (3, start + 2));
    assert!(config.put_discovered(Vec::new()).await);
    assert_eq!((names(board), revision(board)), (vec!["own.own".to_owned()], start + 3));
    assert_eq!(own.stats().initialize_count, 1, "servers of the file are not affected");
    end(board).await;
}

#[tokio::test]
async fn reloads_and_edits_keep_the_discovered_servers_and_the_file_wins() {
    let (own, one) = (server([Tool::echo("own")]).await, server([Tool::echo("x")]).await);
    let (file, config) = live(&with_discovery(&[dynamic("own", &own)], SOURCE_A)).await;
    let board = config.board();
    config.put_discovered(of_file(vec![found("one", &one.url())])).await;
    assert_eq!(config.reload().await, ReloadOutcome::Unchanged);

    let renamed = with_discovery(&[dynamic("other", &own)], SOURCE_A);
    file.rewrite(&renamed);
    assert_eq!(config.reload().await, ReloadOutcome::Applied);
    assert_eq!(names(board), ["one.x", "other.own"]);
    assert_eq!(one.stats().initialize_count, 1, "it stays connected");

    // The file names a server of its own `one`.
    file.rewrite(with_discovery(&[dynamic("one", &own)], SOURCE_A));
    assert_eq!(config.reload().await, ReloadOutcome::Applied);
    assert_eq!(names(board), ["one.own"]);
    assert_eq!(config.left_out()[0].reason, "the configuration file has a server 'one'");

    file.rewrite(renamed);
    assert_eq!(config.reload().await, ReloadOutcome::Applied);
    assert_eq!(names(board), ["one.x", "other.own"]);
    // Without the source its servers are gone, in the same step.
    file.rewrite(with_discovery(&[dynamic("other", &own)], "{auto: false}"));
    assert_eq!(config.reload().await, ReloadOutcome::Applied);
    assert_eq!((names(board), config.left_out().len()), (vec!["other.own".to_owned()], 0));
    end(board).await;
}

#[tokio::test]
async fn neither_a_dead_server_nor_a_strict_source_nor_a_violation_refuses_what_was_found() {
    let (own, one) = (server([Tool::echo("own")]).await, server([Tool::echo("x")]).await);
    let strict_source = "{auto: false, sources: [{name: a, type: manifest, mode: strict}]}";
    let text =
        format!("{}  discovery: {strict_source}\n", yaml(&["{name: own}"], &[strict("own", &own)]));
    let (_file, config) = live(&text).await;
    let board = config.board();
    // A tool that the strict server of the file may not have would refuse a new configuration.
    own.set_tools([Tool::echo("own"), Tool::echo("more")]);
    board.refresh();
    until(|| status(board, "own").offered == 2).await;
    let dead = found("dead", "http://127.0.0.1:1/mcp");
    assert!(config.put_discovered(of_file(vec![dead, found("one", &one.url())])).await);
    assert_eq!(names(board), ["own.own"], "a strict source admits only tools with an entry");
    assert_eq!(status(board, "one").state, ServerState::Ready);
    until(|| status(board, "dead").state == ServerState::Unavailable).await;
    end(board).await;
}

#[tokio::test]
async fn an_address_of_a_gateway_is_dialled_only_as_the_egress_rules_allow() {
    let one = server([Tool::echo("x")]).await;
    let text = with_discovery(&[], SOURCE_A);
    let (file, config) = live(&text).await;
    let board = config.board();
    let by_gateway = |url: &str| {
        vec![SourceServers { source: "a".into(), is_file: false, servers: vec![found("one", url)] }]
    };
    let logs = Logs::listen();
    assert!(!config.put_discovered(by_gateway(&one.url())).await);
    assert!(!config.put_discovered(by_gateway(&one.url())).await);
    logs.assert_once(Level::INFO, "a server of the source is left out");
    assert!(config.left_out()[0].reason.starts_with("the egress check refuses 127.0.0.1: "));
    // A name is checked when it is dialled.
    let by_name = one.url().replace("127.0.0.1", "localtest.localdomain-that-is-none.invalid");
    assert!(config.put_discovered(by_gateway(&by_name)).await);
    until(|| status(board, "one").state == ServerState::Unavailable).await;
    config.put_discovered(by_gateway(&one.url())).await;
    file.rewrite(format!("{text}  security: {{egress: {{allow: [127.0.0.1]}}}}\n"));
    assert_eq!(config.reload().await, ReloadOutcome::Applied);
    assert_eq!(names(board), ["one.x"]);
    // Under stricter rules the server is gone.
    file.rewrite(format!("{text}  security: {{egress: {{deny: [127.0.0.0/8]}}}}\n"));
    assert_eq!(config.reload().await, ReloadOutcome::Applied);
    assert_eq!(names(board), [""; 0]);
    end(board).await;
}

/// A board that follows the sources of its configuration.
struct Following {
    config: Arc<LiveConfig>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Following {
    async fn start(text: &str, directory: &Path) -> (TempConfig, Self) {
        let (file, config) = live(text).await;
        let context = DiscoveryContext::new(|_| None, directory.to_owned(), None);
        let discovery = Discovery::start(&config.board().plan().discovery, context);
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(follow_discovery(config.clone(), discovery, stop.clone()));
        (file, Self { config, stop, tasks })
    }

    fn board(&self) -> &Arc<Board> {
        self.config.board()
    }

    async fn end(self) {
        self.stop.cancel();
        self.tasks.close();
        tokio::time::timeout(PATIENCE, self.tasks.wait()).await.unwrap();
        end(self.board()).await;
    }
}

fn write_manifest(path: &Path, servers: &[(String, String)]) {
    let entries: Vec<Value> =
        servers.iter().map(|(name, url)| json!({"mcpServerName": name, "url": url})).collect();
    let fresh = path.with_extension("new");
    std::fs::write(&fresh, json!({"mcpServers": entries}).to_string()).unwrap();
    std::fs::rename(fresh, path).unwrap();
}

fn manifest_source(path: &Path, more: &str) -> String {
    format!(
        "{{auto: false, sources: [{{name: a, type: manifest, path: \"{}\", refresh: 50ms{more}}}]}}",
        path.display()
    )
}

#[tokio::test]
async fn a_manifest_is_followed_while_the_board_runs_and_its_faults_cost_nothing() {
    let (one, two) = (server([Tool::echo("x")]).await, server([Tool::echo("y")]).await);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.json");
    let text = with_discovery(&[], &manifest_source(&path, ""));
    // The board starts without the file.
    let (file, following) = Following::start(&text, directory.path()).await;
    let board = following.board().clone();
    let sources = || following.config.sources();
    until(|| sources().first().is_some_and(|it| it.state() == "failing")).await;

    write_manifest(&path, &[("one".into(), one.url())]);
    until(|| names(&board) == ["one.x"]).await;
    let before = revision(&board);
    for broken in ["{", "{}", r#"{"mcpServers": 5}"#, ""] {
        std::fs::write(&path, broken).unwrap();
        until(|| sources()[0].state() == "failing").await;
        assert_eq!((names(&board), revision(&board)), (vec!["one.x".to_owned()], before));
        write_manifest(&path, &[("one".into(), one.url())]);
        until(|| sources()[0].state() == "ok").await;
    }
    write_manifest(&path, &[("one".into(), one.url()), ("two".into(), two.url())]);
    until(|| names(&board) == ["one.x", "two.y"]).await;
    assert_eq!(revision(&board), before + 1);
    assert_eq!(one.stats().initialize_count, 1);

    // A reload that changes the source is followed too.
    file.rewrite(with_discovery(&[], &manifest_source(&path, ", prefix: team-")));
    assert_eq!(following.config.reload().await, ReloadOutcome::Applied);
    assert_eq!(names(&board), ["team-one.x", "team-two.y"]);
    following.end().await;
}

/// The resident memory of this process in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = status.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Servers that share one listener: each path is a server.
fn many(shared: &ScriptedServer, count: usize, dead: usize) -> Vec<(String, String)> {
    let url = |n: usize| {
        if n < dead {
            format!("http://127.0.0.1:1/mcp?n={n}")
        } else {
            format!("{}?n={n}", shared.url())
        }
    };
    (0..count).map(|n| (format!("s{n}"), url(n))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_servers_ten_of_them_dead_refreshed_all_the_time_under_load() {
    const SERVERS: usize = 500;
    const DEAD: usize = 10;
    const CHANGES: u64 = 3;
    let shared = server([Tool::echo("t")]).await;
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("m.json");
    let mut servers = many(&shared, SERVERS, DEAD);
    write_manifest(&path, &servers);
    let text = with_discovery(&[], &manifest_source(&path, ""));
    let (_file, following) = Following::start(&text, directory.path()).await;
    let board = following.board().clone();
    wait_until(Duration::from_mins(1), async || {
        (names(&board).len() == SERVERS - DEAD).then_some(())
    })
    .await;
    // Late servers may have come in steps of their own.
    let settled = revision(&board);

    let (is_over, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut callers = JoinSet::new();
    for caller in 0..2 {
        let (board, is_over, calls) = (board.clone(), is_over.clone(), calls.clone());
        callers.spawn(async move {
            let mut n = caller;
            while !is_over.load(Ordering::Relaxed) {
                // Not among those that are added and removed below.
                let tool = format!("s{}.t", DEAD + n % (SERVERS - DEAD));
                let report = call(&board, &tool, json!({})).await;
                assert!(report.result.is_ok(), "{tool}: {:?}", report.result);
                calls.fetch_add(1, Ordering::Relaxed);
                n += 7;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
    }
    for change in 0..CHANGES {
        let extra = (format!("extra{change}"), format!("{}?extra={change}", shared.url()));
        servers.push(extra);
        write_manifest(&path, &servers);
        let expected = settled + change + 1;
        wait_until(Duration::from_secs(20), async || (revision(&board) >= expected).then_some(()))
            .await;
        assert_eq!(names(&board).len(), SERVERS - DEAD + servers.len() - SERVERS);
        assert_eq!(revision(&board), expected, "one step for each change");
    }
    // Unchanged refreshes, about 80 of them: what one of them left behind for each server would add up.
    let before = resident();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let grown = resident().saturating_sub(before);
    assert_eq!(revision(&board), settled + CHANGES);
    is_over.store(true, Ordering::Relaxed);
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
    assert!(calls.load(Ordering::Relaxed) > 100, "{calls:?}");
    println!(
        "{} calls, none failed; grown by {grown} of {before} bytes",
        calls.load(Ordering::Relaxed)
    );
    assert!(grown < 8 * 1024 * 1024, "grown by {grown} bytes");
    following.end().await;
}
