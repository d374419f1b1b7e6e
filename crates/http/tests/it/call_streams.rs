//! Calls as streams of events, their cancellation, and what runs now.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::json;
use switchboard_auth::Role;
use switchboard_test_support::{Tool, wait_until};

use crate::api_server::{Api, ApiServer, PATIENCE, scripted, until, yaml};
use crate::event_reader::EventReader;

async fn call(api: &Api, tool: &str) -> EventReader {
    let request = api.request(Method::POST, &format!("/api/v1/tools/{tool}/call"));
    EventReader::of(request.header("accept", "text/event-stream").json(&json!({}))).await
}

#[tokio::test]
async fn a_streamed_call_tells_its_id_its_progress_and_its_result() {
    let slow = Tool::echo("slow").sleeps(300).progress_every(100);
    let shop = scripted([slow, Tool::echo("find")]).await;
    let server = ApiServer::start(&yaml(&[], &[("shop", &shop)])).await;
    let api = server.api();
    let events = call(&api, "shop.slow").await.rest().await;
    let (first, last) = (events.first().unwrap(), events.last().unwrap());
    assert_eq!((&*first.name, &*last.name), ("started", "done"));
    assert_eq!(first.data["id"], last.data["id"]);
    assert!(events.iter().any(|event| event.name == "progress"), "{events:#?}");
    assert!(events.iter().all(|event| event.data["type"] == event.name), "{events:#?}");
    assert_eq!(last.data["outcome"], "ok");
    let refused = api.request(Method::POST, "/api/v1/tools/shop.none/call").json(&json!({}));
    let refused = refused.header("accept", "text/event-stream");
    crate::api_server::Answer::of(refused).await.problem(404, "unknown_tool");
}

#[tokio::test]
async fn a_call_is_cancelled_by_its_caller_and_by_nobody_else() {
    let shop = scripted([Tool::echo("slow").sleeps(600_000)]).await;
    let server = ApiServer::start(&yaml(&[], &[("shop", &shop)])).await;
    let alice = server.api_of("alice", Role::Client).await;
    let bob = server.api_of("bob", Role::Client).await;
    let operator = server.api_of("operator", Role::Operator).await;
    for canceller in [&alice, &operator] {
        let mut events = call(&alice, "shop.slow").await;
        let started = events.next().await.unwrap();
        let cancel = format!("/api/v1/calls/{}/cancel", started.data["id"].as_str().unwrap());
        bob.send(Method::POST, &cancel, None).await.problem(404, "unknown_call");
        assert_eq!(bob.get("/api/v1/stats/now").await.good()["in_flight"], 0);
        for api in [&alice, &operator] {
            let load = api.get("/api/v1/stats/now").await.good();
            assert_eq!(
                (&load["in_flight"], &load["calls"][0]["id"]),
                (&json!(1), &started.data["id"])
            );
            let tool = json!("shop.slow");
            assert_eq!((&load["slots"][0]["tool"], &load["slots"][0]["max"]), (&tool, &json!(10)));
        }
        assert_eq!(canceller.send(Method::POST, &cancel, None).await.status, 202);
        let ended = events.rest().await;
        let problem = &ended.last().unwrap().data["problem"];
        assert_eq!(problem["type"], "urn:switchboard:problem:cancelled", "{ended:#?}");
        alice.send(Method::POST, &cancel, None).await.problem(404, "unknown_call");
        let record = alice.get(cancel.trim_end_matches("/cancel")).await.good();
        assert_eq!(record["outcome"], "cancelled");
    }
    let cancelled = || {
        let stats = shop.stats();
        stats.cancelled.len() + stats.dropped_calls.len() >= 2
    };
    until(cancelled).await;
}

#[tokio::test]
async fn calls_that_wait_for_a_slot_are_counted_apart() {
    let shop = scripted([Tool::echo("slow").sleeps(600_000)]).await;
    let limited = yaml(&["{name: shop.slow, max_instances: 1}"], &[("shop", &shop)]);
    let server = ApiServer::start(&limited).await;
    let api = server.api();
    let (mut one, mut two) = (call(&api, "shop.slow").await, call(&api, "shop.slow").await);
    let ids = [one.next().await.unwrap(), two.next().await.unwrap()];
    wait_until(PATIENCE, async || {
        let load = api.get("/api/v1/stats/now").await.good();
        let slot = &load["slots"][0];
        (slot["used"] == 1 && slot["waiting"] == 1 && load["waiting"] == 1).then_some(())
    })
    .await;
    for started in ids {
        let cancel = format!("/api/v1/calls/{}/cancel", started.data["id"].as_str().unwrap());
        assert_eq!(api.send(Method::POST, &cancel, None).await.status, 202);
    }
    assert_eq!(one.rest().await.last().unwrap().name, "error");
    assert_eq!(two.rest().await.last().unwrap().name, "error");
}

