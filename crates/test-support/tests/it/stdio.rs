//! The misbehaving stdio server, driven through its pipes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_test_support::{peers, wait_until};

use crate::client::{PATIENCE, initialize_params, request};

struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Peer {
    fn start(flags: &[&str]) -> Self {
        let mut child = Command::new(peers::stdio_peer())
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout }
    }

    fn send(&mut self, message: &Value) -> bool {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").is_ok()
    }

    /// The next line that is a JSON object with an answer or a notification.
    fn receive(&mut self) -> Option<Value> {
        loop {
            let mut line = Vec::new();
            if self.stdout.read_until(b'\n', &mut line).unwrap() == 0 {
                return None;
            }
            let message: Value = serde_json::from_slice(&line).unwrap_or_default();
            if message["jsonrpc"] == "2.0" {
                return Some(message);
            }
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Option<Value> {
        self.send(&request(method, params));
        self.receive()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Option<Value> {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    async fn exit_code(&mut self) -> Option<i32> {
        let status = wait_until(PATIENCE, async || self.child.try_wait().unwrap());
        status.await.code()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn modern_meta() -> Value {
    json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}})
}

#[tokio::test]
async fn a_normal_session_with_and_without_garbage() {
    for flags in [[].as_slice(), &["--garbage-stdout"], &["--dual"]] {
        let mut peer = Peer::start(flags);
        let welcome = peer.ask("initialize", initialize_params()).unwrap();
        assert_eq!(welcome["result"]["protocolVersion"], "2025-06-18");
        let list = peer.ask("tools/list", json!({})).unwrap();
        assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 8);
        let echo = peer.call("echo", json!({"x": 1})).unwrap();
        assert_eq!(echo["result"]["content"][0]["text"], r#"{"x":1}"#);
        assert_eq!(peer.call("fails", json!({})).unwrap()["result"]["isError"], true);
        let changed = peer.call("add_tool", json!({"name": "new"})).unwrap();
        assert_eq!(changed["method"], "notifications/tools/list_changed");
        assert!(peer.receive().unwrap()["result"].is_object());
        peer.stdin = None;
        assert_eq!(peer.exit_code().await, Some(0));
    }
}

#[tokio::test]
async fn garbage_is_really_written() {
    let mut peer = Peer::start(&["--garbage-stdout"]);
    peer.send(&request("ping", json!({})));
    peer.stdin = None;
    let mut output = Vec::new();
    peer.stdout.read_to_end(&mut output).unwrap();
    assert!(String::from_utf8(output).is_err(), "some of it is no UTF-8");
}

#[tokio::test]
async fn exits_on_time() {
    for (flags, method, code) in [
        (["--exit-at-once", "--modern"].as_slice(), "initialize", 3),
        (&["--exit-on-discover"], "server/discover", 4),
        (&["--exit-on-discover"], "tools/list", 4),
        (&["--no-such-flag"], "initialize", 2),
    ] {
        let mut peer = Peer::start(flags);
        peer.send(&request(method, json!({})));
        assert_eq!(peer.exit_code().await, Some(code), "{flags:?}");
    }
    let mut peer = Peer::start(&["--exit-after-calls", "2", "--exit-on-discover"]);
    peer.ask("initialize", initialize_params()).unwrap();
    assert!(peer.call("echo", json!({})).is_some());
    assert!(peer.call("echo", json!({})).is_some());
    assert_eq!(peer.exit_code().await, Some(7));
    let mut peer = Peer::start(&[]);
    assert!(peer.call("crash", json!({})).is_none());
    assert_eq!(peer.exit_code().await, Some(9));
}

#[tokio::test]
async fn the_eras_of_stdio() {
    let mut modern = Peer::start(&["--modern"]);
    let discover = modern.ask("server/discover", modern_meta()).unwrap();
    assert_eq!(discover["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(modern.ask("initialize", initialize_params()).unwrap()["error"]["code"], -32601);
    assert_eq!(modern.ask("tools/list", json!({})).unwrap()["error"]["code"], -32602);
    assert_eq!(
        modern.ask("tools/list", modern_meta()).unwrap()["result"]["resultType"],
        "complete"
    );
    let acknowledged = modern.ask("subscriptions/listen", modern_meta()).unwrap();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");

    let mut legacy = Peer::start(&[]);
    assert_eq!(legacy.ask("server/discover", modern_meta()).unwrap()["error"]["code"], -32601);
    let mut silent = Peer::start(&["--ignore-discover"]);
    silent.send(&json!({"jsonrpc": "2.0", "id": 99, "method": "server/discover"}));
    assert_eq!(silent.ask("initialize", initialize_params()).unwrap()["id"], 1);
}

#[tokio::test]
async fn long_lines_and_much_stderr() {
    let mut peer = Peer::start(&["--long-line", "3", "--long-list", "2", "--flood-stderr", "1"]);
    let mut stderr = peer.child.stderr.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        stderr.read_to_string(&mut text).unwrap();
        text.len()
    });
    assert!(peer.ask("tools/list", json!({})).unwrap().to_string().len() > 2 << 20);
    assert!(peer.call("long_line", json!({})).unwrap().to_string().len() > 3 << 20);
    peer.stdin = None;
    assert_eq!(reader.join().unwrap(), 1 << 20);
}

#[tokio::test]
async fn sleep_progress_and_cancellation() {
    let mut peer = Peer::start(&[]);
    let params = json!({"name": "sleep", "arguments": {"ms": 60, "every_ms": 20}, "_meta": {"progressToken": 5}});
    let progress = peer.ask("tools/call", params).unwrap();
    assert_eq!(progress["params"]["progressToken"], 5);
    while peer.receive().unwrap()["id"].is_null() {}

    let sleep = json!({"name": "sleep", "arguments": {"ms": 60_000}});
    peer.send(&json!({"jsonrpc": "2.0", "id": "s", "method": "tools/call", "params": sleep}));
    let cancelled = json!({"requestId": "s"});
    peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
    peer.ask("ping", json!({})).unwrap();
    let stats = peer.call("stats", json!({})).unwrap();
    assert!(
        stats["result"]["content"][0]["text"].as_str().unwrap().contains(r#""cancelled":["s"]"#)
    );
    assert_eq!(stats["id"], 1, "the cancelled call stays without an answer");
}

#[tokio::test]
async fn closed_stdin_leaves_it_alive() {
    let mut peer = Peer::start(&["--close-stdin"]);
    peer.ask("tools/list", json!({})).unwrap();
    wait_until(PATIENCE, async || (!peer.send(&request("ping", json!({})))).then_some(())).await;
    assert!(peer.child.try_wait().unwrap().is_none());
}

#[tokio::test]
async fn grandchildren_and_sigterm_are_survived() {
    let directory = tempfile::tempdir().unwrap();
    let pid_file = directory.path().join("pids");
    let mut peer = Peer::start(&[
        "--spawn-grandchild",
        "--ignore-sigterm",
        "--pid-file",
        pid_file.to_str().unwrap(),
    ]);
    peer.ask("ping", json!({})).unwrap();
    let pids = std::fs::read_to_string(pid_file).unwrap();
    let pids: Vec<&str> = pids.lines().collect();
    assert_eq!((pids.len(), pids[0]), (3, peer.child.id().to_string().as_str()));
    signal("-TERM", pids[0]);
    peer.stdin = None;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(peer.child.try_wait().unwrap().is_none(), "it is still there");
    drop(peer);
    for pid in &pids[1..] {
        assert!(signal("-KILL", pid), "a grandchild outlives its parent");
    }
}

fn signal(name: &str, pid: &str) -> bool {
    Command::new("kill").args([name, pid]).status().unwrap().success()
}
