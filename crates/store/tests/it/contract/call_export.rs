//! Exports of call records.

use pretty_assertions::assert_eq;
use switchboard_model::{CallId, CallRecord, RecordedCaller, RecordedContent};
use switchboard_store::{CallExport, CallFilter, ExportError, Pruned, Retention, Store};

use super::database::new_store;
use crate::record;

const EVERYTHING: Retention = Retention {
    calls_older_than_ms: i64::MIN,
    max_calls: u64::MAX,
    max_content_bytes: u64::MAX,
    results_older_than_ms: i64::MIN,
    max_result_bytes_total: u64::MAX,
};

async fn export(store: &Store, filter: CallFilter, after: Option<&CallId>) -> Vec<CallRecord> {
    let mut export = store.export_calls(filter, after).await.unwrap();
    let mut all = Vec::new();
    while let Some(page) = export.next().await.unwrap() {
        assert!(page.len() <= 256, "a page is bounded");
        all.extend(page);
    }
    all
}

fn ids(records: &[CallRecord]) -> Vec<&str> {
    records.iter().map(|record| record.id.0.as_str()).collect()
}

#[tokio::test]
async fn an_export_that_is_continued_misses_no_call_that_ended_late() {
    let store = new_store().await;
    store.record_calls(&[record(1), record(3)]).await.unwrap();
    let first = export(&store, CallFilter::default(), None).await;
    assert_eq!(first, [record(1), record(3)]);
    // This call began before the ones that were exported, and ended after them.
    store.record_calls(&[record(2), record(4)]).await.unwrap();
    let rest = export(&store, CallFilter::default(), Some(&first[1].id)).await;
    assert_eq!(ids(&rest), ids(&[record(2), record(4)]));
    let last = export(&store, CallFilter::default(), Some(&rest[1].id)).await;
    assert_eq!(last, []);
}

#[tokio::test]
async fn an_export_has_what_was_there_at_its_start_and_what_the_filter_selects() {
    let store = new_store().await;
    let many: Vec<_> = (0..1000).map(record).collect();
    store.record_calls(&many).await.unwrap();
    let mut running = store.export_calls(CallFilter::default(), None).await.unwrap();
    store.record_calls(&[record(1000)]).await.unwrap();
    let mut all = Vec::new();
    while let Some(page) = running.next().await.unwrap() {
        all.extend(page);
    }
    assert_eq!(ids(&all), ids(&many));
    let at = |n: i64| Some(record(n).started_at_ms);
    let filter = CallFilter { since_ms: at(10), until_ms: at(13), ..CallFilter::default() };
    assert_eq!(ids(&export(&store, filter, None).await), ids(&many[10..13]));
    let nobody = CallFilter { person: Some("nobody".into()), ..CallFilter::default() };
    assert_eq!(export(&store, nobody, None).await, []);
    let empty = new_store().await;
    assert_eq!(export(&empty, CallFilter::default(), None).await, []);
}

#[tokio::test]
async fn a_place_to_continue_from_is_a_record_or_older_than_all_records() {
    let store = new_store().await;
    store.record_calls(&(0..10).map(record).collect::<Vec<_>>()).await.unwrap();
    let retention = Retention { max_calls: 4, ..EVERYTHING };
    assert_eq!(store.prune(&retention).await.unwrap(), Pruned { calls: 6, ..Pruned::default() });
    let left: Vec<_> = (6..10).map(record).collect();
    let deleted = record(2).id;
    assert_eq!(export(&store, CallFilter::default(), Some(&deleted)).await, left);
    let unknown = CallId("9999".into());
    let refused = store.export_calls(CallFilter::default(), Some(&unknown)).await;
    assert!(matches!(refused, Err(ExportError::UnknownRecord(id)) if id == unknown));
}

