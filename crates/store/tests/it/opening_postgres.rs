//! Databases of servers: addresses, waiting at the start, layouts of other versions, and outages.

use std::error::Error;
use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_model::Secret;
use switchboard_store::{CallFilter, PostgresSettings, Store, StoreError, StoreLocation};
use switchboard_test_support::{PostgresCluster, PostgresDatabase, free_port};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::record;

/// Longer than any wait that the store promises to bound.
const BOUND: Duration = Duration::from_secs(45);

fn settings(url: &str) -> PostgresSettings {
    PostgresSettings {
        open_timeout: Duration::from_secs(1),
        ..PostgresSettings::new(Secret::new(url))
    }
}

async fn open(url: &str) -> Result<Store, StoreError> {
    timeout(BOUND, Store::connect(&settings(url))).await.unwrap()
}

async fn until_outage_ends(store: &Store) {
    let mut outages = store.outages();
    let ended = outages.wait_for(Option::is_none);
    timeout(BOUND, ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn an_address_that_cannot_be_read_is_refused_without_its_password() {
    for url in [
        "sqlite://x",
        "http://me:hunter2@db/x",
        "postgres://me:hunter2@db:port/x",
        "postgres://me:hunter2@db/x?sslmode=perhaps",
        "me:hunter2@db",
    ] {
        let error = open(url).await.unwrap_err();
        assert!(matches!(error, StoreError::Address { .. }), "{url}: {error:?}");
        let told = format!("{} {:?} {error:?}", error.in_full(), error.hint());
        assert!(!told.contains("hunter2"), "{told}");
    }
}

#[tokio::test]
async fn a_database_is_named_without_its_password() {
    let location = settings("postgres://me:hunter2@db.example.com/board").location().unwrap();
    let named = "postgres://me@db.example.com:5432/board";
    assert_eq!(location, StoreLocation::Server(named.into()));
}

#[tokio::test]
async fn a_database_that_is_missing_is_an_error_at_once() {
    let database = PostgresDatabase::new();
    let begun = Instant::now();
    let error = open(&database.url().replace(database.name(), "nowhere")).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    assert!(error.in_full().contains("database \"nowhere\" does not exist"), "{}", error.in_full());
    assert!(begun.elapsed() < Duration::from_secs(1), "nothing to wait for");
}

#[tokio::test]
async fn a_server_that_is_away_is_waited_for_and_then_the_cause_is_told() {
    let url = format!("postgres://me:hunter2@127.0.0.1:{}/board", free_port());
    let begun = Instant::now();
    let error = open(&url).await.unwrap_err();
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    assert!(error.in_full().contains("Connection refused"), "{}", error.in_full());
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    assert!(error.source().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_replicas_migrate_a_new_database_once() {
    let database = PostgresDatabase::new();
    let mut opening = JoinSet::new();
    for n in 0..8 {
        let settings = PostgresSettings::new(Secret::new(database.url()));
        opening.spawn(async move {
            let store = Store::connect(&settings).await?;
            store.record_calls(&[record(n)]).await?;
            Ok::<_, StoreError>(store)
        });
    }
    let stores: Vec<Store> = opening.join_all().await.into_iter().map(Result::unwrap).collect();
    for store in stores {
        assert_eq!(store.recent_calls(&CallFilter::newest(99)).await.unwrap().len(), 8);
        store.close().await;
        assert!(matches!(store.keys().await, Err(StoreError::Closed { .. })));
    }
}

#[tokio::test]
async fn a_layout_of_a_newer_version_is_served_if_it_can_be() {
    let database = PostgresDatabase::new();
    open(database.url()).await.unwrap().close().await;
    database.execute(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9000, 'from the future', TRUE, '\\x00', 1)",
    );
    let store = open(database.url()).await.unwrap();
    store.record_calls(&[record(1)]).await.unwrap();
    store.close().await;

    database.execute("UPDATE layout_readable_by SET layout = 9000");
    let error = open(database.url()).await.unwrap_err();
    assert!(matches!(error, StoreError::Newer { migration: 9000, .. }), "{error:?}");
    assert!(!error.hint().unwrap().contains("--data-dir"));
}

#[tokio::test]
async fn a_text_with_a_nul_character_is_kept_without_it() {
    let database = PostgresDatabase::new();
    let store = open(database.url()).await.unwrap();
    let mut call = record(1);
    call.message = Some("before\0after".into());
    store.record_calls(&[call]).await.unwrap();
    let kept = store.recent_calls(&CallFilter::newest(1)).await.unwrap();
    assert_eq!(kept[0].message.as_deref(), Some("before\u{FFFD}after"));
}

#[tokio::test]
async fn a_database_that_takes_no_writes_recovers_by_itself() {
    let database = PostgresDatabase::new();
    let store = open(database.url()).await.unwrap();
    store.record_calls(&[record(1)]).await.unwrap();
    let name = database.name();
    // A setting of the database counts for new connections.
    database.execute_outside(&format!(
        "ALTER DATABASE {name} SET default_transaction_read_only = on;
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    ));
    let error = store.record_calls(&[record(2)]).await.unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    assert_eq!(store.outage().unwrap().reason, "its database cannot be written to");
    assert_eq!(store.recent_calls(&CallFilter::newest(9)).await.unwrap().len(), 1, "reads go on");
    database.execute_outside(&format!(
        "ALTER DATABASE {name} RESET default_transaction_read_only;
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    ));
    until_outage_ends(&store).await;
    store.record_calls(&[record(2)]).await.unwrap();
}

#[tokio::test]
async fn the_write_that_tries_the_store_is_as_large_on_the_disk() {
    let database = PostgresDatabase::new();
    let store = open(database.url()).await.unwrap();
    store.check_writable().await.unwrap();
    let size = database.execute("SELECT pg_column_size(filler) FROM write_probe");
    assert!(size.parse::<u32>().unwrap() >= 64 * 1024, "{size}: the database compresses it");
}

#[tokio::test]
async fn a_server_without_free_connections_is_told_as_that() {
    let database = PostgresDatabase::new();
    let role = format!("narrow_{}", std::process::id());
    database.execute(&format!(
        "CREATE ROLE {role} LOGIN CONNECTION LIMIT 1; GRANT ALL ON SCHEMA public TO {role}"
    ));
    let url = database.url().replace("postgres@", &format!("{role}@"));
    let first = open(&url).await.unwrap();
    first.record_calls(&[record(1)]).await.unwrap();
    let error = open(&url).await.unwrap_err();
    assert!(matches!(error, StoreError::NoConnection { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("max_connections"));
    first.close().await;
    open(&url).await.unwrap().close().await;
    database.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

#[tokio::test]
async fn requests_take_turns_with_the_connections_that_a_server_gives() {
    let database = PostgresDatabase::new();
    let role = format!("few_{}", std::process::id());
    // One is for notifications.
    database.execute(&format!(
        "CREATE ROLE {role} LOGIN CONNECTION LIMIT 3; GRANT ALL ON SCHEMA public TO {role}"
    ));
    let store = open(&database.url().replace("postgres@", &format!("{role}@"))).await.unwrap();
    let mut writing = JoinSet::new();
    for n in 0..8 {
        let store = store.clone();
        writing.spawn(async move {
            for m in 0..20 {
                store.record_calls(&[record(100 * n + m)]).await?;
                store.keys().await?;
            }
            Ok::<_, StoreError>(())
        });
    }
    for written in writing.join_all().await {
        written.unwrap();
    }
    assert_eq!(store.recent_calls(&CallFilter::newest(999)).await.unwrap().len(), 160);
    assert_eq!(store.outage(), None);
    store.close().await;
    database.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

#[tokio::test]
async fn a_lost_connection_costs_no_read_and_no_write_that_has_not_begun() {
    let database = PostgresDatabase::new();
    let store = open(database.url()).await.unwrap();
    for n in 0..20 {
        let name = database.name();
        database.execute_outside(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        ));
        store.record_calls(&[record(n)]).await.unwrap();
        let kept = store.recent_calls(&CallFilter::newest(99)).await.unwrap();
        assert_eq!(kept.len(), usize::try_from(n).unwrap() + 1);
    }
}

#[tokio::test]
async fn a_server_that_is_killed_or_paused_is_waited_for_within_a_bound() {
    let cluster = PostgresCluster::start();
    let store = open(&cluster.url()).await.unwrap();
    store.record_calls(&[record(1)]).await.unwrap();

    cluster.stop("immediate");
    let begun = Instant::now();
    let error = store.record_calls(&[record(2)]).await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    let error = store.keys().await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    assert!(begun.elapsed() < BOUND, "{:?}", begun.elapsed());
    assert_eq!(store.outage().unwrap().reason, "its database cannot be reached");
    cluster.start_again();
    until_outage_ends(&store).await;
    store.record_calls(&[record(2)]).await.unwrap();

    cluster.signal("STOP");
    let begun = Instant::now();
    let mut waiting = JoinSet::new();
    // More than there are connections.
    for n in 0..24 {
        let store = store.clone();
        waiting.spawn(async move {
            if n % 2 == 0 {
                store.keys().await.map(drop)
            } else {
                store.record_calls(&[record(9)]).await
            }
        });
    }
    for ended in waiting.join_all().await {
        assert!(matches!(ended, Err(StoreError::Unreachable { .. })), "{ended:?}");
    }
    assert!(begun.elapsed() < BOUND, "{:?}", begun.elapsed());
    cluster.signal("CONT");
    until_outage_ends(&store).await;
    store.record_calls(&[record(3)]).await.unwrap();
    assert!(store.recent_calls(&CallFilter::newest(9)).await.unwrap().len() >= 2);
}
