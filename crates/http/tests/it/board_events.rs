//! The event stream of the board: what each caller gets, resumed by `Last-Event-ID`.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::{Value, json};
use switchboard_auth::Role;
use switchboard_test_support::Tool;

use crate::api_server::{Api, ApiServer, TwoServers, scripted, yaml};
use crate::event_reader::{Event, EventReader};

async fn open(api: &Api, query: &str) -> EventReader {
    let mut events = EventReader::open(api, &format!("/api/v1/events{query}"), None).await;
    let hello = events.next().await.unwrap();
    assert_eq!((&*hello.name, &hello.data["type"]), ("hello", &json!("hello")));
    events
}

/// The first event for which this holds; those before it are skipped.
async fn until(events: &mut EventReader, holds: impl Fn(&Event) -> bool) -> Event {
    loop {
        let event = events.next().await.unwrap();
        assert_eq!(event.data["type"], event.name);
        if holds(&event) {
            return event;
        }
    }
}

fn is(event: &Event, name: &str, member: &str, value: &str) -> bool {
    event.name == name && event.data[member] == value
}

#[tokio::test]
async fn calls_sessions_and_turns_are_told_from_beginning_to_end() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let mut events = open(&api, "").await;
    let called = api.post("/api/v1/tools/shop.find/call", json!({})).await.good();
    let started = until(&mut events, |event| event.name == "call_started").await.data;
    assert_eq!(
        (&started["id"], &started["tool"], &started["face"]),
        (&called["id"], &json!("shop.find"), &json!("http"))
    );
    let ended = until(&mut events, |event| event.name == "call_ended").await.data;
    let mut record =
        api.get(&format!("/api/v1/calls/{}", called["id"].as_str().unwrap())).await.good();
    record["type"] = json!("call_ended");
    assert_eq!(ended, record, "the event is the record");

    let work = api.new_session(json!({"id": "work"})).await;
    let made = until(&mut events, |event| event.name == "session").await.data;
    assert_eq!((&made["id"], &made["change"]), (&json!("work"), &json!("created")));
    api.put(&format!("{work}/toolsets/buy"), json!({"enabled": false})).await.good();
    let changed = until(&mut events, |event| is(event, "session", "change", "changed")).await.data;
    assert_eq!(changed["tools_revision"], 2);
    api.post(&format!("{work}/turns"), json!({"id": "t", "message": "/say hello"})).await.good();
    for status in ["running", "completed"] {
        let turn = until(&mut events, |event| event.name == "turn").await.data;
        assert_eq!(turn, json!({"type": "turn", "session": "work", "id": "t", "status": status}));
    }
    assert_eq!(api.send(Method::DELETE, &work, None).await.status, 204);
    until(&mut events, |event| is(event, "session", "change", "ended")).await;
}

#[tokio::test]
async fn changes_of_servers_tools_and_the_configuration_are_told() {
    let shop = scripted([Tool::echo("find"), Tool::echo("order")]).await;
    let server = ApiServer::start(&yaml(&[], &[("shop", &shop)])).await;
    let api = server.api();
    let mut events = open(&api, "?topics=catalog,server,config").await;
    let changed = Tool::echo("order").description("Orders");
    shop.set_tools_and_notify([Tool::echo("price"), changed]).await;
    let catalog = until(&mut events, |event| event.name == "catalog").await.data;
    assert_eq!(
        (&catalog["added"], &catalog["removed"], &catalog["changed"]),
        (&json!(["shop.price"]), &json!(["shop.find"]), &json!(["shop.order"]))
    );
    shop.stop().await;
    api.post("/api/v1/tools/shop.order/call", json!({})).await.problem(503, "unavailable");
    let lost = until(&mut events, |event| is(event, "server", "state", "unavailable")).await.data;
    assert_eq!(lost["name"], "shop");
    assert!(lost["error"].is_string() && lost["since_ms"].as_i64().unwrap() > 0, "{lost:#}");
    shop.restart_on_same_port().await;
    until(&mut events, |event| is(event, "server", "state", "ready")).await;
    server.reload("switchboard: {toolbox: {mcps: 7}}").await;
    let refused = until(&mut events, |event| event.name == "config").await.data;
    assert_eq!((&refused["outcome"], &refused["revision"]), (&json!("refused"), &json!(1)));
    assert!(refused["error"].is_string(), "{refused:#}");
    server.reload(&yaml(&["{name: sum_numbers}"], &[])).await;
    // In any order: the server goes while the configuration is applied.
    let is_removed = |event: &Event| is(event, "server", "state", "removed");
    let is_applied = |event: &Event| is(event, "config", "outcome", "applied");
    let first = until(&mut events, |event| is_removed(event) || is_applied(event)).await;
    let was_removed = is_removed(&first);
    until(&mut events, |event| if was_removed { is_applied(event) } else { is_removed(event) })
        .await;
}

