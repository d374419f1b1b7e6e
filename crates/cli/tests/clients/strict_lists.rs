//! Strict clients accept every list that the program serves, whatever its servers list.
//!
//! The official SDKs validate a list as a whole, and the TypeScript SDK 1.x also compiles every `outputSchema` in it:
//! one invalid entry costs the client all of them. The SDKs themselves read the lists here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{Malformed, ScriptedServer, Tool, malformed_tools, peers};
use tokio::process::Command;

use crate::support::{Home, dynamic, yaml};

/// Each describes more than seventy tools.
const PATIENCE: Duration = Duration::from_secs(50);

fn good_tools() -> Vec<Tool> {
    let full = Tool::echo("good_full")
        .schema(
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        )
        .member("title", json!("Full"))
        .member("outputSchema", json!({"type": "object", "properties": {"a": {"type": "string"}}}))
        .member("annotations", json!({"title": "T", "readOnlyHint": true}))
        .member("icons", json!([{"src": "data:,", "sizes": ["any"], "theme": "light"}]))
        .member("_meta", json!({"k": 1}));
    vec![Tool::echo("good"), full]
}

/// Entries of prompts, resources and templates: the first of each is fine, the last cannot be listed.
fn entries() -> [Vec<Value>; 3] {
    let prompts = vec![
        json!({"name": "good", "arguments": [{"name": "a", "required": true}]}),
        json!({"name": "odd", "title": null, "icons": [{}], "_meta": [], "arguments": [{"name": "a", "required": "yes"}]}),
        json!({"name": "odder", "description": 7, "arguments": null}),
        json!({"name": "left out", "arguments": [{"description": "no name"}]}),
    ];
    let resources = vec![
        json!({"uri": "a://good", "name": "good", "annotations": {"lastModified": "2025-01-12T15:00:58Z"}}),
        json!({"uri": "a://odd", "size": "large", "mimeType": null}),
        json!({"uri": "a://odder", "name": "odder", "annotations": {"lastModified": "2025-01-12", "priority": 7, "audience": "user"}}),
        json!({"name": "left out"}),
    ];
    let templates = vec![
        json!({"uriTemplate": "b://{good}", "name": "good"}),
        json!({"uriTemplate": "b://{odd}", "name": null, "annotations": [], "title": 1}),
        json!("left out"),
    ];
    [prompts, resources, templates]
}

async fn scripted() -> ScriptedServer {
    let malformed =
        malformed_tools().into_iter().map(|tool| Tool::listed_as(tool.case, tool.entry));
    let tools = good_tools().into_iter().chain(malformed);
    ScriptedServer::builder().dual().tools(tools).entries(entries()).start().await
}

/// What a script prints, or its last words.
async fn run(interpreter: PathBuf, script: &str, arguments: &[&str]) -> Result<Value, String> {
    let running = Command::new(interpreter)
        .arg(peers::client(script))
        .args(arguments)
        .env("E2E_NODE_MODULES", peers::npm_file(""))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, running).await.expect("it ends").unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&printed).map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())
}

const CLIENTS: [(&str, &[&str]); 5] = [
    ("strict_lists.mjs", &["legacy", "1"]),
    ("strict_lists.mjs", &["legacy", "2"]),
    ("strict_lists.mjs", &["modern", "2"]),
    ("strict_lists.py", &["legacy"]),
    ("strict_lists.py", &["modern"]),
];

async fn reads(url: &str, (script, arguments): (&str, &[&str])) -> Result<Value, String> {
    let interpreter = if Path::new(script).extension().is_some_and(|it| it == "py") {
        peers::python()
    } else {
        peers::node()
    };
    run(interpreter, script, &[&[url], arguments].concat()).await
}

#[tokio::test]
async fn every_sdk_takes_every_list_whatever_the_servers_list() {
    let server = scripted().await;
    let other = ScriptedServer::builder().tools([Tool::echo("innocent")]).start().await;
    let servers = [dynamic("odd", &server.url()), dynamic("other", &other.url())];
    let home = Home::new(yaml(&[], &servers));
    let serve = home.serve().await;
    let listed = malformed_tools().into_iter().filter(Malformed::is_listed);
    let names = good_tools().into_iter().map(|tool| tool.name);
    let names = names.chain(listed.map(|tool| tool.case.to_owned()));
    let mut names: BTreeSet<String> = names.map(|name| format!("odd__{name}")).collect();
    names.insert("other__innocent".into());
    assert!(names.len() > 40, "{}", names.len());
    for client in CLIENTS {
        let seen = reads(&serve.at("/mcp"), client).await;
        let seen = seen.unwrap_or_else(|error| panic!("{client:?}: {error}"));
        for list in ["tools", "described", "enabled"] {
            let seen: BTreeSet<String> = serde_json::from_value(seen[list].clone()).unwrap();
            assert_eq!(seen, names, "{client:?} {list}");
        }
        assert_eq!(seen["prompts"], json!(["odd__good", "odd__odd", "odd__odder"]), "{client:?}");
        assert_eq!(seen["resources"], json!(["good", "a://odd", "odder"]), "{client:?}");
        assert_eq!(seen["templates"], json!(["good", "b://{odd}"]), "{client:?}");
        assert_eq!(seen["warnings"].as_array().map_or(0, Vec::len), 0, "{client:?} {seen}");
    }
}

#[tokio::test]
async fn the_same_lists_cost_a_direct_client_everything() {
    let server = scripted().await;
    for client in CLIENTS {
        let refused = reads(&server.url(), client).await.expect_err("a strict client");
        assert!(
            refused.contains("inputSchema") || refused.contains("alid"),
            "{client:?} {refused}"
        );
    }
}
