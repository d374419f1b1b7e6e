//! Rates of calls over boards.

use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_model::Rate;
use tokio::task::JoinSet;

use super::database::{Database, new_store};

#[tokio::test]
async fn a_rate_is_counted_by_tools_and_callers() {
    let store = new_store().await;
    let rate: Rate = "3/day".parse().unwrap();
    let take =
        async |tool, caller, wanted| store.take_calls(tool, caller, rate, wanted).await.unwrap();
    assert_eq!(take("crm.find", None, 1).await, Ok(1));
    assert_eq!(take("crm.find", None, 5).await, Ok(2));
    let wait = take("crm.find", None, 1).await.unwrap_err();
    assert!(wait > Duration::from_hours(7) && wait <= Duration::from_hours(8), "{wait:?}");
    assert_eq!(take("crm.find", Some("key:1"), 1).await, Ok(1));
    assert_eq!(take("crm.write", None, 9).await, Ok(3));
    assert!(take("crm.find", None, 1).await.is_err(), "callers have their own");
}

#[tokio::test]
async fn a_bucket_fills_again() {
    let store = new_store().await;
    let rate: Rate = "10/s".parse().unwrap();
    assert_eq!(store.take_calls("crm.find", None, rate, 10).await.unwrap(), Ok(10));
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(store.take_calls("crm.find", None, rate, 20).await.unwrap(), Ok(10));
    assert_eq!(store.forget_full_buckets().await.unwrap(), 0, "it is empty");
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(store.forget_full_buckets().await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn boards_that_count_at_the_same_time_make_no_call_too_many() {
    let database = Database::new();
    let stores = [database.open().await, database.open().await];
    let rate: Rate = "50/day".parse().unwrap();
    let mut tasks = JoinSet::new();
    for task in 0..8_usize {
        let store = stores[task % 2].clone();
        tasks.spawn(async move {
            let mut taken = 0;
            for wanted in [1, 3, 1, 2, 1, 5, 1, 1, 4, 2] {
                taken +=
                    store.take_calls("crm.find", None, rate, wanted).await.unwrap().unwrap_or(0);
            }
            taken
        });
    }
    assert_eq!(tasks.join_all().await.iter().sum::<u32>(), 50);
}
