//! A board whose data is in `PostgreSQL`: a database that is away at the start, that dies in the middle of work, that is paused
//! or refuses to write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pretty_assertions::assert_eq;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use switchboard_test_support::{PostgresCluster, free_port, wait_until};
use tokio::task::JoinSet;

use crate::support::{Home, Serve};

/// Longer than a restart of the database and the next attempt of the board to reach it.
const RECOVERY: Duration = Duration::from_secs(30);

fn home(cluster: &PostgresCluster) -> Home {
    home_with(cluster, "")
}

/// The same with further settings of the store.
fn home_with(cluster: &PostgresCluster, settings: &str) -> Home {
    Home::new(format!(
        "switchboard:\n  store: {{url: \"{}\"{settings}}}\n  toolbox: {{mcps: [], tools: [{{name: local.sum_numbers}}]}}\n",
        cluster.url()
    ))
}

async fn status_of(http: &Client, url: &str) -> Option<StatusCode> {
    http.get(url).send().await.ok().map(|response| response.status())
}

async fn until_ready(serve: &Serve) {
    wait_until(RECOVERY, async || (serve.get("/readyz").await["status"] == "ready").then_some(()))
        .await;
}

/// Makes sessions until told to stop; gives the names of those that were acknowledged.
async fn make_sessions(
    http: Client,
    url: String,
    worker: usize,
    end: Arc<AtomicBool>,
) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for n in 0.. {
        if end.load(Ordering::Relaxed) {
            break;
        }
        let id = format!("s{worker}-{n}");
        let answer =
            http.post(format!("{url}/api/v1/sessions")).json(&json!({ "id": id })).send().await;
        let answer = answer.unwrap();
        match answer.status() {
            StatusCode::CREATED => acknowledged.push(id),
            StatusCode::SERVICE_UNAVAILABLE => {
                let problem: Value = answer.json().await.unwrap();
                assert!(
                    problem["type"].as_str().unwrap().contains("store_unavailable"),
                    "{problem}"
                );
            }
            other => panic!("{other}: {}", answer.text().await.unwrap()),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    acknowledged
}

#[tokio::test]
async fn a_database_that_is_away_at_the_start_is_waited_for_while_health_checks_are_answered() {
    let cluster = PostgresCluster::start();
    cluster.stop("fast");
    let (home, address) = (home(&cluster), format!("127.0.0.1:{}", free_port()));
    let mut serve = home.start_serve_at(&address, &[]);
    let url = format!("http://{address}");
    wait_until(RECOVERY, async || status_of(&serve.http, &format!("{url}/healthz")).await).await;
    let health = serve.http.get(format!("{url}/healthz")).send().await.unwrap();
    assert_eq!((health.status(), &*health.text().await.unwrap()), (StatusCode::OK, "ok\n"));
    for path in ["/readyz", "/metrics", "/api/v1/tools", "/mcp", "/"] {
        let answer = serve.http.get(format!("{url}{path}")).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert_eq!(answer.headers()["retry-after"], "2", "{path}");
        let problem: Value = answer.json().await.unwrap();
        assert!(
            problem["detail"].as_str().unwrap().contains("waits for its database"),
            "{problem}"
        );
    }
    serve.said("waiting for the database").await;
    serve.said(&format!("127.0.0.1:{}", cluster.port())).await;

    cluster.start_again();
    serve.ready().await;
    assert_eq!(serve.url, url);
    until_ready(&serve).await;
    assert_eq!(serve.tool_names().await, ["local.sum_numbers"]);

    // Asked to stop while it waits, it ends at once and in order.
    drop(serve);
    cluster.stop("fast");
    let mut serve = home.start_serve_at(&address, &[]);
    wait_until(RECOVERY, async || status_of(&serve.http, &format!("{url}/healthz")).await).await;
    serve.signal("TERM");
    assert_eq!(serve.ended().await.code(), Some(0));
}

#[tokio::test]
async fn a_database_that_dies_in_the_middle_of_work_loses_nothing_that_was_acknowledged() {
    let cluster = PostgresCluster::start();
    let home = home_with(&cluster, ", slots: {on_store_loss: share}");
    let mut serve = home.serve().await;
    let (end, mut workers) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
    for worker in 0..4 {
        workers.spawn(make_sessions(serve.http.clone(), serve.url.clone(), worker, end.clone()));
    }
    for outage in 0..2 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        cluster.stop("immediate");
        wait_until(RECOVERY, async || serve.get("/readyz").await.get("store").cloned()).await;
        if outage == 0 {
            // It was lent no slot. With `share` it has all of them, as the only board, when its lease is over.
            let sum = serve.answer("local.sum_numbers", json!({"a": 1, "b": 2})).await;
            assert_eq!(sum["outcome"], "ok");
        }
        cluster.start_again();
        until_ready(&serve).await;
    }
    end.store(true, Ordering::Relaxed);
    let acknowledged: Vec<String> = workers.join_all().await.concat();
    assert!(acknowledged.len() > 20, "{}", acknowledged.len());
    let is_down = "the store does not take writes";
    assert_eq!(serve.stderr().matches(is_down).count(), 2, "{}", serve.stderr());

    serve.signal("KILL");
    serve.ended().await;
    let serve = home.serve().await;
    for id in acknowledged {
        let found = status_of(&serve.http, &serve.at(&format!("/api/v1/sessions/{id}"))).await;
        assert_eq!(found, Some(StatusCode::OK), "{id} was acknowledged");
    }
}
