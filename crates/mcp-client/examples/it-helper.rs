//! What the integration tests need as a process of its own.
//!
//! - `it-helper guard PARENT -- COMMAND ARGS`: what `switchboard guard` is in the product.
//! - `it-helper hold COMMAND ARGS`: opens a guarded stdio connection and keeps it until it is killed.
//! - `it-helper weigh URL`: opens a connection, says how that went and how much memory it took at most.
//! - `it-helper talk`: a stdio server that logs, reports progress and asks while it works.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a program for tests")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use switchboard_mcp_client::{ConnectOptions, Connection, run_guard};
use switchboard_model::{Endpoint, EraChoice, ServerName, ServerSpec, UpstreamAuth};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["guard", parent, "--", command, ..] => {
            let parent = parent.parse().expect("a process id");
            return run_guard(parent, command, arguments.get(4..).unwrap_or_default());
        }
        ["hold", command, ..] => {
            hold((*command).to_owned(), arguments.get(2..).unwrap_or_default().to_vec());
        }
        ["weigh", url] => weigh(url),
        ["talk"] => talk(),
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

#[tokio::main]
async fn hold(command: String, args: Vec<String>) {
    let guard = std::env::current_exe().expect("a running program has a path");
    let options = ConnectOptions { guard: Some(guard), ..ConnectOptions::default() };
    let endpoint = Endpoint::Stdio { command, args, env: BTreeMap::new(), cwd: None };
    let opened = Connection::open(&spec(endpoint), &options).await;
    let (_connection, list) = opened.expect("the server can be reached");
    println!("{} tools", list.tools.len());
    std::future::pending::<()>().await;
}

#[tokio::main]
async fn weigh(url: &str) {
    let url = url.parse().expect("a URL");
    let endpoint =
        Endpoint::StreamableHttp { url, headers: BTreeMap::new(), auth: UpstreamAuth::None };
    match Connection::open(&spec(endpoint), &ConnectOptions::default()).await {
        Ok((_, list)) => println!("{} tools", list.tools.len()),
        Err(error) => println!("{error}"),
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    println!("{}", peak.trim());
}

/// The tool `ask` puts one question and answers with what it was told; `hang` never answers.
fn talk() {
    let mut asked = std::collections::HashMap::new();
    let say = |message: serde_json::Value| println!("{message}");
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let message: serde_json::Value = serde_json::from_str(&line).expect("only JSON comes in");
        let (id, params) = (&message["id"], &message["params"]);
        let answer = |result| json!({"jsonrpc": "2.0", "id": id, "result": result});
        match message["method"].as_str() {
            Some("initialize") => say(answer(json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "logging": {}},
                "serverInfo": {"name": "talker", "version": "1"},
            }))),
            Some("tools/list") => say(answer(json!({"tools": []}))),
            Some("tools/call") if params["name"] == "ask" => {
                let log = json!({"level": "info", "data": id});
                say(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": log}));
                let token = &params["_meta"]["progressToken"];
                let progress = json!({"progressToken": token, "progress": 1});
                say(
                    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}),
                );
                let question = asked.len();
                asked.insert(question, id.clone());
                let params = json!({"message": "?", "requestedSchema": {}});
                say(
                    json!({"jsonrpc": "2.0", "id": question, "method": "elicitation/create", "params": params}),
                );
            }
            Some("tools/call") | None if id.is_string() => {}
            None => {
                let question = id.as_u64().and_then(|id| usize::try_from(id).ok());
                let caller =
                    question.and_then(|id| asked.get(&id)).expect("an answer to a question");
                let result = json!({"answer": message});
                say(json!({"jsonrpc": "2.0", "id": caller, "result": result}));
            }
            Some(_) if id.is_null() => {}
            Some(_) => {
                let error = json!({"code": -32601, "message": "Method not found"});
                say(json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        }
    }
}

fn spec(endpoint: Endpoint) -> ServerSpec {
    ServerSpec {
        name: ServerName::new("held"),
        place: endpoint.to_string(),
        endpoint,
        referenced: Vec::new(),
        caller_headers: Vec::new(),
        era: EraChoice::Auto,
        connect_timeout: Duration::from_secs(5),
        sharing: switchboard_model::Sharing::Shared,
        egress: None,
    }
}
