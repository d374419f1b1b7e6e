//! Children that read nothing for a while, as `npx` and `uvx` do while they download.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::json;
use switchboard_mcp_client::{ConnectOptions, ConnectProgress, Connection, ProbeTimes};
use switchboard_model::Era::{self, Legacy, Modern};
use switchboard_test_support::wait_until;

use crate::support::{PATIENCE, call, command, failure, in_era, open, peer, text, within};

/// Long enough that every question which a time decides has been sent before the child reads one.
const DOWNLOAD: &str = "700";

/// `ping` and `initialize` are both sent while the child still downloads.
const EVERYTHING_EARLY: ProbeTimes = ProbeTimes {
    ping: Duration::from_millis(50),
    after_ping: Duration::from_secs(5),
    other: Duration::from_millis(100),
};

/// Only `ping` is.
const PING_EARLY: ProbeTimes = ProbeTimes {
    other: Duration::from_mins(1),
    after_ping: Duration::from_millis(50),
    ..EVERYTHING_EARLY
};

struct Case {
    flags: &'static [&'static str],
    times: ProbeTimes,
    known: Option<Era>,
    era: Era,
    learned: Option<Era>,
}

#[track_caller]
fn row(
    flags: &'static [&'static str],
    times: ProbeTimes,
    known: Option<Era>,
    (era, learned): (Era, Option<Era>),
) -> Case {
    Case { flags, times, known, era, learned }
}

#[tokio::test]
async fn a_slow_child_connects_in_its_era_and_is_started_once() {
    let cases = [
        row(&["--modern"], PING_EARLY, None, (Modern, Some(Modern))),
        row(&["--dual"], PING_EARLY, None, (Legacy, Some(Legacy))),
        row(&[], PING_EARLY, None, (Legacy, Some(Legacy))),
        // Whatever is sent early, the first answer by its id counts.
        row(&["--modern"], EVERYTHING_EARLY, None, (Modern, Some(Modern))),
        row(&["--dual"], EVERYTHING_EARLY, None, (Legacy, Some(Legacy))),
        row(&[], EVERYTHING_EARLY, None, (Legacy, Some(Legacy))),
        // What was remembered does not matter.
        row(&["--modern"], PING_EARLY, Some(Legacy), (Modern, Some(Modern))),
        row(&[], PING_EARLY, Some(Modern), (Legacy, Some(Legacy))),
        // Servers that ignore what they do not know.
        row(&["--ignore-discover"], PING_EARLY, None, (Legacy, Some(Legacy))),
        row(
            &["--ignore-discover", "--ignore-ping"],
            EVERYTHING_EARLY,
            None,
            (Legacy, Some(Legacy)),
        ),
    ];
    let trying = cases.into_iter().enumerate().map(async |(at, case)| {
        let Case { flags, times, known, era, learned } = case;
        let name = format!("row {at}: {flags:?}, known {known:?}");
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("starts");
        let mut flags = flags.to_vec();
        flags.extend(["--start-after", DOWNLOAD, "--start-log", log.to_str().unwrap()]);
        let options =
            ConnectOptions { known_era: known, probe_times: times, ..ConnectOptions::default() };
        let (connection, list) = Connection::open(&peer(&flags), &options).await.expect(&name);
        assert_eq!((connection.era(), connection.learned_era()), (era, learned), "{name}");
        assert_eq!(list.tools.len(), 8, "{name}");
        let result = call(&connection, "echo", json!({"n": 1})).await.expect(&name);
        assert_eq!(text(&result), r#"{"n":1}"#, "{name}");
        assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 1, "{name}: started once");
        connection.close().await;
    });
    futures::future::join_all(trying).await;
}

#[tokio::test]
async fn a_fixed_era_is_waited_for_and_nothing_else_is_sent() {
    for (flags, era) in [
        (["--modern", "--start-after", DOWNLOAD], Modern),
        (["--dual", "--start-after", DOWNLOAD], Legacy),
    ] {
        let options = ConnectOptions { probe_times: EVERYTHING_EARLY, ..ConnectOptions::default() };
        let (connection, _) = Connection::open(&in_era(peer(&flags), era), &options).await.unwrap();
        assert_eq!(connection.era(), era);
        connection.close().await;
    }
}

#[tokio::test]
async fn a_launcher_that_takes_too_long_is_named_with_its_last_words() {
    let directory = tempfile::tempdir().unwrap();
    let npx = directory.path().join("npx");
    fs::write(&npx, "#!/bin/sh\necho 'npm warn exec installing files@1' >&2\nexec sleep 1000\n")
        .unwrap();
    fs::set_permissions(&npx, fs::Permissions::from_mode(0o755)).unwrap();
    let spec = within(command(npx.to_str().unwrap(), &["-y", "files"]), 1500);
    let progress = std::sync::Arc::new(ConnectProgress::default());
    let options = ConnectOptions { progress: Some(progress.clone()), ..ConnectOptions::default() };
    let opening = Connection::open(&spec, &options);
    let watching = wait_until(PATIENCE, async || progress.last_output());
    let (opened, said) = tokio::join!(opening, watching);
    assert_eq!(said, "npm warn exec installing files@1");
    assert_eq!(
        failure(opened),
        "timeout: no answer to initialize or server/discover within 1s500ms; the last line of its error output: \
         npm warn exec installing files@1 -> `npx` may have been downloading: run the command once by hand, which fills \
         its cache, or set a larger `connect_timeout`"
    );
}

#[tokio::test]
async fn a_child_that_refuses_both_handshakes_is_refused_with_its_reason() {
    let script = r#"while read -r a; do id=${a#*\"id\":\"}; id=${id%%\"*}; echo '{"jsonrpc":"2.0","id":"'$id'","error":{"code":-32601,"message":"no such thing"}}'; done"#;
    let opened = open(&command("sh", &["-c", script])).await;
    assert_eq!(failure(opened), "protocol: the server refused the handshake: no such thing");
}
