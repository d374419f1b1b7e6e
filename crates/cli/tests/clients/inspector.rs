//! The Inspector on the command line, in each of its eras. It ends by itself, so it hears of no change.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use switchboard_test_support::peers;
use tokio::process::Command;

use crate::{board, scripted};

const PATIENCE: Duration = Duration::from_mins(1);

async fn inspect(url: &str, era: &str, arguments: &[&str]) -> Value {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(peers::node());
    command
        .arg(peers::npm_bin("mcp-inspector"))
        .args([
            "--cli",
            url,
            "--transport",
            "http",
            "--protocol-era",
            era,
            "--format",
            "json",
            "-q",
        ])
        .args(arguments)
        .env("HOME", home.path())
        .env("MCP_INSPECTOR_SECRET_STORE", "memory")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await.unwrap().unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"))
}

async fn lists_and_calls(url: &str, era: &str, prefix: &str) {
    let listed = inspect(url, era, &["--method", "tools/list"]).await.to_string();
    let echo = format!("{prefix}echo");
    assert!(listed.contains(&format!("\"name\":\"{echo}\"")), "{listed}");
    let call = ["--method", "tools/call", "--tool-name", &echo, "--tool-arg", "text=hello"];
    let answer = inspect(url, era, &call).await.to_string();
    assert!(answer.contains("hello"), "{answer}");
}

macro_rules! eras {
    ($($name:ident: $era:literal;)*) => {
        $(#[tokio::test]
        async fn $name() {
            let server = scripted().await;
            lists_and_calls(&server.url(), $era, "").await;
            let (_home, serve) = board(&server).await;
            lists_and_calls(&serve.at("/mcp"), $era, "demo__").await;
        })*
    };
}

eras! {
    legacy: "legacy";
    auto: "auto";
    modern: "modern";
}
