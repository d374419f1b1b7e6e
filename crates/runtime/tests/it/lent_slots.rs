//! Boards that share a `PostgreSQL` database, and with it the slots of their tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_model::{CallErrorKind, Secret};
use switchboard_runtime::{Board, BoardOptions};
use switchboard_store::{PostgresSettings, SlotTrade, Store};
use switchboard_test_support::{
    PostgresCluster, PostgresDatabase, Reply, ScriptedServer, Tool, wait_until,
};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::support::{
    PATIENCE, call, dynamic, end, failure, options, plan, request, server, spawn_call, started,
    text, until, yaml,
};

async fn store(url: &str) -> Store {
    Store::connect(&PostgresSettings::new(Secret::new(url))).await.unwrap()
}

async fn board_at(url: &str, yaml: &str) -> Arc<Board> {
    let options = BoardOptions { store: store(url).await, ..options().await };
    started(Board::start(plan(yaml), options, |_| {}).await)
}

async fn boards(count: usize, url: &str, yaml: &str) -> Vec<Arc<Board>> {
    let mut boards = Vec::new();
    for _ in 0..count {
        boards.push(board_at(url, yaml).await);
    }
    boards
}

fn config(entry: &str, crm: &ScriptedServer) -> String {
    yaml(&[entry], &[dynamic("crm", crm)])
}

/// Callers at boards, each of which calls again as soon as it has its answer; `n` is the number of the board.
async fn load(boards: &[Arc<Board>], callers: &[usize], time: Duration) {
    let goes_on = Arc::new(AtomicBool::new(true));
    let mut tasks = JoinSet::new();
    for (n, (board, callers)) in boards.iter().zip(callers).enumerate() {
        for _ in 0..*callers {
            let (board, goes_on) = (board.clone(), goes_on.clone());
            tasks.spawn(async move {
                while goes_on.load(Ordering::Relaxed) {
                    text(&board, "find", json!({"n": n})).await;
                }
            });
        }
    }
    tokio::time::sleep(time).await;
    goes_on.store(false, Ordering::Relaxed);
    tasks.join_all().await;
}

fn calls_of(crm: &ScriptedServer, board: i64) -> usize {
    crm.stats().calls.iter().filter(|call| call.n == Some(board)).count()
}

#[tokio::test]
async fn three_boards_keep_one_limit_and_share_it() {
    let database = PostgresDatabase::new();
    let crm = server([Tool::echo("find").sleeps(40)]).await;
    let config = config("{name: find, max_instances: 6, queue_timeout: 1m}", &crm);
    let boards = boards(3, database.url(), &config).await;
    // The first one has all slots before the others come.
    load(&boards[..1], &[12], Duration::from_millis(500)).await;
    let alone = calls_of(&crm, 0);
    load(&boards, &[30, 12, 12], Duration::from_secs(4)).await;
    let calls = [calls_of(&crm, 0) - alone, calls_of(&crm, 1), calls_of(&crm, 2)];
    assert_eq!(crm.stats().peak_of("find"), 6, "of three boards");
    let total: usize = calls.iter().sum();
    // Six slots for 4 s with calls of 40 ms are 600 calls, on a machine that does nothing else.
    assert!(total > 200, "{calls:?}");
    assert!(
        calls.iter().all(|calls| calls * 3 * 10 >= total * 7),
        "each 70 % of its share: {calls:?}"
    );
    for board in &boards {
        end(board).await;
    }
    let left = store(database.url()).await.slot_holders().await.unwrap();
    assert!(left.is_empty(), "they left in order: {left:?}");
}

#[tokio::test]
async fn one_slot_travels_between_boards() {
    let database = PostgresDatabase::new();
    let crm = server([Tool::echo("find").sleeps(5)]).await;
    let config = config("{name: find, max_instances: 1, queue_timeout: 1m}", &crm);
    let boards = boards(3, database.url(), &config).await;
    load(&boards, &[2, 2, 2], Duration::from_secs(4)).await;
    assert_eq!(crm.stats().peak_of("find"), 1);
    let calls = [0, 1, 2].map(|board| calls_of(&crm, board));
    let total: usize = calls.iter().sum();
    assert!(total > 60 && calls.iter().all(|calls| calls * 3 * 10 >= total * 5), "{calls:?}");
    for board in &boards {
        end(board).await;
    }
}

