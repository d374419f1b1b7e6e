//! Large results in slices.

use pretty_assertions::assert_eq;
use switchboard_model::CallId;
use switchboard_store::{ResultSlice, Store};

const PART: u64 = 64 * 1024;

fn body(length: u64) -> Vec<u8> {
    (0..length).map(|n| u8::try_from(n * 7 % 251).unwrap()).collect()
}

#[tokio::test]
async fn a_slice_is_what_a_slice_of_the_whole_would_be() {
    let store = Store::in_memory().await.unwrap();
    let call = CallId("c".into());
    for total in [0, 1, PART - 1, PART, PART + 1, 3 * PART + 17] {
        let whole = body(total);
        store.keep_result("h", &call, &whole, 1).await.unwrap();
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
    let store = Store::in_memory().await.unwrap();
    let call = CallId("c".into());
    assert_eq!(store.read_result("h", 0, 1).await.unwrap(), None);
    store.keep_result("h", &call, &body(2 * PART), 1).await.unwrap();
    store.keep_result("h", &call, b"\0\xff", 2).await.unwrap();
    let slice = store.read_result("h", 0, 99).await.unwrap();
    assert_eq!(slice, Some(ResultSlice { bytes: vec![0, 255], total: 2 }));
}
