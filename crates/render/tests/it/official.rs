//! Validates renderings with the providers' own libraries. `e2e/install-peers.sh` installs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use switchboard_model::{JsonText, ToolDescriptor};
use switchboard_render::{ApplyDelta, Delta, Provider};
use switchboard_test_support::{market_catalogue, peers};
use tempfile::TempDir;

use crate::cases::cases;
use crate::{beside, crate_root, render};

fn script(name: &str) -> PathBuf {
    crate_root().join("../../e2e/renderings").join(name)
}

/// Runs a script of `e2e/renderings` and reads the line that it prints.
fn run(name: &str, arguments: &[&Path]) -> Value {
    let output = Command::new(peers::python())
        .arg(script(name))
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {complaint}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Writes all cases and a large catalog in every format, with the deltas from an empty list and to half of it.
fn renderings() -> (TempDir, usize) {
    let market = market_catalogue().into_iter().map(|tool| ToolDescriptor {
        description: Some(tool.description),
        input_schema: JsonText::from(&tool.input_schema),
        ..ToolDescriptor::named(format!("fmp__{}", tool.name))
    });
    let mut cases = cases();
    cases.push(("market", market.collect()));
    let directory = tempfile::tempdir().unwrap();
    let mut files = 0;
    for (case, tools) in cases {
        for provider in Provider::ALL {
            let whole = render(provider, &tools);
            let half = render(provider, &tools[..tools.len() / 2]);
            let mut appended = Vec::new();
            for delta in [Delta::between(&half, &whole), Delta::between(&whole, &half)] {
                if let ApplyDelta::Append { items, .. } = delta.apply {
                    appended.extend(items);
                }
            }
            let body = format!(
                r#"{{"tools":{},"delta":{}}}"#,
                String::from_utf8(whole.json().to_vec()).unwrap(),
                serde_json::to_string(&appended).unwrap()
            );
            fs::write(directory.path().join(format!("{case}.{provider}.json")), body).unwrap();
            files += 1;
        }
    }
    (directory, files)
}

#[test]
fn the_types_of_the_official_libraries_take_every_rendering() {
    let (directory, files) = renderings();
    let said = run("check.py", &[directory.path()]);
    assert_eq!(said, json!({"checked": files, "wrong": []}));
}

/// The script must detect these errors, which a lenient check would miss.
#[test]
fn the_official_types_find_what_is_wrong() {
    let object = json!({"type": "object"});
    let wrong = [
        (
            "openai",
            json!([{"type": "function", "name": "a", "parameters": object, "strict": false, "extra": 1}]),
        ),
        (
            "openai",
            json!([{"type": "function", "name": "a.b", "parameters": object, "strict": false}]),
        ),
        ("openai-chat", json!([{"type": "function", "function": {"name": "a", "schema": object}}])),
        ("anthropic", json!([{"name": "a", "input_schema": {"type": "string"}}])),
        (
            "anthropic",
            json!([{"name": "a", "input_schema": {"type": "object", "minProperties": -1}}]),
        ),
        ("gemini", json!([{"functionDeclarations": [{"name": "a", "inputSchema": object}]}])),
        ("gemini", json!([{"functionDeclarations": [], "function_declarations": []}])),
        (
            "gemini-parameters",
            json!([{"functionDeclarations": [{"name": "a", "parameters": {"type": ["STRING", "NULL"]}}]}]),
        ),
        ("mcp", json!([{"name": "a", "inputSchema": [1]}])),
    ];
    let directory = tempfile::tempdir().unwrap();
    for (number, (provider, tools)) in wrong.iter().enumerate() {
        let file = directory.path().join(format!("wrong{number}.{provider}.json"));
        fs::write(file, json!({"tools": tools}).to_string()).unwrap();
    }
    let said = run("check.py", &[directory.path()]);
    let found = said["wrong"].as_array().unwrap();
    for number in 0..wrong.len() {
        let start = format!("wrong{number}.");
        assert!(
            found.iter().any(|line| line.as_str().unwrap().starts_with(&start)),
            "{number}: {said}"
        );
    }
}

/// Optional further validators beside the repository must agree.
#[test]
fn whole_requests_pass_the_validators_beside_the_repository() {
    let Some(validators) = beside("validators") else { return };
    let (directory, _) = renderings();
    let said = run("check_requests.py", &[directory.path(), &validators]);
    assert_eq!(said["wrong"], json!([]), "{said}");
    assert!(said["checked"].as_u64().unwrap() >= 20, "{said}");
}
