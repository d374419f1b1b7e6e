//! Tests of calls: results, failures, and what the server receives.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_mcp_client::Connection;
use switchboard_model::{Secret, ServerSpec, ToolResult};
use switchboard_test_support::{
    Fault, Reply, ScriptedServer, ScriptedServerBuilder, SeenRequest, Stage, Tool, wait_until,
};
use tokio::sync::mpsc;

use crate::support::{
    PATIENCE, assert_rows, call, connect, http, object, open, peer, sse, text, with_credentials,
};
use crate::typed_call::{CallFailure, CallTool as _};

fn kinds() -> Vec<(&'static str, ScriptedServerBuilder)> {
    let new = ScriptedServer::builder;
    vec![
        ("legacy", new().legacy()),
        ("legacy events", new().legacy().answers_as_events()),
        ("modern", new().modern()),
        ("modern events", new().modern().answers_as_events()),
        ("HTTP+SSE", new().sse_transport()),
    ]
}

async fn start(server: ScriptedServerBuilder) -> (ScriptedServer, std::sync::Arc<Connection>) {
    let server = server.start().await;
    let url = server.url();
    let spec = if url.ends_with("/sse") { sse(&url) } else { http(&url) };
    let connection = open(&spec).await.unwrap().0;
    (server, connection)
}

fn shown(answer: Result<ToolResult, CallFailure>) -> String {
    match answer {
        Ok(result) if result.to_value().to_string().len() > 1000 => "a large result".into(),
        Ok(result) => {
            let mut value = result.to_value();
            // What every modern result says about its server.
            if let Some(meta) = value.get_mut("_meta").and_then(Value::as_object_mut) {
                meta.remove("io.modelcontextprotocol/serverInfo");
                if meta.is_empty() {
                    value.as_object_mut().unwrap().shift_remove("_meta");
                }
            }
            value.to_string()
        }
        Err(CallFailure::Unavailable(text)) => format!("unavailable: {text}"),
        Err(CallFailure::Rpc { code, message }) => format!("rpc {code}: {message}"),
        Err(CallFailure::BadAnswer(text)) => format!("bad answer: {text}"),
    }
}

/// A reply, what is made of it, and what is made of it when it comes as an event.
fn replies() -> Vec<(&'static str, Reply, &'static str, &'static str)> {
    let same = |name, reply, expected| (name, reply, expected, expected);
    vec![
        same(
            "rpc_error",
            Reply::RpcError { code: -32000, message: "out of order".into() },
            "rpc -32000: out of order",
        ),
        same(
            "tool_error",
            Reply::ToolError("no such customer".into()),
            r#"{"content":[{"type":"text","text":"no such customer"}],"isError":true}"#,
        ),
        same(
            "unknown_content",
            Reply::UnknownContent,
            r#"{"content":[{"type":"hologram","beams":3}],"isError":false}"#,
        ),
        same(
            "meta",
            Reply::Result(json!({"content": [{"type": "text", "text": "t"}], "_meta": {"k": 1}})),
            r#"{"_meta":{"k":1},"content":[{"type":"text","text":"t"}],"isError":false}"#,
        ),
        same(
            "structured_only",
            Reply::Result(json!({"structuredContent": {"a": [1]}})),
            r#"{"content":[],"structuredContent":{"a":[1]},"isError":false}"#,
        ),
        same("large", Reply::Huge(4_000_000), "a large result"),
        same(
            "too_large",
            Reply::Huge(17_000_000),
            "bad answer: the answer is larger than 16777216 bytes",
        ),
        (
            "broken_off",
            Reply::CloseMidBody,
            "unavailable: the answer broke off: the server closed the connection",
            "unavailable: the connection closed before the answer was complete",
        ),
        same(
            "twice",
            Reply::Twice,
            r#"{"content":[{"type":"text","text":"{}"}],"structuredContent":{},"isError":false}"#,
        ),
    ]
}