#[tokio::test]
async fn statistics_count_the_calls_that_the_caller_may_see() {
    let shop = scripted([Tool::echo("find"), Tool::echo("price")]).await;
    let server = ApiServer::start(&yaml(&[], &[("shop", &shop)])).await;
    let alice = server.api_of("alice", Role::Client).await;
    let bob = server.api_of("bob", Role::Client).await;
    for tool in ["find", "find", "price"] {
        alice.post(&format!("/api/v1/tools/shop.{tool}/call"), json!({})).await.good();
    }
    bob.post("/api/v1/tools/shop.find/call", json!({"arguments": 7}))
        .await
        .problem(422, "invalid_arguments");
    let check = async |api: &Api, query: &str, expected: &[(&str, u64, u64)]| {
        let found = api.get(&format!("/api/v1/stats/calls?{query}")).await.good();
        let series = found["series"].as_array().unwrap().iter();
        let series: Vec<_> = series
            .map(|it| {
                let points = it["points"].as_array().unwrap().iter();
                let count: u64 = points.map(|point| point["count"].as_u64().unwrap()).sum();
                assert_eq!(count, it["total"]["count"].as_u64().unwrap());
                (it["key"].as_str().unwrap(), count, it["total"]["errors"].as_u64().unwrap())
            })
            .collect();
        assert_eq!(series, expected, "{query}");
    };
    check(&alice, "by=tool", &[("shop.find", 2, 0), ("shop.price", 1, 0)]).await;
    check(&alice, "by=outcome&step=60", &[("ok", 3, 0)]).await;
    check(&bob, "by=face", &[("http", 1, 1)]).await;
    check(&bob, "by=server&tool=price", &[]).await;
    let operator = server.api_of("operator", Role::Operator).await;
    check(&operator, "", &[("ok", 3, 0), ("invalid_arguments", 1, 1)]).await;
    for wrong in [
        "step=0",
        "by=colour",
        "from=yesterday",
        "from=2026-11-17T09:00:00Z&to=2026-11-17T09:00:00Z",
        "from=2025-11-17T09:00:00Z&to=2026-11-17T09:00:00Z&step=1",
    ] {
        alice.get(&format!("/api/v1/stats/calls?{wrong}")).await.problem(400, "bad_request");
    }
    let records = alice.get("/api/v1/calls?face=http&min_run_ms=0").await.good();
    assert_eq!(records["calls"].as_array().unwrap().len(), 3);
    let records = alice.get("/api/v1/calls?face=turn").await.good();
    assert_eq!(records["calls"], json!([]));
    let records = alice.get("/api/v1/calls?min_run_ms=600000").await.good();
    assert_eq!(records["calls"], json!([]));
}

#[tokio::test]
async fn what_a_server_asks_is_answered_by_the_caller_once_and_by_nobody_else() {
    let shop = scripted([Tool::echo("ask").asks().sleeps(600_000)]).await;
    let server = ApiServer::start(&yaml(&[], &[("shop", &shop)])).await;
    let alice = server.api_of("alice", Role::Client).await;
    let bob = server.api_of("bob", Role::Admin).await;
    let request = alice.request(Method::POST, "/api/v1/tools/shop.ask/call");
    let request = request.header("accept", "text/event-stream");
    let mut events = EventReader::of(request.json(&json!({"answers_questions": true}))).await;
    let started = events.next().await.unwrap();
    let question = until_named(&mut events, "question").await;
    assert_eq!(question["message"], "?");
    assert_eq!(question["schema"]["type"], "object");
    let call = started.data["id"].as_str().unwrap();
    let path = format!("/api/v1/calls/{call}/answers/{}", question["id"].as_str().unwrap());
    let accept = json!({"action": "accept", "content": {}});
    bob.post(&path, accept.clone()).await.problem(404, "unknown_question");
    let wrong = alice.post(&path, json!({"action": "accept", "content": [7]})).await;
    wrong.problem(422, "invalid_answer");
    assert_eq!(alice.post(&path, accept.clone()).await.status, 204);
    alice.post(&path, accept).await.problem(404, "unknown_question");
    assert_eq!(
        alice.send(Method::POST, &format!("/api/v1/calls/{call}/cancel"), None).await.status,
        202
    );
    assert_eq!(events.rest().await.last().unwrap().name, "error");
}

#[tokio::test]
async fn a_question_ends_with_its_call_and_is_refused_where_nobody_answers() {
    let shop = scripted([Tool::echo("ask").asks().sleeps(1000)]).await;
    let server = ApiServer::start(&yaml(&[], &[("shop", &shop)])).await;
    let api = server.api();
    let request = api.request(Method::POST, "/api/v1/tools/shop.ask/call");
    let request = request.header("accept", "text/event-stream");
    let mut events = EventReader::of(request.json(&json!({"answers_questions": true}))).await;
    let call = events.next().await.unwrap().data["id"].as_str().unwrap().to_owned();
    let question = until_named(&mut events, "question").await;
    assert_eq!(events.rest().await.last().unwrap().name, "done");
    let path = format!("/api/v1/calls/{call}/answers/{}", question["id"].as_str().unwrap());
    api.post(&path, json!({"action": "decline"})).await.problem(404, "unknown_question");
    let events = self::call(&api, "shop.ask").await.rest().await;
    assert!(events.iter().all(|event| event.name != "question"), "{events:#?}");
}

/// The data of the next event of this name.
async fn until_named(events: &mut EventReader, name: &str) -> serde_json::Value {
    loop {
        let event = events.next().await.unwrap();
        if event.name == name {
            return event.data;
        }
    }
}
