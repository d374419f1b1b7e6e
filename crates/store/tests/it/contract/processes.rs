//! Real processes on one directory: this test binary, started again.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use pretty_assertions::assert_eq;
use switchboard_store::CallFilter;

use super::database::Database;
use crate::record;

const DATABASE: &str = "STORE_TEST_DATABASE";
const FIRST: &str = "STORE_TEST_FIRST";
const ACKNOWLEDGED: &str = "acknowledged ";

/// What a child does: write one record after the other and say so each time. Started by the test runner itself,
/// it has no directory and does nothing.
#[tokio::test]
async fn child() {
    let (Ok(address), Ok(first)) = (std::env::var(DATABASE), std::env::var(FIRST)) else {
        return;
    };
    let first: i64 = first.parse().unwrap();
    let store = Database::open_at(&address).await;
    for n in first..first + 200 {
        store.record_calls(&[record(n)]).await.unwrap();
        println!("\n{ACKNOWLEDGED}{n}");
    }
}

fn start(database: &Database, first: i64) -> Child {
    // The module of this database, without the name of the binary.
    let child = format!("{}::child", module_path!().split_once("::").unwrap().1);
    Command::new(std::env::current_exe().unwrap())
        .args([child.as_str(), "--exact", "--nocapture"])
        .env(DATABASE, database.address())
        .env(FIRST, first.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What a child says that it wrote, up to `enough`.
fn acknowledged(child: &mut Child, enough: usize) -> Vec<i64> {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines().map(Result::unwrap);
    let numbers =
        lines.filter_map(|line| line.strip_prefix(ACKNOWLEDGED).map(|n| n.parse().unwrap()));
    numbers.take(enough).collect()
}

async fn kept(database: &Database) -> Vec<i64> {
    let store = database.open().await;
    let calls = store.recent_calls(&CallFilter::newest(10_000)).await.unwrap();
    calls.iter().rev().map(|call| call.started_at_ms - record(0).started_at_ms).collect()
}

#[tokio::test]
async fn several_processes_open_and_write_at_once() {
    let database = Database::new();
    let mut children: Vec<_> = (0..4).map(|n| start(&database, n * 1000)).collect();
    for child in &mut children {
        assert_eq!(acknowledged(child, usize::MAX).len(), 200);
        assert!(child.wait().unwrap().success());
    }
    let wanted: Vec<_> = (0..4).flat_map(|n| n * 1000..n * 1000 + 200).collect();
    assert_eq!(kept(&database).await, wanted);
}

#[tokio::test]
async fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let database = Database::new();
    let mut child = start(&database, 0);
    let said = acknowledged(&mut child, 50);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(said.len(), 50);
    assert_eq!(kept(&database).await[..50], said);
}
