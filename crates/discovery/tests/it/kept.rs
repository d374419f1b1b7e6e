//! The last known servers of a gateway across runs of the program.

use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_discovery::{Discovery, SourceStatus};
use switchboard_model::{DiscoveryPlan, Secret, SourceKind};
use switchboard_store::Store;
use switchboard_test_support::wait_until;

use crate::support::{Answer, FakeGateway, context, gateway, list, names, plan_of};

/// The only source of the plan after its first fetch, in a run of its own.
async fn run(plan: &DiscoveryPlan, store: &Store) -> (SourceStatus, u64) {
    let directory = tempfile::tempdir().unwrap();
    let context = context(&[], directory.path(), None).with_store(store.clone());
    let discovery = Discovery::start(plan, context);
    let changes = discovery.changes();
    let status = wait_until(Duration::from_secs(9), async || {
        discovery.status().into_iter().next().filter(|status| status.state() != "waiting")
    })
    .await;
    let changes = *changes.borrow();
    discovery.shutdown().await;
    (status, changes)
}

fn with(url: &str, agent: &str, token: &str) -> DiscoveryPlan {
    let SourceKind::Gateway(mut settings) = gateway(url) else { unreachable!("it is a gateway") };
    settings.agent_id = Some(agent.into());
    settings.token = Some(Secret::new(token));
    let mut plan = plan_of(SourceKind::Gateway(settings));
    // One fetch for each run.
    plan.sources[0].refresh = Duration::from_mins(5);
    plan
}

#[tokio::test]
async fn a_gateway_that_is_down_at_the_next_start_costs_no_server() {
    let store = Store::in_memory().await.unwrap();
    let fake = FakeGateway::start(Answer::json("[]")).await;
    let own = format!("{}/mcp", fake.url);
    let servers = [("mail", "https://mail.example/mcp"), ("own", own.as_str())];
    fake.answer(Answer::json(list(&servers)));
    let (status, _) = run(&with(&fake.url, "a", "first-token"), &store).await;
    assert_eq!((status.state(), names(&status)), ("ok", vec!["mail", "own"]));

    fake.answer(Answer::Body(503, "text/plain", "down".into()));
    let (status, changes) = run(&with(&fake.url, "a", "second-token"), &store).await;
    assert_eq!((status.state(), names(&status)), ("failing", vec!["mail", "own"]));
    assert_eq!(changes, 1, "they are announced before the gateway has answered");
    assert_eq!(status.succeeded_at_ms, None);
    // The token of this run, and only where it belongs.
    assert!(status.servers[0].headers.is_empty());
    assert_eq!(status.servers[1].headers["Authorization"].expose(), "Bearer second-token");

    let (status, changes) = run(&with(&fake.url, "b", "second-token"), &store).await;
    assert_eq!((names(&status), changes), (vec![], 0), "another agent has other servers");

    fake.answer(Answer::json(list(&servers)));
    let (status, changes) = run(&with(&fake.url, "a", "second-token"), &store).await;
    assert_eq!((status.state(), names(&status)), ("ok", vec!["mail", "own"]));
    assert_eq!(changes, 1, "an answer that says the same is no change");

    fake.answer(Answer::json("[]"));
    run(&with(&fake.url, "a", "second-token"), &store).await;
    fake.answer(Answer::Body(503, "text/plain", "down".into()));
    let (status, _) = run(&with(&fake.url, "a", "second-token"), &store).await;
    assert_eq!(names(&status), Vec::<&str>::new(), "an empty list was an answer");
}

#[tokio::test]
async fn no_token_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    let fake = FakeGateway::start(Answer::json("[]")).await;
    let own = format!("{}/mcp", fake.url);
    fake.answer(Answer::json(list(&[("own-server-of-the-platform", &own)])));
    let (status, _) = run(&with(&fake.url, "a", "s3cret-token-of-the-agent"), &store).await;
    assert_eq!(status.servers[0].headers.len(), 1);
    // The store stays open: closing it removes files while they are read.
    let mut bytes = Vec::new();
    for file in std::fs::read_dir(directory.path()).unwrap() {
        bytes.extend(std::fs::read(file.unwrap().path()).unwrap());
    }
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("own-server-of-the-platform"));
    assert!(!has("s3cret-token-of-the-agent"));
}
