//! The boards that use a database, by its clock.

use std::time::Duration;

use pretty_assertions::assert_eq;

use super::database::new_store;

const LEASE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_board_is_there_until_it_leaves_or_its_time_passes() {
    let store = new_store().await;
    let first = store.renew_replica("a", "one", LEASE).await.unwrap();
    assert!(!first.was_live, "it has just come");
    let second = store.renew_replica("b", "two", Duration::ZERO).await.unwrap();
    let ids = |live: &[switchboard_store::Replica]| {
        live.iter().map(|replica| replica.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&second.live), ["a"], "the time of `b` has passed already");
    assert!(store.renew_replica("a", "one", LEASE).await.unwrap().was_live);
    assert!(!store.renew_replica("b", "two", LEASE).await.unwrap().was_live, "others gave it up");
    let live = store.live_replicas().await.unwrap();
    assert_eq!(ids(&live), ["a", "b"]);
    assert_eq!(live[0].started_at_ms, first.now_ms, "renewing does not start it again");
    assert!(live[0].expires_at_ms > first.now_ms + 59_000);
    store.remove_replica("a").await.unwrap();
    assert_eq!(ids(&store.live_replicas().await.unwrap()), ["b"]);
}
