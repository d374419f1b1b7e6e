//! The HTTP interface: problems and their statuses, authorization, health and metrics.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use pretty_assertions::assert_eq;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use switchboard_test_support::{Reply, ScriptedServer, Tool, wait_until};

use crate::support::{Home, PATIENCE, Serve, dynamic, server, with, yaml, yaml_with};

/// The answer to bytes that no library would send.
fn raw(serve: &Serve, request: &str) -> (u16, String) {
    let address = serve.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

async fn board() -> (ScriptedServer, Home, Serve) {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let one = server([
        Tool::echo("echo").schema(schema),
        Tool::new("fails").replies(Reply::ToolError("no".into())),
        Tool::new("breaks").replies(Reply::RpcError { code: -32000, message: "broken".into() }),
        Tool::new("hangs").replies(Reply::Hang),
        Tool::new("silent").replies(Reply::Hang),
        Tool::new("busy").replies(Reply::Hang),
    ])
    .await;
    let tools = [
        "{name: hangs, timeout: 300ms}",
        "{name: silent, timeout: 20s, inactivity_timeout: 300ms}",
        "{name: busy, max_instances: 1, timeout: 20s, queue_timeout: 300ms}",
    ];
    let home = Home::new(yaml(&tools, &[dynamic("one", &one.url())]));
    let serve = home.serve().await;
    (one, home, serve)
}

#[tokio::test]
async fn every_kind_of_failed_call_has_its_status_and_its_problem() {
    let (one, _home, serve) = board().await;
    let (http, url) = (serve.http.clone(), serve.url.clone());
    let mut holding = tokio::task::JoinSet::new();
    holding.spawn(async move { crate::support::call(&http, &url, "busy", json!({})).await });
    wait_until(PATIENCE, async || (one.stats().running_calls == 1).then_some(())).await;
    for (tool, arguments, status, kind, detail) in [
        ("one.eko", json!({}), 404, "unknown_tool", "there is no tool 'one.eko'"),
        (
            "one.echo",
            json!({"n": "x"}),
            422,
            "invalid_arguments",
            "the arguments of tool 'echo' of MCP server 'one' do not fit: argument `n`: \"x\" is not of type \"integer\"",
        ),
        (
            "one.busy",
            json!({}),
            503,
            "queue_timeout",
            "tool 'busy' of MCP server 'one' waited longer than its queue_timeout of 300ms and was not run: \
             all 1 of its max_instances are in use",
        ),
        (
            "one.hangs",
            json!({}),
            504,
            "timeout",
            "tool 'hangs' of MCP server 'one' was running longer than its timeout of 300ms and was cancelled",
        ),
        (
            "one.silent",
            json!({}),
            504,
            "inactivity_timeout",
            "tool 'silent' of MCP server 'one' was running but gave no sign of life for its inactivity_timeout \
             of 300ms and was cancelled",
        ),
        (
            "one.breaks",
            json!({}),
            502,
            "upstream_error",
            "tool 'breaks' of MCP server 'one' gave no result: ",
        ),
    ] {
        let request = serve.http.post(serve.at(&format!("/api/v1/tools/{tool}/call")));
        let response = request.json(&json!({ "arguments": arguments })).send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        assert_eq!(response.status().as_u16(), status, "{tool}");
        let problem: Value = response.json().await.unwrap();
        assert_eq!(problem["type"], format!("urn:switchboard:problem:{kind}"));
        assert_eq!(problem["status"], status);
        let said = problem["detail"].as_str().unwrap();
        assert!(said.starts_with(detail), "{said}");
    }
    let failed = serve.answer("one.fails", json!({})).await;
    assert_eq!(
        (&failed["outcome"], &failed["result"]["isError"]),
        (&json!("tool_error"), &json!(true))
    );
    one.stop().await;
    let (status, problem) = serve.call("one.echo", json!({})).await;
    assert_eq!((status.as_u16(), &problem["title"]), (503, &json!("unavailable")), "{problem}");
}

#[tokio::test]
async fn a_call_that_runs_out_of_time_is_cancelled_upstream() {
    for builder in [ScriptedServer::builder().legacy(), ScriptedServer::builder().modern()] {
        let one = builder.tools([Tool::new("hangs").replies(Reply::Hang)]).start().await;
        let home =
            Home::new(yaml(&["{name: hangs, timeout: 250ms}"], &[dynamic("one", &one.url())]));
        let serve = home.serve().await;
        let (status, _) = serve.call("hangs", json!({})).await;
        assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
        wait_until(PATIENCE, async || {
            let stats = one.stats();
            let told = stats.cancelled.len() + stats.dropped_calls.len();
            (told == 1 && stats.running_calls == 0).then_some(())
        })
        .await;
        // The same through a single command, which ends right after it.
        home.run(&["tool", "call", "hangs"]).expect(4);
        wait_until(PATIENCE, async || (one.stats().running_calls == 0).then_some(())).await;
        assert_eq!(one.stats().total_calls(), 2);
    }
}

#[tokio::test]
async fn progress_keeps_a_call_alive_but_not_for_ever() {
    let one = server([
        Tool::echo("busy").sleeps(1_200).progress_every(100),
        Tool::echo("endless").sleeps(20_000).progress_every(50),
    ])
    .await;
    let tools = [
        "{name: busy, inactivity_timeout: 600ms, timeout: 10s}",
        "{name: endless, inactivity_timeout: 600ms, timeout: 900ms, max_timeout: 900ms}",
    ];
    let home = Home::new(yaml(&tools, &[dynamic("one", &one.url())]));
    let serve = home.serve().await;
    serve.answer("busy", json!({})).await;
    let (status, problem) = serve.call("endless", json!({})).await;
    assert_eq!((status.as_u16(), &problem["title"]), (504, &json!("timeout")), "{problem}");
}

#[tokio::test]
async fn a_call_that_waits_for_the_global_limit_says_so() {
    let one = server([Tool::new("hangs").replies(Reply::Hang), Tool::echo("echo")]).await;
    let tools = ["{name: echo, queue_timeout: 300ms}"];
    let home = Home::new(yaml_with("max_concurrent: 1", &tools, &[dynamic("one", &one.url())]));
    let serve = home.serve().await;
    let (http, url) = (serve.http.clone(), serve.url.clone());
    let mut holding = tokio::task::JoinSet::new();
    holding.spawn(async move { crate::support::call(&http, &url, "hangs", json!({})).await });
    wait_until(PATIENCE, async || (one.stats().running_calls == 1).then_some(())).await;
    let (status, problem) = serve.call("echo", json!({})).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        problem["detail"],
        "tool 'echo' of MCP server 'one' waited longer than its queue_timeout of 300ms and was not run: all 1 \
         slots of max_concurrent are in use"
    );
    assert_eq!(one.stats().total_calls(), 1, "nothing was sent");
    holding.abort_all();
    wait_until(PATIENCE, async || (one.stats().running_calls == 0).then_some(())).await;
    serve.answer("echo", json!({})).await;
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused_with_a_problem() {
    let (_one, _home, serve) = board().await;
    let call = "/api/v1/tools/one.echo/call";
    for (method, path, body, status, kind) in [
        (Method::GET, "/nowhere", "", 404, "not_found"),
        (Method::GET, "/api/v1/nowhere", "", 404, "not_found"),
        (Method::GET, call, "", 405, "method_not_allowed"),
        (Method::DELETE, "/api/v1/tools", "", 405, "method_not_allowed"),
        (Method::POST, "/healthz", "", 405, "method_not_allowed"),
        (Method::GET, "/api/v1/tools/one.eko", "", 404, "unknown_tool"),
        (Method::GET, "/api/v1/results/none", "", 404, "unknown_result"),
        (Method::GET, "/api/v1/calls?limit=x", "", 400, "bad_request"),
        (Method::GET, "/api/v1/calls?lim=1", "", 400, "bad_request"),
        (Method::POST, call, "{", 400, "bad_request"),
        (Method::POST, call, "{\"argument\": {}}", 422, "bad_request"),
        (Method::POST, call, "{\"arguments\": [1]}", 422, "invalid_arguments"),
    ] {
        let request = serve.http.request(method, serve.at(path)).body(body);
        let response = request.header("content-type", "application/json").send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{path} {body}");
        assert_eq!(response.headers()["content-type"], "application/problem+json", "{path}");
        let problem: Value = response.json().await.unwrap();
        assert_eq!(problem["type"], format!("urn:switchboard:problem:{kind}"), "{path} {body}");
        assert!(!problem["detail"].as_str().unwrap().is_empty());
    }
    let deep = format!("{{\"arguments\": {}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    for (kind, body, status) in [("application/json", deep, 400), ("text/plain", "{}".into(), 415)]
    {
        let request = serve.http.post(serve.at(call)).header("content-type", kind).body(body);
        let response = request.send().await.unwrap();
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(response.headers()["content-type"], "application/problem+json");
    }
    // A body that is announced as too large is refused before it is sent.
    let large = format!(
        "POST {call} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: 5000000\r\nConnection: close\r\n\r\n"
    );
    let (status, body) = raw(&serve, &large);
    assert_eq!(status, 413);
    let problem: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(problem["type"], "urn:switchboard:problem:bad_request");
    let empty = serve.http.post(serve.at(call)).json(&json!({})).send().await.unwrap();
    assert_eq!(empty.status(), StatusCode::OK, "no arguments are none");
    serve.answer("one.echo", json!({})).await;
}

#[tokio::test]
async fn pages_of_other_sites_and_other_hosts_are_kept_out() {
    let (one, _home, serve) = board().await;
    let port = serve.url.rsplit(':').next().unwrap();
    let call = "POST /api/v1/tools/one.echo/call HTTP/1.1\r\nContent-Type: application/json\r\n\
                Content-Length: 2\r\nConnection: close\r\n";
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nConnection: close\r\n");
    for host in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "localhost.evil:80"] {
        for head in
            [get("/"), get("/healthz"), get("/metrics"), get("/api/v1/tools"), call.to_owned()]
        {
            let (status, body) = raw(&serve, &format!("{head}Host: {host}\r\n\r\n{{}}"));
            assert_eq!(status, 403, "{host} {head}");
            assert!(body.contains("the Host header does not name this machine"), "{body}");
        }
    }
    for origin in
        ["http://evil.example", "null", "http://127.0.0.1:1", "file://", "https://localhost"]
    {
        let head = format!("{call}Host: 127.0.0.1:{port}\r\nOrigin: {origin}\r\n\r\n{{}}");
        let (status, body) = raw(&serve, &head);
        assert_eq!(status, 403, "{origin}");
        assert!(body.contains("the Origin header names another site"), "{body}");
    }
    assert_eq!(one.stats().total_calls(), 0, "nothing got through");
    for host in ["127.0.0.1", "localhost", "[::1]", "LOCALHOST"] {
        let own = format!("{call}Host: {host}:{port}\r\nOrigin: http://{host}:{port}\r\n\r\n{{}}");
        assert_eq!(raw(&serve, &own).0, 200, "{host}");
    }
    let (status, page) = raw(&serve, &format!("{}Host: localhost:{port}\r\n\r\n", get("/")));
    assert!(status == 200 && page.contains("<title>Switchboard</title>"), "{page}");
}

#[tokio::test]
async fn health_readiness_and_metrics() {
    let (one, home, serve) = board().await;
    assert_eq!(serve.text("/healthz").await, "ok\n");
    let ready = serve.get("/readyz").await;
    assert_eq!(ready, json!({"status": "ready", "revision": 1, "tools": 6, "unavailable": []}));
    for _ in 0..3 {
        serve.answer("one.echo", json!({})).await;
    }
    serve.call("one.fails", json!({})).await;
    let metrics = serve.text("/metrics").await;
    for expected in [
        "# TYPE tool_usage summary",
        "tool_usage_count{tool_name=\"echo\"} 3",
        "tool_usage{tool_name=\"echo\",quantile=\"0.5\"}",
        "switchboard_tool_calls_total{server=\"one\",tool=\"fails\",outcome=\"tool_error\"} 1",
        "switchboard_calls_in_flight 0",
        "switchboard_catalog_tools 6",
        "switchboard_server_up{server=\"one\"} 1",
    ] {
        assert!(metrics.contains(expected), "{expected} is not in\n{metrics}");
    }
    one.stop().await;
    serve.call("one.echo", json!({})).await;
    serve.until_status("degraded").await;
    assert_eq!(serve.get("/readyz").await["unavailable"], json!(["one"]));
    assert!(serve.text("/metrics").await.contains("switchboard_server_up{server=\"one\"} 0"));
    let tools = serve.get("/api/v1/tools").await;
    assert_eq!(
        (tools["revision"].as_u64(), &tools["tools"][0]["available"]),
        (Some(1), &json!(false))
    );
    let list = home.run(&["tool", "list", "--url", &serve.url]).expect(0).stdout;
    assert!(list.contains("(unavailable)"), "{list}");
    one.restart_on_same_port().await;
    serve.until_status("ready").await;
    serve.answer("one.echo", json!({})).await;
    assert_eq!(serve.revision().await, 1, "the same tools are the same revision");
}

#[tokio::test]
async fn a_server_that_dies_while_nobody_calls_it_is_noticed_by_its_poll() {
    let one = server([Tool::echo("echo")]).await;
    let entry = with(&dynamic("one", &one.url()), "poll_interval: 1s");
    let serve = Home::new(yaml(&[], &[entry])).serve().await;
    one.stop().await;
    serve.until_status("degraded").await;
    one.restart_on_same_port().await;
    serve.until_status("ready").await;
}

#[tokio::test]
async fn slices_of_a_kept_result_and_pages_of_calls() {
    let one = server([Tool::new("large").replies(Reply::Text("y".repeat(9 << 20)))]).await;
    let tools = ["{name: large, max_result_bytes: 1024}"];
    let home = Home::new(yaml(&tools, &[dynamic("one", &one.url())]));
    let serve = home.serve().await;
    let call = serve.answer("large", json!({})).await;
    let handle = call["result_handle"].as_str().unwrap();
    let part =
        |query: &str| serve.http.get(serve.at(&format!("/api/v1/results/{handle}{query}"))).send();
    let first = part("").await.unwrap();
    let total: usize = first.headers()["x-result-bytes"].to_str().unwrap().parse().unwrap();
    let first = first.bytes().await.unwrap();
    assert!(total > 9 << 20 && first.len() == 8 << 20, "{total} {}", first.len());
    let rest = part(&format!("?offset={}", first.len())).await.unwrap().bytes().await.unwrap();
    assert_eq!(first.len() + rest.len(), total);
    let few = part("?offset=2&length=9").await.unwrap().text().await.unwrap();
    assert_eq!(few, String::from_utf8_lossy(&first[2..11]));
    for query in ["?offset=99999999999", "?length=0"] {
        assert_eq!(part(query).await.unwrap().bytes().await.unwrap().len(), 0, "{query}");
    }
    let whole = home.run(&["calls", "--result", handle, "--url", &serve.url]).expect(0).json();
    assert_eq!(whole["content"][0]["text"].as_str().unwrap().len(), 9 << 20);
}
