//! Validates the requests in `tests/golden` with OpenAI's own types. `e2e/install-peers.sh` installs them.
#![expect(clippy::unwrap_used, reason = "tests, and what they are made of")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use switchboard_test_support::peers;

fn crate_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs the script on a directory, with the optional validators beside the repository.
fn check(directory: &Path) -> Value {
    let root = crate_root().join("../..");
    let places = ["../shared/validators", "../../shared/validators"].map(|place| root.join(place));
    let validators: Option<PathBuf> = places.into_iter().find(|place| place.exists());
    let output = Command::new(peers::python())
        .arg(root.join("e2e/renderings/check_openai_bodies.py"))
        .arg(directory)
        .args(validators)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_official_types_take_every_request() {
    let said = check(&crate_root().join("tests/golden"));
    assert_eq!(said["wrong"], json!([]));
    assert!(said["checked"].as_u64().unwrap() >= 21, "{said}");
}

/// The check must detect these errors, which a lenient one would miss.
#[test]
fn the_official_types_find_what_is_wrong() {
    let said = json!({"role": "user", "content": "hello"});
    let of_items = |item: Value| json!({"model": "m", "input": [said, item], "stream": true});
    let of_lines = |line: Value| json!({"model": "m", "messages": [said, line], "stream": true});
    let wrong = [
        (
            "openai",
            of_items(json!({"type": "function_call_output", "call_id": "c", "output": {"a": 1}})),
        ),
        (
            "openai",
            of_items(
                json!({"type": "function_call", "call_id": "c", "name": "a", "arguments": {}}),
            ),
        ),
        ("chatgpt", of_items(json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "S"}))),
        ("chatgpt", json!({"model": "m", "input": [said], "stream": true, "max_tokens": 1})),
        ("openai-chat", of_lines(json!({"role": "tool", "content": "a"}))),
        (
            "openai-chat",
            of_lines(
                json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "a", "arguments": {}}}]}),
            ),
        ),
    ];
    let directory = tempfile::tempdir().unwrap();
    for (number, (kind, body)) in wrong.iter().enumerate() {
        let file = directory.path().join(format!("openai-wrong{number}.{kind}.json"));
        fs::write(file, body.to_string()).unwrap();
    }
    let said = check(directory.path());
    for number in 0..wrong.len() {
        let start = format!("openai-wrong{number}.");
        let mut lines = said["wrong"].as_array().unwrap().iter().filter_map(Value::as_str);
        assert!(lines.any(|line| line.starts_with(&start)), "{number}: {said}");
    }
}
