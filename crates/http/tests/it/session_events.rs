//! The event stream of a session: resumed by `Last-Event-ID`, and ended with the session and the server.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::json;

use crate::api_server::{Api, ApiServer, PATIENCE, TwoServers, yaml};
use crate::event_reader::{EventReader, names_and_ids};

async fn switch_buy(api: &Api, session: &str, is_on: bool) {
    api.put(&format!("{session}/toolsets/buy"), json!({ "enabled": is_on })).await.good();
}

#[tokio::test]
async fn a_client_that_reconnects_gets_each_missed_step_or_a_reset() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let work = api.new_session(json!({})).await;
    for is_on in [false, true, false] {
        switch_buy(&api, &work, is_on).await;
    }
    let check = async |last: Option<&str>, expected: &[(&str, &str)]| {
        let path = format!("{work}/events?follow=false");
        let events = EventReader::open(&api, &path, last).await.rest().await;
        assert_eq!(names_and_ids(&events), expected, "after {last:?}");
    };
    check(None, &[("current", "4")]).await;
    check(Some("1"), &[("revision", "2"), ("revision", "3"), ("revision", "4")]).await;
    check(Some("3"), &[("revision", "4")]).await;
    check(Some("4"), &[]).await;
    for unknown in ["0", "5", "999", "18446744073709551615", "-1", "nonsense"] {
        check(Some(unknown), &[("reset", "4")]).await;
    }
    // A step that is no longer kept cannot be repeated.
    for step in 0..71 {
        switch_buy(&api, &work, step % 2 == 0).await;
    }
    check(Some("4"), &[("reset", "75")]).await;
    check(Some("74"), &[("revision", "75")]).await;
}

#[tokio::test]
async fn an_open_stream_tells_each_change_with_its_tools() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let (work, other) = (api.new_session(json!({})).await, api.new_session(json!({})).await);
    let mut events = EventReader::open(&api, &format!("{work}/events"), None).await;
    assert_eq!(events.next().await.unwrap().data, json!({"type": "current", "tools_revision": 1}));
    let both = ["shop__order", "shop__price"];
    for (revision, is_on) in [(2, false), (3, true)] {
        switch_buy(&api, &work, is_on).await;
        let event = events.next().await.unwrap();
        assert_eq!((&*event.name, event.id), ("revision", revision.to_string()));
        assert_eq!(
            (&event.data["tools_revision"], &event.data["cause"]),
            (&json!(revision), &json!("session"))
        );
        let names = |key: &str| {
            let names = event.data[key].as_array().unwrap().iter();
            let mut names: Vec<_> = names.map(|name| name.as_str().unwrap()).collect();
            names.sort_unstable();
            names
        };
        let (came, went) = if is_on { ("added", "removed") } else { ("removed", "added") };
        assert_eq!((names(came), names(went)), (both.to_vec(), Vec::new()));
    }
    let path = format!("{other}/events?follow=false");
    let others = EventReader::open(&api, &path, Some("1")).await.rest().await;
    assert_eq!(others, [], "other sessions are not told");
}

#[tokio::test]
async fn a_stream_ends_with_its_session() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let work = api.new_session(json!({})).await;
    let mut events = EventReader::open(&api, &format!("{work}/events"), None).await;
    events.until("current").await;
    assert_eq!(api.send(Method::DELETE, &work, None).await.status, 204);
    assert_eq!(events.rest().await, []);
    api.get(&format!("{work}/events")).await.problem(404, "unknown_session");
}

#[tokio::test]
async fn a_shutdown_waits_for_requests_and_the_end_of_streams() {
    let server = ApiServer::without_board().await;
    let sessions = server.start_board(&yaml(&["{name: sum_numbers}"], &[])).await;
    let api = server.api();
    let work = api.new_session(json!({})).await;
    let mut events = EventReader::open(&api, &format!("{work}/events"), None).await;
    events.until("current").await;
    let mut turn = EventReader::begin_turn(&api, &work, json!({"message": "/slow 60"})).await;
    turn.until("content").await;
    server.stop();
    sessions.end_streams();
    events.rest().await;
    let rest = turn.rest().await;
    assert!(rest.iter().all(|event| event.name != "done"), "the stream ends before its turn");
    tokio::time::timeout(PATIENCE, server.serving.wait()).await.unwrap();
    assert!(api.request(Method::GET, "/healthz").send().await.is_err(), "nothing listens");
}
