//! The API document and the API: a linter checks the document, a fuzzer sends valid and invalid requests to a running
//! board, and every response must match the document.
#![expect(clippy::expect_used, reason = "tests, and what they are made of")]

use switchboard_test_program::support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;
use switchboard_test_support::peers;

use crate::support::{Home, stdio, with, yaml};

fn workspace_file(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace");
    root.join(path)
}

#[track_caller]
fn assert_content(output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complaint}");
}

#[test]
fn a_linter_finds_nothing_in_the_document() {
    let linted = Command::new(peers::node())
        .arg(peers::api_linter())
        .args(["lint", "--config"])
        .arg(workspace_file("e2e/api/redocly.yaml"))
        .arg(workspace_file("docs/openapi.json"))
        .env("REDOCLY_TELEMETRY", "off")
        .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true")
        .output()
        .unwrap();
    assert_content(&linted);
}

#[tokio::test]
async fn a_board_serves_the_document_that_is_committed_to_everybody() {
    let home = Home::new(yaml(&["{name: sum_numbers}"], &[]));
    home.line("key add somebody").expect(0);
    let serve = home.serve().await;
    let served = serve.text("/api/v1/openapi.json").await;
    let committed = std::fs::read_to_string(workspace_file("docs/openapi.json")).unwrap();
    assert!(served == committed, "docs/openapi.json is out of date: run `cargo xtask generate`");
    let page = serve.text("/api/v1/docs").await;
    assert!(page.contains("<title>Switchboard API</title>"), "{page}");
}

/// `demo.wait` may run into its timeout, and the toggle changes the catalog: both are right and would be noise here.
fn board_yaml() -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_switchboard"));
    let demo = stdio("demo", program, &["demo-server", "--stdio"]);
    let demo = with(&demo, "tool_denylist: [wait, toggle_surprise]");
    // Nothing listens there: only the accounts of its users are tried.
    let personal = "{name: personal, url: \"http://127.0.0.1:9/mcp\", required: false, mode: dynamic, \
                    default_tool_config: {}, auth: {bearer: {per: user}}}";
    let tools = ["{name: sum_numbers}", "{name: demo.lorem, max_result_bytes: 1024}"];
    let board = yaml(&tools, &[demo, personal.to_owned()]);
    format!("{board}  agents: [{{name: helper, servers: [demo]}}, {{name: whole}}]\n")
}

#[tokio::test]
async fn a_fuzzer_hears_nothing_that_the_document_does_not_say() {
    let home = Home::new(board_yaml());
    let added = home.line("key add fuzzer --role operator --json").expect(0).json();
    let key = added["key"].as_str().unwrap();
    let serve = home.serve().await;
    let large = serve.http.post(serve.at("/api/v1/tools/demo.lorem/call")).bearer_auth(key);
    let large = large.json(&json!({"arguments": {"bytes": 3000}})).send().await.unwrap();
    let large: serde_json::Value = large.json().await.unwrap();
    // What the dictionaries of its settings name. Many: it binds, switches off and ends what it finds.
    let sessions: Vec<_> = (1..=60).map(|number| format!("work-{number}")).collect();
    let ended = (1..=3).map(|number| format!("ended-{number}"));
    for id in sessions.iter().cloned().chain(ended) {
        let made = serve.http.post(serve.at("/api/v1/sessions")).bearer_auth(key);
        let made = made.json(&json!({"id": id})).send().await.unwrap();
        assert_eq!(made.status().as_u16(), 201, "{id}");
    }
    // What was said in them, for the routes of turns.
    for id in &sessions {
        let turns = format!("/api/v1/sessions/{id}/turns");
        let said = serve.http.post(serve.at(&turns)).bearer_auth(key);
        let said =
            said.json(&json!({"id": "first", "message": "/say hello"})).send().await.unwrap();
        assert_eq!(said.status().as_u16(), 200, "{id}");
    }
    // The fuzzer leaves files where it runs and reads its settings there.
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("handles.txt"), format!("{}\n", large["result_handle"]))
        .unwrap();
    let quoted: Vec<_> = sessions.iter().map(|id| format!("\"{id}\"\n")).collect();
    std::fs::write(place.path().join("sessions.txt"), quoted.concat()).unwrap();
    let settings = workspace_file("e2e/api/schemathesis.toml");
    std::fs::copy(settings, place.path().join("schemathesis.toml")).unwrap();
    let fuzzed = tokio::process::Command::new(peers::python())
        .args(["-c", "from schemathesis.cli import schemathesis; schemathesis()", "run"])
        .arg(serve.at("/api/v1/openapi.json"))
        .env("PYTHONPATH", peers::api_fuzzer())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SWITCHBOARD_KEY", key)
        .current_dir(place.path())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    assert_content(&fuzzed);
    let said = String::from_utf8_lossy(&fuzzed.stdout);
    assert!(said.contains("No issues found"), "{said}");
    let log = serve.stderr();
    assert!(!log.contains("ERROR") && !log.contains("panicked"), "{log}");
}
