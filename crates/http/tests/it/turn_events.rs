//! The events of a turn over HTTP: the same as its result, and resumed by `Last-Event-ID`.

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::api_server::TwoServers;
use crate::event_reader::{EventReader, names_and_ids};

#[tokio::test]
async fn a_turn_as_json_and_as_events_tells_the_same() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let work = api.new_session(json!({})).await;
    let message = "/think Hm\n/call shop__find {\"n\": 1}";
    let turn = api.post(&format!("{work}/turns"), json!({"id": "one", "message": message})).await;
    let turn = turn.good();
    assert_eq!((&turn["id"], &turn["status"]), (&json!("one"), &json!("completed")), "{turn:#}");
    let path = format!("{work}/turns/one/events");
    let events = EventReader::open(&api, &path, None).await.rest().await;
    let done = events.last().unwrap();
    assert_eq!((&*done.name, &done.data["status"]), ("done", &json!("completed")));
    assert_eq!(turn["events"], events.len());
    assert_eq!(turn["usage"], done.data["usage"]);
    assert_eq!(
        (turn["messages"].as_array().unwrap().len(), &done.data["messages"]),
        (4, &json!(4))
    );
    for (number, event) in (1..).zip(&events) {
        assert_eq!((&event.id, &event.data["type"]), (&format!("{number}"), &json!(event.name)));
    }
    let last = events.iter().rposition(|event| event.name == "started").unwrap();
    let said = events[last..].iter().filter(|event| event.name == "content");
    let said: String = said.map(|event| event.data["delta"].as_str().unwrap()).collect();
    assert_eq!(turn["text"], said);
    assert_eq!(api.get(&format!("{work}/turns/one")).await.good(), turn);
    assert_eq!(api.get(&format!("{work}/turns")).await.good(), json!({"turns": [turn]}));
    let history = api.get(&format!("{work}/history")).await.good();
    assert_eq!(history["messages"], turn["messages"]);
}

#[tokio::test]
async fn a_client_that_reconnects_with_the_last_id_misses_nothing() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let work = api.new_session(json!({})).await;
    let text = "one two three four five six seven eight nine ten eleven twelve";
    let body = json!({"id": "t", "message": format!("/say {text}\n/call shop__slow {{}}")});
    let mut reader = EventReader::begin_turn(&api, &work, body).await;
    let mut all = reader.until("content").await;
    let path = format!("{work}/turns/t/events");
    let mut connections = 0;
    // Disconnects after each event and comes back.
    while all.last().unwrap().name != "done" {
        let at = all.last().unwrap().id.clone();
        let mut again = EventReader::open(&api, &path, Some(&at)).await;
        all.push(again.next().await.unwrap());
        connections += 1;
    }
    assert!(connections > 5, "{all:#?}");
    let whole = EventReader::open(&api, &path, None).await.rest().await;
    assert_eq!(all, whole);
    // An unknown id is ignored: the client gets all events.
    for unknown in ["0", "999999", "nonsense", "-1"] {
        let again = EventReader::open(&api, &path, Some(unknown)).await.rest().await;
        assert_eq!(names_and_ids(&again), names_and_ids(&whole), "after {unknown}");
    }
    let last = whole.len().to_string();
    let rest = EventReader::open(&api, &path, Some(&last)).await.rest().await;
    assert_eq!(rest, [], "nothing follows the last event");
}

#[tokio::test]
async fn the_turn_goes_on_when_its_client_disconnects() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let work = api.new_session(json!({})).await;
    let body = json!({"id": "t", "message": "/call shop__slow {\"n\": 1}"});
    let mut reader = EventReader::begin_turn(&api, &work, body).await;
    reader.until("tool_call").await;
    drop(reader);
    let path = format!("{work}/turns/t/events");
    let events = EventReader::open(&api, &path, None).await.rest().await;
    assert_eq!(events.last().unwrap().data["status"], "completed");
    assert_eq!(board.shop.stats().finished_calls, 1);
}
