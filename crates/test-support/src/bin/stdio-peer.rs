//! An MCP server on stdin and stdout that misbehaves as its flags say. See `HELP`.
//!
//! It writes JSON-RPC by hand, because no library sends half a line or exits at a given time.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::exit,
    reason = "a program for tests"
)]

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{self, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

const HELP: &str = "\
switchboard-stdio-peer [FLAGS]: an MCP server on stdio for tests
  --modern              speak 2026-07-28 only
  --dual                speak both eras
  --exit-at-once        exit with code 3 before reading anything
  --exit-on-discover    exit with code 4 on any message before initialize
  --ignore-discover     never answer server/discover
  --ignore-ping         never answer ping
  --start-after MS      read nothing for so long, as a launcher that downloads
  --start-log PATH      append a line to this file at every start
  --garbage-stdout      write lines that are no JSON before every message
  --long-line MB        size of the answer of the tool long_line (default 1)
  --long-list MB        answer tools/list with one line of that size
  --flood-stderr MB     write that much to stderr at the start
  --spawn-grandchild    start two long sleeps, one of them in a session of its own
  --pid-file PATH       write the own process id and those of the sleeps, one per line
  --ignore-sigterm      survive SIGTERM and the end of stdin
  --close-stdin         close stdin once tools/list has been answered; stay alive
  --exit-after-calls N  exit with code 7 once N calls have been answered
Tools: echo, sleep {ms, every_ms, flood}, fails, long_line, environment, stats, crash, add_tool {name}
`sleep` with `flood: logs` or `flood: progress` writes notifications all the time instead of sleeping.";

const MODERN_VERSION: &str = "2026-07-28";
const LEGACY_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const MEGABYTE: usize = 1024 * 1024;
const TOOLS: [&str; 8] =
    ["echo", "sleep", "fails", "long_line", "environment", "stats", "crash", "add_tool"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Legacy,
    Modern,
    Dual,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Flaw {
    ExitAtOnce,
    ExitOnDiscover,
    IgnoreDiscover,
    IgnorePing,
    GarbageStdout,
    SpawnGrandchild,
    IgnoreSigterm,
    CloseStdin,
}

#[derive(Debug)]
struct Options {
    era: Era,
    flaws: HashSet<Flaw>,
    long_line: usize,
    long_list: Option<usize>,
    flood_stderr: usize,
    pid_file: Option<PathBuf>,
    start_after: Duration,
    start_log: Option<PathBuf>,
    exit_after_calls: Option<usize>,
}

#[derive(Debug)]
struct Peer {
    options: Options,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    initialized: bool,
    calls: usize,
    answered_calls: usize,
    added_tools: Vec<String>,
    cancelled: Vec<Value>,
    /// Ids of the open `subscriptions/listen` requests.
    subscriptions: Vec<Value>,
}

#[tokio::main]
async fn main() {
    let options = Options::from_arguments(std::env::args().skip(1));
    if options.has(&Flaw::ExitAtOnce) {
        process::exit(3);
    }
    // A handler that does nothing makes the process ignore the signal.
    let _sigterm = options
        .has(&Flaw::IgnoreSigterm)
        .then(|| signal(SignalKind::terminate()).expect("a signal handler can be set"));
    if let Some(path) = &options.start_log {
        let log = fs::OpenOptions::new().create(true).append(true).open(path);
        writeln!(log.expect("the start log can be opened"), "{}", process::id()).ok();
    }
    start_grandchildren(&options);
    thread::sleep(options.start_after);
    flood_stderr(options.flood_stderr);
    let peer = Arc::new(Peer { options, state: Mutex::default() });
    tokio::task::spawn_blocking(move || read_messages(&peer))
        .await
        .expect("reading does not panic");
    process::exit(0);
}

impl Options {
    fn from_arguments(mut arguments: impl Iterator<Item = String>) -> Self {
        let mut options = Self {
            era: Era::Legacy,
            flaws: HashSet::new(),
            long_line: MEGABYTE,
            long_list: None,
            flood_stderr: 0,
            pid_file: None,
            start_after: Duration::ZERO,
            start_log: None,
            exit_after_calls: None,
        };
        while let Some(flag) = arguments.next() {
            let mut value = || arguments.next().unwrap_or_else(|| refuse(&flag));
            match flag.as_str() {
                "--modern" => options.era = Era::Modern,
                "--dual" => options.era = Era::Dual,
                "--long-line" => options.long_line = number(&flag, &value()) * MEGABYTE,
                "--long-list" => options.long_list = Some(number(&flag, &value()) * MEGABYTE),
                "--flood-stderr" => options.flood_stderr = number(&flag, &value()) * MEGABYTE,
                "--start-after" => {
                    let milliseconds = number(&flag, &value()).try_into().unwrap_or(u64::MAX);
                    options.start_after = Duration::from_millis(milliseconds);
                }
                "--start-log" => options.start_log = Some(value().into()),
                "--pid-file" => options.pid_file = Some(value().into()),
                "--exit-after-calls" => {
                    options.exit_after_calls = Some(number(&flag, &value()));
                }
                _ => {
                    options.flaws.insert(flaw(&flag));
                }
            }
        }
        options
    }

    fn has(&self, flaw: &Flaw) -> bool {
        self.flaws.contains(flaw)
    }
}

fn flaw(flag: &str) -> Flaw {
    match flag {
        "--exit-at-once" => Flaw::ExitAtOnce,
        "--exit-on-discover" => Flaw::ExitOnDiscover,
        "--ignore-discover" => Flaw::IgnoreDiscover,
        "--ignore-ping" => Flaw::IgnorePing,
        "--garbage-stdout" => Flaw::GarbageStdout,
        "--spawn-grandchild" => Flaw::SpawnGrandchild,
        "--ignore-sigterm" => Flaw::IgnoreSigterm,
        "--close-stdin" => Flaw::CloseStdin,
        _ => refuse(flag),
    }
}

fn number(flag: &str, value: &str) -> usize {
    value.parse().unwrap_or_else(|_| refuse(flag))
}

fn refuse(flag: &str) -> ! {
    eprintln!("cannot use {flag}\n{HELP}");
    process::exit(2)
}

fn start_grandchildren(options: &Options) {
    let mut pids = vec![process::id()];
    if options.has(&Flaw::SpawnGrandchild) {
        // This child keeps our stdout open, so that its reader never sees the end.
        let sleep = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn();
        pids.push(sleep.expect("sleep starts").id());
        let apart = Command::new("setsid")
            .args(["sleep", "1000"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        pids.push(apart.expect("setsid starts").id());
    }
    if let Some(path) = &options.pid_file {
        let lines: Vec<String> = pids.iter().map(u32::to_string).collect();
        let draft = path.with_extension("draft");
        fs::write(&draft, lines.join("\n") + "\n").expect("the pid file can be written");
        fs::rename(draft, path).expect("the pid file can be put in place");
    }
}

fn flood_stderr(bytes: usize) {
    let line = [[b'e'; 1023].as_slice(), b"\n"].concat();
    let mut stderr = io::stderr().lock();
    for _ in 0..bytes / line.len() {
        stderr.write_all(&line).ok();
    }
}

/// Reads until stdin ends. Each call has its own thread, so that a sleeping call does not block others.
fn read_messages(peer: &Arc<Peer>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = io::stdin().lock().read_until(b'\n', &mut line).unwrap_or(0);
        if read == 0 {
            if peer.options.has(&Flaw::IgnoreSigterm) {
                sleep_for_ever();
            }
            return;
        }
        let message: Value = serde_json::from_slice(&line).unwrap_or(Value::Null);
        if message["method"] == "tools/call" {
            let peer = Arc::clone(peer);
            thread::spawn(move || peer.call(&message));
            continue;
        }
        peer.handle(&message);
        if message["method"] == "tools/list" && peer.options.has(&Flaw::CloseStdin) {
            close_stdin();
            sleep_for_ever();
        }
    }
}

/// Replaces stdin with an empty file, which closes the pipe.
fn close_stdin() {
    let null = fs::File::open("/dev/null").expect("there is a null device");
    rustix::stdio::dup2_stdin(&null).expect("stdin can be replaced");
    let mut rest = Vec::new();
    io::stdin().lock().read_to_end(&mut rest).ok();
}

fn sleep_for_ever() -> ! {
    loop {
        thread::sleep(Duration::from_hours(1));
    }
}

impl Peer {
    fn handle(&self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        let method = message["method"].as_str().unwrap_or_default();
        let first = !self.state.lock().unwrap().initialized;
        if first && method != "initialize" && self.options.has(&Flaw::ExitOnDiscover) {
            process::exit(4);
        }
        match (method, self.options.era) {
            ("notifications/cancelled", _) => {
                self.state.lock().unwrap().cancelled.push(params["requestId"].clone());
            }
            _ if id.is_null() => {}
            ("server/discover", _) if self.options.has(&Flaw::IgnoreDiscover) => {}
            ("ping", _) if self.options.has(&Flaw::IgnorePing) => {}
            ("tools/list" | "server/discover" | "subscriptions/listen", Era::Modern)
                if !is_modern(params) =>
            {
                self.error(id, -32602, "_meta lacks the protocol version");
            }
            ("initialize", Era::Legacy | Era::Dual) => self.initialize(id, params),
            ("ping", Era::Legacy | Era::Dual) => self.result(id, json!({}), false),
            ("tools/list", _) => self.list(id, is_modern(params)),
            ("server/discover", Era::Modern | Era::Dual) => self.discover(id),
            ("subscriptions/listen", Era::Modern | Era::Dual) => self.listen(id),
            _ => self.error(id, -32601, "Method not found"),
        }
    }

    fn initialize(&self, id: &Value, params: &Value) {
        self.state.lock().unwrap().initialized = true;
        let asked = params["protocolVersion"].as_str().unwrap_or_default();
        let version = LEGACY_VERSIONS.into_iter().find(|known| *known == asked);
        let result = json!({
            "protocolVersion": version.unwrap_or("2025-11-25"),
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "stdio-peer", "version": "1.0.0"},
        });
        self.result(id, result, false);
    }

    fn discover(&self, id: &Value) {
        self.state.lock().unwrap().initialized = true;
        let result = json!({
            "supportedVersions": [MODERN_VERSION],
            "capabilities": {"tools": {"listChanged": true}},
            "ttlMs": 0,
            "cacheScope": "private",
        });
        self.result(id, result, true);
    }

    fn listen(&self, id: &Value) {
        self.state.lock().unwrap().subscriptions.push(id.clone());
        self.write(&json!({
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {"notifications": {"toolsListChanged": true}, "_meta": subscription_meta(id)},
        }));
    }

    fn list(&self, id: &Value, modern: bool) {
        let description = "x".repeat(self.options.long_list.unwrap_or(1));
        let added = self.state.lock().unwrap().added_tools.clone();
        let names = TOOLS.into_iter().map(str::to_owned).chain(added);
        let mut tools: Vec<Value> = names
            .map(
                |name| json!({"name": name, "description": "d", "inputSchema": {"type": "object"}}),
            )
            .collect();
        tools[0]["description"] = json!(description);
        let mut result = json!({"tools": tools});
        if modern {
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
        }
        self.result(id, result, modern);
    }

    fn call(&self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        if self.options.era == Era::Modern && !is_modern(params) {
            return self.error(id, -32602, "_meta lacks the protocol version");
        }
        self.state.lock().unwrap().calls += 1;
        let arguments = &params["arguments"];
        let text = match params["name"].as_str().unwrap_or_default() {
            "echo" => arguments.to_string(),
            "sleep" => {
                if !self.sleep(id, params) {
                    return;
                }
                "slept".to_owned()
            }
            "fails" => "failed on purpose".to_owned(),
            "long_line" => "x".repeat(self.options.long_line),
            "environment" => environment().to_string(),
            "stats" => self.stats().to_string(),
            "crash" => process::exit(9),
            "add_tool" => self.add_tool(arguments),
            name if self.state.lock().unwrap().added_tools.iter().any(|added| added == name) => {
                name.to_owned()
            }
            name => return self.error(id, -32602, &format!("Unknown tool: {name}")),
        };
        let failed = params["name"] == "fails";
        let result = json!({"content": [{"type": "text", "text": text}], "isError": failed});
        self.result(id, result, is_modern(params));
        self.call_answered();
    }

    /// Returns whether the sleep ended without a cancellation.
    fn sleep(&self, id: &Value, params: &Value) -> bool {
        const STEP: u64 = 10;
        let arguments = &params["arguments"];
        let total = arguments["ms"].as_u64().unwrap_or(100);
        let every = arguments["every_ms"].as_u64().unwrap_or(u64::MAX);
        let token = &params["_meta"]["progressToken"];
        if let Some(flood) = arguments["flood"].as_str() {
            return self.flood(flood, id, token, Duration::from_millis(total));
        }
        let (mut slept, mut next) = (0, every);
        while slept < total {
            let step = STEP.min(total - slept);
            thread::sleep(Duration::from_millis(step));
            slept += step;
            if self.state.lock().unwrap().cancelled.contains(id) {
                return false;
            }
            if slept >= next && !token.is_null() {
                next = slept.saturating_add(every);
                let params = json!({"progressToken": token, "progress": slept, "total": total});
                let method = "notifications/progress";
                self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
            }
        }
        true
    }

    /// Returns whether the flood ended without a cancellation.
    fn flood(&self, kind: &str, id: &Value, token: &Value, length: Duration) -> bool {
        let (method, params) = match kind {
            "logs" => ("notifications/message", json!({"level": "info", "data": "x"})),
            _ => ("notifications/progress", json!({"progressToken": token, "progress": 1})),
        };
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let start = Instant::now();
        while start.elapsed() < length {
            for _ in 0..100 {
                self.write(&message);
            }
            if self.state.lock().unwrap().cancelled.contains(id) {
                return false;
            }
        }
        true
    }

    fn stats(&self) -> Value {
        let state = self.state.lock().unwrap();
        json!({"calls": state.calls, "cancelled": state.cancelled, "pid": process::id()})
    }

    fn add_tool(&self, arguments: &Value) -> String {
        let name = arguments["name"].as_str().unwrap_or("added").to_owned();
        let mut state = self.state.lock().unwrap();
        state.added_tools.push(name.clone());
        let subscriptions = state.subscriptions.clone();
        drop(state);
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        if self.options.era != Era::Modern && subscriptions.is_empty() {
            self.write(&changed);
        }
        for id in subscriptions {
            let mut message = changed.clone();
            message["params"] = json!({"_meta": subscription_meta(&id)});
            self.write(&message);
        }
        format!("added {name}")
    }

    fn call_answered(&self) {
        let mut state = self.state.lock().unwrap();
        state.answered_calls += 1;
        if self.options.exit_after_calls.is_some_and(|limit| state.answered_calls >= limit) {
            process::exit(7);
        }
    }

    fn result(&self, id: &Value, mut result: Value, modern: bool) {
        if modern {
            result["resultType"] = json!("complete");
        }
        self.write(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn error(&self, id: &Value, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        self.write(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    fn write(&self, message: &Value) {
        let mut line = message.to_string();
        line.push('\n');
        let mut stdout = io::stdout().lock();
        if self.options.has(&Flaw::GarbageStdout) {
            stdout.write_all(b"starting up, please wait...\n\n{\"half\": \n").ok();
            stdout.write_all(b"caf\xc3 \xe2\x82 \xff\n[1,2,3]\n\"text\"\n").ok();
        }
        stdout.write_all(line.as_bytes()).ok();
        stdout.flush().ok();
    }
}

fn is_modern(params: &Value) -> bool {
    !params["_meta"]["io.modelcontextprotocol/protocolVersion"].is_null()
}

fn subscription_meta(id: &Value) -> Value {
    json!({"io.modelcontextprotocol/subscriptionId": id})
}

/// The inherited environment that a test may check.
fn environment() -> Value {
    let variables: serde_json::Map<String, Value> = std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), json!(value.to_string_lossy())))
        .collect();
    json!({"variables": variables, "directory": std::env::current_dir().ok()})
}
