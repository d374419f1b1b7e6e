//! Tests that no child process outlives the program, however either of them ends.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use switchboard_mcp_client::{ConnectOptions, Connection};
use switchboard_test_support::peers;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::support::{
    PATIENCE, all_gone, both_ways, guarded, helper, is_alive, open, peer, pids_in, within,
};

/// Where a scripted server writes the ids of its processes.
struct PidFile {
    path: PathBuf,
    _directory: TempDir,
}

impl PidFile {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { path: directory.path().join("pids"), _directory: directory }
    }

    fn flags<'a>(&'a self, flags: &[&'a str]) -> Vec<&'a str> {
        [flags, &["--pid-file", self.path.to_str().unwrap()]].concat()
    }
}

#[tokio::test]
async fn nothing_is_left_when_we_are_killed() {
    for flags in [["--spawn-grandchild"].as_slice(), &["--spawn-grandchild", "--ignore-sigterm"]] {
        let file = PidFile::new();
        let mut us = Command::new(helper())
            .arg("hold")
            .arg(peers::stdio_peer())
            .args(file.flags(flags))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(us.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "8 tools\n");
        let pids = pids_in(&file.path).await;
        assert_eq!(pids.len(), 3, "the server, its child, and one in a session of its own");
        assert!(pids.iter().all(|pid| is_alive(*pid)));
        us.kill().unwrap();
        us.wait().unwrap();
        all_gone(&pids, Duration::from_secs(2)).await;
    }
}

#[tokio::test]
async fn closing_leaves_no_process_of_the_whole_tree() {
    let file = PidFile::new();
    let spec = peer(&file.flags(&["--spawn-grandchild"]));
    let (connection, _) = Connection::open(&spec, &guarded()).await.unwrap();
    let pids = pids_in(&file.path).await;
    assert_eq!(pids.len(), 3);
    tokio::time::timeout(PATIENCE, connection.close()).await.expect("closing ends");
    assert!(pids.iter().all(|pid| !is_alive(*pid)), "close() returned before they were gone");
}

#[tokio::test]
async fn closing_does_not_wait_for_a_grandchild_that_holds_the_streams() {
    let file = PidFile::new();
    let spec = peer(&file.flags(&["--spawn-grandchild"]));
    let (connection, _) = open(&spec).await.unwrap();
    let pids = pids_in(&file.path).await;
    tokio::time::timeout(PATIENCE, connection.close()).await.expect("closing ends");
    // Without a guard only the child itself is ours to end.
    assert!(!is_alive(pids[0]));
    for pid in &pids[1..] {
        Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    }
}

#[tokio::test]
async fn closing_ends_a_child_that_ignores_every_request_to_end() {
    let closings = both_ways().map(|options| async move {
        let file = PidFile::new();
        let spec = peer(&file.flags(&["--ignore-sigterm"]));
        let (connection, _) = Connection::open(&spec, &options).await.unwrap();
        let pids = pids_in(&file.path).await;
        connection.close().await;
        assert!(pids.iter().all(|pid| !is_alive(*pid)), "guard: {:?}", options.guard);
    });
    let start = Instant::now();
    futures::future::join_all(closings).await;
    assert!(start.elapsed() < Duration::from_secs(8), "it took {:?}", start.elapsed());
}

#[tokio::test]
async fn an_opening_that_is_given_up_leaves_no_process() {
    for options in both_ways() {
        let file = PidFile::new();
        let flags = file.flags(&["--start-after", "60000"]);
        let spec = within(peer(&flags), 500);
        assert!(Connection::open(&spec, &options).await.is_err());
        all_gone(&pids_in(&file.path).await, PATIENCE).await;
    }
}

#[tokio::test]
async fn a_child_that_is_started_twice_is_left_only_once() {
    let file = PidFile::new();
    let flags = file.flags(&["--modern"]);
    for options in [ConnectOptions::default(), guarded()] {
        let (connection, _) = Connection::open(&peer(&flags), &options).await.unwrap();
        let pids = pids_in(&file.path).await;
        connection.close().await;
        all_gone(&pids, PATIENCE).await;
    }
}

#[test]
fn the_guard_passes_on_how_its_command_ended() {
    let parent = std::process::id().to_string();
    for (script, code) in [("exit 0", 0), ("exit 42", 42), ("kill -9 $$", 137)] {
        let run =
            Command::new(helper()).args(["guard", &parent, "--", "sh", "-c", script]).status();
        assert_eq!(run.unwrap().code(), Some(code), "{script}");
    }
    let run = Command::new(helper()).args(["guard", &parent, "--", "no-such-command"]).output();
    let run = run.unwrap();
    assert_eq!(run.status.code(), Some(127));
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!(said, "cannot start `no-such-command`: No such file or directory (os error 2)\n");
}

#[test]
fn a_guard_without_its_parent_starts_nothing() {
    let run = Command::new(helper()).args(["guard", "1", "--", "echo", "started"]).output();
    let run = run.unwrap();
    assert_eq!((run.status.code(), run.stdout.as_slice()), (Some(127), b"".as_slice()));
}
