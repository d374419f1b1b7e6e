//! Gateways and registries that misbehave: each failure has its text, and the last known servers stay.

use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_discovery::{Discovery, SourceStatus};
use switchboard_test_support::{free_port, wait_until};

use crate::support::{
    Answer, FakeGateway, context, error, gateway, list, names, plan_of, registry,
};

const UNEXPECTED: &str =
    "Unexpected gateway response format: expected a list or {\"mcpServers\": [...]}";

fn body(status: u16, kind: &'static str, text: &str) -> Answer {
    Answer::Body(status, kind, text.into())
}

async fn until(discovery: &Discovery, is_it: impl Fn(&SourceStatus) -> bool) -> SourceStatus {
    wait_until(Duration::from_secs(9), async || {
        discovery.status().into_iter().next().filter(|status| is_it(status))
    })
    .await
}

#[tokio::test]
async fn every_bad_answer_of_a_gateway_keeps_the_last_known_servers() {
    let good = || Answer::json(list(&[("mail", "https://mail.example/mcp")]));
    let fake = FakeGateway::start(good()).await;
    let other = FakeGateway::start(good()).await;
    let directory = tempfile::tempdir().unwrap();
    let context = context(&[], directory.path(), None);
    let discovery = Discovery::start(&plan_of(gateway(&fake.url)).clone(), context);
    until(&discovery, |status| status.state() == "ok").await;
    let failed = "Failed to read MCP servers from endpoint: HTTP";
    let unparsable = "Failed to parse MCP server configuration response: ";
    for (answer, expected) in [
        (body(401, "text/plain", "no"), format!("{failed} 401: no")),
        (body(404, "text/plain", "what?"), format!("{failed} 404: what?")),
        (body(500, "text/plain", "boom"), format!("{failed} 500: boom")),
        (body(204, "text/plain", ""), format!("{failed} 204: ")),
        (body(200, "text/html", "<html>hello</html>"), unparsable.to_owned()),
        (body(200, "application/json", "{\"mcpServers\": ["), unparsable.to_owned()),
        (body(200, "application/json", ""), UNEXPECTED.to_owned()),
        (body(200, "application/json", "null"), UNEXPECTED.to_owned()),
        (body(200, "application/json", "{\"servers\": []}"), UNEXPECTED.to_owned()),
        (body(200, "application/json", "{\"mcpServers\": {}}"), UNEXPECTED.to_owned()),
        (
            Answer::Redirect(format!("{}/elsewhere", other.url)),
            format!("{failed} 302: redirects to "),
        ),
    ] {
        fake.answer(answer.clone());
        discovery.refresh();
        let status = until(&discovery, |status| error(status).starts_with(&expected)).await;
        assert_eq!((status.state(), names(&status)), ("failing", vec!["mail"]), "{answer:?}");
        assert!(status.succeeded_at_ms.is_some());
        assert!(!error(&status).contains("s3cret"), "{}", error(&status));
        fake.answer(good());
        discovery.refresh();
        until(&discovery, |status| status.state() == "ok").await;
    }
    assert_eq!(other.seen().len(), 0, "a redirect to another host is not followed");
    discovery.shutdown().await;
}

#[tokio::test]
async fn a_gateway_that_is_down_at_the_start_is_asked_again_until_it_answers() {
    let port = free_port();
    let directory = tempfile::tempdir().unwrap();
    let plan = plan_of(registry(&format!("http://127.0.0.1:{port}/v0/servers")));
    let discovery = Discovery::start(&plan, context(&[], directory.path(), None));
    let status = until(&discovery, |status| status.state() == "failing").await;
    let place = format!("cannot read the MCP registry http://127.0.0.1:{port}/v0/servers: ");
    assert!(error(&status).starts_with(&place), "{}", error(&status));
    assert!(error(&status).contains("Connection refused"), "{}", error(&status));
    discovery.shutdown().await;

    let fake = FakeGateway::start(body(503, "text/plain", "starting")).await;
    let plan = plan_of(gateway(&fake.url));
    let discovery = Discovery::start(&plan, context(&[], directory.path(), None));
    until(&discovery, |status| status.state() == "failing").await;
    fake.answer(Answer::json(list(&[("mail", "https://mail.example/mcp")])));
    // Without a refresh: it comes back by itself.
    let status = until(&discovery, |status| status.state() == "ok").await;
    assert_eq!(names(&status), ["mail"]);
    discovery.shutdown().await;
}

#[tokio::test]
async fn a_slow_gateway_delays_nothing_else() {
    let slow = FakeGateway::start(Answer::Slow(Duration::from_mins(1))).await;
    let quick = FakeGateway::start(Answer::json(list(&[("q", "https://q.example/")]))).await;
    let directory = tempfile::tempdir().unwrap();
    let mut plan = plan_of(gateway(&slow.url));
    let mut second = plan_of(gateway(&quick.url)).sources.remove(0);
    second.name = "quick".into();
    plan.sources.push(second);
    let discovery = Discovery::start(&plan, context(&[], directory.path(), None));
    wait_until(Duration::from_secs(9), async || {
        let status = discovery.status();
        (status[1].state() == "ok" && status[0].state() == "waiting").then_some(())
    })
    .await;
    let found: Vec<_> = discovery.found().iter().map(|it| it.servers.len()).collect();
    assert_eq!(found, [0, 1]);
    // Stopping does not wait for the slow one either.
    tokio::time::timeout(Duration::from_secs(5), discovery.shutdown()).await.unwrap();
}

#[tokio::test]
async fn a_failure_that_lasts_is_asked_for_less_and_less_often() {
    let fake = FakeGateway::start(body(500, "text/plain", "no")).await;
    let directory = tempfile::tempdir().unwrap();
    // Refreshed every 20 ms while it works.
    let plan = plan_of(gateway(&fake.url));
    let discovery = Discovery::start(&plan, context(&[], directory.path(), None));
    until(&discovery, |status| status.state() == "failing").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(fake.seen().len(), 1, "the first pause is a second or more");
    discovery.shutdown().await;
}
