//! Children that misbehave, with and without a guard above them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_mcp_client::{ConnectOptions, Connection};
use switchboard_model::Era::{Legacy, Modern};
use switchboard_model::{Endpoint, Secret, ServerSpec};
use switchboard_test_support::{peers, wait_until};

use crate::support::{
    PATIENCE, assert_rows, both_ways, call, command, failure, guarded, in_era, names, open, peer,
    text, within,
};
use crate::typed_call::CallFailure;

const BY_HAND: &str = "run the command by hand to see whether it starts and waits for input";

#[tokio::test]
async fn every_kind_of_child_is_listed_and_called_in_its_own_era() {
    for options in both_ways() {
        for (flags, era) in [
            ([].as_slice(), Legacy),
            (&["--modern"], Modern),
            (&["--dual"], Legacy),
            (&["--exit-on-discover"], Legacy),
            (&["--garbage-stdout"], Legacy),
            (&["--garbage-stdout", "--modern"], Modern),
        ] {
            let case = format!("{flags:?}, {:?}", options.guard);
            let (connection, list) = Connection::open(&peer(flags), &options).await.expect(&case);
            assert_eq!((connection.era(), connection.learned_era()), (era, Some(era)), "{case}");
            assert_eq!(list.tools.len(), 8, "{case}");
            let result = call(&connection, "echo", json!({"n": 1})).await.expect(&case);
            assert_eq!(text(&result), r#"{"n":1}"#, "{case}");
            let failed = call(&connection, "fails", json!({})).await.expect(&case);
            assert!(failed.is_error, "{case}");
            connection.close().await;
            assert!(connection.is_closed());
        }
    }
}

#[tokio::test]
async fn an_era_that_is_fixed_is_not_asked_for() {
    // Asked for `initialize`, this child would speak the session era.
    let spec = peer(&["--dual"]);
    let (connection, _) = open(&in_era(spec.clone(), Modern)).await.unwrap();
    assert_eq!((connection.era(), connection.learned_era()), (Modern, None));
    connection.close().await;
    // In the session era it can ask every client, so what an earlier run learned does not matter.
    let options = ConnectOptions { known_era: Some(Modern), ..ConnectOptions::default() };
    let (connection, _) = Connection::open(&spec, &options).await.unwrap();
    assert_eq!(connection.learned_era(), Some(Legacy));
    connection.close().await;
}

#[tokio::test]
async fn a_wrong_memory_of_the_era_is_healed_by_asking_again() {
    for (flags, wrong, right) in [([].as_slice(), Modern, Legacy), (&["--modern"], Legacy, Modern)]
    {
        let options = ConnectOptions { known_era: Some(wrong), ..ConnectOptions::default() };
        let (connection, _) = Connection::open(&peer(flags), &options).await.unwrap();
        assert_eq!(connection.learned_era(), Some(right), "{flags:?}");
        connection.close().await;
    }
}

#[tokio::test]
async fn a_child_that_cannot_be_used_is_described() {
    let in_missing_directory = || {
        let mut spec = command("cat", &[]);
        if let Endpoint::Stdio { cwd, .. } = &mut spec.endpoint {
            *cwd = Some(PathBuf::from("/no/such/place"));
        }
        spec
    };
    let says = |script: &str| command("sh", &["-c", script]);
    let cases: Vec<(&str, ServerSpec, String)> = vec![
        (
            "exits at once",
            peer(&["--exit-at-once"]),
            format!("process: the process ended (exit status: 3) -> {BY_HAND}"),
        ),
        (
            "says why",
            says("echo 'no API key' >&2; exit 5"),
            format!("process: the process ended (exit status: 5); it said:\nno API key -> {BY_HAND}"),
        ),
        (
            "ends well",
            says("exit 0"),
            format!("process: the process ended (exit status: 0) -> {BY_HAND}"),
        ),
        (
            "dies while it lists",
            says("id() { id=${a#*\\\"id\\\":\\\"}; id=${id%%\\\"*}; }; read a; id; echo '{\"jsonrpc\":\"2.0\",\"id\":\"'$id'\",\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}'; read a; read a; echo gone >&2; exit 6"),
            format!("process: the process ended (exit status: 6); it said:\ngone -> {BY_HAND}"),
        ),
        (
            "not found",
            command("switchboard-no-such-command", &[]),
            "process: cannot start `switchboard-no-such-command`: No such file or directory (os error 2) \
             -> `command` is looked up in PATH; give a full path or check `cwd`".into(),
        ),
        (
            "no directory",
            in_missing_directory(),
            "process: cannot start `cat`: there is no directory /no/such/place \
             -> `command` is looked up in PATH; give a full path or check `cwd`".into(),
        ),
    ];
    let mut rows = Vec::new();
    for (case, spec, expected) in cases {
        for options in both_ways() {
            let name = format!("{case}, guard {:?}", options.guard.is_some());
            let opened = Connection::open(&spec, &options).await;
            rows.push((name, failure(opened), expected.clone()));
        }
    }
    assert_rows(rows);
}

#[tokio::test]
async fn a_child_that_never_answers_runs_into_the_timeout() {
    let spec = within(command("sleep", &["1000"]), 300);
    let expected = "timeout: no answer to initialize or server/discover within 300ms \
        -> the process runs and does not answer: check that the command serves MCP on its standard output, \
        or set a larger `connect_timeout` if it needs longer to start";
    assert_eq!(failure(open(&spec).await), expected);
}

#[tokio::test]
async fn a_list_in_a_line_that_is_too_long_is_refused() {
    let expected =
        format!("process: the server wrote a line longer than 16777216 bytes -> {BY_HAND}");
    assert_eq!(failure(open(&peer(&["--long-list", "17"])).await), expected);
}

#[tokio::test]
async fn a_line_that_is_too_long_ends_the_connection_and_says_so() {
    let spec = peer(&["--long-line", "17"]);
    let (connection, _) = Connection::open(&spec, &guarded()).await.unwrap();
    let answer = call(&connection, "long_line", json!({})).await.unwrap_err();
    let expected = "the connection closed: the server wrote a line longer than 16777216 bytes";
    assert_eq!(answer, CallFailure::Unavailable(expected.into()));
    tokio::time::timeout(PATIENCE, connection.closed()).await.expect("it is closed");
    connection.close().await;
}

#[tokio::test]
async fn a_line_just_within_the_bound_arrives() {
    let (connection, _) = open(&peer(&["--long-line", "15"])).await.unwrap();
    let result = call(&connection, "long_line", json!({})).await.unwrap();
    assert_eq!(text(&result).len(), 15 * 1024 * 1024);
    connection.close().await;
}

#[tokio::test]
async fn a_child_that_crashes_during_a_call_is_seen_to_have_crashed() {
    for options in both_ways() {
        let (connection, _) = Connection::open(&peer(&[]), &options).await.unwrap();
        let answer = call(&connection, "crash", json!({})).await.unwrap_err();
        let expected = "the connection closed: the process ended (exit status: 9)";
        assert_eq!(answer, CallFailure::Unavailable(expected.into()));
        tokio::time::timeout(PATIENCE, connection.closed()).await.expect("it is closed");
        assert_eq!(connection.end_reason(), "the process ended (exit status: 9)");
        let later = call(&connection, "echo", json!({})).await.unwrap_err();
        assert_eq!(later, CallFailure::Unavailable(expected.into()));
    }
}

#[tokio::test]
async fn a_child_that_stops_reading_is_named() {
    let (connection, _) = open(&peer(&["--close-stdin"])).await.unwrap();
    // It may have taken a first message with it.
    let answer = wait_until(PATIENCE, async || {
        let answer = call(&connection, "echo", json!({}));
        tokio::time::timeout(Duration::from_secs(1), answer).await.ok()
    });
    let expected = "the process no longer reads its input";
    assert_eq!(answer.await.unwrap_err(), CallFailure::Unavailable(expected.into()));
    connection.close().await;
}

#[tokio::test]
async fn a_flood_on_the_error_output_is_read_and_forgotten() {
    for options in both_ways() {
        let spec = peer(&["--flood-stderr", "20"]);
        let (connection, list) = Connection::open(&spec, &options).await.unwrap();
        assert_eq!(list.tools.len(), 8);
        let kept = connection.stderr().unwrap();
        assert!((8 * 1024..=16 * 1024).contains(&kept.len()), "{} bytes are kept", kept.len());
        connection.close().await;
    }
    let flood = "yes 0123456789 | head -c 1000000 >&2; echo bye >&2; exit 3";
    let error = open(&command("sh", &["-c", flood])).await.unwrap_err();
    assert!(error.message.len() < 2100, "a message of {} bytes", error.message.len());
    assert!(error.message.ends_with("bye"), "{error}");
}

#[tokio::test]
async fn a_child_that_quotes_what_a_reference_gave_it_is_quoted_without_it() {
    let quoting = |script: &str| {
        let spec = command("sh", &["-c", script, "sh", "--token=s3cret-arg", "on"]);
        ServerSpec { referenced: ["s3cret-arg", "on"].map(Secret::new).into(), ..spec }
    };
    // The cut of a long output must not leave the half of a secret either.
    let ending =
        "for i in $(seq 500); do printf '%s ' \"$1\" >&2; done; echo \"$1 $2\" >&2; exit 3";
    let error = open(&quoting(ending)).await.unwrap_err();
    assert!(error.message.ends_with("--token=*** --token=*** on"), "{error}");
    assert!(!error.message.contains("cret"), "{error}");
    let peer = peers::stdio_peer();
    let running = format!("echo \"$1 $2\" >&2; exec {}", peer.to_str().unwrap());
    let (connection, _) = open(&quoting(&running)).await.unwrap();
    assert_eq!(connection.stderr().as_deref(), Some("--token=*** on"));
    connection.close().await;
}

#[tokio::test]
async fn a_child_sees_only_the_environment_that_is_meant_for_it() {
    const INHERITED: &[&str] = &[
        "HOME",
        "LANG",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "TMPDIR",
        "TZ",
        "USER",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "NODE_EXTRA_CA_CERTS",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR",
    ];
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "there is something to hide");
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().canonicalize().unwrap();
    for options in both_ways() {
        let mut spec = peer(&[]);
        spec.endpoint = Endpoint::Stdio {
            command: peers::stdio_peer().to_str().unwrap().into(),
            args: Vec::new(),
            env: BTreeMap::from([
                ("API_KEY".into(), Secret::new("s3cret")),
                ("TZ".into(), Secret::new("Mars/Olympus")),
            ]),
            cwd: Some(place.clone()),
        };
        let (connection, _) = Connection::open(&spec, &options).await.unwrap();
        let result = call(&connection, "environment", json!({})).await.unwrap();
        let seen: Value = serde_json::from_str(text(&result)).unwrap();
        assert_eq!(seen["directory"], json!(place));
        let variables = seen["variables"].as_object().unwrap();
        assert_eq!(variables["API_KEY"], "s3cret");
        assert_eq!(variables["TZ"], "Mars/Olympus", "what is configured wins");
        assert_eq!(variables.get("PATH"), std::env::var("PATH").ok().map(Value::from).as_ref());
        let leaked: Vec<_> = variables
            .keys()
            .filter(|name| *name != "API_KEY" && !INHERITED.contains(&name.as_str()))
            .collect();
        assert!(leaked.is_empty(), "{leaked:?}");
        connection.close().await;
    }
}