#[tokio::test]
async fn an_answer_of_any_kind_is_understood_and_harms_no_other_call() {
    for (kind, server) in kinds().into_iter().filter(|(kind, _)| *kind != "HTTP+SSE") {
        let tools = replies().into_iter().map(|(name, reply, ..)| Tool::new(name).replies(reply));
        let (_server, connection) = start(server.tools(tools).tools([Tool::echo("echo")])).await;
        let mut rows = Vec::new();
        for (name, _, as_json, as_event) in replies() {
            let expected = if kind.ends_with("events") { as_event } else { as_json };
            let answer = call(&connection, name, json!({})).await;
            rows.push((format!("{kind}, {name}"), shown(answer), expected.to_owned()));
            let next = call(&connection, "echo", json!({"after": name})).await;
            assert!(next.is_ok(), "{kind}, after {name}: {next:?}");
        }
        let unknown = shown(call(&connection, "nope", json!({})).await);
        rows.push((format!("{kind}, nope"), unknown, "rpc -32602: Unknown tool: nope".into()));
        assert_rows(rows);
    }
}

#[tokio::test]
async fn an_answer_to_another_request_is_not_taken_for_ours() {
    let tools = || [Tool::new("wrong").replies(Reply::WrongId), Tool::echo("echo")];
    for (kind, server) in kinds() {
        let (_server, connection) = start(server.tools(tools())).await;
        let waiting = call(&connection, "wrong", json!({}));
        let answer = tokio::time::timeout(Duration::from_millis(300), waiting).await;
        match (kind, answer) {
            ("legacy events" | "modern events", Ok(answer)) => assert_eq!(
                shown(answer),
                "unavailable: the connection closed before the answer was complete"
            ),
            ("legacy" | "modern", Ok(answer)) => {
                assert_eq!(shown(answer), "bad answer: the response has the id of another request");
            }
            ("HTTP+SSE", Err(_elapsed)) => {}
            (_, answer) => panic!("{kind}: {answer:?}"),
        }
        assert!(call(&connection, "echo", json!({})).await.is_ok(), "{kind}");
    }
}

#[tokio::test]
async fn a_fault_during_a_call_is_named() {
    for (fault, expected) in [
        (
            Fault::Status(Stage::Call, 401),
            "unavailable: HTTP 401 Unauthorized: {\"error\":\"Unauthorized\"}",
        ),
        (
            Fault::Status(Stage::Call, 503),
            "unavailable: HTTP 503 Service Unavailable: {\"error\":\"Service Unavailable\"}",
        ),
        (
            Fault::LoginPage(Stage::Call),
            "bad answer: HTTP 200 OK: a web page instead of an MCP answer",
        ),
        (
            Fault::NotJson(Stage::Call),
            "bad answer: the answer is not a JSON-RPC message (key must be a string at line 1 column 3): { this is not JSON at all",
        ),
    ] {
        for (kind, server) in [kinds().remove(0), kinds().remove(2)] {
            let (server, connection) = start(server.tools([Tool::echo("echo")])).await;
            server.set_fault(fault.clone()).await;
            let answer = shown(call(&connection, "echo", json!({})).await);
            assert_eq!(answer, expected, "{kind}, {fault:?}");
            server.clear_fault().await;
            assert!(call(&connection, "echo", json!({})).await.is_ok(), "{kind}, after {fault:?}");
        }
    }
}

#[tokio::test]
async fn a_server_that_quotes_our_credentials_is_not_quoted_with_them() {
    for (kind, server) in [kinds().remove(0), kinds().remove(2)] {
        let server = server.tools([Tool::echo("echo")]).start().await;
        let spec = with_credentials(http(&server.url()));
        let (connection, _) = open(&spec).await.unwrap();
        let quoted = "HTTP 401 Unauthorized: authorization: Bearer ***, x-key: ***";
        server.set_fault(Fault::Reflect(Stage::Call)).await;
        let answer = shown(call(&connection, "echo", json!({})).await);
        assert_eq!(answer, format!("unavailable: {quoted}"), "{kind}");
        server.set_fault(Fault::Reflect(Stage::List)).await;
        assert_eq!(connection.list_tools().await.unwrap_err().message, quoted, "{kind}");
        server.set_fault(Fault::Reflect(Stage::Any)).await;
        assert_eq!(open(&spec).await.unwrap_err().message, quoted, "{kind}");
    }
}

