//! F5: clients that go away, cancel, do not read, or never say goodbye; and the end of the gateway itself.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use switchboard_test_support::{ScriptedServer, ScriptedServerBuilder, Tool, wait_until};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::client::{Answer, Events, Peer};
use crate::support::{Home, PATIENCE, server};
use crate::world::{Holdings, config, home};

/// A server with one slow tool that may run once at a time.
async fn slow(builder: ScriptedServerBuilder) -> (ScriptedServer, Home) {
    let slow = Tool::new("slow").sleeps(8_000).progress_every(50);
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
    let gone =
        tokio::time::timeout(Duration::from_millis(500), silent.modern("tools/call", call)).await;
    assert!(gone.is_err());
    until_cancelled(&upstream, 3).await;
    // The only slot is free again, and so is the id of the request.
    let begun = Instant::now();
    let quick = json!({"name": "one__slow", "arguments": {"sleep_ms": 1}});
    assert!(!silent.modern("tools/call", quick.clone()).await.is_refusal());
    assert!(!Answer::of(session.ask_response(7, "tools/call", quick).await).await.is_refusal());
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn f5_a_client_that_goes_away_cancels_its_call_to_a_modern_server() {
    a_client_that_goes_away_cancels(ScriptedServer::builder().modern()).await;
}

#[tokio::test]
async fn f5_a_client_that_goes_away_cancels_its_call_to_a_legacy_server() {
    a_client_that_goes_away_cancels(ScriptedServer::builder().legacy()).await;
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

#[tokio::test]
async fn f5_a_reader_that_is_slow_stalls_nobody() {
    let upstream = server([Tool::new("echo")]).await;
    let serve = home(&[("one", &upstream.url())], &["gateway: {exposure: dynamic}"]).serve().await;
    let peer = Peer::of(&serve);
    let (lazy, keen) = (peer.open().await, peer.open().await);
    let address = serve.url.strip_prefix("http://").unwrap();
    let mut stalled = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nMcp-Session-Id: {}\r\n\r\n",
        lazy.id
    );
    stalled.write_all(head.as_bytes()).await.unwrap();
    let mut stream = keen.listen().await;
    let before = Holdings::of(serve.pid());
    let begun = Instant::now();
    for n in 0..300 {
        let tool = ["enable_toolset", "disable_toolset"][n % 2];
        for session in [&lazy, &keen] {
            let answer = session.call(tool, json!({"toolsetName": "one"})).await;
            assert!(!answer.is_refusal(), "{}", answer.body);
        }
        assert_eq!(stream.next().await.unwrap()["method"], "notifications/tools/list_changed");
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    let after = Holdings::of(serve.pid());
    assert!(after.rss_kb < before.rss_kb + 20 * 1024, "{before:?} {after:?}");
    drop(stalled);
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
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
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

#[tokio::test]
async fn f5_ten_thousand_abandoned_sessions_leave_nothing_behind() {
    let upstream = server([Tool::new("echo")]).await;
    let serve = home(&[("one", &upstream.url())], &["gateway: {session_idle: 2s}"]).serve().await;
    let sessions = async || {
        let answer = serve.get("/api/v1/sessions").await;
        let said = || format!("{answer}\n{}", serve.stderr());
        answer["sessions"].as_array().unwrap_or_else(|| panic!("{}", said())).len()
    };
    // What a process holds when a crowd has come and is forgotten again, and what it held at the most.
    let crowd = async |size: usize, fewest: Option<Holdings>| {
        let begun = Instant::now();
        let peak = {
            let peer = Peer::of(&serve);
            abandon(&peer, size, 8).await;
            Holdings::of(serve.pid())
        };
        let came = begun.elapsed();
        let after = wait_until(Duration::from_secs(25), async || {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let now = Holdings::of(serve.pid());
            let is_back = fewest.is_none_or(|before| {
                now.sockets <= before.sockets + 1
                    && now.threads <= before.threads
                    && now.children <= before.children
            });
            let has_waited = begun.elapsed() > came + Duration::from_secs(4);
            (is_back && has_waited && sessions().await == 0).then_some(now)
        })
        .await;
        // For the report of a run: what it cost and what stayed.
        eprintln!("{size} in {came:?}: {peak:?}, afterwards {after:?}");
        after
    };
    let fewest = crowd(400, None).await;
    // The first ones pay for what stays: statements, the pages that each connection to the database keeps, and the
    // room that the allocator keeps for as many sessions as there ever were at once. The second ones find it there.
    let before = crowd(10_000, Some(fewest)).await;
    let after = crowd(10_000, Some(fewest)).await;
    // Sessions that stayed would take 35 MB.
    assert!(after.rss_kb < before.rss_kb + 12 * 1024, "{fewest:?} {before:?} {after:?}");
    assert_eq!(
        upstream.open_sessions(),
        1,
        "sessions of clients are none of the servers' business"
    );
    let session = Peer::of(&serve).open().await;
    assert!(!session.call("one__echo", json!({})).await.is_refusal());
}
