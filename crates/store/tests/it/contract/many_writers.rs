//! Tests with two stores on one directory, which act like two processes: they share only the file.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_model::{CallId, Era, ServerName};
use switchboard_store::{CallFilter, Retention, Store, StoreError};
use tokio::task::JoinSet;

use super::database::{Database, new_store};
use crate::{NO_BOUNDS, kept, record};

const TASKS: i64 = 8;
const EACH: i64 = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_record_is_lost_and_every_reader_sees_whole_batches() {
    let database = Database::new();
    let stores = [database.open().await, database.open().await];
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let store = stores[usize::try_from(task).unwrap() % 2].clone();
        tasks.spawn(async move {
            let records: Vec<_> = (0..EACH).map(|n| record(task * EACH + n)).collect();
            for batch in records.chunks(10) {
                store.record_calls(batch).await?;
                let seen = store.recent_calls(&CallFilter::newest(10_000)).await?.len();
                assert_eq!(seen % 10, 0, "a batch is there whole or not at all");
            }
            Ok::<_, StoreError>(())
        });
    }
    for written in tasks.join_all().await {
        written.unwrap();
    }
    for store in &stores {
        let read = store.recent_calls(&CallFilter::newest(10_000)).await.unwrap();
        assert_eq!(
            read.into_iter().rev().collect::<Vec<_>>(),
            (0..TASKS * EACH).map(record).collect::<Vec<_>>()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_revision_belongs_to_one_catalog_and_only_grows() {
    let database = Database::new();
    let stores = [database.open().await, database.open().await];
    let mut tasks = JoinSet::new();
    for task in 0..8_usize {
        let store = stores[task % 2].clone();
        tasks.spawn(async move {
            let mut taken = Vec::new();
            for n in 0..50 {
                let catalog = format!("catalog {}", (n / 5 + task) % 3);
                taken.push((store.revision_for(&catalog).await.unwrap(), catalog));
            }
            taken
        });
    }
    let mut catalogs: BTreeMap<u64, String> = BTreeMap::new();
    for taken in tasks.join_all().await {
        assert!(
            taken.is_sorted_by_key(|(revision, _)| *revision),
            "no task sees it go back: {taken:?}"
        );
        for (revision, catalog) in taken {
            assert_eq!(catalogs.entry(revision).or_insert_with(|| catalog.clone()), &catalog);
        }
    }
    let last = u64::try_from(catalogs.len()).unwrap();
    assert!(catalogs.keys().copied().eq(1..=last), "no gap: {catalogs:?}");
    let in_a_row: Vec<_> = catalogs.values().collect();
    assert!(in_a_row.windows(2).all(|pair| pair[0] != pair[1]), "a step is a change: {catalogs:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_write_that_is_given_up_is_whole_or_absent_and_blocks_nobody() {
    let database = Database::new();
    let store = database.open().await;
    for n in 0..100_i64 {
        let batch: Vec<_> = (0..20).map(|m| record(n * 20 + m)).collect();
        let patience = Duration::from_micros(u64::try_from(n * 40).unwrap());
        // Whether it came through is what is looked at below.
        let _in_time = tokio::time::timeout(patience, store.record_calls(&batch)).await;
    }
    store.keep_result(&kept("h", &CallId("c".into()), b"x", 1), &NO_BOUNDS).await.unwrap();
    let kept = store.recent_calls(&CallFilter::newest(10_000)).await.unwrap();
    assert_eq!(kept.len() % 20, 0);
    let ids: HashSet<_> = kept.iter().map(|call| call.id.clone()).collect();
    assert_eq!(ids.len(), kept.len());
}

#[tokio::test]
async fn every_future_may_move_between_threads() {
    fn movable(_: &impl Send) {}
    let store = new_store().await;
    let (server, call) = (ServerName::new("crm"), CallId("c".into()));
    movable(&Store::open(Path::new("never polled")));
    movable(&Store::in_memory());
    movable(&store.remember_tools(&server, &[], 1));
    movable(&store.remembered_tools());
    movable(&store.forget_server(&server));
    movable(&store.remember_era(&server, "f", Era::Legacy, 1));
    movable(&store.remembered_era(&server, "f", 1));
    movable(&store.revision_for("f"));
    movable(&store.record_calls(&[]));
    movable(&store.recent_calls(&CallFilter::newest(1)));
    movable(&store.keep_result(&kept("h", &call, b"", 1), &NO_BOUNDS));
    movable(&store.read_result("h", 0, 1));
    movable(&store.prune(&Retention {
        calls_older_than_ms: 0,
        max_calls: 0,
        max_content_bytes: 0,
        results_older_than_ms: 0,
        max_result_bytes_total: 0,
    }));
    movable(&store.key_hashes());
    movable(&store.revoke_key("k", 1));
    movable(&store.installation_secret("s"));
    movable(&store.put_clients(&[]));
    movable(&store.clients(None, None));
    movable(&store.delete_clients(&[]));
    movable(&store.touch_clients(&[]));
    movable(&store.close());
}
