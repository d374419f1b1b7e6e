//! The program over HTTP: calls that run out of time, health, metrics, and large results.

use pretty_assertions::assert_eq;
use reqwest::StatusCode;
use serde_json::json;
use switchboard_test_support::{Reply, ScriptedServer, Tool, wait_until};

use crate::support::{Home, PATIENCE, Serve, dynamic, server, with, yaml};

async fn board() -> (ScriptedServer, Home, Serve) {
    let fails = Tool::new("fails").replies(Reply::ToolError("no".into()));
    let one = server([Tool::echo("echo"), fails]).await;
    let home = Home::new(yaml(&[], &[dynamic("one", &one.url())]));
    let serve = home.serve().await;
    (one, home, serve)
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
async fn health_readiness_and_metrics() {
    let (one, home, serve) = board().await;
    assert_eq!(serve.text("/healthz").await, "ok\n");
    let ready = serve.get("/readyz").await;
    assert_eq!(ready, json!({"status": "ready", "revision": 1, "tools": 2, "unavailable": []}));
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
        "switchboard_catalog_tools 2",
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
async fn a_stored_result_that_needs_several_requests_is_read_whole() {
    let one = server([Tool::new("large").replies(Reply::Text("y".repeat(9 << 20)))]).await;
    let tools = ["{name: large, max_result_bytes: 1024}"];
    let home = Home::new(yaml(&tools, &[dynamic("one", &one.url())]));
    let serve = home.serve().await;
    let call = serve.answer("large", json!({})).await;
    let handle = call["result_handle"].as_str().unwrap();
    let whole = home.run(&["calls", "--result", handle, "--url", &serve.url]).expect(0).json();
    assert_eq!(whole["content"][0]["text"].as_str().unwrap().len(), 9 << 20);
}