#[tokio::test]
async fn calls_with_a_free_slot_ask_nobody_and_slots_go_back_when_idle() {
    let database = PostgresDatabase::new();
    let crm = server([Tool::echo("find")]).await;
    let board = board_at(database.url(), &config("{name: find, max_instances: 6}", &crm)).await;
    let trades = || -> u64 {
        let counted = database.execute("SELECT coalesce(sum(trades), 0) FROM slot_tools");
        counted.parse().unwrap()
    };
    text(&board, "find", json!({})).await;
    let (before, began) = (trades(), Instant::now());
    for _ in 0..300 {
        text(&board, "find", json!({})).await;
    }
    let took = began.elapsed();
    // It tells its numbers twice a second, whatever it does.
    let expected = 2 + u64::try_from(took.as_millis()).unwrap() / 400;
    assert!(trades() - before <= expected, "{} trades in {took:?}", trades() - before);
    wait_until(PATIENCE, async || {
        board.store().slot_holders().await.unwrap().is_empty().then_some(())
    })
    .await;
    let idle = trades();
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!(trades(), idle, "an idle tool costs nothing");
    text(&board, "find", json!({})).await;
    end(&board).await;
}

#[tokio::test]
async fn a_rate_is_one_over_all_boards() {
    let database = PostgresDatabase::new();
    let crm = server([Tool::echo("find")]).await;
    let boards = boards(3, database.url(), &config("{name: find, rate: 6/day}", &crm)).await;
    let mut outcomes = Vec::new();
    for n in 0..12 {
        outcomes.push(call(&boards[n % 3], "find", json!({"n": n})).await.result);
    }
    let refused: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    assert_eq!((crm.stats().total_calls(), refused.len()), (6, 6));
    assert!(refused.iter().all(|error| error.kind == CallErrorKind::RateLimited), "{refused:?}");
    for board in &boards {
        end(board).await;
    }
}

#[tokio::test]
async fn the_slots_of_a_dead_board_come_free_with_its_lease() {
    let database = PostgresDatabase::new();
    let crm = server([Tool::echo("find")]).await;
    // Another board had all slots when its machine lost power.
    let dead = store(database.url()).await;
    let lease = Duration::from_secs(2);
    dead.renew_replica("dead", "another machine", lease).await.unwrap();
    let all = SlotTrade {
        tool: "crm.find",
        board: "dead",
        turn: 1,
        max: 6,
        held: 0,
        busy: 0,
        waiting: 6,
        waited: Some(Duration::ZERO),
        spare: 0,
        kept: Duration::ZERO,
        lease,
    };
    assert_eq!(dead.trade_slots(&all).await.unwrap().unwrap().loan.held, 6);
    let began = Instant::now();
    let entry = "{name: find, max_instances: 6, queue_timeout: 8s}";
    let board = board_at(database.url(), &config(entry, &crm)).await;
    text(&board, "find", json!({})).await;
    let took = began.elapsed();
    assert!(
        took > Duration::from_millis(1500) && took < lease + Duration::from_secs(2),
        "{took:?}"
    );
    end(&board).await;
}

#[tokio::test]
async fn without_its_database_a_board_ends_its_calls_before_others_get_its_slots() {
    let cluster = PostgresCluster::start();
    let crm = server([Tool::new("stuck").replies(Reply::Hang), Tool::echo("find")]).await;
    let config = yaml(
        &["{name: stuck, max_instances: 2, timeout: 1m}", "{name: find, queue_timeout: 20s}"],
        &[dynamic("crm", &crm)],
    );
    let board = board_at(&cluster.url(), &config).await;
    let mut tasks = JoinSet::new();
    spawn_call(&mut tasks, &board, request("stuck", json!({})));
    until(|| crm.stats().running_calls == 1).await;
    text(&board, "find", json!({})).await;
    let began = Instant::now();
    cluster.stop("immediate");
    text(&board, "find", json!({})).await;
    let cut = tasks.join_next().await.unwrap().unwrap().result.unwrap_err();
    let took = began.elapsed();
    assert_eq!(cut.kind, CallErrorKind::Cancelled);
    assert!(cut.message.contains("could not reach its database"), "{cut}");
    assert!(took > Duration::from_secs(4) && took < Duration::from_secs(10), "{took:?}");
    let refused = failure(&board, "find", json!({})).await;
    assert_eq!(refused.kind, CallErrorKind::Unavailable);
    assert!(refused.message.contains("cannot reach its database"), "{refused}");
    cluster.start_again();
    wait_until(Duration::from_secs(20), async || {
        call(&board, "find", json!({})).await.result.is_ok().then_some(())
    })
    .await;
    end(&board).await;
}
