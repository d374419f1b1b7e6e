//! Tests of pruning.

use pretty_assertions::assert_eq;
use switchboard_model::CallId;
use switchboard_store::{CallFilter, Pruned, Retention, Store};

use super::database::{OwnStore, new_store};
use crate::{NO_BOUNDS, kept, record};

const EVERYTHING: Retention = Retention {
    calls_older_than_ms: i64::MIN,
    max_calls: u64::MAX,
    max_content_bytes: u64::MAX,
    results_older_than_ms: i64::MIN,
    max_result_bytes_total: u64::MAX,
};

async fn filled() -> OwnStore {
    let store = new_store().await;
    store.record_calls(&(0..10).map(record).collect::<Vec<_>>()).await.unwrap();
    for n in 0..5_i64 {
        let handle = format!("h{n}");
        store
            .keep_result(&kept(&handle, &CallId("c".into()), &[1; 100], n), &NO_BOUNDS)
            .await
            .unwrap();
    }
    store
}

async fn left(store: &Store) -> (usize, Vec<i64>) {
    let calls = store.recent_calls(&CallFilter::newest(99)).await.unwrap();
    let mut results = Vec::new();
    for n in 0..5 {
        if let Some(slice) = store.read_result(&format!("h{n}"), 0, 999).await.unwrap() {
            assert_eq!(slice.bytes.len(), 100);
            results.push(n);
        }
    }
    assert!(
        calls.iter().rev().eq((0..10).map(record).collect::<Vec<_>>()[10 - calls.len()..].iter())
    );
    (calls.len(), results)
}

#[tokio::test]
async fn the_oldest_go_by_age_and_by_amount() {
    let base = 1_700_000_000_000;
    let rows = [
        (EVERYTHING, (10, vec![0, 1, 2, 3, 4])),
        (Retention { calls_older_than_ms: base + 4, ..EVERYTHING }, (6, vec![0, 1, 2, 3, 4])),
        (Retention { max_calls: 3, ..EVERYTHING }, (3, vec![0, 1, 2, 3, 4])),
        (
            Retention { calls_older_than_ms: base + 8, max_calls: 9, ..EVERYTHING },
            (2, vec![0, 1, 2, 3, 4]),
        ),
        (Retention { max_calls: 0, ..EVERYTHING }, (0, vec![0, 1, 2, 3, 4])),
        (Retention { results_older_than_ms: 2, ..EVERYTHING }, (10, vec![2, 3, 4])),
        (Retention { max_result_bytes_total: 200, ..EVERYTHING }, (10, vec![3, 4])),
        (Retention { max_result_bytes_total: 199, ..EVERYTHING }, (10, vec![4])),
        (Retention { max_result_bytes_total: 0, ..EVERYTHING }, (10, vec![])),
    ];
    for (retention, wanted) in rows {
        let store = filled().await;
        let pruned = store.prune(&retention).await.unwrap();
        assert_eq!(left(&store).await, wanted, "{retention:?}");
        let gone = (10 - wanted.0, 5 - wanted.1.len());
        assert_eq!((pruned.calls, pruned.results), (gone.0 as u64, gone.1 as u64), "{retention:?}");
        assert_eq!(store.prune(&retention).await.unwrap(), Pruned::default());
    }
}
