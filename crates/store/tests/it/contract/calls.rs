//! Reading the call log.

use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_model::{
    CallErrorKind, CallId, CallOutcome, CallRecord, CanonicalName, ServerName,
};
use switchboard_store::{CallFilter, Retention, Store, StoreError};

use super::database::{Database, new_store};
use crate::record;

const NOTHING: Retention = Retention {
    calls_older_than_ms: i64::MAX,
    max_calls: 0,
    max_content_bytes: 0,
    results_older_than_ms: 0,
    max_result_bytes_total: 0,
};

async fn numbers(store: &Store, filter: &CallFilter) -> Vec<i64> {
    let calls = store.recent_calls(filter).await.unwrap();
    calls.into_iter().map(|call| call.started_at_ms - 1_700_000_000_000).collect()
}

#[tokio::test]
async fn newest_first_page_by_page_also_within_one_millisecond() {
    let store = new_store().await;
    let mut records: Vec<_> = (0..10).map(record).collect();
    for call in &mut records[3..7] {
        call.started_at_ms = 1_700_000_000_005;
    }
    store.record_calls(&records).await.unwrap();
    let mut wanted = records.clone();
    wanted.sort_by_key(|call| std::cmp::Reverse((call.started_at_ms, call.id.0.clone())));

    let mut filter = CallFilter::newest(3);
    let mut read: Vec<CallRecord> = Vec::new();
    loop {
        let page = store.recent_calls(&filter).await.unwrap();
        let Some(last) = page.last() else { break };
        filter.before = Some(last.id.clone());
        read.extend(page);
    }
    assert_eq!(read, wanted);
    assert_eq!(numbers(&store, &CallFilter::newest(0)).await, Vec::<i64>::new());
    filter.before = Some(CallId("never seen".into()));
    assert_eq!(numbers(&store, &filter).await, Vec::<i64>::new());
}

#[tokio::test]
async fn a_filter_takes_either_name_and_the_word_of_the_outcome() {
    let store = new_store().await;
    let failed = CallOutcome::Failed(CallErrorKind::Timeout);
    store
        .record_calls(&[
            record(1),
            CallRecord { requested: "crm__find_one".into(), ..record(2) },
            CallRecord { tool: None, requested: "find.one".into(), outcome: failed, ..record(3) },
            CallRecord { tool: None, requested: "other".into(), outcome: failed, ..record(4) },
        ])
        .await
        .unwrap();
    let rows = [
        (Some("crm.find.one"), None, vec![2, 1]),
        (Some("find.one"), None, vec![3, 2, 1]),
        (Some("crm__find_one"), None, vec![2]),
        (Some("find.one"), Some("timeout"), vec![3]),
        (None, Some("timeout"), vec![4, 3]),
        (None, Some("ok"), vec![2, 1]),
        (Some("crm.find"), None, vec![]),
        (Some("one"), None, vec![]),
        (Some("%"), None, vec![]),
        (Some("' OR 1=1 --"), None, vec![]),
    ];
    for (tool, outcome, wanted) in rows {
        let filter = CallFilter {
            tool: tool.map(Into::into),
            outcome: outcome.and_then(CallOutcome::from_word),
            ..CallFilter::newest(9)
        };
        assert_eq!(numbers(&store, &filter).await, wanted, "{filter:?}");
    }
}

#[tokio::test]
async fn a_filter_takes_server_session_and_times() {
    let store = new_store().await;
    let at = |n: i64| record(n).started_at_ms;
    let other = CanonicalName::new(&ServerName::new("wiki"), "find");
    store
        .record_calls(&[
            CallRecord { run: Duration::from_secs(10), ..record(1) },
            CallRecord { session: None, tool: None, ..record(2) },
            CallRecord { tool: Some(other), session: Some("other".into()), ..record(3) },
            CallRecord { wait: Duration::ZERO, run: Duration::ZERO, ..record(4) },
        ])
        .await
        .unwrap();
    let newest = CallFilter::newest(9);
    let rows = [
        (CallFilter { server: Some("crm".into()), ..newest.clone() }, vec![4, 1]),
        (CallFilter { server: Some("wiki".into()), ..newest.clone() }, vec![3]),
        (CallFilter { sessions: vec!["work".into()], ..newest.clone() }, vec![4, 1]),
        (CallFilter { sessions: vec!["none".into()], ..newest.clone() }, vec![]),
        (
            CallFilter {
                sessions: ["none", "other", "work"].map(Into::into).into(),
                ..newest.clone()
            },
            vec![4, 3, 1],
        ),
        (CallFilter { since_ms: Some(at(3)), ..newest.clone() }, vec![4, 3]),
        (CallFilter { ended_since_ms: Some(at(5)), ..newest.clone() }, vec![3, 2, 1]),
        (CallFilter { ended_since_ms: Some(at(100)), ..newest.clone() }, vec![1]),
    ];
    for (filter, wanted) in rows {
        assert_eq!(numbers(&store, &filter).await, wanted, "{filter:?}");
    }
}

#[tokio::test]
async fn a_batch_may_be_written_twice() {
    let store = new_store().await;
    store.record_calls(&[]).await.unwrap();
    store.record_calls(&[record(1)]).await.unwrap();
    store.record_calls(&[record(1), record(2)]).await.unwrap();
    assert_eq!(numbers(&store, &CallFilter::newest(9)).await, [2, 1]);
}

#[tokio::test]
async fn batches_of_every_length_are_kept_whole() {
    let store = new_store().await;
    for length in [1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 87, 200] {
        store.prune(&NOTHING).await.unwrap();
        let batch: Vec<_> = (0..length).map(record).collect();
        store.record_calls(&batch).await.unwrap();
        let kept = store.recent_calls(&CallFilter::newest(9999)).await.unwrap();
        assert_eq!(kept.into_iter().rev().collect::<Vec<_>>(), batch);
    }
}

#[tokio::test]
async fn words_of_a_newer_version_are_shown_or_refused_but_never_guessed() {
    let database = Database::new();
    let store = database.open().await;
    let explained = CallRecord { message: Some("too often".into()), ..record(2) };
    store.record_calls(&[record(1), explained]).await.unwrap();
    database.execute("UPDATE calls SET outcome = 'too_cold'").await;
    let calls = store.recent_calls(&CallFilter::newest(9)).await.unwrap();
    let shown: Vec<_> = calls.iter().map(|call| (call.outcome, call.message.as_deref())).collect();
    let internal = CallOutcome::Failed(CallErrorKind::Internal);
    assert_eq!(shown, [(internal, Some("too_cold: too often")), (internal, Some("too_cold"))]);

    database.execute("UPDATE calls SET face = 'telepathy'").await;
    let error = store.recent_calls(&CallFilter::newest(9)).await.unwrap_err();
    assert!(matches!(error, StoreError::Unreadable { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("update"));
}
