//! Turns over HTTP: refused, cancelled, repeated, changed while they run, and ended with their session.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api_server::{TwoServers, until};
use crate::event_reader::EventReader;

#[tokio::test]
async fn a_turn_that_cannot_begin_is_refused_and_nothing_is_stored() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let work = api.new_session(json!({})).await;
    let turns = format!("{work}/turns");
    for (wrong, detail) in [
        (json!({"id": "no spaces", "message": "x"}), "'no spaces' is not a valid turn id"),
        (json!({"message": "x", "max_rounds": 0}), "`max_rounds` must be from 1 to 1000"),
        (json!({"message": "x", "temperature": 3}), "`temperature` must be from 0 to 2"),
        (json!({"message": "x", "provider": "nobody"}), "there is no provider `nobody`"),
        (json!({"message": "x", "provider": "openai"}), "no model is named"),
        (json!({"message": " \n"}), "`message` is empty"),
        (json!({}), "`message` is empty"),
    ] {
        let said = api.post(&turns, wrong.clone()).await.problem(422, "bad_request");
        assert!(said.contains(detail), "{wrong}: {said}");
    }
    for (body, detail) in [
        (json!({"messages": []}), "version"),
        (json!({"version": 99, "messages": []}), "version"),
        (json!({"version": 1, "messages": [{"role": "nobody"}]}), "nobody"),
    ] {
        let said = api.put(&format!("{work}/history"), body.clone()).await;
        let said = said.problem(422, "bad_request");
        assert!(said.contains(detail), "{body}: {said}");
    }
    assert_eq!(api.get(&format!("{work}/history")).await.good()["messages"], json!([]));
    assert_eq!(api.get(&turns).await.good(), json!({"turns": []}));
    let unknown = api.get(&format!("{turns}/nothing")).await.problem(404, "unknown_turn");
    assert_eq!(unknown, "this session has no turn 'nothing'; what was said is in its history");
}

#[tokio::test]
async fn a_cancelled_turn_keeps_what_was_said_and_cancelling_it_again_changes_nothing() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let work = api.new_session(json!({})).await;
    let body = json!({"id": "t", "message": "/slow 60"});
    let mut reader = EventReader::begin_turn(&api, &work, body).await;
    reader.until("content").await;
    let cancel = format!("{work}/turns/t/cancel");
    let turn = api.send(Method::POST, &cancel, None).await.good();
    assert_eq!(turn["status"], "cancelled");
    let said = turn["text"].as_str().unwrap();
    assert!(!said.is_empty());
    let done = reader.rest().await.pop().unwrap();
    assert_eq!((&*done.name, &done.data["status"]), ("done", &json!("cancelled")));
    assert_eq!(api.send(Method::POST, &cancel, None).await.good(), turn);
    let history = api.get(&format!("{work}/history")).await.good();
    assert_eq!(history["messages"], turn["messages"]);
    assert_eq!(history["messages"][1]["content"][0]["text"], said);
    let gone = api.send(Method::POST, &cancel.replace("/t/", "/u/"), None).await;
    gone.problem(404, "unknown_turn");
}

#[tokio::test]
async fn the_same_turn_twice_runs_once_and_another_one_is_refused_while_it_runs() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let work = api.new_session(json!({})).await;
    let turns = format!("{work}/turns");
    let body = json!({"id": "mine", "message": "/call shop__slow {\"n\": 1}"});
    let (first, second) =
        tokio::join!(api.post(&turns, body.clone()), api.post(&turns, body.clone()));
    let first = first.good();
    assert_eq!(first, second.good());
    assert_eq!(api.post(&turns, body).await.good(), first, "also when it has ended");
    assert_eq!(board.shop.stats().total_calls(), 1);

    let body = json!({"id": "next", "message": "/slow 60"});
    let mut reader = EventReader::begin_turn(&api, &work, body).await;
    reader.until("started").await;
    let said = api.post(&turns, json!({"message": "me too"})).await.problem(409, "turn_running");
    assert_eq!(said, "the turn 'next' of this session runs; wait for its end, or cancel it");
    let history = format!("{work}/history");
    let nothing = json!({"version": 1, "messages": []});
    api.put(&history, nothing.clone()).await.problem(409, "turn_running");
    api.send(Method::POST, &format!("{turns}/next/cancel"), None).await.good();
    // An import replaces the conversation; a turn in it has run and does not run again.
    let exported = api.get(&history).await.good();
    api.put(&history, nothing).await.good();
    assert_eq!(api.get(&history).await.good()["messages"], json!([]));
    assert_eq!(api.put(&history, exported.clone()).await.good(), exported);
}

/// The names of the tools that the model saw in the last request of a turn, as the demo model lists them.
fn listed(turn: &Value) -> &str {
    turn["text"].as_str().unwrap()
}

#[tokio::test]
async fn apply_now_restarts_the_answer_with_the_new_tools_and_next_turn_does_not() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    for (query, restarts) in [("?apply=now", 1), ("?apply=next_turn", 0), ("", 0)] {
        let work = api.new_session(json!({"toolsets": {"notes": false}})).await;
        // `/slow` ends by itself after two seconds; `/tools` names the tools of the request.
        let body = json!({"id": "t", "message": "/slow 2\n/tools"});
        let mut reader = EventReader::begin_turn(&api, &work, body).await;
        let mut events = reader.until("content").await;
        let path = format!("{work}/toolsets/notes{query}");
        let changed = api.put(&path, json!({"enabled": true})).await.good();
        assert_eq!(changed["tools_revision"], 2);
        events.extend(reader.rest().await);
        let restarted: Vec<_> = events.iter().filter(|event| event.name == "restarted").collect();
        assert_eq!(restarted.len(), restarts, "{query}");
        assert!(restarted.iter().all(|event| event.data["tools_revision"] == 2));
        let turn = api.get(&format!("{work}/turns/t")).await.good();
        assert_eq!(listed(&turn).contains("notes__read"), restarts == 1, "{query}: {turn:#}");
        let body = json!({"message": "/tools"});
        let next = api.post(&format!("{work}/turns"), body).await.good();
        assert!(listed(&next).contains("notes__read"), "{query}: {next:#}");
    }
    let work = api.new_session(json!({})).await;
    let wrong = api.patch(&format!("{work}?apply=soon"), json!({})).await;
    assert!(wrong.problem(400, "bad_request").contains("apply"));
}

#[tokio::test]
async fn a_deleted_session_takes_its_turn_with_it() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let work = api.new_session(json!({"id": "brief"})).await;
    let body = json!({"id": "t", "message": "/call shop__slow {}"});
    let mut reader = EventReader::begin_turn(&api, &work, body).await;
    reader.until("tool_call").await;
    assert_eq!(api.send(Method::DELETE, &work, None).await.status, 204);
    let done = reader.rest().await.pop().unwrap();
    assert_eq!((&*done.name, &done.data["status"]), ("done", &json!("cancelled")));
    until(|| board.shop.stats().running_calls == 0).await;
    api.get(&format!("{work}/turns/t")).await.problem(404, "unknown_session");
    // A new session of the same id has nothing of it.
    let new = api.new_session(json!({"id": "brief"})).await;
    assert_eq!(api.get(&format!("{new}/turns")).await.good(), json!({"turns": []}));
    assert_eq!(api.get(&format!("{new}/history")).await.good()["messages"], json!([]));
}
