//! Each fault of the whole server, seen by a client.

use std::time::Duration;

use futures::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use switchboard_test_support::{Fault, ScriptedServer, Stage, Tool};

use crate::client::{Client, PATIENCE, events, initialize_params};

const SHORT: Duration = Duration::from_millis(150);

#[tokio::test]
async fn statuses_and_wrong_bodies() {
    let server = ScriptedServer::builder().start().await;
    let client = Client::in_session(&server).await;
    let cases = [
        (Fault::Status(Stage::Any, 401), 401, "www-authenticate", "Bearer realm=\"scripted\""),
        (Fault::Status(Stage::List, 403), 403, "content-type", "application/json"),
        (Fault::Status(Stage::List, 404), 404, "content-type", "application/json"),
        (Fault::Reflect(Stage::List), 401, "content-type", "text/plain; charset=utf-8"),
        (Fault::RateLimited(Stage::List, 7), 429, "retry-after", "7"),
        (Fault::Status(Stage::List, 500), 500, "content-type", "application/json"),
        (Fault::Status(Stage::List, 503), 503, "content-type", "application/json"),
        (Fault::LoginPage(Stage::List), 200, "content-type", "text/html; charset=utf-8"),
        (Fault::NotJson(Stage::List), 200, "content-type", "application/json"),
        (Fault::CloseMidBody(Stage::List), 200, "content-type", "application/json"),
        (Fault::Status(Stage::Call, 500), 200, "content-type", "application/json"),
    ];
    for (fault, status, header, value) in cases {
        let label = format!("{fault:?}");
        let harmless = matches!(fault, Fault::Status(Stage::Call, _));
        server.set_fault(fault).await;
        let response = client.legacy("tools/list", json!({})).send().await.unwrap();
        assert_eq!(response.status(), status, "{label}");
        assert_eq!(response.headers()[header], value, "{label}");
        let list: Value = response.json().await.unwrap_or_default();
        assert_eq!(list["result"]["tools"].is_array(), harmless, "{label}");
    }
    server.set_fault_times(2, Fault::Status(Stage::List, 500)).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(client.legacy("tools/list", json!({})).send().await.unwrap().status().as_u16());
    }
    assert_eq!(seen, [500, 500, 200]);
}

#[tokio::test]
async fn hanging_at_each_stage() {
    let server = ScriptedServer::builder().dual().tools([Tool::echo("t")]).start().await;
    let session = Client::in_session(&server).await;
    for (fault, method) in [
        (Fault::HangAtConnect, "initialize"),
        (Fault::Hang(Stage::Initialize), "initialize"),
        (Fault::Hang(Stage::Discover), "server/discover"),
        (Fault::Hang(Stage::List), "tools/list"),
        (Fault::Hang(Stage::Call), "tools/call"),
        (Fault::DelayInitialize(SHORT * 4), "initialize"),
    ] {
        let label = format!("{fault:?}");
        let mut client = Client::new(&server);
        client.session.clone_from(&session.session);
        let ask = || match method {
            "server/discover" => client.modern(method, json!({})).send(),
            "initialize" => client.legacy(method, initialize_params()).send(),
            _ => client.legacy(method, json!({"name": "t"})).send(),
        };
        server.set_fault(fault).await;
        assert!(tokio::time::timeout(SHORT, ask()).await.is_err(), "{label} hangs");
        server.clear_fault().await;
        let answered = tokio::time::timeout(PATIENCE, ask()).await.expect("it answers again");
        assert_eq!(answered.unwrap().status(), 200, "{label}");
    }
}

#[tokio::test]
async fn refusing_until_the_fault_is_cleared() {
    let server = ScriptedServer::builder().fault(Fault::Refuse).start().await;
    let client = Client::new(&server);
    let initialize = || client.legacy("initialize", initialize_params()).send();
    assert!(initialize().await.unwrap_err().is_connect());
    server.clear_fault().await;
    assert_eq!(initialize().await.unwrap().status(), 200);
    server.set_fault(Fault::Refuse).await;
    assert!(initialize().await.unwrap_err().is_connect());
    server.restart_on_same_port().await;
    assert_eq!(initialize().await.unwrap().status(), 200);
}

#[tokio::test]
async fn lists_that_do_not_end_well() {
    let server = ScriptedServer::builder().tools([Tool::echo("t")]).start().await;
    let client = Client::in_session(&server).await;
    let cases = [
        (Fault::EndlessPages, json!({}), "/result/nextCursor", json!("page-1")),
        (Fault::EndlessPages, json!({"cursor": "page-41"}), "/result/nextCursor", json!("page-42")),
        (Fault::CursorLoop, json!({}), "/result/nextCursor", json!("page-1")),
        (Fault::CursorLoop, json!({"cursor": "page-1"}), "/result/nextCursor", json!("page-1")),
        (Fault::SecondPageFails, json!({}), "/result/tools/0/name", json!("t")),
        (Fault::SecondPageFails, json!({"cursor": "page-1"}), "/error/code", json!(-32603)),
    ];
    for (fault, params, pointer, expected) in cases {
        let label = format!("{fault:?} {params}");
        server.set_fault(fault).await;
        let page = client.ask("tools/list", params).await;
        assert_eq!(page.pointer(pointer), Some(&expected), "{label}");
    }

    server.set_fault(Fault::DeepSchema(10_000)).await;
    let page = client.legacy("tools/list", json!({})).send().await.unwrap().text().await.unwrap();
    assert_eq!(page.matches("\"deeper\"").count(), 10_000);
    assert_eq!(page.matches('{').count(), page.matches('}').count());

    server.set_fault(Fault::HugeList(100_000_000)).await;
    let mut body = client.legacy("tools/list", json!({})).send().await.unwrap().bytes_stream();
    let mut bytes = 0;
    while let Some(chunk) = body.next().await {
        bytes += chunk.unwrap().len();
    }
    assert!(bytes > 100_000_000);
}

#[tokio::test]
async fn sessions_lost_and_lists_changed_too_early() {
    let server = ScriptedServer::builder().dual().start().await;
    let mut client = Client::in_session(&server).await;
    server.set_fault(Fault::DropSession).await;
    let list = client.legacy("tools/list", json!({})).send().await.unwrap();
    assert_eq!(list.status(), 404);
    client = Client::in_session(&server).await;
    assert!(client.ask("tools/list", json!({})).await["result"].is_object());

    server.set_fault(Fault::ListChangedBeforeList).await;
    let stream = client.raw(Method::GET).send().await.unwrap();
    let list = client.legacy("tools/list", json!({})).send().await.unwrap();
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let listen = Client::new(&server).modern("subscriptions/listen", filter).send().await.unwrap();
    for (response, count, position) in [(stream, 1, 0), (list, 2, 0), (listen, 2, 1)] {
        let event = &events(response, count).await[position];
        assert_eq!(event["method"], "notifications/tools/list_changed");
    }
}
