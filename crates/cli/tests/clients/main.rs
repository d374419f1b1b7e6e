//! Real MCP clients talk to the built program: they list, call, hear of progress and of a change.
//!
//! Each is also run against the scripted server alone, so that a fault of a script is not taken for one of
//! the program.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests, and what they are made of")]

mod accounts;
mod agent365;
mod agents;
mod client;
mod inspector;
mod questions;
mod strict_lists;
mod trustgraph;

use switchboard_test_program::support;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_program::chat::Api;
use switchboard_test_program::peer::new_session;
use switchboard_test_support::{PostgresDatabase, RoundRobin, ScriptedServer, Tool};

use crate::client::{Place, Script};
use crate::support::{Home, Serve, dynamic, yaml};

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

fn tools() -> Vec<Tool> {
    let echo = Tool::echo("echo").schema(json!({
        "type": "object",
        "properties": {"text": {"type": "string"}},
    }));
    vec![echo, Tool::echo("slow").sleeps(400).progress_every(100)]
}

async fn scripted() -> ScriptedServer {
    ScriptedServer::builder().dual().tools(tools()).start().await
}

async fn board(server: &ScriptedServer) -> (Home, Serve) {
    let home = Home::new(yaml(&[], &[dynamic("demo", &server.url())]));
    let serve = home.serve().await;
    (home, serve)
}

/// The program as a client starts it, with these words at the end. A client passes little of its environment on.
fn program(home: &Home, words: &[&str]) -> Place {
    let (config, data) = (home.config(), home.path().join("data"));
    let places = ["--config", config.to_str().unwrap(), "--data-dir", data.to_str().unwrap()];
    let all = [&[env!("CARGO_BIN_EXE_switchboard"), "--quiet"], &places[..], words].concat();
    Place::Program(all.into_iter().map(str::to_owned).collect())
}

/// One client whose every request reaches the next of three boards. Its session is changed at one of them.
async fn uses_any_board(script: &Script, version: &str) {
    let server = scripted().await;
    let database = PostgresDatabase::new();
    let config = yaml(&[], &[dynamic("demo", &server.url())]);
    let config = format!("{config}  store:\n    url: {}\n", database.url());
    let mut boards: Vec<_> = (0..3).map(|_| Home::new(&config).start_serve(&[])).collect();
    for board in &mut boards {
        board.ready().await;
        board.until_tools(&["demo.echo", "demo.slow"]).await;
    }
    let proxy = RoundRobin::start(boards.iter().map(|board| &board.url)).await;
    let path = new_session(&boards[0], "work").await;
    let mut client = script.start(&Place::Http(proxy.at(&path)));
    client.until_it_waits().await;
    let session = Api::of(&boards[2]).chat("work");
    session.put("/tools/demo.slow", json!({"enabled": false})).await;
    let saw = client.result().await;
    assert_eq!(saw["version"], version, "{saw}");
    assert_eq!(saw["tools"], json!(["demo__echo", "demo__slow"]), "{saw}");
    assert_eq!(saw["echo"], json!({"text": "hello"}), "{saw}");
    assert!(saw["progress"].as_u64().unwrap() >= 2, "{saw}");
    assert_eq!(saw["after"], json!(["demo__echo"]), "{saw}");
    let sent = proxy.sent();
    assert!(sent.iter().all(|count| *count > 0), "a board was left out: {sent:?}");
}

/// One client against one endpoint; `prefix` stands before the names of the tools there.
async fn uses(script: &Script, server: &ScriptedServer, place: Place, prefix: &str, version: &str) {
    let mut client = script.start(&place);
    client.until_it_waits().await;
    let more = tools().into_iter().chain([Tool::echo("another")]);
    server.set_tools_and_notify(more).await;
    let saw = client.result().await;
    let named =
        |names: &[&str]| names.iter().map(|name| format!("{prefix}{name}")).collect::<Vec<_>>();
    assert_eq!(saw["version"], version, "{saw}");
    assert_eq!(saw["tools"], json!(named(&["echo", "slow"])), "{saw}");
    assert_eq!(saw["echo"], json!({"text": "hello"}), "{saw}");
    assert!(saw["progress"].as_u64().unwrap() >= 2, "{saw}");
    assert_eq!(saw["after"], json!(named(&["another", "echo", "slow"])), "{saw}");
}

macro_rules! clients {
    ($($name:ident: $script:expr, $version:expr;)*) => {
        mod directly {
            use super::*;

            $(#[tokio::test]
            async fn $name() {
                let server = scripted().await;
                uses(&$script, &server, Place::Http(server.url()), "", $version).await;
            })*
        }

        mod through_the_gateway {
            use super::*;

            $(#[tokio::test]
            async fn $name() {
                let server = scripted().await;
                let (_home, serve) = board(&server).await;
                let place = Place::Http(serve.at("/mcp"));
                uses(&$script, &server, place, "demo__", $version).await;
            })*
        }

        mod moved_between_boards {
            use super::*;

            $(#[tokio::test]
            async fn $name() {
                uses_any_board(&$script, $version).await;
            })*
        }

        mod over_standard_input {
            use super::*;

            $(#[tokio::test]
            async fn $name() {
                let server = scripted().await;
                let home = Home::new(yaml(&[], &[dynamic("demo", &server.url())]));
                uses(&$script, &server, program(&home, &["stdio"]), "demo__", $version).await;
            })*
        }

        mod over_standard_input_to_a_running_board {
            use super::*;

            $(#[tokio::test]
            async fn $name() {
                let server = scripted().await;
                let (home, serve) = board(&server).await;
                let place = program(&home, &["stdio", "--url", &serve.url]);
                uses(&$script, &server, place, "demo__", $version).await;
            })*
        }
    };
}

clients! {
    typescript_1: Script::node("typescript-1.mjs", "legacy"), LEGACY;
    typescript_2_legacy: Script::node("typescript-2.mjs", "legacy"), LEGACY;
    typescript_2_auto: Script::node("typescript-2.mjs", "auto"), MODERN;
    typescript_2_modern: Script::node("typescript-2.mjs", "modern"), MODERN;
    python_sdk_legacy: Script::python("python_sdk.py", "legacy"), LEGACY;
    python_sdk_auto: Script::python("python_sdk.py", "auto"), MODERN;
    fastmcp_legacy: Script::python("fastmcp_client.py", "legacy"), LEGACY;
    fastmcp_auto: Script::python("fastmcp_client.py", "auto"), MODERN;
}
