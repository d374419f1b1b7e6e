use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Executor};

use super::*;
use crate::backend::Pool;
use crate::{StoredClient, StoredSession};

type Put = Result<BTreeSet<String>, StoreError>;
type Writing<'a> = Pin<Box<dyn Future<Output = Put> + 'a>>;

/// Far longer than it takes to notice the end of an outage.
const PATIENCE: Duration = Duration::from_secs(30);

fn session(id: &str, bytes: usize) -> StoredSession {
    StoredSession {
        id: id.into(),
        kind: "endpoint".into(),
        owner: "me".into(),
        title: None,
        provider: None,
        model: None,
        state: "x".repeat(bytes),
        tools_revision: 1,
        snapshot: None,
        created_at_ms: 1,
        updated_at_ms: 1,
        version: 0,
    }
}

fn client(id: &str, bytes: usize) -> StoredClient {
    StoredClient {
        id: id.into(),
        kind: "endpoint".into(),
        owner: "me".into(),
        session: None,
        state: "x".repeat(bytes),
        created_at_ms: 1,
        last_seen_at_ms: 1,
    }
}

/// Limits the number of pages of the file on every connection of the store: more is `SQLITE_FULL`, as on a full disk.
async fn limit_pages(store: &Store, pages: u32) {
    let Pool::Sqlite(pool) = &store.pool else { return };
    let mut all = Vec::new();
    for _ in 0..4 {
        all.push(pool.acquire().await.unwrap());
    }
    for connection in &mut all {
        let pragma = sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
        sqlx::query(pragma).execute(&mut **connection).await.unwrap();
    }
}

async fn until_outage_ends(store: &Store) {
    let mut outages = store.outages();
    let ended = outages.wait_for(Option::is_none);
    tokio::time::timeout(PATIENCE, ended).await.expect("it ends by itself").unwrap();
}

#[tokio::test]
async fn a_connection_whose_rollback_failed_is_not_used_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    store.put_clients(&[client("before", 10)]).await.unwrap();
    limit_pages(&store, 1).await;
    let large = [client("large", 100_000)];
    let failed = store.put_clients(&large).await.unwrap_err();
    assert!(matches!(failed, StoreError::Full { .. }), "{}", failed.in_full());
    let outage = store.outage().unwrap();
    assert_eq!(outage.reason, "no space is left on the disk of its data directory");
    assert_eq!(store.clients(None, None).await.unwrap().len(), 1, "what is there can be read");

    // Each connection that failed is replaced by one without the limit.
    let mut written = false;
    for _ in 0..8 {
        match store.put_clients(&large).await {
            Ok(()) => written = true,
            Err(error) => assert!(matches!(error, StoreError::Full { .. }), "{}", error.in_full()),
        }
    }
    assert!(written, "the store is not lost");
    until_outage_ends(&store).await;
    assert_eq!(store.clients(None, None).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_locked_database_is_waited_for_within_a_bound() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    let mut other = SqliteConnectOptions::new()
        .filename(directory.path().join("switchboard.db"))
        .connect()
        .await
        .unwrap();
    lock(&mut other).await;
    let begun = Instant::now();
    let one = session("s", 10);
    let writes: Vec<Writing<'_>> = (0..16)
        .map(|_| Box::pin(store.put_sessions(std::slice::from_ref(&one), &[])) as _)
        .collect();
    let mut failed = 0;
    for written in join_all(writes).await {
        assert!(matches!(written, Err(StoreError::Busy { .. })), "{written:?}");
        failed += 1;
    }
    assert_eq!(failed, 16);
    let waited = begun.elapsed();
    assert!(waited < Duration::from_secs(15), "sixteen writes waited for {waited:?}");
    assert_eq!(store.outage().unwrap().reason, "its database was locked for too long");
    assert_eq!(store.sessions(None).await.unwrap(), [], "reading goes on, and nothing was written");

    other.execute("ROLLBACK").await.unwrap();
    until_outage_ends(&store).await;
    store.put_sessions(&[one], &[]).await.unwrap();
}

#[tokio::test]
async fn small_writes_between_those_that_fail_do_not_end_the_outage() {
    let store = Store::in_memory().await.unwrap();
    let full = || StoreError::Full {
        database: store.location(),
        operation: "keep what is large",
        source: sqlx::Error::PoolTimedOut,
    };
    let failures = 15;
    for n in 1..=failures {
        store.note_failure(&full());
        store.put_sessions(&[session("small", 10)], &[]).await.unwrap();
        assert_eq!(store.outage().unwrap().failed_writes, n, "one outage");
        // In all, several times as long as from one probe to the next.
        sleep(PROBE_EVERY / 4).await;
    }
    until_outage_ends(&store).await;
}

async fn lock(connection: &mut SqliteConnection) {
    connection.execute("BEGIN IMMEDIATE").await.unwrap();
}

async fn join_all(mut writes: Vec<Writing<'_>>) -> Vec<Put> {
    let mut done = Vec::new();
    std::future::poll_fn(|context| {
        writes.retain_mut(|write| match write.as_mut().poll(context) {
            std::task::Poll::Ready(result) => {
                done.push(result);
                false
            }
            std::task::Poll::Pending => true,
        });
        if writes.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done
}
