//! Well-behaved HTTP servers of every kind: the right era, the whole list, credentials on every request.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use switchboard_mcp_client::{ConnectOptions, Connection};
use switchboard_model::Era::{Legacy, Modern};
use switchboard_model::ServerSpec;
use switchboard_test_support::{ScriptedServer, ScriptedServerBuilder, Tool, wait_until};

use crate::support::{
    PATIENCE, assert_rows, call, failure, http, in_era, names, open, sse, text, with_credentials,
};

fn server() -> ScriptedServerBuilder {
    ScriptedServer::builder().tools([Tool::echo("echo"), Tool::echo("other")])
}

#[tokio::test]
async fn every_kind_of_server_is_listed_and_called_in_its_own_era() {
    for (case, server, era, protocol) in [
        ("legacy", server().legacy(), Legacy, "2025-11-25"),
        ("legacy, events", server().legacy().answers_as_events(), Legacy, "2025-11-25"),
        ("legacy, no sessions", server().legacy().without_sessions(), Legacy, "2025-11-25"),
        ("modern", server().modern(), Modern, "2026-07-28"),
        ("modern, events", server().modern().answers_as_events(), Modern, "2026-07-28"),
        ("dual", server().dual(), Modern, "2026-07-28"),
        ("dual, events", server().dual().answers_as_events(), Modern, "2026-07-28"),
        ("HTTP+SSE", server().sse_transport(), Legacy, "2025-11-25"),
    ] {
        let server = server.start().await;
        let spec = if case == "HTTP+SSE" { sse(&server.url()) } else { http(&server.url()) };
        let (connection, list) = open(&spec).await.expect(case);
        assert_eq!((connection.era(), connection.learned_era()), (era, Some(era)), "{case}");
        assert_eq!(connection.info().name.as_deref(), Some("scripted"), "{case}");
        assert_eq!(connection.info().version.as_deref(), Some("1.0.0"), "{case}");
        assert_eq!(connection.info().protocol, protocol, "{case}");
        assert_eq!(names(&list), ["echo", "other"], "{case}");
        let result = call(&connection, "echo", json!({"n": 1})).await.expect(case);
        assert_eq!(text(&result), r#"{"n":1}"#, "{case}");
        assert_eq!(result.structured, Some(json!({"n": 1})), "{case}");
        connection.close().await;
        assert!(connection.is_closed());
        wait_until(PATIENCE, async || (server.open_streams() == 0).then_some(())).await;
    }
}

#[tokio::test]
async fn credentials_are_on_every_request_even_the_first() {
    let legacy = ["DELETE", "GET", "initialize", "notifications/initialized", "server/discover"];
    let modern = ["server/discover", "subscriptions/listen"];
    let old = ["GET", "initialize", "notifications/initialized"];
    for (case, server, expected) in [
        ("legacy", server().legacy(), legacy.as_slice()),
        ("modern", server().modern(), &modern),
        ("HTTP+SSE", server().sse_transport(), &old),
    ] {
        let server = server.requires_bearer("s3cret-token").start().await;
        let spec = if case == "HTTP+SSE" { sse(&server.url()) } else { http(&server.url()) };
        let (connection, _) = open(&with_credentials(spec)).await.expect(case);
        call(&connection, "echo", json!({})).await.expect(case);
        wait_until(PATIENCE, async || (server.open_streams() == 1).then_some(())).await;
        connection.close().await;
        let mut seen = BTreeSet::new();
        for request in server.stats().requests {
            let header = |name: &str| request.headers.get(name).map(String::as_str);
            assert_eq!(header("authorization"), Some("Bearer s3cret-token"), "{case}: {request:?}");
            assert_eq!(header("x-key"), Some("s3cret-header"), "{case}: {request:?}");
            assert!(header("user-agent").unwrap().starts_with("switchboard/"));
            seen.insert(request.method.unwrap_or(request.http_method));
        }
        let expected = expected.iter().chain(&["tools/call", "tools/list"]);
        assert_eq!(seen, expected.map(|name| (*name).to_owned()).collect(), "{case}");
    }
}

#[tokio::test]
async fn a_wrong_memory_of_the_era_is_healed_by_asking_again() {
    for (server, wrong, right) in
        [(server().legacy(), Modern, Legacy), (server().modern(), Legacy, Modern)]
    {
        let server = server.start().await;
        let options = ConnectOptions { known_era: Some(wrong), ..ConnectOptions::default() };
        let (connection, list) = Connection::open(&http(&server.url()), &options).await.unwrap();
        assert_eq!((connection.era(), connection.learned_era()), (right, Some(right)));
        assert_eq!(names(&list), ["echo", "other"]);
    }
}

#[tokio::test]
async fn a_known_era_saves_the_question() {
    let server = server().dual().start().await;
    let options = ConnectOptions { known_era: Some(Legacy), ..ConnectOptions::default() };
    let (connection, _) = Connection::open(&http(&server.url()), &options).await.unwrap();
    let stats = server.stats();
    assert_eq!((connection.era(), stats.discover_count, stats.initialize_count), (Legacy, 0, 1));
}

#[tokio::test]
async fn a_fixed_era_is_kept_and_never_remembered() {
    let dual = server().dual().start().await;
    for (era, asked) in [(Legacy, 0), (Modern, 1)] {
        let (connection, _) = open(&in_era(http(&dual.url()), era)).await.unwrap();
        assert_eq!((connection.era(), connection.learned_era()), (era, None));
        assert_eq!(dual.stats().discover_count, asked);
    }
    let (legacy, modern) = (server().legacy().start().await, server().modern().start().await);
    let refused = "protocol: the server refused the handshake";
    let hint = "the configuration sets `era`; without it Switchboard finds out the era";
    let opened = |spec: ServerSpec| async move { failure(open(&spec).await) };
    assert_rows(vec![
        (
            "modern at a legacy server".into(),
            opened(in_era(http(&legacy.url()), Modern)).await,
            format!(
                "protocol: the server refused: Bad Request: Server not initialized \
                 (HTTP 400 Bad Request) -> {hint}"
            ),
        ),
        (
            "legacy at a modern server".into(),
            opened(in_era(http(&modern.url()), Legacy)).await,
            format!("{refused}: _meta lacks the protocol version -> {hint}"),
        ),
    ]);
}

#[tokio::test]
async fn all_pages_are_read_and_the_shortest_freshness_counts() {
    for server in [server().legacy(), server().modern().cache(700, "private")] {
        let server = server.tools((0..5).map(|n| Tool::new(format!("t{n}")))).tools_per_page(2);
        let server = server.start().await;
        let (connection, list) = open(&http(&server.url())).await.unwrap();
        assert_eq!(names(&list), ["echo", "other", "t0", "t1", "t2", "t3", "t4"]);
        let ttl = (connection.era() == Modern).then_some(Duration::from_millis(700));
        assert_eq!((list.ttl, server.stats().page_count), (ttl, 4));
    }
}

#[tokio::test]
async fn a_list_is_read_anew_each_time_however_fresh_the_server_calls_it() {
    let server = server().modern().cache(86_400_000, "public").start().await;
    let (connection, _) = open(&http(&server.url())).await.unwrap();
    server.set_tools([Tool::echo("new")]);
    assert_eq!(names(&connection.list_tools().await.unwrap()), ["new"]);
}
