//! Slots of tools, lent to boards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_model::SlotLoan;
use switchboard_store::{SlotHolder, SlotTrade, Store, TradedSlots};
use tokio::task::JoinSet;

use super::database::{Database, new_store};

const LEASE: Duration = Duration::from_mins(1);

/// A board with nothing, that wants nothing.
fn trade(board: &str, turn: i64, max: u32) -> SlotTrade<'_> {
    SlotTrade {
        tool: "crm.find",
        board,
        turn,
        max,
        held: 0,
        busy: 0,
        waiting: 0,
        waited: None,
        spare: 0,
        kept: Duration::ZERO,
        lease: LEASE,
    }
}

fn waits(trade: SlotTrade<'_>, waiting: u32) -> SlotTrade<'_> {
    SlotTrade { waiting, waited: Some(Duration::from_millis(5)), ..trade }
}

fn runs(trade: SlotTrade<'_>, busy: u32) -> SlotTrade<'_> {
    SlotTrade { held: busy, busy, ..trade }
}

async fn board(store: &Store, id: &str) {
    store.renew_replica(id, id, LEASE).await.unwrap();
}

async fn traded(store: &Store, trade: SlotTrade<'_>) -> TradedSlots {
    store.trade_slots(&trade).await.unwrap().unwrap()
}

async fn lent(store: &Store, trade: SlotTrade<'_>) -> (u32, u32) {
    let SlotLoan { held, target } = traded(store, trade).await.loan;
    (held, target)
}

#[tokio::test]
async fn a_board_with_too_much_gives_back_before_another_gets_it() {
    let store = new_store().await;
    board(&store, "a").await;
    board(&store, "b").await;
    assert_eq!(lent(&store, waits(trade("a", 1, 6), 30)).await, (6, 6));
    let first = traded(&store, waits(trade("b", 1, 6), 2)).await;
    assert_eq!(first.loan, SlotLoan { held: 0, target: 2 });
    assert!(first.others_wait && first.is_live && first.closed_for.is_zero());
    let full = traded(&store, runs(waits(trade("a", 2, 6), 24), 6)).await;
    assert_eq!(full.loan, SlotLoan { held: 6, target: 4 });
    assert!(full.others_wait, "so it gives back what comes free");
    assert_eq!(lent(&store, runs(waits(trade("a", 3, 6), 24), 5)).await, (5, 4));
    assert_eq!(lent(&store, waits(trade("b", 2, 6), 2)).await, (1, 2));
    assert_eq!(lent(&store, runs(waits(trade("a", 4, 6), 24), 4)).await, (4, 4));
    assert_eq!(lent(&store, runs(waits(trade("b", 3, 6), 1), 1)).await, (2, 2));
    let holder = |board: &str, held, busy, waiting| SlotHolder {
        tool: "crm.find".into(),
        board: board.into(),
        name: board.into(),
        held,
        busy,
        waiting,
        is_live: true,
    };
    let expected = [holder("a", 4, 4, 24), holder("b", 2, 1, 1)];
    assert_eq!(store.slot_holders().await.unwrap(), expected);
}

#[tokio::test]
async fn what_a_silent_board_held_comes_free_after_its_lease_or_later() {
    let store = new_store().await;
    board(&store, "a").await;
    board(&store, "b").await;
    assert_eq!(lent(&store, waits(trade("a", 1, 2), 2)).await, (2, 2));
    let long = SlotTrade { kept: LEASE, ..waits(trade("a", 1, 1), 1) };
    assert_eq!(lent(&store, SlotTrade { tool: "crm.write", ..long }).await, (1, 1));
    store.renew_replica("a", "a", Duration::ZERO).await.unwrap();
    assert_eq!(lent(&store, waits(trade("b", 1, 2), 2)).await, (2, 2));
    let other = SlotTrade { tool: "crm.write", ..waits(trade("b", 1, 1), 1) };
    assert_eq!(lent(&store, other).await, (0, 0), "nobody knows whether its call still runs");
    let holders = store.slot_holders().await.unwrap();
    let silent: Vec<_> = holders.iter().filter(|holder| !holder.is_live).collect();
    assert_eq!((silent.len(), silent[0].tool.as_str(), silent[0].held), (1, "crm.write", 1));
    // It comes back: what it held is gone.
    let late = traded(&store, runs(trade("a", 2, 2), 2)).await;
    assert_eq!((late.loan.held, late.is_live), (0, false));
    board(&store, "a").await;
    let late = traded(&store, runs(trade("a", 3, 2), 2)).await;
    assert_eq!((late.loan.held, late.is_live), (0, true), "others have it now");
}

#[tokio::test]
async fn a_board_that_leaves_in_order_leaves_everything() {
    let store = new_store().await;
    board(&store, "a").await;
    board(&store, "b").await;
    let kept = SlotTrade { kept: LEASE, ..waits(trade("a", 1, 1), 1) };
    assert_eq!(lent(&store, kept).await, (1, 1));
    store.remove_replica("a").await.unwrap();
    assert_eq!(lent(&store, waits(trade("b", 1, 1), 1)).await, (1, 1));
    let gone = traded(&store, waits(trade("nobody", 1, 1), 1)).await;
    assert_eq!((gone.loan.held, gone.is_live), (0, false));
}

#[tokio::test]
async fn a_late_trade_changes_nothing_and_a_wrong_claim_gives_nothing() {
    let store = new_store().await;
    board(&store, "a").await;
    board(&store, "b").await;
    assert_eq!(lent(&store, waits(trade("a", 2, 4), 3)).await, (3, 3));
    assert_eq!(store.trade_slots(&trade("a", 1, 4)).await.unwrap(), None);
    assert_eq!(store.trade_slots(&trade("a", 2, 4)).await.unwrap(), None);
    assert_eq!(lent(&store, waits(trade("b", 1, 4), 3)).await.0, 1, "three are held");
    let wrong = runs(trade("b", 2, 4), 4);
    assert_eq!(lent(&store, wrong).await.0, 1, "it was lent one");
}

#[tokio::test]
async fn of_different_limits_the_lowest_holds() {
    let store = new_store().await;
    board(&store, "old").await;
    board(&store, "new").await;
    assert_eq!(lent(&store, waits(trade("old", 1, 6), 2)).await, (2, 2));
    assert_eq!(lent(&store, waits(trade("new", 1, 3), 9)).await, (1, 1));
    assert_eq!(lent(&store, runs(waits(trade("old", 2, 6), 9), 2)).await.0, 2);
    // Who uses nothing has no say.
    assert_eq!(lent(&store, trade("new", 2, 3)).await, (0, 0));
    assert_eq!(lent(&store, runs(waits(trade("old", 3, 6), 9), 2)).await, (6, 6));
}

#[tokio::test]
async fn after_a_restart_of_the_database_nothing_is_lent_until_all_have_said_what_they_hold() {
    let database = Database::new();
    let store = database.open().await;
    board(&store, "a").await;
    board(&store, "b").await;
    assert_eq!(lent(&store, waits(trade("a", 1, 6), 4)).await, (4, 4));
    // The newest loans are lost, and with them the rows of the boards.
    database.execute("UPDATE slot_epoch SET database_started_ms = 5").await;
    database.execute("DELETE FROM slot_loans").await;
    let lease = Duration::from_millis(700);
    let quick = |trade| SlotTrade { lease, ..trade };
    let early = traded(&store, quick(waits(trade("b", 1, 6), 6))).await;
    assert_eq!(early.loan.held, 0);
    assert!(early.closed_for > Duration::ZERO && early.closed_for <= lease, "{early:?}");
    let told = traded(&store, quick(runs(waits(trade("a", 2, 6), 3), 4))).await;
    assert_eq!((told.loan.held, told.is_live), (4, true), "its word is taken");
    tokio::time::sleep(lease).await;
    let after = traded(&store, quick(waits(trade("b", 2, 6), 6))).await;
    assert_eq!((after.loan, after.closed_for), (SlotLoan { held: 2, target: 3 }, Duration::ZERO));
    assert_eq!(lent(&store, quick(runs(trade("a", 3, 6), 4))).await.0, 4);
}

/// A board as the runtime has it, with calls that last for a moment.
async fn trade_for_a_while(
    store: Store,
    id: String,
    max: u32,
    in_flight: Arc<AtomicU32>,
    most: Arc<AtomicU32>,
) -> u64 {
    board(&store, &id).await;
    let (mut busy, mut allowed, mut completed) = (0_u32, 0_u32, 0_u64);
    for turn in 1..=60 {
        while busy < allowed {
            busy += 1;
            most.fetch_max(in_flight.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        }
        let now = SlotTrade { held: allowed.max(busy), busy, ..waits(trade(&id, turn, max), 9) };
        let loan = traded(&store, now).await.loan;
        allowed = loan.held.min(loan.target);
        // About half of the calls end.
        let ended = busy.div_ceil(2);
        completed += u64::from(ended);
        busy -= ended;
        in_flight.fetch_sub(ended, Ordering::SeqCst);
    }
    in_flight.fetch_sub(busy, Ordering::SeqCst);
    store.remove_replica(&id).await.unwrap();
    completed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn boards_that_trade_at_the_same_time_never_hold_more_than_the_limit() {
    const MAX: u32 = 6;
    let database = Database::new();
    let stores = [database.open().await, database.open().await];
    let (in_flight, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let mut boards = JoinSet::new();
    for at in 0..5_usize {
        let store = stores[at % 2].clone();
        let (in_flight, most) = (in_flight.clone(), most.clone());
        boards.spawn(trade_for_a_while(store, format!("board {at}"), MAX, in_flight, most));
    }
    let completed: Vec<u64> = boards.join_all().await;
    let most = most.load(Ordering::SeqCst);
    assert!(most <= MAX, "{most} ran at the same time");
    assert!(most >= MAX - 1, "only {most} ran at the same time");
    assert!(completed.iter().all(|calls| *calls > 10), "{completed:?}");
}
