//! Hints between boards of one `PostgreSQL` database.

use std::time::Duration;

use switchboard_model::Secret;
use switchboard_store::{ChangeHint, HintNotice, HintTopic, PostgresSettings, Store};
use switchboard_test_support::PostgresDatabase;
use tokio::sync::broadcast::Receiver;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(20);

async fn connect(database: &PostgresDatabase) -> Store {
    Store::connect(&PostgresSettings::new(Secret::new(database.url()))).await.unwrap()
}

fn hint(key: &str, version: i64) -> ChangeHint {
    ChangeHint { topic: HintTopic::Session, key: key.into(), version }
}

async fn next(notices: &mut Receiver<HintNotice>) -> HintNotice {
    timeout(SOON, notices.recv()).await.unwrap().unwrap()
}

async fn next_hint(notices: &mut Receiver<HintNotice>) -> ChangeHint {
    loop {
        if let HintNotice::Hint(hint) = next(notices).await {
            return hint;
        }
    }
}

/// Followers of a store that hear at once.
async fn following(store: &Store) -> Receiver<HintNotice> {
    let mut notices = store.hints().subscribe();
    while !store.hints().is_prompt() {
        assert_eq!(next(&mut notices).await, HintNotice::PollAll);
    }
    notices
}

#[tokio::test]
async fn another_board_hears_of_a_change_and_the_board_itself_does_not() {
    let database = PostgresDatabase::new();
    let (here, there) = (connect(&database).await, connect(&database).await);
    let (mut own, mut other) = (following(&here).await, following(&there).await);
    here.hints().publish(hint("s-1", 3));
    assert_eq!(next_hint(&mut other).await, hint("s-1", 3));
    there.hints().publish(hint("s-2", 9));
    assert_eq!(next_hint(&mut own).await, hint("s-2", 9), "and not its own hint before");
}

#[tokio::test]
async fn changes_of_one_moment_are_told_once_with_the_newest_version() {
    let database = PostgresDatabase::new();
    let (here, there) = (connect(&database).await, connect(&database).await);
    let mut other = following(&there).await;
    for version in 1..=50 {
        here.hints().publish(hint("s", version));
    }
    here.hints().publish(hint("t", 1));
    let mut told = Vec::new();
    while told.last() != Some(&hint("t", 1)) {
        told.push(next_hint(&mut other).await);
    }
    assert_eq!(told[told.len() - 2], hint("s", 50));
    assert!(told.len() < 10, "{told:?}");
}

#[tokio::test]
async fn what_was_published_before_closing_is_sent() {
    let database = PostgresDatabase::new();
    let (here, there) = (connect(&database).await, connect(&database).await);
    let mut other = following(&there).await;
    here.hints().publish(hint("last", 1));
    here.close().await;
    assert_eq!(next_hint(&mut other).await, hint("last", 1));
}

#[tokio::test]
async fn a_lost_connection_is_replaced_and_followers_are_told_to_poll() {
    let database = PostgresDatabase::new();
    let (here, there) = (connect(&database).await, connect(&database).await);
    let mut other = following(&there).await;
    let ended = database.execute_outside(&format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE datname = '{}' AND query LIKE 'LISTEN%'",
        database.name()
    ));
    assert_eq!(ended, "1");
    assert_eq!(next(&mut other).await, HintNotice::PollAll);
    while !there.hints().is_prompt() {
        assert_eq!(next(&mut other).await, HintNotice::PollAll);
    }
    here.hints().publish(hint("after", 1));
    assert_eq!(next_hint(&mut other).await, hint("after", 1));
}

#[tokio::test]
async fn where_notifications_get_lost_followers_poll_often() {
    let database = PostgresDatabase::new();
    // Another database never hears them, as behind a pooler in transaction mode.
    let elsewhere = PostgresDatabase::new();
    let settings = PostgresSettings {
        listen_url: Some(Secret::new(elsewhere.url())),
        ..PostgresSettings::new(Secret::new(database.url()))
    };
    let store = Store::connect(&settings).await.unwrap();
    let mut notices = store.hints().subscribe();
    for _ in 0..4 {
        assert_eq!(next(&mut notices).await, HintNotice::PollAll);
    }
    assert!(!store.hints().is_prompt());
}

#[tokio::test]
async fn with_a_database_of_one_machine_nothing_is_told() {
    let store = Store::in_memory().await.unwrap();
    let mut notices = store.hints().subscribe();
    store.hints().publish(hint("s", 1));
    store.close().await;
    assert!(notices.try_recv().is_err());
}