#[tokio::test]
async fn arguments_reach_the_child_as_they_are() {
    // A guard must not take the arguments of the child for its own.
    for options in both_ways() {
        let spec = command(
            "sh",
            &["-c", "printf '%s|' \"$@\" >&2; exit 1", "sh", "--", "a b", "--help", ""],
        );
        let error = Connection::open(&spec, &options).await.unwrap_err();
        assert!(error.message.ends_with("it said:\n--|a b|--help||"), "{error}");
    }
}

#[tokio::test]
async fn two_hundred_calls_run_at_the_same_time() {
    let (connection, list) = open(&peer(&[])).await.unwrap();
    assert!(names(&list).contains(&"sleep"));
    let calls = (0..200).map(|_| call(&connection, "sleep", json!({"ms": 300})));
    let all = tokio::time::timeout(PATIENCE, futures::future::join_all(calls)).await.unwrap();
    assert!(all.iter().all(Result::is_ok));
    connection.close().await;
}

#[tokio::test]
async fn a_connection_that_is_dropped_ends_its_child() {
    let directory = tempfile::tempdir().unwrap();
    for options in both_ways() {
        let file = directory.path().join("pids");
        let spec = peer(&["--pid-file", file.to_str().unwrap()]);
        let (connection, _) = Connection::open(&spec, &options).await.unwrap();
        let pids = crate::support::pids_in(&file).await;
        assert!(pids.iter().all(|pid| crate::support::is_alive(*pid)));
        drop(connection);
        crate::support::all_gone(&pids, Duration::from_secs(3)).await;
        std::fs::remove_file(&file).unwrap();
    }
}
