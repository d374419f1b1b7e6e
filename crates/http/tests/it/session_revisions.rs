//! The revision of a session: stale writes are refused, and of concurrent writes none is lost.

use futures::future::join_all;
use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api_server::{Api, TwoServers};
use crate::event_reader::{EventReader, names_and_ids};

/// Everything that the API shows of a session.
async fn everything(api: &Api, session: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for tail in ["", "/tools", "/toolsets", "/render?provider=openai"] {
        all.push(api.get(&format!("{session}{tail}")).await.good());
    }
    all
}

/// The revisions that the events of a session announce after the first one.
async fn announced(api: &Api, session: &str) -> Vec<String> {
    let path = format!("{session}/events?follow=false");
    let events = EventReader::open(api, &path, Some("1")).await.rest().await;
    names_and_ids(&events).into_iter().map(|(name, id)| format!("{name} {id}")).collect()
}

#[tokio::test]
async fn a_stale_revision_is_refused_and_changes_nothing() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let work = api.new_session(json!({})).await;
    api.put(&format!("{work}/toolsets/buy"), json!({"enabled": false})).await.good();
    let before = everything(&api, &work).await;
    let writes = [
        (Method::PATCH, "", json!({"title": "late", "toolsets": {"look": false}})),
        (Method::PUT, "/bindings", json!({"servers": ["notes"]})),
        (Method::PUT, "/toolsets/look", json!({"enabled": false})),
        (Method::PUT, "/tools/shop.find", json!({"enabled": false})),
    ];
    for (method, tail, body) in writes {
        for stale in [0, 1, 3, u64::MAX] {
            let mut body = body.clone();
            body["tools_revision"] = json!(stale);
            let answer = api.send(method.clone(), &format!("{work}{tail}"), Some(body)).await;
            assert_eq!(
                answer.problem(409, "stale_revision"),
                format!(
                    "the tools of this session are at revision 2, not {stale}: read them again, then repeat the change"
                )
            );
        }
        assert_eq!(everything(&api, &work).await, before, "{method} {tail}");
    }
    assert_eq!(announced(&api, &work).await, ["revision 2"]);
    // With the current revision each of them is one step.
    for (revision, (tail, mut body)) in (2..).zip([
        ("/toolsets/look", json!({"enabled": false})),
        ("/bindings", json!({"servers": ["notes"]})),
        ("/tools/notes.read", json!({"enabled": false})),
        ("/toolsets/notes", json!({"enabled": false})),
    ]) {
        body["tools_revision"] = json!(revision);
        let seen = api.put(&format!("{work}{tail}"), body).await.good();
        assert_eq!(seen["tools_revision"], revision + 1, "{tail}");
    }
    let steps = [2, 3, 4, 5, 6].map(|revision| format!("revision {revision}"));
    assert_eq!(announced(&api, &work).await, steps);
}

#[tokio::test]
async fn of_twenty_writers_with_the_same_revision_one_succeeds() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let work = api.new_session(json!({})).await;
    let writers = (0..20).map(|number| {
        // Half of them want the same change, half another one.
        let set = if number % 2 == 0 { "look" } else { "notes" };
        let title = format!("of {number}");
        let body = json!({"title": title, "toolsets": {set: false}, "tools_revision": 1});
        let (api, work) = (&api, &work);
        async move { (title, api.patch(work, body).await) }
    });
    let mut winners = Vec::new();
    for (title, answer) in join_all(writers).await {
        if answer.status == 200 {
            winners.push(title);
        } else {
            answer.problem(409, "stale_revision");
        }
    }
    assert_eq!(winners.len(), 1, "{winners:?}");
    let view = api.get(&work).await.good();
    assert_eq!((&view["title"], &view["tools_revision"]), (&json!(winners[0]), &json!(2)));
    assert_eq!(view["disabled_toolsets"].as_array().unwrap().len(), 1);
    assert_eq!(announced(&api, &work).await, ["revision 2"]);
}

#[tokio::test]
async fn concurrent_writes_without_a_revision_do_not_undo_each_other() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let work = api.new_session(json!({})).await;
    let tools = ["shop.find", "shop.price", "shop.order", "shop.slow", "notes.read", "notes.write"];
    let off = json!({"enabled": false});
    let paths = tools.map(|tool| format!("{work}/tools/{tool}"));
    for answer in join_all(paths.iter().map(|path| api.put(path, off.clone()))).await {
        answer.good();
    }
    let view = api.get(&work).await.good();
    assert_eq!(view["tools"].as_object().unwrap().len(), tools.len());
    assert_eq!(view["tools_revision"], 7);
    let seen = api.get(&format!("{work}/tools")).await.good();
    assert_eq!(seen["tools"], json!([]));
}

#[tokio::test]
async fn a_change_that_changes_no_tool_is_no_step() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let work = api.new_session(json!({})).await;
    for (method, tail, body) in [
        (Method::PATCH, "", json!({"title": "Only a title", "provider": "demo", "model": "m"})),
        (Method::PATCH, "", json!({})),
        (Method::PUT, "/toolsets/buy", json!({"enabled": true})),
        (Method::PUT, "/bindings", json!({"servers": null})),
        (Method::PUT, "/tools/shop.find", json!({"enabled": null})),
    ] {
        let seen = api.send(method, &format!("{work}{tail}"), Some(body)).await.good();
        assert_eq!(seen["tools_revision"], 1, "{tail}");
    }
    assert_eq!(api.get(&work).await.good()["title"], "Only a title");
    assert_eq!(announced(&api, &work).await, [""; 0]);
}
