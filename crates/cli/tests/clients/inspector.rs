//! The Inspector on the command line, in each of its eras: `mcp-inspector --cli` for one method, and `mcpdo` on a
//! connection that is kept.
//!
//! Neither can show progress or that a list changed. In 2.12.0 both make their client with `progress: false`
//! (`clients/cli/build/index.js`, `clients/mcpdo/build/chunk-*.js`), no option of `tools/call` says otherwise, and of
//! all notifications they print log messages (`logging/tail`) and updated resources (`resources/subscribe`) only.
//! Tested is what can be seen: a call that has progress comes to its end, and a connection that is kept lists what
//! has changed.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use switchboard_test_support::{ScriptedServer, Tool, peers, wait_until};
use tokio::process::Command;

use crate::client::Place;
use crate::support::{Home, dynamic, yaml};
use crate::{board, program, scripted, tools};

const PATIENCE: Duration = Duration::from_mins(1);

/// Runs one of its programs and reads what it prints.
async fn run(home: &Path, program: &str, arguments: &[&str]) -> Value {
    let mut command = Command::new(peers::node());
    command
        .arg(peers::npm_bin(program))
        .args(arguments)
        .env("HOME", home)
        .env("MCP_INSPECTOR_SECRET_STORE", "memory")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await.unwrap().unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {stdout}{stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"))
}

async fn inspect(place: &Place, era: &str, arguments: &[&str]) -> Value {
    let home = tempfile::tempdir().unwrap();
    let (transport, target) = match place {
        Place::Http(url) => ("http", vec![url.as_str()]),
        Place::Program(command) => ("stdio", command.iter().map(String::as_str).collect()),
    };
    let fixed = ["--transport", transport, "--protocol-era", era, "--format", "json", "-q"];
    let all = [&["--cli"], &fixed[..], arguments, &["--"], &target].concat();
    run(home.path(), "mcp-inspector", &all).await
}

async fn lists_and_calls(place: &Place, era: &str, prefix: &str) {
    let listed = inspect(place, era, &["--method", "tools/list"]).await.to_string();
    let (echo, slow) = (format!("{prefix}echo"), format!("{prefix}slow"));
    assert!(listed.contains(&format!("\"name\":\"{echo}\"")), "{listed}");
    let call = ["--method", "tools/call", "--tool-name", &echo, "--tool-arg", "text=hello"];
    let answer = inspect(place, era, &call).await.to_string();
    assert!(answer.contains("hello"), "{answer}");
    let call = ["--method", "tools/call", "--tool-name", &slow];
    let token = ["--tool-metadata", "progressToken=mine"];
    let answer = inspect(place, era, &[&call[..], &token].concat()).await.to_string();
    assert!(answer.contains("content") && !answer.contains("\"isError\":true"), "{answer}");
}

/// A connection that is kept, by a process of the Inspector's own, and what a change does to it.
async fn keeps_a_connection(server: &ScriptedServer, url: &str, era: &str, prefix: &str) {
    let home = tempfile::tempdir().unwrap();
    let mcpdo = async |arguments: &[&str]| {
        let fixed = ["--format", "json", "--connection", "kept"];
        run(home.path(), "mcpdo", &[&fixed, arguments].concat()).await
    };
    let connected = mcpdo(&["connect", "--era", era, url]).await;
    assert_eq!(connected["protocolEra"] == "legacy", era == "legacy", "{connected}");
    let another = format!("\"name\":\"{prefix}another\"");
    let before = mcpdo(&["tools/list"]).await.to_string();
    assert!(before.contains("echo") && !before.contains(&another), "{before}");
    let echo = format!("{prefix}echo");
    let answer = mcpdo(&["tools/call", &echo, "text:=hello"]).await.to_string();
    assert!(answer.contains("hello"), "{answer}");
    let more = tools().into_iter().chain([Tool::echo("another")]);
    server.set_tools_and_notify(more).await;
    wait_until(PATIENCE, async || {
        let after = mcpdo(&["tools/list"]).await.to_string();
        after.contains(&another).then_some(())
    })
    .await;
    let mut stop = Command::new(peers::node());
    stop.arg(peers::npm_bin("mcpdo")).args(["daemon", "stop"]).env("HOME", home.path());
    assert!(stop.stdin(Stdio::null()).output().await.unwrap().status.success());
}

macro_rules! eras {
    ($($name:ident: $era:literal;)*) => {
        $(#[tokio::test]
        async fn $name() {
            let server = scripted().await;
            lists_and_calls(&Place::Http(server.url()), $era, "").await;
            let (_home, serve) = board(&server).await;
            lists_and_calls(&Place::Http(serve.at("/mcp")), $era, "demo__").await;
        })*

        mod over_standard_input {
            use super::*;

            $(#[tokio::test]
            async fn $name() {
                let server = scripted().await;
                let home = Home::new(yaml(&[], &[dynamic("demo", &server.url())]));
                lists_and_calls(&program(&home, &["stdio"]), $era, "demo__").await;
            })*
        }

        mod on_a_connection_that_is_kept {
            use super::*;

            $(#[tokio::test]
            async fn $name() {
                let server = scripted().await;
                let (_home, serve) = board(&server).await;
                keeps_a_connection(&server, &serve.at("/mcp"), $era, "demo__").await;
            })*
        }
    };
}

eras! {
    legacy: "legacy";
    auto: "auto";
    modern: "modern";
}
