//! F5: clients that disconnect, cancel, do not read, or never close; and the shutdown of the gateway itself.

use std::cell::Cell;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::Duration;

use futures::future::join_all;
use reqwest::Client;
use serde_json::{Value, json};
use switchboard_test_support::{ScriptedServer, ScriptedServerBuilder, Tool, wait_until};
use tokio::time::Instant;

use crate::client::{Answer, Events, Peer};
use crate::support::{Home, PATIENCE, Serve, dynamic, server};
use crate::world::{DATABASE_THREADS, Holdings, config, home, tasks};

/// A server with one slow tool that may run once at a time.
async fn slow(builder: ScriptedServerBuilder) -> (ScriptedServer, Home) {
    let slow = Tool::new("slow").sleeps(25_000).progress_every(50);
    let upstream = builder.tools([slow, Tool::new("echo")]).start().await;
    let entry = format!(
        "{{name: one, url: \"{}\", mode: dynamic, default_tool_config: {{max_instances: 1, timeout: 30s}}}}",
        upstream.url()
    );
    (upstream, Home::new(config(&[entry], &[])))
}

async fn until_cancelled(upstream: &ScriptedServer, count: usize) {
    wait_until(PATIENCE, async || {
        let stats = upstream.stats();
        let ended = stats.cancelled.len() + stats.dropped_calls.len();
        (ended >= count && stats.running_calls == 0).then_some(())
    })
    .await;
}

