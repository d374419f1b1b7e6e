//! Boards in processes of their own that share slots over a database, and that are killed and paused: this test binary, started again.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_model::Secret;
use switchboard_runtime::{Board, BoardOptions};
use switchboard_store::{PostgresSettings, Store};
use switchboard_test_support::{PostgresDatabase, Reply, ScriptedServer, Tool, wait_until};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::support::{call, dynamic, options, plan, server, started, yaml};

const DATABASE: &str = "LENT_SLOTS_DATABASE";
const CONFIG: &str = "LENT_SLOTS_CONFIG";
/// `tool callers` pairs, with commas between them.
const LOAD: &str = "LENT_SLOTS_LOAD";
const NUMBER: &str = "LENT_SLOTS_NUMBER";
const LEASE: Duration = Duration::from_secs(10);

/// What a child does: run a board with callers, each of which calls again as soon as it has its answer. Started by the test
/// runner itself, it has no database and does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let variable = |name| std::env::var(name).ok();
    let (Some(url), Some(config), Some(load), Some(number)) =
        (variable(DATABASE), variable(CONFIG), variable(LOAD), variable(NUMBER))
    else {
        return;
    };
    let store = Store::connect(&PostgresSettings::new(Secret::new(url))).await.unwrap();
    let options = BoardOptions { store, ..options().await };
    let board = started(Board::start(plan(&config), options, |_| {}).await);
    let n: i64 = number.parse().unwrap();
    let mut callers = JoinSet::new();
    for entry in load.split(',') {
        let (tool, count) = entry.split_once(' ').unwrap();
        for _ in 0..count.parse::<usize>().unwrap() {
            callers.spawn(goes_on_calling(board.clone(), tool.to_owned(), n));
        }
    }
    callers.join_all().await;
}

async fn goes_on_calling(board: Arc<Board>, tool: String, n: i64) {
    loop {
        if call(&board, &tool, json!({"n": n})).await.result.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// A process with a board.
struct BoardProcess(Child);

impl BoardProcess {
    fn start(database: &PostgresDatabase, config: &str, load: &str, number: usize) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["lent_slots_processes::child", "--exact", "--nocapture"])
            .env(DATABASE, database.url())
            .env(CONFIG, config)
            .env(LOAD, load)
            .env(NUMBER, number.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args(["-s", signal, &self.0.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for BoardProcess {
    fn drop(&mut self) {
        // As a crash does (SIGKILL).
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

fn calls(crm: &ScriptedServer) -> [usize; 3] {
    let stats = crm.stats();
    [0, 1, 2].map(|board| stats.calls.iter().filter(|call| call.n == Some(board)).count())
}

#[tokio::test]
async fn a_killed_board_frees_its_slots_within_a_lease_and_the_limit_holds() {
    let database = PostgresDatabase::new();
    let crm = server([Tool::echo("find").sleeps(60)]).await;
    let config =
        yaml(&["{name: find, max_instances: 6, queue_timeout: 1m}"], &[dynamic("crm", &crm)]);
    let mut boards: Vec<_> =
        (0..3).map(|n| BoardProcess::start(&database, &config, "find 10", n)).collect();
    wait_until(LEASE, async || calls(&crm).iter().all(|calls| *calls > 5).then_some(())).await;
    let before = calls(&crm);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut made = calls(&crm);
    for (made, before) in made.iter_mut().zip(before) {
        *made -= before;
    }
    let total: usize = made.iter().sum();
    assert!(
        made.iter().all(|calls| calls * 3 * 10 >= total * 7),
        "each 70 % of its share: {made:?}"
    );

    let killed = Instant::now();
    drop(boards.remove(0));
    // Its last calls end at the server.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let all_used = async || (crm.stats().running_calls == 6).then_some(());
    wait_until(LEASE + Duration::from_secs(3), all_used).await;
    let took = killed.elapsed();
    assert!(took <= LEASE + Duration::from_secs(1), "{took:?}");
    assert_eq!(crm.stats().peak_of("find"), 6, "of three boards and a dead one");
}

#[tokio::test]
async fn a_paused_board_is_the_exception_but_not_for_a_tool_that_runs_once() {
    let database = PostgresDatabase::new();
    let crm = server(["long", "single"].map(|name| Tool::new(name).replies(Reply::Hang))).await;
    let entries = [
        "{name: long, max_instances: 2, timeout: 1m, queue_timeout: 1m}",
        "{name: single, max_instances: 1, timeout: 1m, queue_timeout: 1m}",
    ];
    let config = yaml(&entries, &[dynamic("crm", &crm)]);
    let paused = BoardProcess::start(&database, &config, "long 2,single 1", 0);
    wait_until(LEASE, async || (crm.stats().running_calls == 3).then_some(())).await;
    let _other = BoardProcess::start(&database, &config, "long 2,single 1", 1);
    paused.signal("STOP");
    // The server goes on with the calls of the paused board: nobody can tell it to stop.
    wait_until(LEASE + Duration::from_secs(5), async || (calls(&crm)[1] == 2).then_some(())).await;
    let stats = crm.stats();
    assert_eq!(stats.peak_of("long"), 4, "two of each board, as documented");
    assert_eq!(
        stats.peak_of("single"),
        1,
        "the slot stays with the paused board for the timeout, too"
    );
    // Awake again, it knows at once that its time is over.
    let before = calls(&crm)[0];
    paused.signal("CONT");
    wait_until(Duration::from_secs(5), async || {
        let stats = crm.stats();
        let ended =
            stats.cancelled.len() + stats.dropped_calls.len() + stats.closed_responses.len();
        (ended >= 3).then_some(())
    })
    .await;
    assert_eq!(calls(&crm)[0], before, "it begins nothing with slots that others have");
}