#[tokio::test]
async fn a_server_that_quotes_its_address_is_quoted_without_what_a_reference_put_there() {
    let server = ScriptedServer::builder().start().await;
    server.set_fault(Fault::Reflect(Stage::Any)).await;
    for path in ["s3cret-path", "s3cret%2dpath", "%73%33cret-path"] {
        let url = server.url().replace("/mcp", &format!("/{path}/mcp"));
        let spec = ServerSpec { referenced: vec![Secret::new("s3cret-path")], ..http(&url) };
        let error = open(&spec).await.unwrap_err();
        assert_eq!(error.message, "HTTP 401 Unauthorized: path: /***/mcp", "{path}");
    }
}

/// Only 307 and 308 say that the same is to be asked elsewhere.
#[tokio::test]
async fn a_call_that_is_answered_with_any_other_redirection_is_made_once() {
    for (status, said) in [(301, "Moved Permanently"), (302, "Found"), (303, "See Other")] {
        let (server, connection) =
            start(ScriptedServer::builder().modern().tools([Tool::echo("echo")])).await;
        server.set_fault(Fault::Status(Stage::Call, status)).await;
        let answer = shown(call(&connection, "echo", json!({})).await);
        let expected = format!("bad answer: HTTP {status} {said}: {{\"error\":\"{said}\"}}");
        assert_eq!(answer, expected);
        let stats = server.stats();
        let is_call = |seen: &&SeenRequest| seen.method.as_deref() == Some("tools/call");
        assert_eq!(stats.requests.iter().filter(is_call).count(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_named_and_may_come_back() {
    for (kind, server) in [kinds().remove(0), kinds().remove(2)] {
        let (server, connection) = start(server.tools([Tool::echo("echo")])).await;
        server.set_fault(Fault::Refuse).await;
        // The first call may still find a kept connection, and sees it break.
        let first = shown(call(&connection, "echo", json!({})).await);
        assert!(first.starts_with("unavailable: "), "{kind}: {first}");
        let second = shown(call(&connection, "echo", json!({})).await);
        let refused = "unavailable: cannot connect: Connection refused (os error 111)";
        assert_eq!(second, refused, "{kind}");
        server.clear_fault().await;
        assert!(call(&connection, "echo", json!({})).await.is_ok(), "{kind}");
    }
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_cancelled_at_the_server() {
    for (kind, server) in kinds() {
        let tools = [Tool::new("hang").replies(Reply::Hang), Tool::echo("echo")];
        let (server, connection) = start(server.tools(tools)).await;
        {
            let mut waiting = std::pin::pin!(call(&connection, "hang", json!({})));
            wait_until(PATIENCE, async || {
                tokio::select! {
                    answer = &mut waiting => panic!("{kind}: {answer:?}"),
                    () = tokio::task::yield_now() => (server.stats().running_calls == 1).then_some(()),
                }
            })
            .await;
        }
        let id = server.stats().calls.first().unwrap().id.clone();
        let seen = wait_until(PATIENCE, async || {
            let stats = server.stats();
            let noticed = stats.cancelled.contains(&id) || stats.dropped_calls.contains(&id);
            (noticed && stats.running_calls == 0).then_some(stats)
        });
        let seen = seen.await;
        assert_eq!(seen.cancelled.contains(&id), !kind.starts_with("modern"), "{kind}");
        assert!(call(&connection, "echo", json!({})).await.is_ok(), "{kind}");
    }
}

#[tokio::test]
async fn a_stdio_server_is_told_of_the_cancellation_too() {
    for flags in [[].as_slice(), &["--modern"]] {
        let (connection, _) = open(&peer(flags)).await.unwrap();
        let waiting = call(&connection, "sleep", json!({"ms": 60_000}));
        assert!(tokio::time::timeout(Duration::from_millis(200), waiting).await.is_err());
        wait_until(PATIENCE, async || {
            let stats = call(&connection, "stats", json!({})).await.unwrap();
            let stats: Value = serde_json::from_str(text(&stats)).unwrap();
            (stats["cancelled"].as_array().unwrap().len() == 1).then_some(())
        })
        .await;
        connection.close().await;
    }
}

#[tokio::test]
async fn progress_arrives_while_the_call_runs() {
    for (kind, server) in kinds() {
        let tool = Tool::new("slow").sleeps(150).progress_every(20);
        let (_server, connection) = start(server.tools([tool])).await;
        let (sender, mut received) = mpsc::channel(100);
        connection.call("slow", object(json!({})), sender).await.unwrap();
        let first = received.recv().await.unwrap();
        assert_eq!((first.done, first.total), (1.0, None), "{kind}");
        assert_eq!(first.message.as_deref(), Some("under way"), "{kind}");
        assert!(received.recv().await.is_some_and(|next| next.done > 1.0), "{kind}");
    }
    let (connection, _) = open(&peer(&[])).await.unwrap();
    let (sender, mut received) = mpsc::channel(100);
    let arguments = object(json!({"ms": 100, "every_ms": 20}));
    connection.call("sleep", arguments, sender).await.unwrap();
    assert_eq!(received.recv().await.unwrap().total, Some(100.0));
    connection.close().await;
}

#[tokio::test]
async fn progress_that_nobody_reads_does_not_hold_up_the_call() {
    let tool = Tool::new("chatty").sleeps(200).progress_every(1);
    let (_server, connection) = start(ScriptedServer::builder().legacy().tools([tool])).await;
    let (sender, _unread) = mpsc::channel(1);
    let answer = connection.call("chatty", object(json!({})), sender);
    assert!(tokio::time::timeout(PATIENCE, answer).await.unwrap().is_ok());
}

#[tokio::test]
async fn two_hundred_calls_run_at_the_same_time() {
    for (kind, server) in kinds().into_iter().filter(|(kind, _)| !kind.ends_with("events")) {
        let tool = Tool::new("slow").waits_for_calls(200);
        let (server, connection) = start(server.tools([tool])).await;
        let calls = (0..200).map(|n| {
            let connection = &connection;
            async move { text(&call(connection, "slow", json!({"n": n})).await.unwrap()).to_owned() }
        });
        let answers = tokio::time::timeout(PATIENCE, futures::future::join_all(calls)).await;
        let peak = server.stats().peak_calls;
        let answers = answers.unwrap_or_else(|_| panic!("{kind}: only {peak} of 200 ran together"));
        for (n, answer) in answers.iter().enumerate() {
            assert_eq!(*answer, json!({"n": n}).to_string(), "{kind}");
        }
        assert_eq!(peak, 200, "{kind}");
    }
}

#[tokio::test]
async fn a_lost_session_is_replaced_once_and_the_list_suspected() {
    for restarts in [true, false] {
        let tools = [Tool::echo("echo")];
        let server = ScriptedServer::builder().legacy().tools(tools).start().await;
        let connection = connect(&server).await;
        call(&connection, "echo", json!({})).await.unwrap();
        if restarts {
            server.restart_on_same_port().await;
        } else {
            server.drop_sessions();
        }
        let calls = (0..10).map(|_| call(&connection, "echo", json!({})));
        for answer in futures::future::join_all(calls).await {
            assert!(answer.is_ok(), "restarts: {restarts}: {answer:?}");
        }
        let stats = server.stats();
        assert_eq!((stats.initialize_count, stats.total_calls()), (2, 11), "restarts: {restarts}");
        tokio::time::timeout(PATIENCE, connection.changed()).await.expect("the list is suspect");
        assert!(!connection.is_closed());
        // The new session is listened to as well.
        wait_until(PATIENCE, async || (server.open_streams() == 1).then_some(())).await;
        server.notify_list_changed(1).await;
        tokio::time::timeout(PATIENCE, connection.changed()).await.expect("a change is noticed");
    }
}

#[tokio::test]
async fn a_modern_server_may_restart_between_calls() {
    let tools = [Tool::echo("echo")];
    let server = ScriptedServer::builder().modern().tools(tools).start().await;
    let connection = connect(&server).await;
    server.restart_on_same_port().await;
    assert!(call(&connection, "echo", json!({})).await.is_ok());
}
