//! `serve` from start to shutdown: reload under load, signals, child processes, many servers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_support::{
    Fault, Reply, ScriptedServer, Stage, Tool, free_port, peers, wait_until,
};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::support::{
    Home, PATIENCE, Serve, assert_says, call, dynamic, server, signal, stdio, strict, with, yaml,
};

/// Callers that go on until they are told to stop, and count what went wrong.
struct Load {
    tasks: JoinSet<()>,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    failed: Arc<std::sync::Mutex<Vec<String>>>,
}

impl Load {
    fn start(serve: &Serve, tool: &'static str, callers: usize) -> Self {
        let mut load = Self {
            tasks: JoinSet::new(),
            stop: Arc::default(),
            done: Arc::default(),
            failed: Arc::default(),
        };
        for _ in 0..callers {
            let (http, url) = (serve.http.clone(), serve.url.clone());
            let (stop, done, failed) = (load.stop.clone(), load.done.clone(), load.failed.clone());
            load.tasks.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let (status, body) = call(&http, &url, tool, json!({})).await;
                    if status != 200 {
                        failed.lock().unwrap().push(body.to_string());
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        load
    }

    /// Waits until this many more calls have been made.
    async fn go_on(&self, count: usize) {
        let goal = self.done.load(Ordering::Relaxed) + count;
        wait_until(PATIENCE, async || (self.done.load(Ordering::Relaxed) >= goal).then_some(()))
            .await;
    }

    async fn end(mut self) -> (usize, Vec<String>) {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
        let failed = self.failed.lock().unwrap().clone();
        (self.done.load(Ordering::Relaxed), failed)
    }
}

#[tokio::test]
async fn no_call_fails_while_the_file_changes() {
    let (steady, other) = (server([Tool::echo("echo")]).await, server([Tool::echo("more")]).await);
    let entry = dynamic("steady", &steady.url());
    let base = yaml(&[], std::slice::from_ref(&entry));
    let home = Home::new(&base);
    let serve = home.serve().await;
    let load = Load::start(&serve, "steady.echo", 6);

    home.rewrite(yaml(&[], &[entry.clone(), dynamic("other", &other.url())]));
    serve.until_tools(&["steady.echo", "other.more"]).await;
    load.go_on(150).await;

    home.rewrite(yaml(&["{name: echo, max_instances: 3}"], &[with(&entry, "headers: {X-New: y}")]));
    serve.until_tools(&["steady.echo"]).await;
    wait_until(PATIENCE, async || {
        let tools = serve.get("/api/v1/tools").await;
        (tools["tools"][0]["limits"]["max_instances"] == 3).then_some(())
    })
    .await;
    wait_until(PATIENCE, async || {
        (steady.stats().last_header("tools/call", "x-new") == Some("y")).then_some(())
    })
    .await;
    load.go_on(150).await;

    for (broken, reason) in [
        ("switchboard: [\n".to_owned(), "not valid YAML"),
        (yaml(&["{name: echo, max_instances: 0}"], &[]), "below the minimum"),
        (yaml(&[], &[strict("steady", &steady.url())]), "is not configured in the toolbox"),
        (
            yaml(&[], &[entry.clone(), dynamic("gone", "http://127.0.0.1:1/mcp")]),
            "Connection refused",
        ),
    ] {
        home.rewrite(broken);
        serve.said(reason).await;
        load.go_on(50).await;
        assert_eq!(serve.tool_names().await, ["steady.echo"]);
    }
    assert_eq!(
        serve.stderr().matches("the old one keeps serving").count(),
        4,
        "{}",
        serve.stderr()
    );

    // An editor: a swap file, a backup, a truncated file that is filled a moment later, a removal.
    let revision = serve.revision().await;
    home.rewrite(&base);
    wait_until(PATIENCE, async || (serve.revision().await > revision).then_some(())).await;
    home.file(".switchboard.yaml.swp", "swap");
    home.file("4913", "");
    std::fs::rename(home.config(), home.path().join("switchboard.yaml~")).unwrap();
    home.file("switchboard.yaml", "");
    home.file("switchboard.yaml", &base);
    load.go_on(150).await;
    home.file("switchboard.yaml", yaml(&[], &[entry.clone(), dynamic("other", &other.url())]));
    serve.until_tools(&["steady.echo", "other.more"]).await;

    swap_links(&home, &serve, &base, &yaml(&[], &[entry, dynamic("third", &other.url())])).await;

    while load.done.load(Ordering::Relaxed) < 2_000 {
        load.go_on(100).await;
    }
    let (done, failed) = load.end().await;
    assert!(done >= 2_000, "{done}");
    assert_eq!(failed, [""; 0], "of {done} calls");
}

/// A link that is swapped, as orchestrators do it.
async fn swap_links(home: &Home, serve: &Serve, one: &str, other: &str) {
    for (name, text) in [("a", one), ("b", other)] {
        let directory = home.path().join(name);
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("switchboard.yaml"), text).unwrap();
    }
    let swap = |target: &str| {
        let link = home.path().join("fresh");
        std::os::unix::fs::symlink(Path::new(target).join("switchboard.yaml"), &link).unwrap();
        std::fs::rename(link, home.config()).unwrap();
    };
    swap("a");
    serve.until_tools(&["steady.echo"]).await;
    swap("b");
    serve.until_tools(&["steady.echo", "third.more"]).await;
}

#[tokio::test]
async fn sighup_reads_file_and_lists_again_and_fails_no_call() {
    let one = server([Tool::echo("echo")]).await;
    let entry = dynamic("one", &one.url());
    let home = Home::new(yaml(&[], std::slice::from_ref(&entry)));
    let serve = home.serve().await;
    let load = Load::start(&serve, "one.echo", 4);
    one.set_tools([Tool::echo("echo"), Tool::echo("fresh")]);
    serve.signal("HUP");
    serve.until_tools(&["one.echo", "one.fresh"]).await;
    serve.said("New tool 'fresh' discovered from MCP server 'one'").await;
    one.set_tools([Tool::echo("echo")]);
    home.rewrite(yaml(&["{name: one.fresh}"], &[entry]));
    serve.signal("HUP");
    serve.until_tools(&["one.echo"]).await;
    serve
        .said("Tool 'fresh' was configured but is no longer available from MCP server 'one'")
        .await;
    for _ in 0..20 {
        serve.signal("HUP");
    }
    load.go_on(300).await;
    assert_eq!(load.end().await.1, [""; 0]);
}

#[tokio::test]
async fn sighup_while_it_starts_does_not_end_it() {
    let slow = ScriptedServer::builder()
        .tools([Tool::echo("echo")])
        .fault(Fault::DelayInitialize(Duration::from_millis(800)))
        .start()
        .await;
    let home = Home::new(yaml(&[], &[dynamic("slow", &slow.url())]));
    let mut serve = home.start_serve(&[]);
    serve.said("Connecting to MCP server 'slow'").await;
    serve.signal("HUP");
    serve.ready().await;
    serve.answer("slow.echo", json!({})).await;
}

#[tokio::test]
async fn a_list_that_changes_is_a_new_revision() {
    let one = server([Tool::echo("a")]).await;
    let home = Home::new(yaml(&[], &[dynamic("one", &one.url())]));
    let mut serve = home.serve().await;
    let first = serve.revision().await;
    wait_until(PATIENCE, async || (one.open_streams() == 1).then_some(())).await;
    one.set_tools_and_notify([Tool::echo("a"), Tool::echo("b")]).await;
    serve.until_tools(&["one.a", "one.b"]).await;
    assert_eq!(serve.revision().await, first + 1);
    // A catalog is written to the store after it was published; at its end the program writes what is left.
    serve.signal("TERM");
    serve.ended().await;
    let serve = home.serve().await;
    assert_eq!(
        serve.revision().await,
        first + 1,
        "the same catalog is the same revision after a restart"
    );
    assert!(!serve.stderr().contains("New tool"), "{}", serve.stderr());
}

#[tokio::test]
async fn sigterm_lets_a_running_call_finish() {
    let one = server([Tool::echo("slow").sleeps(900)]).await;
    let home = Home::new(yaml(&[], &[dynamic("one", &one.url())]));
    for name in ["TERM", "INT"] {
        let mut serve = home.serve().await;
        let before = one.stats().finished_calls;
        let (http, url) = (serve.http.clone(), serve.url.clone());
        let mut calls = JoinSet::new();
        calls.spawn(async move { call(&http, &url, "slow", json!({})).await });
        wait_until(PATIENCE, async || (one.stats().running_calls == 1).then_some(())).await;
        serve.signal(name);
        serve.said("stopping; running calls may take 10s to finish").await;
        assert_eq!(one.stats().finished_calls, before, "it is said at the beginning of the end");
        let (status, _) = calls.join_next().await.unwrap().unwrap();
        assert_eq!(status, 200);
        assert_eq!(serve.ended().await.code(), Some(0), "{}", serve.stderr());
        wait_until(PATIENCE, async || (one.open_sessions() == 0).then_some(())).await;
    }
    let list = home.line("calls --json").expect(0).json();
    assert_eq!(list["calls"].as_array().unwrap().len(), 2, "both are on record");
}

#[tokio::test]
async fn a_call_that_does_not_finish_is_cut_off_after_the_drain() {
    let one = server([Tool::new("hangs").replies(Reply::Hang)]).await;
    let home = Home::new(yaml(&[], &[dynamic("one", &one.url())]));
    let mut serve = home.serve_with(&["--drain", "2"]).await;
    let (http, url) = (serve.http.clone(), serve.url.clone());
    let mut calls = JoinSet::new();
    calls.spawn(async move { call(&http, &url, "hangs", json!({})).await });
    wait_until(PATIENCE, async || (one.stats().running_calls == 1).then_some(())).await;
    let asked = Instant::now();
    serve.signal("TERM");
    assert_eq!(serve.ended().await.code(), Some(0));
    let took = asked.elapsed();
    assert!(took >= Duration::from_millis(1_900), "{took:?}");
    assert!(took < Duration::from_millis(3_900), "the drain happens once, not twice: {took:?}");
    wait_until(PATIENCE, async || (one.stats().running_calls == 0).then_some(())).await;
    let (status, problem) = calls.join_next().await.unwrap().unwrap();
    assert_eq!(status, 503, "the caller is told: {problem}");
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let one = server([Tool::new("hangs").replies(Reply::Hang)]).await;
    let home = Home::new(yaml(&[], &[dynamic("one", &one.url())]));
    let mut serve = home.serve_with(&["--drain", "600"]).await;
    let (http, url) = (serve.http.clone(), serve.url.clone());
    let mut calls = JoinSet::new();
    let path = format!("{url}/api/v1/tools/hangs/call");
    calls.spawn(async move { http.post(path).json(&json!({})).send().await.is_ok() });
    wait_until(PATIENCE, async || (one.stats().running_calls == 1).then_some(())).await;
    serve.signal("TERM");
    serve.said("stopping").await;
    assert!(serve.is_running(), "the first one waits for the call");
    serve.signal("TERM");
    assert_eq!(serve.ended().await.code(), Some(130));
}

#[tokio::test]
async fn a_signal_during_the_start_ends_the_start() {
    let hangs = ScriptedServer::builder().fault(Fault::Hang(Stage::Any)).start().await;
    let home = Home::new(yaml(&[], &[dynamic("hangs", &hangs.url())]));
    let mut serve = home.start_serve(&[]);
    serve.said("Connecting to MCP server 'hangs'").await;
    serve.signal("TERM");
    assert_eq!(serve.ended().await.code(), Some(0));
    assert_eq!(serve.stdout(), "");
}

#[test]
fn a_taken_port_and_an_open_address_are_refused() {
    let home = Home::new(yaml(&["{name: sum_numbers}"], &[]));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    assert_says!(home.run(&["serve", "--listen", &address]).expect(1).stderr, @"
    error: cannot listen on HOST: Address already in use (os error 98)
    hint: `--listen HOST` takes a free port
    ");
    assert_says!(home.run(&["serve", "--listen", "0.0.0.0:0"]).expect(1).stderr, @"
    error: 0.0.0.0:0 can be reached from other machines, and no credentials are configured
    hint: listen on 127.0.0.1 or [::1], or make a key with `switchboard key add NAME`, or configure `security.jwt`
    ");
    home.run(&["serve", "--listen", "[::]:0"]).expect(1);
    home.run(&["serve", "--listen", "192.0.2.1:0"]).expect(1);
}

/// The processes of a pid file that are still there.
fn alive(pids: &[u32]) -> Vec<u32> {
    let is_alive = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    };
    pids.iter().copied().filter(is_alive).collect()
}

async fn pids(file: &Path) -> Vec<u32> {
    let text = wait_until(PATIENCE, async || std::fs::read_to_string(file).ok()).await;
    text.lines().map(|line| line.parse().unwrap()).collect()
}

fn family(home: &Home, more: &[&str]) -> (std::path::PathBuf, String) {
    let file = home.path().join("pids");
    let arguments = ["--spawn-grandchild", "--pid-file", file.to_str().unwrap()];
    let entry = stdio("family", &peers::stdio_peer(), &[&arguments, more].concat());
    (file, entry)
}

#[tokio::test]
async fn kill_9_leaves_no_child_and_no_grandchild() {
    for more in [&[][..], &["--ignore-sigterm"]] {
        let home = Home::empty();
        let (file, entry) = family(&home, more);
        home.rewrite(yaml(&[], &[entry]));
        let serve = home.serve().await;
        let pids = pids(&file).await;
        assert_eq!(alive(&pids), pids, "a child and two grandchildren");
        serve.signal("KILL");
        let killed = Instant::now();
        wait_until(PATIENCE, async || alive(&pids).is_empty().then_some(())).await;
        assert!(killed.elapsed() < Duration::from_secs(5), "{:?}", killed.elapsed());
    }
}

#[tokio::test]
async fn no_end_leaves_a_child() {
    let home = Home::empty();
    let (file, entry) = family(&home, &[]);
    home.rewrite(yaml(&[], std::slice::from_ref(&entry)));
    // An orderly end, a removal from the file, and single commands.
    let mut serve = home.serve().await;
    let first = pids(&file).await;
    serve.signal("TERM");
    assert_eq!(serve.ended().await.code(), Some(0));
    assert_eq!(alive(&first), [0; 0]);
    std::fs::remove_file(&file).unwrap();
    let serve = home.serve().await;
    let second = pids(&file).await;
    home.rewrite(yaml(&["{name: sum_numbers}"], &[]));
    serve.until_tools(&["local.sum_numbers"]).await;
    wait_until(PATIENCE, async || alive(&second).is_empty().then_some(())).await;
    drop(serve);
    home.rewrite(yaml(&[], &[entry]));
    for line in ["server test family", "tool call family.echo {}", "check --connect", "doctor"] {
        drop(std::fs::remove_file(&file));
        home.line(line).expect(0);
        let third = pids(&file).await;
        wait_until(PATIENCE, async || alive(&third).is_empty().then_some(())).await;
    }
}

#[tokio::test]
async fn a_single_command_that_is_killed_leaves_no_child() {
    let home = Home::empty();
    let (file, entry) = family(&home, &[]);
    home.rewrite(yaml(&[], &[entry]));
    let line = ["tool", "call", "family.sleep", "{\"ms\": 60000}"];
    let mut child = home.command(&line).spawn().unwrap();
    let pids = pids(&file).await;
    signal(child.id(), "KILL");
    child.wait().unwrap();
    wait_until(PATIENCE, async || alive(&pids).is_empty().then_some(())).await;
}

#[tokio::test]
async fn a_child_gets_its_own_environment_and_not_ours() {
    let entry = with(&stdio("child", &peers::stdio_peer(), &[]), "env: {MINE: \"${GIVEN}\"}");
    let home =
        Home::new(yaml(&[], &[entry])).with_variable("GIVEN", "yes").with_variable("OURS", "no");
    let said = home.run(&["tool", "call", "child.environment", "{}"]).expect(0).stdout;
    let environment: serde_json::Value = serde_json::from_str(&said).unwrap();
    let variables = &environment["variables"];
    assert_eq!(variables["MINE"], "yes");
    for name in ["OURS", "GIVEN", "SWITCHBOARD_DATA_DIR"] {
        assert!(variables[name].is_null(), "{name} went to the child");
    }
}

#[tokio::test]
async fn forty_servers_are_connected_at_the_same_time() {
    let mut servers = Vec::new();
    for n in 0..39 {
        servers.push(server([Tool::echo(format!("t{n}"))]).await);
    }
    let slow = ScriptedServer::builder().tools([Tool::echo("slow")]).start().await;
    slow.set_fault_times(1, Fault::DelayInitialize(Duration::from_secs(2))).await;
    servers.push(slow);
    let entries = servers.iter().enumerate();
    let entries: Vec<_> = entries
        .map(|(n, server)| with(&dynamic(&format!("s{n}"), &server.url()), "required: false"))
        .collect();
    let home = Home::new(yaml(&[], &entries));
    let start = Instant::now();
    let serve = home.serve().await;
    let took = start.elapsed();
    assert!(took >= Duration::from_secs(2), "{took:?}");
    let times = serve.start["servers"].as_array().unwrap().iter();
    let slowest = times.map(|server| server["connect_ms"].as_u64().unwrap()).max().unwrap();
    let after = took.saturating_sub(Duration::from_millis(slowest));
    assert!(after < Duration::from_secs(1), "ready within a second of the slowest: {after:?}");
    assert_eq!(serve.start["readiness"]["tools"], 40);
    drop(serve);

    // One of them is dead: ready all the same, degraded, and it comes back by itself.
    servers[7].stop().await;
    let serve = home.serve().await;
    let readiness = &serve.start["readiness"];
    assert_eq!(
        (&readiness["status"], &readiness["unavailable"]),
        (&json!("degraded"), &json!(["s7"]))
    );
    serve.answer("s8.t8", json!({})).await;
    servers[7].restart_on_same_port().await;
    serve.until_status("ready").await;
    serve.answer("s7.t7", json!({})).await;
}

#[tokio::test]
async fn health_answers_while_the_servers_are_still_being_connected() {
    let slow = ScriptedServer::builder().fault(Fault::Hang(Stage::Any)).start().await;
    let slow = with(&dynamic("slow", &slow.url()), "required: false, connect_timeout: 4s");
    let home = Home::new(yaml(&["{name: sum_numbers}"], &[slow]));
    let url = format!("http://127.0.0.1:{}", free_port());
    let address = url.trim_start_matches("http://");
    let mut child = home.command(&["serve", "--listen", address]).spawn().unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let get = async |path: &str| http.get(format!("{url}{path}")).send().await.ok();
    let health = wait_until(PATIENCE, async || get("/healthz").await).await;
    assert_eq!(health.status(), 200);
    let early = get("/readyz").await.unwrap();
    assert_eq!(early.status(), 503);
    let problem: serde_json::Value = early.json().await.unwrap();
    assert_eq!(problem["type"], "urn:switchboard:problem:starting");
    let is_ready = async || get("/readyz").await.filter(|answer| answer.status() == 200);
    let ready: serde_json::Value = wait_until(PATIENCE, is_ready).await.json().await.unwrap();
    assert_eq!(ready["status"], "degraded");
    signal(child.id(), "TERM");
    assert!(child.wait().unwrap().success());
}

/// Asks for a session at a board that may not listen yet.
async fn knock(url: &str) -> reqwest::Result<reqwest::Response> {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let is_up = async || http.get(format!("{url}/healthz")).send().await.ok();
    wait_until(PATIENCE, is_up).await;
    http.post(format!("{url}/mcp")).json(&hello).send().await
}

#[tokio::test]
async fn a_client_that_comes_during_the_start_waits_and_is_served() {
    let slow = ScriptedServer::builder()
        .tools([Tool::new("late")])
        .fault(Fault::DelayInitialize(Duration::from_secs(2)))
        .start()
        .await;
    let home = Home::new(yaml(&["{name: sum_numbers}"], &[dynamic("slow", &slow.url())]));
    let url = format!("http://127.0.0.1:{}", free_port());
    let address = url.trim_start_matches("http://");
    let mut child = home.command(&["serve", "--listen", address]).spawn().unwrap();
    let opened = knock(&url).await.unwrap();
    assert_eq!(opened.status(), 200);
    let session = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let list = http.post(format!("{url}/mcp")).header("mcp-session-id", session).json(&list);
    let list: serde_json::Value = list.send().await.unwrap().json().await.unwrap();
    let tools = list["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"slow__late"), "{names:?}");
    signal(child.id(), "TERM");
    assert!(child.wait().unwrap().success());
}

#[tokio::test]
async fn a_start_that_fails_ends_the_program_although_a_client_waits() {
    let hung = ScriptedServer::builder().fault(Fault::Hang(Stage::Any)).start().await;
    let hung = with(&dynamic("hung", &hung.url()), "connect_timeout: 3s");
    let home = Home::new(yaml(&["{name: sum_numbers}"], &[hung]));
    let url = format!("http://127.0.0.1:{}", free_port());
    let address = url.trim_start_matches("http://");
    let child = home.command(&["serve", "--listen", address, "--drain", "60"]).spawn().unwrap();
    // The client gets an error, or the connection is already closed.
    if let Ok(answer) = knock(&url).await {
        assert_eq!(answer.status(), 503);
    }
    let ending = tokio::task::spawn_blocking(move || child.wait_with_output());
    let ended = tokio::time::timeout(PATIENCE, ending).await.unwrap().unwrap().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("Failed to connect to MCP server 'hung'"), "{said}");
}

#[tokio::test]
async fn patterns_of_toolsets_are_judged_when_the_catalog_is_whole() {
    let one = server([Tool::echo("read_file")]).await;
    let sets = "switchboard:\n  toolsets:\n    - {name: look, description: d, tools: [\"read_*\", \"zzz_*\"]}\n";
    let home =
        Home::new(yaml(&[], &[dynamic("one", &one.url())]).replacen("switchboard:\n", sets, 1));
    // What the first run remembers is no catalog yet when the second one starts.
    for run in ["first", "second"] {
        let serve = home.serve().await;
        let warning = "toolset 'look' names `zzz_*`, and no tool is called so";
        wait_until(PATIENCE, async || serve.stderr().contains(warning).then_some(())).await;
        assert!(!serve.stderr().contains("read_*"), "{run}: {}", serve.stderr());
    }
}
