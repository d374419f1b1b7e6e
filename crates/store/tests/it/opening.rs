//! Making, reopening and refusing databases.

use std::error::Error;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use pretty_assertions::assert_eq;
use sqlx::Connection;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use switchboard_model::{
    CallId, CallRecord, Era, GrantId, RecordedCaller, Secret, ServerName, ToolDescriptor,
};
use switchboard_store::{CallFilter, Retention, Store, StoreError};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::{NO_BOUNDS, kept, record};

async fn raw(directory: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(directory.join("switchboard.db"));
    SqliteConnection::connect_with(&options).await.unwrap()
}

#[tokio::test]
async fn reopening_finds_everything() {
    let directory = tempfile::tempdir().unwrap();
    let crm = ServerName::new("crm");
    let store = Store::open(directory.path()).await.unwrap();
    store.remember_tools(&crm, &[ToolDescriptor::named("find")], 1).await.unwrap();
    store.remember_era(&crm, "f", Era::Modern, 1).await.unwrap();
    store.record_calls(&[record(1)]).await.unwrap();
    store.keep_result(&kept("h", &CallId("c".into()), b"body", 1), &NO_BOUNDS).await.unwrap();
    assert_eq!(store.revision_for("a").await.unwrap(), 1);
    store.close().await;
    assert!(!directory.path().join("switchboard.db-wal").exists(), "the log is folded in");
    assert!(matches!(store.revision_for("a").await, Err(StoreError::Closed { .. })));

    let store = Store::open(directory.path()).await.unwrap();
    assert_eq!(store.remembered_tools().await.unwrap()[&crm], [ToolDescriptor::named("find")]);
    assert_eq!(store.remembered_era(&crm, "f", 1).await.unwrap(), Some(Era::Modern));
    assert_eq!(store.recent_calls(&CallFilter::newest(9)).await.unwrap(), [record(1)]);
    assert_eq!(store.read_result("h", 0, 9).await.unwrap().unwrap().bytes, b"body");
    assert_eq!(store.revision_for("b").await.unwrap(), 2);
}

#[tokio::test]
async fn a_database_of_the_first_layout_is_brought_up_to_date() {
    let (directory, layouts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = "0001_first_layout.sql";
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite").join(first);
    std::fs::copy(shipped, layouts.path().join(first)).unwrap();
    std::fs::write(directory.path().join("switchboard.db"), "").unwrap();
    let mut old = raw(directory.path()).await;
    Migrator::new(layouts.path()).await.unwrap().run_direct(None, &mut old, false).await.unwrap();
    sqlx::query("INSERT INTO catalog_revision VALUES (1, 7, 'a')").execute(&mut old).await.unwrap();
    sqlx::query(
        "INSERT INTO calls VALUES ('0190-000000000000', 1700000000000, 'http', 'crm', 'crm.find.one', 'find.one', 3,
             'blake3:abc', 'ok', NULL, 7000, 12000000, 99, NULL)",
    )
    .execute(&mut old)
    .await
    .unwrap();
    old.close().await.unwrap();

    let store = Store::open(directory.path()).await.unwrap();
    assert_eq!(store.revision_for("a").await.unwrap(), 7, "what was there stays");
    assert_eq!(store.keys().await.unwrap(), []);
    assert_eq!(store.clients(None, None).await.unwrap(), []);
    store.record_calls(&[record(1)]).await.unwrap();
    let caller = RecordedCaller::default();
    let first = CallRecord { session: None, caller, ..record(0) };
    let calls = store.recent_calls(&CallFilter::newest(9)).await.unwrap();
    assert_eq!(calls, [record(1), first], "calls of then are there, too");
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("a/b");
    let store = Store::open(&directory).await.unwrap();
    store.revision_for("a").await.unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for file in ["switchboard.db", "switchboard.db-wal", "switchboard.db-shm"] {
        assert_eq!(mode(&directory.join(file)), 0o600, "{file}");
    }
}

