//! Large results in slices.

use pretty_assertions::assert_eq;
use switchboard_model::CallId;
use switchboard_store::{NewResult, ResultBounds, ResultSlice, StoreError};

use super::database::new_store;
use crate::{NO_BOUNDS, kept};

const PART: u64 = 64 * 1024;

fn body(length: u64) -> Vec<u8> {
    (0..length).map(|n| u8::try_from(n * 7 % 251).unwrap()).collect()
}

#[tokio::test]
async fn a_slice_is_what_a_slice_of_the_whole_would_be() {
    let store = new_store().await;
    let call = CallId("c".into());
    for total in [0, 1, PART - 1, PART, PART + 1, 3 * PART + 17] {
        let whole = body(total);
        store.keep_result(&kept("h", &call, &whole, 1), &NO_BOUNDS).await.unwrap();
        let edges = [0, 1, PART - 1, PART, PART + 1, 2 * PART, total, total + 1, u64::MAX];
        for offset in edges {
            for length in edges {
                let from = usize::try_from(offset.min(total)).unwrap();
                let to = usize::try_from(offset.saturating_add(length).min(total)).unwrap();
                let slice = store.read_result("h", offset, length).await.unwrap().unwrap();
                assert!(slice.bytes == whole[from..to], "{total}: {length} from {offset}");
                assert_eq!(slice.total, total);
            }
        }
    }
}

#[tokio::test]
async fn an_unknown_handle_has_nothing_and_a_second_keep_replaces() {
    let store = new_store().await;
    let call = CallId("c".into());
    assert_eq!(store.read_result("h", 0, 1).await.unwrap(), None);
    store.keep_result(&kept("h", &call, &body(2 * PART), 1), &NO_BOUNDS).await.unwrap();
    store.keep_result(&kept("h", &call, b"\0\xff", 2), &NO_BOUNDS).await.unwrap();
    let slice = store.read_result("h", 0, 99).await.unwrap();
    assert_eq!(slice, Some(ResultSlice { bytes: vec![0, 255], total: 2 }));
}

/// Owner and size of each result in order, and which of them are left at the end.
type Row = (&'static [(&'static str, usize)], &'static [usize]);

#[tokio::test]
async fn older_results_make_room_when_one_is_written() {
    let bounds = ResultBounds { total_bytes: 1000, owner_bytes: 400, count: 6 };
    let call = CallId("c".into());
    let rows: [Row; 6] = [
        (&[("a", 100), ("a", 100), ("b", 100)], &[0, 1, 2]),
        (&[("a", 300), ("b", 100), ("a", 200)], &[1, 2]),
        (&[("b", 10), ("a", 200), ("a", 200), ("a", 1)], &[0, 2, 3]),
        (&[("a", 400), ("b", 400), ("c", 150), ("d", 100)], &[1, 2, 3]),
        (
            &[("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1), ("f", 1), ("g", 1)],
            &[1, 2, 3, 4, 5, 6],
        ),
        (&[("a", 400), ("a", 400)], &[1]),
    ];
    // Also when the clock goes back, the last one written stays.
    for clock in [1, -1] {
        for (written, wanted) in rows {
            let store = new_store().await;
            for (n, (owner, bytes)) in (0i64..).zip(written) {
                let (handle, body) = (format!("h{n}"), vec![7; *bytes]);
                let result = NewResult { owner, ..kept(&handle, &call, &body, n * clock) };
                store.keep_result(&result, &bounds).await.unwrap();
                let newest = store.read_result(&handle, 0, 9999).await.unwrap().unwrap();
                assert_eq!(newest.bytes, body, "{written:?}: what is acknowledged is there");
            }
            let mut left = Vec::new();
            for n in 0..written.len() {
                left.extend(store.read_result(&format!("h{n}"), 0, 1).await.unwrap().map(|_| n));
            }
            if clock == 1 {
                assert_eq!(left, wanted, "{written:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_result_that_does_not_fit_at_all_is_refused_and_takes_no_other_place() {
    let bounds = ResultBounds { total_bytes: 1000, owner_bytes: 400, count: 6 };
    let (store, call) = (new_store().await, CallId("c".into()));
    store.keep_result(&kept("small", &call, b"x", 1), &bounds).await.unwrap();
    let refused = store.keep_result(&kept("large", &call, &vec![0; 401], 2), &bounds).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { bytes: 401, most: 400, .. })));
    assert!(store.outage().is_none(), "that is no outage");
    assert!(store.read_result("small", 0, 1).await.unwrap().is_some());
    assert_eq!(store.read_result("large", 0, 1).await.unwrap(), None);
}
