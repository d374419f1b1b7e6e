//! Sources that run: changes, unchanged refreshes, and new configurations.

use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_discovery::Discovery;
use switchboard_model::SourceKind;
use switchboard_test_support::wait_until;

use crate::support::{Answer, FakeGateway, context, gateway, list, plan_of};

const PATIENCE: Duration = Duration::from_secs(9);

fn found(discovery: &Discovery) -> Vec<(String, Vec<String>)> {
    let found = discovery.found().into_iter();
    let names = |servers: Vec<switchboard_model::FoundServer>| {
        servers.into_iter().map(|server| server.name).collect::<Vec<_>>()
    };
    found.map(|it| (it.source, names(it.servers))).collect()
}

#[tokio::test]
async fn a_change_is_announced_once_and_an_unchanged_refresh_never() {
    let fake = FakeGateway::start(Answer::json(list(&[("a", "https://a.example/")]))).await;
    let root = tempfile::tempdir().unwrap();
    let plan = plan_of(gateway(&fake.url));
    let discovery = Discovery::start(&plan, context(&[], root.path(), None));
    let mut changes = discovery.changes();
    tokio::time::timeout(PATIENCE, changes.wait_for(|count| *count == 1)).await.unwrap().unwrap();
    let before = fake.seen().len();
    wait_until(PATIENCE, async || (fake.seen().len() > before + 5).then_some(())).await;
    assert_eq!(*changes.borrow(), 1, "nothing has changed");
    fake.answer(Answer::json(list(&[("a", "https://other.example/")])));
    tokio::time::timeout(PATIENCE, changes.wait_for(|count| *count == 2)).await.unwrap().unwrap();
    fake.answer(Answer::json("[]"));
    tokio::time::timeout(PATIENCE, changes.wait_for(|count| *count == 3)).await.unwrap().unwrap();
    assert_eq!(found(&discovery), [("it".to_owned(), Vec::new())]);
    discovery.shutdown().await;
}

#[tokio::test]
async fn a_new_plan_restarts_what_changed_and_keeps_the_last_known_servers() {
    let fake = FakeGateway::start(Answer::json(list(&[("a", "https://a.example/")]))).await;
    let root = tempfile::tempdir().unwrap();
    let plan = plan_of(gateway(&fake.url));
    let discovery = Discovery::start(&plan, context(&[], root.path(), None));
    let has_a = [("it".to_owned(), vec!["a".to_owned()])];
    wait_until(PATIENCE, async || (found(&discovery) == has_a).then_some(())).await;
    // The same name at a place that does not answer.
    let mut moved = plan_of(gateway("http://127.0.0.1:1"));
    discovery.follow(&moved);
    assert_eq!(found(&discovery), has_a);
    let mut second = plan_of(SourceKind::Manifest { path: None }).sources.remove(0);
    second.name = "second".into();
    moved.sources.insert(0, second);
    discovery.follow(&moved);
    let names: Vec<_> = discovery.status().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["second", "it"], "in the order of the plan");
    discovery.follow(&plan_of(SourceKind::Manifest { path: None }));
    assert_eq!(discovery.status()[0].kind, "manifest");
    discovery.shutdown().await;
    let after = fake.seen().len();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(fake.seen().len(), after, "a removed source is not asked any more");
}
