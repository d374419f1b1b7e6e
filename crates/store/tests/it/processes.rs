//! Real processes on one directory: this test binary, started again.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use pretty_assertions::assert_eq;
use switchboard_store::{CallFilter, Store};

use crate::record;

const DIRECTORY: &str = "STORE_TEST_DIRECTORY";
const FIRST: &str = "STORE_TEST_FIRST";
const ACKNOWLEDGED: &str = "acknowledged ";

/// What a child does: write one record after the other and say so each time. Started by the test runner itself,
/// it has no directory and does nothing.
#[tokio::test]
async fn child() {
    let (Ok(directory), Ok(first)) = (std::env::var(DIRECTORY), std::env::var(FIRST)) else {
        return;
    };
    let first: i64 = first.parse().unwrap();
    let store = Store::open(Path::new(&directory)).await.unwrap();
    for n in first..first + 200 {
        store.record_calls(&[record(n)]).await.unwrap();
        println!("\n{ACKNOWLEDGED}{n}");
    }
}

fn start(directory: &Path, first: i64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["processes::child", "--exact", "--nocapture"])
        .env(DIRECTORY, directory)
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

async fn kept(directory: &Path) -> Vec<i64> {
    let store = Store::open(directory).await.unwrap();
    let calls = store.recent_calls(&CallFilter::newest(10_000)).await.unwrap();
    calls.iter().rev().map(|call| call.started_at_ms - record(0).started_at_ms).collect()
}

#[tokio::test]
async fn several_processes_open_and_write_at_once() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("new");
    let mut children: Vec<_> = (0..4).map(|n| start(&directory, n * 1000)).collect();
    for child in &mut children {
        assert_eq!(acknowledged(child, usize::MAX).len(), 200);
        assert!(child.wait().unwrap().success());
    }
    let wanted: Vec<_> = (0..4).flat_map(|n| n * 1000..n * 1000 + 200).collect();
    assert_eq!(kept(&directory).await, wanted);
}

#[tokio::test]
async fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = start(directory.path(), 0);
    let said = acknowledged(&mut child, 50);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(said.len(), 50);
    assert_eq!(kept(directory.path()).await[..50], said);
}
