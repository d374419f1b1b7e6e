//! A handwritten MCP client of either era on the program's standard input and output.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use switchboard_test_support::wait_until;

use crate::peer::Era;
use crate::support::{Home, PATIENCE, signal};

const MODERN: &str = "2026-07-28";

/// A running program. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Pipe {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    heard: Arc<Mutex<Vec<Value>>>,
    next: AtomicU64,
    pub(crate) era: Era,
    /// What a modern client says with each request.
    pub(crate) meta: Value,
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Looks at the processor time of a program this often in a row, until it stays the same.
const IDLE_LOOKS: usize = 10;

impl Pipe {
    /// Returns when the program has nothing left to do.
    pub(crate) async fn idle(&self) {
        let path = format!("/proc/{}/stat", self.child.id());
        let time = || {
            let stat = std::fs::read_to_string(&path).unwrap();
            // User and system time are the fields 14 and 15; the second one, in brackets, may hold spaces.
            let rest = stat.rsplit(')').next().unwrap().split_whitespace();
            rest.skip(11).take(2).map(str::to_owned).collect::<Vec<_>>()
        };
        let (mut before, mut same) = (time(), 0);
        wait_until(PATIENCE, async || {
            let now = time();
            same = if now == before { same + 1 } else { 0 };
            before = now;
            (same == IDLE_LOOKS).then_some(())
        })
        .await;
    }

    /// A client that has said hello, where its era wants that.
    pub(crate) async fn open(era: Era, home: &Home) -> Self {
        Self::open_with(era, home, &["stdio"], json!({})).await
    }

    pub(crate) async fn open_with(
        era: Era,
        home: &Home,
        arguments: &[&str],
        capabilities: Value,
    ) -> Self {
        let mut pipe = Self::start(era, home, arguments);
        pipe.meta["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
        pipe.listen();
        if era == Era::Legacy {
            pipe.hello("2025-11-25", capabilities).await;
        }
        pipe
    }

    /// A client that has neither said nor heard anything.
    pub(crate) fn start(era: Era, home: &Home, arguments: &[&str]) -> Self {
        let mut command = home.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let (input, output) = (child.stdin.take(), child.stdout.take());
        Self { child, input, output, heard: Arc::default(), next: AtomicU64::new(1), era, meta }
    }

    /// Starts reading. Until then the output of the program is not read.
    pub(crate) fn listen(&mut self) {
        let (output, heard) = (self.output.take().unwrap(), self.heard.clone());
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                let message = serde_json::from_str(&line);
                let message = message.unwrap_or_else(|error| panic!("{error} in {line}"));
                heard.lock().unwrap().push(message);
            }
        });
    }

    pub(crate) async fn hello(&self, version: &str, capabilities: Value) {
        let params = json!({"protocolVersion": version, "capabilities": capabilities,
                            "clientInfo": {"name": "pipe", "version": "1"}});
        let answer = self.ask("initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    pub(crate) fn write(&self, bytes: &[u8]) {
        let mut input = self.input.as_ref().expect("the input is open");
        input.write_all(bytes).unwrap();
    }

    pub(crate) fn send(&self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// Sends a request in the words of its era.
    pub(crate) fn request(&self, id: &Value, method: &str, mut params: Value) {
        if self.era == Era::Modern {
            let meta = params["_meta"].as_object().cloned().unwrap_or_default();
            params["_meta"] = self.meta.clone();
            params["_meta"].as_object_mut().unwrap().extend(meta);
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    pub(crate) fn cancel(&self, id: &Value) {
        let params = json!({ "requestId": id });
        self.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}),
        );
    }

    pub(crate) fn new_id(&self) -> Value {
        json!(self.next.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) async fn ask(&self, method: &str, params: Value) -> Value {
        let id = self.new_id();
        self.request(&id, method, params);
        self.answer(&id).await
    }

    pub(crate) async fn answer(&self, id: &Value) -> Value {
        self.message(|message| message["id"] == *id && message["method"].is_null()).await
    }

    /// The result of a call.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.ask("tools/call", params).await;
        assert!(answer["result"].is_object(), "{tool}: {answer}");
        answer["result"].clone()
    }

    pub(crate) async fn list(&self) -> Vec<String> {
        let answer = self.ask("tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array();
        let tools = tools.unwrap_or_else(|| panic!("no list of tools: {answer}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Asks to be told of changes, which older clients are unasked. Gives the id of the request.
    pub(crate) async fn subscribe(&self) -> Value {
        let id = self.new_id();
        if self.era == Era::Modern {
            let wanted = json!({"notifications": {"toolsListChanged": true}});
            self.request(&id, "subscriptions/listen", wanted);
            self.until("notifications/subscriptions/acknowledged", 1).await;
        }
        id
    }

    pub(crate) fn heard(&self) -> Vec<Value> {
        self.heard.lock().unwrap().clone()
    }

    pub(crate) fn of_method(&self, method: &str) -> Vec<Value> {
        self.heard().into_iter().filter(|message| message["method"] == method).collect()
    }

    /// Waits for that many notifications.
    pub(crate) async fn until(&self, method: &str, count: usize) {
        let enough = async || (self.of_method(method).len() >= count).then_some(());
        wait_until(PATIENCE, enough).await;
    }

    pub(crate) async fn message(&self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let wanted = async || self.heard().into_iter().find(|message| is_wanted(message));
        wait_until(PATIENCE, wanted).await
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits until it has ended and everything that it said was heard.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let status = wait_until(PATIENCE, async || self.child.try_wait().unwrap()).await;
        wait_until(PATIENCE, async || (Arc::strong_count(&self.heard) == 1).then_some(())).await;
        status
    }
}