#[tokio::test]
async fn a_client_that_comes_back_gets_what_it_missed_or_a_reset() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let mut events = open(&api, "?topics=session").await;
    for id in ["one", "two", "three"] {
        api.new_session(json!({ "id": id })).await;
    }
    let one = until(&mut events, |event| event.data["id"] == "one").await;
    let three = until(&mut events, |event| event.data["id"] == "three").await;
    assert!(one.id.parse::<u64>().unwrap() < three.id.parse::<u64>().unwrap());
    let after = async |last: &str| {
        let path = "/api/v1/events?topics=session&follow=false";
        let events = EventReader::open(&api, path, Some(last)).await.rest().await;
        let shown = events.iter().map(|event| match event.data["id"].as_str() {
            Some(id) => id.to_owned(),
            None => event.name.clone(),
        });
        shown.collect::<Vec<_>>()
    };
    assert_eq!(after(&one.id).await, ["hello", "two", "three"]);
    assert_eq!(after(&three.id).await, ["hello"]);
    for unknown in ["0", "7", "18446744073709551615", "-1", "nonsense"] {
        assert_eq!(after(unknown).await, ["reset"], "{unknown}");
    }
    let said = api.get("/api/v1/events?topics=nothing").await.problem(400, "bad_request");
    assert!(said.contains("`server_log`"), "{said}");
}

#[tokio::test]
async fn a_caller_gets_no_event_of_what_it_may_not_see() {
    let shop = scripted([Tool::echo("find")]).await;
    let vault = scripted([Tool::echo("open")]).await;
    let configured = yaml(&[], &[("shop", &shop), ("vault", &vault)]);
    let server = ApiServer::start(&configured).await;
    let admin = server.api_of("admin", Role::Admin).await;
    let access = json!({"name": "bot", "access": {"toolsets": ["shop"]}});
    let made = admin.post("/api/v1/keys", access).await.good();
    let bot = server.api().with_key(made["key"].as_str().unwrap());
    let (mut all, mut own) = (open(&admin, "").await, open(&bot, "").await);

    admin.new_session(json!({"id": "secret"})).await;
    admin.post("/api/v1/tools/vault.open/call", json!({})).await.good();
    admin.post("/api/v1/tools/shop.find/call", json!({})).await.good();
    vault.set_tools_and_notify([Tool::echo("open"), Tool::echo("close")]).await;
    until(&mut all, |event| event.name == "catalog").await;
    shop.set_tools_and_notify([Tool::echo("find"), Tool::echo("price")]).await;
    until(&mut all, |event| event.name == "catalog").await;
    vault.stop().await;
    admin.post("/api/v1/tools/vault.open/call", json!({})).await.problem(503, "unavailable");
    until(&mut all, |event| is(event, "server", "state", "unavailable")).await;
    server.reload("switchboard: {toolbox: {mcps: 7}}").await;
    until(&mut all, |event| event.name == "config").await;
    bot.new_session(json!({"id": "work"})).await;
    bot.post("/api/v1/tools/shop.find/call", json!({})).await.good();

    let mut seen = Vec::new();
    loop {
        let event = own.next().await.unwrap();
        let is_last = event.name == "call_ended";
        seen.push(event);
        if is_last {
            break;
        }
    }
    let text = serde_json::to_string(&seen.iter().map(|event| &event.data).collect::<Vec<_>>());
    let text = text.unwrap();
    assert!(!text.contains("vault") && !text.contains("secret"), "{text}");
    let names: Vec<_> =
        seen.iter().map(|event| &*event.name).filter(|it| *it != "server").collect();
    assert_eq!(names, ["catalog", "catalog", "session", "call_started", "call_ended"], "{text}");
    let added: Vec<Value> =
        seen.iter().filter(|it| it.name == "catalog").map(|it| it.data["added"].clone()).collect();
    assert_eq!(added, [json!([]), json!(["shop.price"])]);
}

#[tokio::test]
async fn a_stream_ends_when_its_key_gets_another_role() {
    let server = ApiServer::start(&yaml(&["{name: sum_numbers}"], &[])).await;
    let admin = server.api_of("admin", Role::Admin).await;
    let operator = server.api_of("operator", Role::Operator).await;
    let mut events = open(&operator, "").await;
    admin.patch("/api/v1/keys/operator", json!({"role": "client"})).await.good();
    assert_eq!(events.rest().await, []);
}