async fn a_client_that_goes_away_cancels(builder: ScriptedServerBuilder) {
    let (upstream, home) = slow(builder).await;
    let serve = home.serve().await;
    let peer = Peer::of(&serve).meta(json!({"progressToken": 1}));
    let session = peer.open().await;
    let call = json!({"name": "one__slow", "arguments": {}});
    // In the middle of a stream, in both eras, then before anything was said.
    let response = peer.modern_response("tools/call", call.clone()).await;
    let mut events = Events::of(response);
    assert_eq!(events.next().await.unwrap()["method"], "notifications/progress");
    drop(events);
    until_cancelled(&upstream, 1).await;
    let progressing = json!({"name": "one__slow", "arguments": {}, "_meta": {"progressToken": 2}});
    let mut events = Events::of(session.ask_response(7, "tools/call", progressing).await);
    assert_eq!(events.next().await.unwrap()["method"], "notifications/progress");
    drop(events);
    until_cancelled(&upstream, 2).await;
    let silent = Peer::of(&serve);
    tokio::select! {
        answer = silent.modern("tools/call", call) => panic!("{answer:?}"),
        () = wait_until(PATIENCE, async || (upstream.stats().running_calls == 1).then_some(())) => {}
    }
    until_cancelled(&upstream, 3).await;
    // The only slot is free again, and so is the id of the request.
    let begun = Instant::now();
    let quick = json!({"name": "one__slow", "arguments": {"sleep_ms": 1}});
    assert!(!silent.modern("tools/call", quick.clone()).await.is_refusal());
    assert!(!Answer::of(session.ask_response(7, "tools/call", quick).await).await.is_refusal());
    // Who had to wait for the calls above would have waited for twice as long.
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn f5_a_client_that_goes_away_cancels_its_call_to_a_modern_server() {
    a_client_that_goes_away_cancels(ScriptedServer::builder().modern()).await;
}

#[tokio::test]
async fn f5_a_client_that_goes_away_cancels_its_call_to_a_legacy_server() {
    a_client_that_goes_away_cancels(ScriptedServer::builder().legacy()).await;
}

/// Over HTTP/2 a client can be there, answer pings, and take nothing of one answer.
#[tokio::test]
async fn f5_a_client_that_takes_nothing_does_not_stop_the_clock_of_its_call() {
    for builder in [ScriptedServer::builder().legacy(), ScriptedServer::builder().modern()] {
        let slow = Tool::new("slow").sleeps(25_000).progress_every(20);
        let upstream = builder.tools([slow]).start().await;
        let entry = format!(
            "{{name: one, url: \"{}\", mode: dynamic, default_tool_config: {{max_instances: 1, timeout: 2s, max_timeout: 2s}}}}",
            upstream.url()
        );
        let serve = Home::new(config(&[entry], &[])).serve().await;
        let mut peer = Peer::of(&serve).meta(json!({"progressToken": 1}));
        let narrow = Client::builder().no_proxy().http2_prior_knowledge();
        peer.http = narrow.http2_initial_stream_window_size(0).build().unwrap();
        let call = json!({"name": "one__slow", "arguments": {}});
        let response = peer.modern_response("tools/call", call).await;
        assert_eq!(response.status(), 200);
        until_cancelled(&upstream, 1).await;
        let quick = json!({"sleep_ms": 1});
        assert!(!Peer::of(&serve).call("one__slow", quick).await.is_refusal());
        drop(response);
    }
}

#[tokio::test]
async fn f5_a_session_that_ends_takes_its_calls_with_it_and_is_listed_no_more() {
    for builder in [ScriptedServer::builder().legacy(), ScriptedServer::builder().modern()] {
        let (upstream, home) = slow(builder).await;
        let serve = home.serve().await;
        let (leaves, stays) = (Peer::of(&serve).open().await, Peer::of(&serve).open().await);
        let listed = async || {
            let listed = serve.get("/api/v1/sessions").await;
            listed["sessions"].as_array().unwrap_or_else(|| panic!("{listed}")).len()
        };
        let call = json!({"name": "one__slow", "arguments": {}, "_meta": {"progressToken": 1}});
        let mut events = Events::of(leaves.ask_response(7, "tools/call", call).await);
        assert_eq!(events.next().await.unwrap()["method"], "notifications/progress");
        assert_eq!(listed().await, 2);
        assert_eq!(leaves.delete().await.status, 204);
        until_cancelled(&upstream, 1).await;
        while let Some(message) = events.next().await {
            assert!(
                message["result"].is_null(),
                "a call that was cut off has no result: {message}"
            );
        }
        assert_eq!(listed().await, 1);
        assert!(!stays.call("one__echo", json!({})).await.is_refusal());
    }
}

#[tokio::test]
async fn f5_a_cancellation_over_http_ends_the_call_and_no_other() {
    for builder in [ScriptedServer::builder().legacy(), ScriptedServer::builder().modern()] {
        let (upstream, home) = slow(builder).await;
        let serve = home.serve().await;
        let session = Peer::of(&serve).open().await;
        let stranger = Peer::of(&serve).open().await;
        let call = json!({"name": "one__slow", "arguments": {}});
        let cancelling = async {
            wait_until(PATIENCE, async || (upstream.stats().running_calls == 1).then_some(()))
                .await;
            // Neither another session nor another id means this call.
            stranger.notify("notifications/cancelled", json!({"requestId": 5})).await;
            session.notify("notifications/cancelled", json!({"requestId": "5"})).await;
            session.notify("notifications/cancelled", json!({"requestId": 6})).await;
            session.notify("notifications/cancelled", json!({})).await;
            session.notify("notifications/cancelled", json!({"requestId": {"a": []}})).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert_eq!(upstream.stats().running_calls, 1);
            session
                .notify("notifications/cancelled", json!({"requestId": 5, "reason": "enough"}))
                .await;
        };
        let (response, ()) = tokio::join!(session.ask_response(5, "tools/call", call), cancelling);
        let answer = Answer::of(response).await;
        assert!(answer.is_refusal(), "{}", answer.body);
        until_cancelled(&upstream, 1).await;
        assert!(!session.call("one__echo", json!({})).await.is_refusal());
    }
}

#[tokio::test]
async fn f5_a_cancellation_over_standard_input_ends_the_call() {
    let (upstream, home) = slow(ScriptedServer::builder().legacy()).await;
    let mut child = home.command(&["stdio"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut send = |message: Value| writeln!(input, "{message}").unwrap();
    let version = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
    send(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": version}));
    send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    for (n, meta) in [(1, json!({})), (2, meta)] {
        let params = json!({"name": "one__slow", "arguments": {}, "_meta": meta});
        send(json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params}));
        wait_until(PATIENCE, async || (upstream.stats().running_calls == 1).then_some(())).await;
        send(
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": n}}),
        );
        until_cancelled(&upstream, n).await;
    }
    send(json!({"jsonrpc": "2.0", "id": 9, "method": "ping"}));
    let last = loop {
        let message: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        if message["id"] == 9 {
            break message;
        }
        assert!(
            message["id"] == 0 || message["error"].is_object(),
            "a cancelled call has no result: {message}"
        );
    };
    assert_eq!(last["result"], json!({}));
    drop(input);
    assert!(child.wait().unwrap().success());
}

/// A client that opens a window of that many bytes for each response and reads no more than it must. With HTTP/1.1 the
/// buffers of the kernel would take megabytes before the server noticed.
fn lazy(serve: &Serve, window: u32) -> Peer {
    let http = Client::builder()
        .no_proxy()
        .http2_prior_knowledge()
        .http2_initial_stream_window_size(window)
        .http2_initial_connection_window_size(8 << 20);
    let mut peer = Peer::of(serve);
    peer.http = http.build().unwrap();
    peer
}

const LIST_CHANGED: &str = "notifications/tools/list_changed";
/// What waits for a slow reader before it loses its stream, in either era.
const WAITING_MESSAGES: usize = 64;
const CHANGES: usize = 300;

/// Reads to the end, and counts the changes.
async fn changes(mut stream: Events) -> usize {
    let mut count = 0;
    while let Some(message) = stream.next().await {
        count += usize::from(message["method"] == LIST_CHANGED);
    }
    count
}

#[tokio::test]
async fn f5_a_listener_that_is_slow_loses_its_stream_and_stalls_nobody() {
    let upstream = server([Tool::new("echo")]).await;
    let sections = ["gateway: {exposure: dynamic, stateless_state: principal}"];
    let serve = home(&[("one", &upstream.url())], &sections).serve().await;
    let (peer, lazy) = (Peer::of(&serve), lazy(&serve, 1_000));
    let (slow, keen) = (lazy.open().await, peer.open().await);
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let slow_legacy = slow.listen().await;
    let slow_modern =
        Events::of(lazy.modern_response("subscriptions/listen", wanted.clone()).await);
    let mut keen_legacy = keen.listen().await;
    let mut keen_modern = Events::of(peer.modern_response("subscriptions/listen", wanted).await);
    keen_modern.next().await.unwrap();
    let before = Holdings::of(serve.pid());
    for n in 0..CHANGES {
        let tool = ["enable_toolset", "disable_toolset"][n % 2];
        let switched = json!({"toolsetName": "one"});
        for answer in [
            slow.call(tool, switched.clone()).await,
            keen.call(tool, switched.clone()).await,
            peer.call(tool, switched).await,
        ] {
            assert!(!answer.is_refusal(), "{}", answer.body);
        }
        for stream in [&mut keen_legacy, &mut keen_modern] {
            assert_eq!(stream.next().await.unwrap()["method"], LIST_CHANGED);
        }
    }
    let after = Holdings::of(serve.pid());
    assert!(after.rss_kb < before.rss_kb + 20 * 1024, "{before:?} {after:?}");
    // What had been sent, what waited, and the end.
    for told in [changes(slow_legacy).await, changes(slow_modern).await] {
        assert!((WAITING_MESSAGES..CHANGES / 2).contains(&told), "{told} of {CHANGES}");
    }
    // A client that lost its stream gets the change with the response to its call, and a client that reconnects has a
    // stream again.
    let answer = slow.call("enable_toolset", json!({"toolsetName": "one"})).await;
    assert_eq!(answer.messages()[0]["method"], LIST_CHANGED, "{}", answer.body);
    let mut again = slow.listen().await;
    slow.call("disable_toolset", json!({"toolsetName": "one"})).await;
    assert_eq!(again.next().await.unwrap()["method"], LIST_CHANGED);
    slow.delete().await;
    assert_eq!(again.next().await, None);
}

#[tokio::test]
async fn f5_a_reader_of_an_answer_that_is_slow_stalls_nobody() {
    let flood = Tool::new("flood").sleeps(1_500).progress_every(1);
    let upstream = server([flood, Tool::new("echo")]).await;
    let serve = home(&[("one", &upstream.url())], &[]).serve().await;
    let (peer, lazy) = (Peer::of(&serve), lazy(&serve, 1_000));
    let slow = lazy.open().await;
    let meta = json!({"progressToken": "a token"});
    let call = json!({"name": "one__flood", "arguments": {}});
    let before = Holdings::of(serve.pid());
    let modern = lazy.meta(meta.clone()).modern_response("tools/call", call).await;
    let call = json!({"name": "one__flood", "arguments": {}, "_meta": meta});
    let legacy = slow.ask_response(1, "tools/call", call).await;
    for n in 0..200 {
        let answer = peer.call("one__echo", json!({"n": n})).await;
        assert!(!answer.is_refusal(), "{}", answer.body);
    }
    let after = Holdings::of(serve.pid());
    assert!(after.rss_kb < before.rss_kb + 20 * 1024, "{before:?} {after:?}");
    // Signs of life are lost, the answer is not.
    for response in [modern, legacy] {
        let answer = Answer::of(response).await;
        assert!(!answer.is_refusal(), "{}", answer.body);
    }
}

#[tokio::test]
async fn f5_readers_of_a_long_list_that_are_slow_share_its_bytes() {
    let words = "A sentence that says what this tool is for, at length. ".repeat(100);
    let tools = (0..400).map(|n| Tool::new(format!("tool_{n:03}")).description(&words));
    let upstream = server(tools).await;
    let serve = home(&[("one", &upstream.url())], &[]).serve().await;
    let (peer, lazy) = (Peer::of(&serve), lazy(&serve, 1_000));
    let session = lazy.open().await;
    // Whoever asks first pays for the list.
    let whole = peer.modern("tools/list", json!({})).await;
    assert!(whole.body.len() > 2_000_000, "{}", whole.body.len());
    assert_eq!(lazy.open().await.tools().await.len(), 400);
    let before = Holdings::of(serve.pid());
    let mut unread = Vec::new();
    for n in 0..30 {
        unread.push(lazy.modern_response("tools/list", json!({})).await);
        unread.push(session.ask_response(n, "tools/list", json!({})).await);
        assert_eq!(peer.tools().await.len(), 400);
    }
    // Sixty copies would be more than 120 MB.
    let after = Holdings::of(serve.pid());
    assert!(after.rss_kb < before.rss_kb + 40 * 1024, "{before:?} {after:?}");
    let last = Answer::of(unread.pop().unwrap()).await;
    assert_eq!(last.result()["tools"].as_array().unwrap().len(), 400);
}

#[tokio::test]
async fn f5_an_orderly_end_finishes_calls_and_closes_streams() {
    let upstream = server([Tool::new("slow").sleeps(1_500), Tool::new("echo")]).await;
    let mut serve = home(&[("one", &upstream.url())], &[]).serve().await;
    let peer = Peer::of(&serve);
    let session = peer.open().await;
    let mut stream = session.listen().await;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = Events::of(peer.modern_response("subscriptions/listen", wanted).await);
    listening.next().await.unwrap();
    let ending = async {
        wait_until(PATIENCE, async || (upstream.stats().running_calls == 2).then_some(())).await;
        serve.signal("TERM");
    };
    let calls = async {
        tokio::join!(
            peer.call("one__slow", json!({"n": 1})),
            session.call("one__slow", json!({"n": 2}))
        )
    };
    let ((modern, legacy), ()) = tokio::join!(calls, ending);
    assert_eq!(modern.result()["structuredContent"]["n"], 1, "{}", modern.body);
    assert_eq!(legacy.result()["structuredContent"]["n"], 2, "{}", legacy.body);
    assert_eq!(stream.next().await, None);
    let goodbye = listening.next().await.expect("a last word");
    assert_eq!(goodbye["result"]["resultType"], "complete", "{goodbye}");
    assert_eq!(listening.next().await, None);
    let begun = Instant::now();
    assert!(serve.ended().await.success(), "{}", serve.stderr());
    // After ten seconds it would have ended in any case.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    wait_until(PATIENCE, async || (upstream.open_sessions() == 0).then_some(())).await;
}

/// Opens sessions over a few kept connections and never comes back to them.
async fn abandon(peer: &Peer, count: usize, connections: usize) {
    let opening = (0..connections).map(|_| async {
        for _ in 0..count / connections {
            let answer = peer.initialize("2025-11-25").await;
            assert_eq!(answer.status, 200, "{}", answer.body);
        }
    });
    join_all(opening).await;
}

/// Ten thousand sessions take 12 MB and runs differ by 2, so this would be a leak.
const LEAK_KB: u64 = 6 * 1024;

/// What is there when a crowd is complete, and what is left when it is forgotten.
#[derive(Debug, Clone, Copy)]
struct Crowd {
    peak: Holdings,
    left: Holdings,
}

/// A gateway that can be told to forget all of its sessions.
struct Forgetful {
    upstream: ScriptedServer,
    home: Home,
    serve: Serve,
    reloads: Cell<usize>,
    /// Before the first session.
    start: (usize, Holdings),
}

impl Forgetful {
    fn config(upstream: &ScriptedServer, idle: &str) -> String {
        // Room for all: with the usual limits the newest sessions would take the places of the oldest.
        let gateway = format!(
            "gateway: {{session_idle: {idle}, max_sessions: 20000, max_sessions_per_principal: 20000}}"
        );
        config(&[dynamic("one", &upstream.url())], &[&gateway])
    }

    async fn new() -> Self {
        let upstream = server([Tool::new("echo")]).await;
        // What is freed goes back to the system at once, as far as the allocator can.
        let home = Home::new(Self::config(&upstream, "1h"))
            .with_variable("MALLOC_ARENA_MAX", "1")
            .with_variable("MALLOC_MMAP_THRESHOLD_", "65536")
            .with_variable("MALLOC_TRIM_THRESHOLD_", "65536");
        let serve = home.serve().await;
        let start = (tasks(&serve).await, Holdings::of(serve.pid()));
        Self { upstream, home, serve, reloads: Cell::new(0), start }
    }

    async fn forget_after(&self, idle: &str) {
        self.home.rewrite(Self::config(&self.upstream, idle));
        self.reloads.set(self.reloads.get() + 1);
        wait_until(PATIENCE, async || {
            let reloads = self.serve.stderr().matches("the new configuration is in force").count();
            (reloads == self.reloads.get()).then_some(())
        })
        .await;
    }

    async fn sessions(&self) -> usize {
        let answer = self.serve.get("/api/v1/sessions").await;
        let said = || format!("{answer}\n{}", self.serve.stderr());
        answer["sessions"].as_array().unwrap_or_else(|| panic!("{}", said())).len()
    }

    /// Lets a crowd come, and waits until it is forgotten and there are no more tasks, sockets, children or threads than
    /// before the first session.
    async fn crowd(&self, size: usize) -> Crowd {
        let peak = {
            let peer = Peer::of(&self.serve);
            abandon(&peer, size, 8).await;
            Holdings::of(self.serve.pid())
        };
        assert_eq!(self.sessions().await, size, "all of them are there at once");
        self.forget_after("1s").await;
        let (tasks_before, before) = self.start;
        let left = wait_until(Duration::from_mins(1), async || {
            tokio::time::sleep(Duration::from_millis(500)).await;
            if self.sessions().await > 0 {
                return None;
            }
            let now = Holdings::of(self.serve.pid());
            let is_back = tasks(&self.serve).await <= tasks_before
                && now.sockets <= before.sockets
                && now.children <= before.children
                && now.threads <= before.threads + DATABASE_THREADS;
            is_back.then_some(now)
        })
        .await;
        let crowd = Crowd { peak, left };
        self.forget_after("1h").await;
        crowd
    }
}

#[tokio::test]
async fn f5_ten_thousand_abandoned_sessions_leave_nothing_behind() {
    let gateway = Forgetful::new().await;
    let few = gateway.crowd(400).await;
    // The first ones pay for what stays: the pages that each connection to the database keeps, and the room that the
    // allocator keeps for as many sessions as there ever were at once. The second ones find it there.
    let before = gateway.crowd(10_000).await;
    let after = gateway.crowd(10_000).await;
    // For the report of a run: what it cost and what stayed.
    let said = format!("{few:?} {before:?} {after:?}");
    eprintln!("{said}");
    assert!(after.peak.rss_kb < before.left.rss_kb + LEAK_KB, "{said}");
    assert!(after.left.rss_kb < before.left.rss_kb + LEAK_KB, "{said}");
    assert_eq!(
        gateway.upstream.open_sessions(),
        1,
        "sessions of clients are none of the servers' business"
    );
    let session = Peer::of(&gateway.serve).open().await;
    assert!(!session.call("one__echo", json!({})).await.is_refusal());
}

#[tokio::test]
async fn f5_a_session_that_finds_no_room_is_told_so_and_is_not_gone() {
    let upstream = server([Tool::new("echo")]).await;
    let serve = home(&[("one", &upstream.url())], &["gateway: {max_sessions: 1}"]).serve().await;
    let peer = Peer::of(&serve);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let goes = peer.open().await;
    let waits = peer.open().await;
    let stays = peer.open().await;
    let stream = stays.listen().await;
    assert_eq!(waits.peer.post(list.clone(), &[]).await.status, 503);
    // There is always room to say goodbye.
    assert_eq!(goes.delete().await.status, 204);
    assert_eq!(goes.peer.post(list, &[]).await.status, 404);
    assert_eq!(stays.tools().await, ["one__echo"]);
    assert_eq!(stays.delete().await.status, 204);
    drop(stream);
    assert_eq!(waits.tools().await, ["one__echo"]);
}

#[tokio::test]
async fn silent_connections_beyond_the_file_limit_are_closed_for_a_new_client() {
    let upstream = server([Tool::new("echo")]).await;
    let home = home(&[("one", &upstream.url())], &[]);
    let serve = home.serve().await;
    let pid = i32::try_from(serve.pid()).ok().and_then(rustix::process::Pid::from_raw);
    let few = rustix::process::Rlimit { current: Some(64), maximum: Some(64) };
    rustix::process::prlimit(pid, rustix::process::Resource::Nofile, few).unwrap();
    let address = serve.url.strip_prefix("http://").unwrap();
    let silent: Vec<_> = (0..100).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
    serve.said("no file descriptor is left for a new connection").await;
    let started = Instant::now();
    assert_eq!(serve.text("/healthz").await, "ok\n");
    assert!(started.elapsed() < Duration::from_secs(9), "{:?}", started.elapsed());
    drop(silent);
    serve.answer("one.echo", json!({})).await;
    assert_eq!(serve.stderr().matches("no file descriptor is left").count(), 1);
}
