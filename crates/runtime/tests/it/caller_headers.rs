//! Headers that tell one server who calls.

use std::sync::Arc;
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_mcp_client::UpstreamRequest;
use switchboard_model::{CallErrorKind, CallOutcome, Caller, Face, Identity, Role, ServerName};
use switchboard_runtime::{Board, CallRequest, ClientProfile, PassFailure};
use switchboard_test_support::{
    ScriptedServer, ScriptedServerBuilder, SeenRequest, Tool, wait_until,
};
use tokio::task::JoinSet;

use crate::support::{
    PATIENCE, board, dynamic_at, end, records, request, spawn_call, until, with, yaml,
};

fn person(name: &str) -> Arc<Caller> {
    let identity = Identity {
        subject: Some(name.into()),
        email: Some(format!("{name}@example.com").into()),
        ..Identity::of(format!("user:{name}").into())
    };
    let principal = format!("key:{name}").into();
    Arc::new(Caller::new(principal, Arc::new(identity), Role::Client, Face::Mcp))
}

/// A board with a server that gets these headers.
async fn told(server: &ScriptedServer, headers: &str, transport: &str) -> Arc<Board> {
    let entry = with(&dynamic_at("crm", &server.url()), &format!("headers: {headers}"));
    board(&yaml(&[], &[with(&entry, &format!("transport: {transport}"))])).await
}

fn header<'a>(request: &'a SeenRequest, name: &str) -> Option<&'a str> {
    request.headers.get(name).map(String::as_str)
}

/// Requests that must carry the caller that their arguments name.
fn check_calls(server: &ScriptedServer) -> usize {
    let mut calls = 0;
    for seen in server.stats().requests {
        match seen.method.as_deref() {
            Some("tools/call") => {
                calls += 1;
                let wanted = seen.body["params"]["arguments"]["who"].as_str();
                assert_eq!(header(&seen, "x-user"), wanted, "{seen:?}");
            }
            // Requests of the board itself.
            Some("initialize" | "tools/list" | "ping" | "server/discover") => {
                assert_eq!(header(&seen, "x-user"), Some("board"), "{seen:?}");
            }
            _ => {}
        }
    }
    calls
}