#[tokio::test]
async fn an_export_that_is_slower_than_the_retention_says_so() {
    let store = new_store().await;
    store.record_calls(&(0..1000).map(record).collect::<Vec<_>>()).await.unwrap();
    let mut running: CallExport = store.export_calls(CallFilter::default(), None).await.unwrap();
    running.next().await.unwrap();
    store.prune(&Retention { max_calls: 900, ..EVERYTHING }).await.unwrap();
    assert_eq!(running.next().await.unwrap().unwrap().len(), 256, "only read ones are gone");
    store.prune(&Retention { max_calls: 10, ..EVERYTHING }).await.unwrap();
    assert!(matches!(running.next().await, Err(ExportError::Deleted)));
}

#[tokio::test]
async fn contents_are_kept_up_to_their_total_and_go_with_their_record() {
    let store = new_store().await;
    let with_contents = |n: i64| CallRecord {
        arguments: Some(RecordedContent { text: "a".repeat(60), bytes: 60, is_cut: false }),
        result: Some(RecordedContent { text: "r".repeat(40), bytes: 400, is_cut: true }),
        ..record(n)
    };
    let records: Vec<_> = (0..5).map(with_contents).collect();
    store.record_calls(&records).await.unwrap();
    assert_eq!(export(&store, CallFilter::default(), None).await, records);
    assert_eq!(store.call(&records[3].id, None).await.unwrap(), Some(with_contents(3)));

    let pruned = store.prune(&Retention { max_content_bytes: 250, ..EVERYTHING }).await.unwrap();
    assert_eq!(pruned, Pruned { contents: 3, ..Pruned::default() });
    let left = export(&store, CallFilter::default(), None).await;
    assert_eq!(left[..3], [record(0), record(1), record(2)]);
    assert_eq!(left[3..], records[3..]);
    store.prune(&Retention { max_calls: 1, ..EVERYTHING }).await.unwrap();
    // The same record again: its contents were deleted with the first one.
    store.record_calls(&[record(3)]).await.unwrap();
    assert_eq!(store.call(&record(3).id, None).await.unwrap(), Some(record(3)));
}

#[tokio::test]
async fn a_principal_sees_its_own_calls_and_those_in_its_sessions() {
    let store = new_store().await;
    let by = |n: i64, principal: &str, owner: &str| CallRecord {
        caller: RecordedCaller {
            principal: Some(principal.into()),
            owner: Some(owner.into()),
            person: Some(format!("user:{principal}").into()),
            key: Some(format!("{principal}-laptop").into()),
            ..RecordedCaller::default()
        },
        ..record(n)
    };
    let records =
        [by(1, "anna", "anna"), by(2, "bob", "bob"), by(3, "root", "anna"), by(4, "anna", "bob")];
    store.record_calls(&records).await.unwrap();
    let filter = CallFilter::newest(9);
    let some = |text: &str| Some(text.to_owned());
    let rows = [
        (CallFilter { visible_to: some("anna"), ..filter.clone() }, vec![4, 3, 1]),
        (CallFilter { visible_to: some("bob"), ..filter.clone() }, vec![4, 2]),
        (
            CallFilter { visible_to: some("bob"), principal: some("anna"), ..filter.clone() },
            vec![4],
        ),
        (CallFilter { owner: some("anna"), ..filter.clone() }, vec![3, 1]),
        (CallFilter { person: some("user:anna"), ..filter.clone() }, vec![4, 1]),
        (CallFilter { principal: some("anna"), ..filter.clone() }, vec![4, 1]),
        (CallFilter { principal: some("root-laptop"), ..filter.clone() }, vec![3]),
        (CallFilter { until_ms: Some(record(3).started_at_ms), ..filter.clone() }, vec![2, 1]),
    ];
    for (filter, wanted) in rows {
        let read = store.recent_calls(&filter).await.unwrap();
        let read: Vec<_> = read.iter().map(|call| call.started_at_ms - 1_700_000_000_000).collect();
        assert_eq!(read, wanted, "{filter:?}");
    }
    assert_eq!(store.call(&records[1].id, Some("anna")).await.unwrap(), None);
    assert_eq!(store.call(&records[2].id, Some("anna")).await.unwrap(), Some(records[2].clone()));
}
