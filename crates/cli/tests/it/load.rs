//! Many concurrent callers: limits hold, no call is lost, and callers that disconnect leave nothing behind.

use std::collections::BTreeSet;
use std::time::Duration;

use pretty_assertions::assert_eq;
use reqwest::Client;
use serde_json::json;
use switchboard_test_support::{Tool, wait_until};
use tokio::task::JoinSet;

use crate::support::{Home, PATIENCE, Serve, call, dynamic, server, yaml_with};

const TASKS: usize = 440;
const PROCESSES: usize = 60;
const WAVE: usize = 12;

/// Calls of `one.narrow` and `one.wide` in turn, from tasks of this process.
fn call_in_tasks(serve: &Serve, count: usize) -> JoinSet<(reqwest::StatusCode, serde_json::Value)> {
    let mut tasks = JoinSet::new();
    for n in 0..count {
        let (http, url) = (serve.http.clone(), serve.url.clone());
        let tool = if n % 2 == 0 { "one.narrow" } else { "one.wide" };
        // The first of the wide ones stay long enough to be seen together.
        let sleep_ms = if n % 2 == 1 && n < 40 { 500 } else { 10 };
        let arguments = json!({ "n": n, "sleep_ms": sleep_ms });
        tasks.spawn(async move { call(&http, &url, tool, arguments).await });
    }
    tasks
}

#[tokio::test]
async fn five_hundred_callers_share_three_slots_of_ten() {
    let tools = [Tool::echo("narrow").sleeps(10), Tool::echo("wide").sleeps(10)];
    let one = server(tools).await;
    let entries = [
        "{name: narrow, max_instances: 3, timeout: 60s}",
        "{name: wide, max_instances: 50, timeout: 60s}",
    ];
    let home = Home::new(yaml_with("max_concurrent: 10", &entries, &[dynamic("one", &one.url())]));
    let serve = home.serve().await;
    let tasks = call_in_tasks(&serve, TASKS);
    let numbers: Vec<_> = (TASKS..TASKS + PROCESSES).collect();
    for wave in numbers.chunks(WAVE) {
        let children: Vec<_> = wave
            .iter()
            .map(|n| {
                let argument = format!("n={n}");
                let line = ["tool", "call", "one.narrow", "--arg", &argument, "--url", &serve.url];
                (n, home.command(&line).spawn().unwrap())
            })
            .collect();
        for (n, child) in children {
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{{\"n\":{n}}}\n"));
        }
    }
    let answered: Vec<_> = tasks.join_all().await;
    let failed: Vec<_> = answered.iter().filter(|(status, _)| *status != 200).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let stats = one.stats();
    let seen: BTreeSet<_> = stats.calls.iter().filter_map(|call| call.n).collect();
    assert_eq!((stats.total_calls(), seen.len()), (TASKS + PROCESSES, TASKS + PROCESSES));
    assert_eq!((stats.peak_of("narrow"), stats.peak_calls), (3, 10));
    // Records are written beside the calls.
    wait_until(PATIENCE, async || {
        let list = serve.get("/api/v1/calls?limit=1000").await;
        (list["calls"].as_array().unwrap().len() == TASKS + PROCESSES).then_some(())
    })
    .await;
}

#[tokio::test]
async fn first_come_is_first_served() {
    let one = server([Tool::echo("narrow")]).await;
    let entries = ["{name: narrow, max_instances: 1}"];
    let home = Home::new(yaml_with("max_concurrent: 10", &entries, &[dynamic("one", &one.url())]));
    let serve = home.serve().await;
    let mut tasks = JoinSet::new();
    for n in 0..20 {
        let (http, url) = (serve.http.clone(), serve.url.clone());
        // The first one holds the slot until all others stand in line.
        let arguments = json!({ "n": n, "sleep_ms": if n == 0 { 3_000 } else { 0 } });
        tasks.spawn(async move { call(&http, &url, "one.narrow", arguments).await });
        in_flight(&serve, n + 1).await;
    }
    tasks.join_all().await;
    let order: Vec<_> = one.stats().calls.iter().filter_map(|call| call.n).collect();
    assert_eq!(order, (0..20).collect::<Vec<_>>());
}

#[tokio::test]
async fn callers_that_are_killed_free_their_slots_and_the_server_is_told() {
    let one = server([Tool::echo("narrow").sleeps(60_000)]).await;
    let entries = ["{name: narrow, max_instances: 3, timeout: 100s}"];
    let home = Home::new(yaml_with("max_concurrent: 10", &entries, &[dynamic("one", &one.url())]));
    let serve = home.serve().await;
    // Some are processes that are killed, the others connections that are cut.
    let arguments = ["tool", "call", "one.narrow", "--url", &serve.url];
    let mut processes: Vec<_> =
        (0..10).map(|_| home.command(&arguments).spawn().unwrap()).collect();
    let mut tasks = JoinSet::new();
    for n in 0..90 {
        let url = serve.url.clone();
        tasks.spawn(async move {
            // A client of its own is a connection of its own.
            let http = Client::builder().no_proxy().build().unwrap();
            call(&http, &url, "one.narrow", json!({ "n": n })).await
        });
    }
    in_flight(&serve, 100).await;
    assert_eq!(one.stats().running_calls, 3);
    for process in &mut processes {
        process.kill().unwrap();
        process.wait().unwrap();
    }
    tasks.shutdown().await;
    in_flight(&serve, 0).await;
    let started = one.stats().total_calls();
    assert!((3..=20).contains(&started), "waiting callers never started: {started}");
    wait_until(PATIENCE, async || (one.stats().running_calls == 0).then_some(())).await;
    let stats = one.stats();
    let untold: Vec<_> =
        stats.calls.iter().filter(|call| !stats.cancelled.contains(&call.id)).collect();
    assert!(untold.is_empty(), "the server was told of each that ran: {untold:?}");

    let mut next = JoinSet::new();
    for _ in 0..3 {
        let (http, url) = (serve.http.clone(), serve.url.clone());
        next.spawn(
            async move { call(&http, &url, "one.narrow", json!({"sleep_ms": 1_000})).await },
        );
    }
    let free = async || (one.stats().running_calls == 3).then_some(());
    wait_until(Duration::from_secs(1), free).await;
    for (status, body) in next.join_all().await {
        assert_eq!(status, 200);
        assert!(body["wait_ms"].as_u64().unwrap() < 100, "{body}");
    }
    wait_until(PATIENCE, async || {
        let list = home.line("calls --json --limit 200 --outcome cancelled").expect(0).json();
        (list["calls"].as_array().unwrap().len() == 100).then_some(())
    })
    .await;
}

async fn in_flight(serve: &Serve, count: usize) {
    let line = format!("switchboard_calls_in_flight {count}");
    wait_until(PATIENCE, async || {
        serve.text("/metrics").await.lines().any(|found| found == line).then_some(())
    })
    .await;
}