/// Two callers, 500 interleaved calls over one server, with lost sessions and restarts in between.
async fn check_never_crossed(builder: ScriptedServerBuilder, transport: &str) {
    let server = builder.tools([Tool::echo("get")]).start().await;
    let board = told(&server, r#"{X-User: "${caller.subject:-board}"}"#, transport).await;
    let callers = [person("anna"), person("bob")];
    let mut done = 0;
    for round in 0..10 {
        let mut calls = JoinSet::new();
        for n in 0..50 {
            let (caller, who) = (callers[n % 2].clone(), ["anna", "bob"][n % 2]);
            let call = CallRequest { caller, ..request("get", json!({"who": who, "n": n})) };
            spawn_call(&mut calls, &board, call);
        }
        while let Some(report) = calls.join_next().await {
            // A call may fail in mid-restart; it must not reach the server under another name.
            done += usize::from(report.unwrap().result.is_ok());
        }
        assert!(check_calls(&server) > 0);
        match round % 3 {
            // A session of HTTP+SSE is its stream.
            0 if transport != "sse" => server.drop_sessions(),
            1 if transport != "sse" => server.end_streams().await,
            2 => server.restart_on_same_port().await,
            _ => continue,
        }
        // The next round begins when the connection is there again.
        wait_until(PATIENCE, async || {
            let caller = callers[0].clone();
            let call = CallRequest { caller, ..request("get", json!({"who": "anna"})) };
            board.call(call).await.result.ok()
        })
        .await;
    }
    assert!(done >= 450, "only {done} of 500 calls had a result");
    end(&board).await;
}

#[tokio::test]
async fn callers_are_never_crossed_in_the_session_era() {
    check_never_crossed(ScriptedServer::builder().legacy(), "streamable_http").await;
}

#[tokio::test]
async fn callers_are_never_crossed_in_the_stateless_era() {
    check_never_crossed(ScriptedServer::builder().modern(), "streamable_http").await;
}

#[tokio::test]
async fn callers_are_never_crossed_over_http_and_sse() {
    check_never_crossed(ScriptedServer::builder().sse_transport(), "sse").await;
}

#[tokio::test]
async fn every_message_about_a_call_carries_its_caller() {
    let asking = Tool::echo("asks").asks().sleeps(300);
    let slow = Tool::echo("slow").sleeps(60_000);
    let server =
        ScriptedServer::builder().legacy().answers_as_events().tools([asking, slow]).start().await;
    let board = told(&server, r#"{X-User: "${caller.email}"}"#, "streamable_http").await;
    let anna = |tool: &str| CallRequest { caller: person("anna"), ..request(tool, json!({})) };
    board.call(anna("asks")).await;
    // Dropping the call cancels it.
    let _cancelled =
        tokio::time::timeout(Duration::from_millis(300), board.call(anna("slow"))).await;
    until(|| !server.stats().cancelled.is_empty()).await;
    let is_reply = |seen: &SeenRequest| seen.method.is_none() && seen.http_method == "POST";
    // The server asked something during the first call, and did not wait for the answer.
    until(|| server.stats().requests.iter().any(is_reply)).await;
    for seen in server.stats().requests {
        let is_of_call =
            matches!(seen.method.as_deref(), Some("tools/call" | "notifications/cancelled"));
        let wanted = (is_of_call || is_reply(&seen)).then_some("anna@example.com");
        assert_eq!(header(&seen, "x-user"), wanted, "{seen:?}");
    }
    end(&board).await;
}

#[tokio::test]
async fn a_caller_without_the_value_is_refused_and_nothing_is_sent() {
    let server = ScriptedServer::builder().modern().tools([Tool::echo("get")]).start().await;
    let headers = r#"{X-User: "${caller.email}", X-Where: "a b"}"#;
    let board = told(&server, headers, "streamable_http").await;
    let report = board.call(request("get", json!({}))).await;
    let error = report.result.unwrap_err();
    assert_eq!(error.kind, CallErrorKind::Blocked);
    assert_eq!(
        error.to_string(),
        "tool 'get' of MCP server 'crm' was not called: the header `X-User` of MCP server 'crm' cannot be sent: the caller has no `caller.email`"
    );
    assert_eq!(
        error.hint().unwrap(),
        "give the header a default, such as `${caller.email:-unknown}`, or give the caller a credential that has the value"
    );
    let hostile =
        Identity { email: Some("a\r\nX-Role: admin".into()), ..Identity::of("user:eve".into()) };
    let eve = Caller::new("key:eve".into(), Arc::new(hostile), Role::Client, Face::Mcp);
    let call = CallRequest { caller: Arc::new(eve.clone()), ..request("get", json!({})) };
    let error = board.call(call).await.result.unwrap_err();
    assert!(error.message.contains("`caller.email` has control characters"), "{error}");
    let crm = ServerName::new("crm");
    let ask = UpstreamRequest { method: "resources/read", ..UpstreamRequest::default() };
    let passed = board.pass(&crm, &eve, &ClientProfile::default(), ask, None).await;
    assert!(matches!(passed, Err(PassFailure::Refused(_))), "{passed:?}");
    let stats = server.stats();
    assert_eq!(stats.total_calls(), 0);
    assert_eq!(stats.last_request("resources/read").map(|seen| seen.path.clone()), None);
    let outcomes: Vec<_> = records(&board, 2).await.iter().map(|it| it.outcome).collect();
    assert_eq!(outcomes, [CallOutcome::Failed(CallErrorKind::Blocked); 2]);

    let call = CallRequest { caller: person("Zoë"), ..request("get", json!({})) };
    board.call(call).await.result.unwrap();
    let stats = server.stats();
    assert_eq!(stats.last_header("tools/call", "x-user"), Some("Zo%C3%AB@example.com"));
    assert_eq!(stats.last_header("tools/call", "x-where"), Some("a b"));
    assert_eq!(stats.last_header("tools/list", "x-user"), None, "the board is nobody");
    end(&board).await;
}
