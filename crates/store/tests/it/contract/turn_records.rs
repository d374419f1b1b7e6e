//! Records of turns of apps.

use pretty_assertions::assert_eq;
use switchboard_store::{NewTurnRecord, Store, StoreError, TurnRecordBounds};

use super::database::new_store;

const BOUNDS: TurnRecordBounds =
    TurnRecordBounds { owner_count: 3, owner_bytes: 100, total_bytes: 150 };

fn record<'a>(owner: &'a str, keys: &'a [&'a [u8]], content: &'a str) -> NewTurnRecord<'a> {
    NewTurnRecord { owner, session: "s", keys, content, now_ms: 10, expires_at_ms: 20 }
}

async fn contents(store: &Store, owner: &str, keys: &[&[u8]], now_ms: i64) -> Vec<String> {
    let mut found = store.turn_records(owner, "s", keys, now_ms).await.unwrap();
    found.sort();
    found.into_iter().map(|(_, content)| content).collect()
}

#[tokio::test]
async fn a_record_is_found_by_each_of_its_keys_until_it_ends() {
    let store = new_store().await;
    store.keep_turn_record(&record("a", &[b"1", b"2"], "first"), &BOUNDS).await.unwrap();
    assert_eq!(contents(&store, "a", &[b"1", b"2", b"3"], 19).await, ["first", "first"]);
    assert!(contents(&store, "b", &[b"1"], 19).await.is_empty(), "another principal");
    let other = store.turn_records("a", "t", &[b"1"], 19).await.unwrap();
    assert!(other.is_empty(), "another session");
    assert!(contents(&store, "a", &[b"1"], 20).await.is_empty(), "it has ended");
    store.keep_turn_record(&record("a", &[b"2"], "second"), &BOUNDS).await.unwrap();
    assert_eq!(contents(&store, "a", &[b"1", b"2"], 19).await, ["first", "second"]);
    let many: Vec<Vec<u8>> = (0..1200_u32).map(|n| n.to_le_bytes().to_vec()).collect();
    let mut many: Vec<&[u8]> = many.iter().map(Vec::as_slice).collect();
    many.push(b"1");
    assert_eq!(contents(&store, "a", &many, 19).await, ["first"], "any number of keys");
}

#[tokio::test]
async fn the_oldest_make_room_and_the_ended_are_swept() {
    let store = new_store().await;
    let large = "x".repeat(60);
    for (owner, key) in [("a", b"1"), ("a", b"2"), ("a", b"3"), ("a", b"4")] {
        store.keep_turn_record(&record(owner, &[key], "small"), &BOUNDS).await.unwrap();
    }
    assert!(contents(&store, "a", &[b"1"], 19).await.is_empty(), "three per owner");
    store.keep_turn_record(&record("a", &[b"5"], &large), &BOUNDS).await.unwrap();
    store.keep_turn_record(&record("a", &[b"6"], &large), &BOUNDS).await.unwrap();
    assert_eq!(contents(&store, "a", &[b"3", b"4", b"5", b"6"], 19).await, [large.as_str()]);
    for owner in ["b", "c"] {
        store.keep_turn_record(&record(owner, &[b"7"], &large), &BOUNDS).await.unwrap();
    }
    assert!(contents(&store, "a", &[b"6"], 19).await.is_empty(), "the total has a bound");
    let too_large = "x".repeat(101);
    let refused = store.keep_turn_record(&record("a", &[b"8"], &too_large), &BOUNDS).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { bytes: 101, .. })), "{refused:?}");
    assert_eq!(store.sweep_turn_records(19).await.unwrap(), 0);
    assert_eq!(store.sweep_turn_records(20).await.unwrap(), 2);
}
