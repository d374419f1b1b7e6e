//! Real servers behind the built program, in each era and over each transport that they speak.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{free_port, peers, wait_until};

use crate::support::{Home, PATIENCE, Serve, dynamic, stdio, with, yaml};

/// A server process that listens on a port. Dropping it kills it.
struct Peer {
    child: Child,
    url: String,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Starts a server and waits until it listens.
async fn listening(mut command: Command, port: u16, path: &str) -> Peer {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let peer =
        Peer { child: command.spawn().unwrap(), url: format!("http://127.0.0.1:{port}/{path}") };
    wait_until(PATIENCE, async || TcpStream::connect(("127.0.0.1", port)).ok()).await;
    peer
}

async fn everything(transport: &str, path: &str) -> Peer {
    let port = free_port();
    let mut command = Command::new(peers::npm_bin("mcp-server-everything"));
    command.arg(transport).env("PORT", port.to_string());
    listening(command, port, path).await
}

async fn python(script: &str, transport: &str, path: &str) -> Peer {
    let port = free_port();
    let mut command = Command::new(peers::python());
    command.arg(peers::script(script)).arg(transport).arg(port.to_string());
    listening(command, port, path).await
}

fn python_child(name: &str, script: &str) -> String {
    let script = peers::script(script);
    stdio(name, &peers::python(), &[script.to_str().unwrap(), "stdio"])
}

/// The era and the transport under which the board shows a server.
fn shown(serve: &Serve, name: &str) -> (String, String) {
    let servers = serve.start["servers"].as_array().unwrap();
    let server = servers.iter().find(|server| server["name"] == name).unwrap();
    assert_eq!(server["state"], "ready", "{server}");
    let text = |key: &str| server[key].as_str().unwrap().to_owned();
    (text("era"), text("transport"))
}

#[track_caller]
fn first_text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// What a Python server can do, with `slow` under a limit that only its progress keeps away.
async fn uses_python_server(serve: &Serve, name: &str, era: &str, transport: &str) {
    assert_eq!(shown(serve, name), (era.to_owned(), transport.to_owned()), "{name}");
    let tool = |tool: &str| format!("{name}.{tool}");
    let echo = serve.answer(&tool("echo"), json!({"text": "grüße 🙂"})).await;
    assert_eq!(first_text(&echo), "grüße 🙂");
    let added = serve.answer(&tool("add"), json!({"a": 2, "b": 40})).await;
    assert_eq!(first_text(&added), "42");
    let slow = serve.answer(&tool("slow"), json!({"steps": 6, "step_ms": 300})).await;
    assert_eq!(first_text(&slow), "done after 6 steps");
    assert!(slow["run_ms"].as_u64().unwrap() > 1_500, "longer than it may be silent: {slow}");
    let fails = serve.answer(&tool("fails"), json!({})).await;
    assert_eq!(fails["outcome"], "tool_error", "{fails}");
    let (status, _) = serve.call(&tool("add"), json!({"a": "x"})).await;
    assert_eq!(status, 422, "its schema is checked here");

    let before = serve.revision().await;
    let fresh = format!("fresh_{era}_{transport}");
    serve.answer(&tool("add_tool"), json!({ "name": fresh })).await;
    wait_until(PATIENCE, async || serve.tool_names().await.contains(&tool(&fresh)).then_some(()))
        .await;
    assert!(serve.revision().await > before);
    assert_eq!(first_text(&serve.answer(&tool(&fresh), json!({})).await), fresh);
}

const SLOW: &str = "{name: slow, inactivity_timeout: 1500ms, timeout: 20s}";

async fn python_over_stdio(script: &str) {
    let entry = python_child("auto", script);
    let modern = with(&python_child("modern", script), "era: modern");
    let home = Home::new(yaml(&[SLOW], &[entry, modern]));
    let serve = home.serve().await;
    uses_python_server(&serve, "auto", "legacy", "stdio").await;
    uses_python_server(&serve, "modern", "modern", "stdio").await;
}

async fn python_over_http(script: &str) {
    let peer = python(script, "http", "mcp").await;
    let legacy = with(&dynamic("legacy", &peer.url), "era: legacy");
    let home = Home::new(yaml(&[SLOW], &[dynamic("auto", &peer.url), legacy]));
    let serve = home.serve().await;
    uses_python_server(&serve, "auto", "modern", "streamable_http").await;
    uses_python_server(&serve, "legacy", "legacy", "streamable_http").await;
}

async fn python_over_sse(script: &str) {
    let peer = python(script, "sse", "sse").await;
    let home = Home::new(yaml(&[SLOW], &[with(&dynamic("events", &peer.url), "transport: sse")]));
    let serve = home.serve().await;
    uses_python_server(&serve, "events", "legacy", "sse").await;
}

#[tokio::test]
async fn the_python_sdk_over_stdio() {
    python_over_stdio("sdk_server.py").await;
}

#[tokio::test]
async fn the_python_sdk_over_http() {
    python_over_http("sdk_server.py").await;
}

#[tokio::test]
async fn the_python_sdk_over_sse() {
    python_over_sse("sdk_server.py").await;
}

#[tokio::test]
async fn fastmcp_over_stdio() {
    python_over_stdio("fastmcp_server.py").await;
}

#[tokio::test]
async fn fastmcp_over_http() {
    python_over_http("fastmcp_server.py").await;
}

#[tokio::test]
async fn fastmcp_over_sse() {
    python_over_sse("fastmcp_server.py").await;
}

async fn uses_everything(entry: String, transport: &str) {
    let long = "{name: trigger-long-running-operation, inactivity_timeout: 1500ms, timeout: 20s}";
    let home = Home::new(yaml(&[long], &[entry]));
    let serve = home.serve().await;
    assert_eq!(shown(&serve, "all"), ("legacy".to_owned(), transport.to_owned()));
    assert!(serve.tool_names().await.len() >= 10);
    let echo = serve.answer("all.echo", json!({"message": "hi"})).await;
    assert_eq!(first_text(&echo), "Echo: hi");
    let arguments = json!({"duration": 2, "steps": 6});
    let long = serve.answer("all.trigger-long-running-operation", arguments).await;
    assert!(first_text(&long).contains("completed"), "{long}");
    assert!(long["run_ms"].as_u64().unwrap() > 1_500, "longer than it may be silent: {long}");
    let image = serve.answer("all.get-tiny-image", json!({})).await;
    let kinds: Vec<_> = image["result"]["content"].as_array().unwrap().iter().collect();
    assert!(kinds.iter().any(|block| block["type"] == "image"), "{image}");
    let structured =
        serve.answer("all.get-structured-content", json!({"location": "Chicago"})).await;
    assert!(structured["result"]["structuredContent"].is_object(), "{structured}");
}

#[tokio::test]
async fn server_everything_over_stdio() {
    let entry = stdio("all", &peers::npm_bin("mcp-server-everything"), &["stdio"]);
    uses_everything(entry, "stdio").await;
}

#[tokio::test]
async fn server_everything_over_http() {
    let peer = everything("streamableHttp", "mcp").await;
    uses_everything(dynamic("all", &peer.url), "streamable_http").await;
}

#[tokio::test]
async fn server_everything_over_sse() {
    let peer = everything("sse", "sse").await;
    uses_everything(with(&dynamic("all", &peer.url), "transport: sse"), "sse").await;
}

#[tokio::test]
async fn server_filesystem_and_server_memory() {
    let home = Home::empty();
    let place = home.path().join("files");
    std::fs::create_dir(&place).unwrap();
    std::fs::write(place.join("a.txt"), "hello").unwrap();
    let files =
        stdio("files", &peers::npm_bin("mcp-server-filesystem"), &[place.to_str().unwrap()]);
    let memory = with(
        &stdio("memory", &peers::npm_bin("mcp-server-memory"), &[]),
        &format!("env: {{MEMORY_FILE_PATH: {:?}}}", home.path().join("memory.json")),
    );
    home.rewrite(yaml(&[], &[files, memory]));
    let serve = home.serve().await;
    for name in ["files", "memory"] {
        assert_eq!(shown(&serve, name), ("legacy".to_owned(), "stdio".to_owned()));
    }
    let path = |name: &str| json!({"path": place.join(name)});
    let read = serve.answer("files.read_text_file", path("a.txt")).await;
    assert_eq!(first_text(&read), "hello");
    let outside = serve.answer("files.read_text_file", json!({"path": "/etc/passwd"})).await;
    assert_eq!(outside["outcome"], "tool_error", "{outside}");
    let entity = json!({"name": "board", "entityType": "thing", "observations": ["it switches"]});
    serve.answer("memory.create_entities", json!({ "entities": [entity] })).await;
    let graph = serve.answer("memory.read_graph", json!({})).await;
    assert!(first_text(&graph).contains("it switches"), "{graph}");
    let (status, _) = serve.call("memory.create_entities", json!({})).await;
    assert_eq!(status, 422);
}

async fn uses_demo_server(home: &Home, era: &str, transport: &str) {
    let serve = home.serve().await;
    assert_eq!(shown(&serve, "demo"), (era.to_owned(), transport.to_owned()));
    let echo = serve.answer("demo.echo", json!({"text": "hi"})).await;
    assert_eq!(first_text(&echo), "hi");
    let waited = serve.answer("demo.wait", json!({"ms": 1_800})).await;
    assert!(waited["run_ms"].as_u64().unwrap() >= 1_800, "progress kept it alive: {waited}");
    assert_eq!(serve.answer("demo.fail", json!({})).await["outcome"], "tool_error");
    let before = serve.revision().await;
    serve.answer("demo.toggle_surprise", json!({})).await;
    wait_until(PATIENCE, async || {
        serve.tool_names().await.contains(&"demo.surprise".to_owned()).then_some(())
    })
    .await;
    assert_eq!(serve.revision().await, before + 1);
    serve.answer("demo.toggle_surprise", json!({})).await;
    wait_until(PATIENCE, async || (serve.revision().await == before + 2).then_some(())).await;
}

const WAIT: &str = "{name: wait, inactivity_timeout: 1s, timeout: 20s}";

#[tokio::test]
async fn the_demo_server_over_stdio() {
    let program = env!("CARGO_BIN_EXE_switchboard").as_ref();
    let entry = stdio("demo", program, &["demo-server", "--stdio"]);
    uses_demo_server(&Home::new(yaml(&[WAIT], std::slice::from_ref(&entry))), "legacy", "stdio")
        .await;
    let entry = with(&entry, "era: modern");
    uses_demo_server(&Home::new(yaml(&[WAIT], &[entry])), "modern", "stdio").await;
}

#[tokio::test]
async fn the_demo_server_over_http() {
    let port = free_port();
    let home = Home::empty();
    let address = format!("127.0.0.1:{port}");
    let mut command = home.command(&["demo-server", "--json", "--listen", &address]);
    let child = command.spawn().unwrap();
    wait_until(PATIENCE, async || TcpStream::connect(("127.0.0.1", port)).ok()).await;
    let entry = dynamic("demo", &format!("http://{address}/mcp"));
    uses_demo_server(
        &Home::new(yaml(&[WAIT], std::slice::from_ref(&entry))),
        "modern",
        "streamable_http",
    )
    .await;
    let entry = with(&entry, "era: legacy");
    uses_demo_server(&Home::new(yaml(&[WAIT], &[entry])), "legacy", "streamable_http").await;
    crate::support::signal(child.id(), "INT");
    let output = child.wait_with_output().map(crate::support::Outcome::from).unwrap().expect(0);
    assert_eq!(output.json(), json!({"url": format!("http://{address}/mcp")}));
}

#[tokio::test]
async fn the_example_of_the_repository_starts_and_does_what_it_says() {
    let example = include_str!("../../../../examples/quickstart.yaml");
    let home =
        Home::new(example).with_variable("SWITCHBOARD_BIN", env!("CARGO_BIN_EXE_switchboard"));
    home.line("check").expect(0);
    let serve = home.serve().await;
    assert_eq!(serve.start["readiness"]["status"], "ready");
    assert_eq!(first_text(&serve.answer("sum_numbers", json!({"a": 1, "b": 2})).await), "3");
    serve.answer("demo.echo", json!({"text": "x"})).await;
}
