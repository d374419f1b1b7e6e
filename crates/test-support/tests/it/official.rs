//! The official libraries of the model providers accept the fake backends. `e2e/install-peers.sh` installs them.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use switchboard_test_support::peers;

#[test]
fn the_official_libraries_take_the_fakes_for_real() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../e2e/models/sdk_check.py");
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(peers::python())
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_switchboard-fake-models"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("HOME", home.path())
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "sdk_check.py: {complaint}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    for wrong in said["wrong"].as_array().unwrap() {
        println!("{}", wrong.as_str().unwrap());
    }
    assert_eq!(said, json!({"checked": 17, "wrong": []}));
}