#[tokio::test]
async fn the_file_is_set_up_as_promised() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    assert_eq!(store.file().unwrap(), directory.path().join("switchboard.db"));
    let mut raw = raw(directory.path()).await;
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut raw).await.unwrap();
    let vacuum: i64 = sqlx::query_scalar("PRAGMA auto_vacuum").fetch_one(&mut raw).await.unwrap();
    assert_eq!((mode.as_str(), vacuum), ("wal", 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_directory_may_be_opened_by_many_at_once() {
    for _ in 0..10 {
        let directory = tempfile::tempdir().unwrap();
        let start = Arc::new(Barrier::new(8));
        let mut openers = JoinSet::new();
        for n in 0..8 {
            let (path, start) = (directory.path().join("new"), Arc::clone(&start));
            openers.spawn(async move {
                start.wait().await;
                let store = Store::open(&path).await?;
                store.record_calls(&[record(n)]).await?;
                store.close().await;
                Ok::<_, StoreError>(())
            });
        }
        for opened in openers.join_all().await {
            opened.unwrap();
        }
        let store = Store::open(&directory.path().join("new")).await.unwrap();
        assert_eq!(store.recent_calls(&CallFilter::newest(99)).await.unwrap().len(), 8);
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_switched_yet_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("switchboard.db"), "").unwrap();
    // Whoever writes to a file that is not yet in WAL mode is what the switch is refused for, at once.
    let mut writer = raw(directory.path()).await;
    for statement in ["CREATE TABLE other (n)", "BEGIN IMMEDIATE"] {
        sqlx::query(statement).execute(&mut writer).await.unwrap();
    }
    let mut open = pin!(Store::open(directory.path()));
    let early = timeout(Duration::from_millis(200), &mut open).await;
    assert!(early.is_err(), "it waits: {early:?}");
    sqlx::query("COMMIT").execute(&mut writer).await.unwrap();
    open.await.unwrap();
}

#[tokio::test]
async fn reading_waits_for_no_writer() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    let mut writer = raw(directory.path()).await;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut writer).await.unwrap();
    let filter = CallFilter::newest(9);
    let read = || store.recent_calls(&filter);
    // As many at once as there are connections, so that some of them are opened now.
    let reads = async { tokio::join!(read(), read(), read(), read()) };
    let (one, two, three, four) = timeout(Duration::from_secs(5), reads).await.unwrap();
    for calls in [one, two, three, four] {
        assert_eq!(calls.unwrap(), []);
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_named_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("switchboard.db");
    let content = "this is a letter to my aunt. ".repeat(1000);
    std::fs::write(&file, &content).unwrap();
    let error = Store::open(directory.path()).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("{} is damaged or is not a database", file.display()));
    assert!(error.hint().unwrap().starts_with(&format!("move {}", file.display())));
    assert!(error.source().unwrap().to_string().contains("file is not a database"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
}

#[tokio::test]
async fn a_database_with_broken_pages_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    store.record_calls(&(0..500).map(record).collect::<Vec<_>>()).await.unwrap();
    store.close().await;
    let file = directory.path().join("switchboard.db");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[4096..].fill(0xA5);
    std::fs::write(&file, bytes).unwrap();
    let error = Store::open(directory.path()).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_named() {
    let parent = tempfile::tempdir().unwrap();
    let blocker = parent.path().join("file");
    std::fs::write(&blocker, "").unwrap();
    let directory = blocker.join("data");
    let error = Store::open(&directory).await.unwrap_err();
    assert!(matches!(error, StoreError::Inaccessible { .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("cannot create or open {}", directory.display()));
    assert!(error.hint().unwrap().contains("--data-dir"));
    assert!(error.source().is_some());
}

#[tokio::test]
async fn a_file_that_is_a_directory_is_named() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("switchboard.db")).unwrap();
    let error = Store::open(directory.path()).await.unwrap_err();
    assert!(matches!(error, StoreError::Inaccessible { .. }), "{error:?}");
    assert!(error.to_string().ends_with("switchboard.db"), "{error}");
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    Store::open(directory.path()).await.unwrap().close().await;
    let mut raw = raw(directory.path()).await;
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9000, 'from the future', TRUE, x'00', 1)",
    )
    .execute(&mut raw)
    .await
    .unwrap();
    let error = Store::open(directory.path()).await.unwrap_err();
    assert!(matches!(error, StoreError::Newer { migration: 9000, .. }), "{error:?}");
    assert!(error.to_string().contains("newer version"), "{error}");
    assert!(error.hint().unwrap().contains("newer version"));
}

#[tokio::test]
async fn a_layout_that_somebody_changed_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    Store::open(directory.path()).await.unwrap().close().await;
    let mut raw = raw(directory.path()).await;
    sqlx::query("UPDATE _sqlx_migrations SET checksum = x'00'").execute(&mut raw).await.unwrap();
    let error = Store::open(directory.path()).await.unwrap_err();
    assert!(matches!(error, StoreError::Migration { .. }), "{error:?}");
}

#[tokio::test]
async fn stores_in_memory_share_nothing() {
    let (one, other) = (Store::in_memory().await.unwrap(), Store::in_memory().await.unwrap());
    one.record_calls(&[record(1)]).await.unwrap();
    assert_eq!(one.clone().recent_calls(&CallFilter::newest(9)).await.unwrap().len(), 1);
    assert_eq!(other.recent_calls(&CallFilter::newest(9)).await.unwrap(), []);
}

#[tokio::test]
async fn sign_ins_of_earlier_versions_become_grants_of_the_board() {
    let crm = GrantId::of_server(&ServerName::new("crm"));
    let (directory, layouts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite");
    for entry in std::fs::read_dir(shipped).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name < "0013" {
            std::fs::copy(&path, layouts.path().join(name)).unwrap();
        }
    }
    std::fs::write(directory.path().join("switchboard.db"), "").unwrap();
    let mut old = raw(directory.path()).await;
    Migrator::new(layouts.path()).await.unwrap().run_direct(None, &mut old, false).await.unwrap();
    sqlx::query("INSERT INTO oauth_grants VALUES ('crm', 'https://i', '{\"a\":1}', 5)")
        .execute(&mut old)
        .await
        .unwrap();
    sqlx::query("INSERT INTO oauth_wanted VALUES ('crm', 'more')").execute(&mut old).await.unwrap();
    old.close().await.unwrap();

    let store = Store::open(directory.path()).await.unwrap();
    let row = store.grant(&crm, Some("https://i")).await.unwrap().unwrap();
    assert_eq!((row.content, row.version), (Ok(Secret::new("{\"a\":1}")), 1));
    assert!(!row.is_encrypted);
    assert_eq!(store.grant_need(&crm).await.unwrap().as_deref(), Some("more"));
}

#[tokio::test]
async fn the_file_shrinks_when_large_results_go() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    store
        .keep_result(&kept("h", &CallId("c".into()), &vec![7; 4 << 20], 1), &NO_BOUNDS)
        .await
        .unwrap();
    let nothing_kept = Retention {
        calls_older_than_ms: 0,
        max_calls: u64::MAX,
        max_content_bytes: u64::MAX,
        results_older_than_ms: 0,
        max_result_bytes_total: 0,
    };
    store.prune(&nothing_kept).await.unwrap();
    store.close().await;
    let size = std::fs::metadata(store.file().unwrap()).unwrap().len();
    assert!(size < 1 << 20, "{size} bytes");
}
