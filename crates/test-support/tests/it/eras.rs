//! Both eras, the old transport, notifications, and restarts.

use reqwest::Method;
use serde_json::{Value, json};
use switchboard_test_support::{
    ScriptedServer, TempConfig, Tool, demo_catalogue, free_port, wait_until,
};

use crate::client::{Client, PATIENCE, events, initialize_params, request};

const LIST_CHANGED: &str = "notifications/tools/list_changed";

#[tokio::test]
async fn a_legacy_session_from_open_to_delete() {
    let server = ScriptedServer::builder().tools([Tool::echo("get_customer")]).start().await;
    let stranger = Client::new(&server);
    let discover = stranger.modern("server/discover", json!({})).send().await.unwrap();
    assert_eq!(discover.status(), 400);

    let client = Client::in_session(&server).await;
    let list = client.ask("tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"][0]["name"], "get_customer");
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
    assert_eq!(client.ask("no/such", json!({})).await["error"]["code"], -32601);
    assert_eq!(client.call("no_such", json!({})).await["error"]["code"], -32602);
    assert_eq!(client.raw(Method::DELETE).send().await.unwrap().status(), 200);
    assert_eq!(client.legacy("tools/list", json!({})).send().await.unwrap().status(), 404);

    let stats = server.stats();
    assert_eq!((stats.initialize_count, stats.list_count, stats.delete_count), (1, 1, 1));
    assert_eq!(stats.client_protocol_version.as_deref(), Some("2025-06-18"));
    assert_eq!(stats.last_header("tools/list", "Mcp-Session-Id"), Some("session-1"));
}

#[tokio::test]
async fn the_modern_rules_are_checked() {
    let schema = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let tools = [Tool::echo("t"), Tool::echo("mirrored").schema(schema)];
    let server =
        ScriptedServer::builder().modern().tools(tools).cache(5000, "public").start().await;
    let client = Client::new(&server);
    let meta = |version: &str| {
        json!({"_meta": {"io.modelcontextprotocol/protocolVersion": version,
                         "io.modelcontextprotocol/clientCapabilities": {}}})
    };
    let call = |arguments: Value| {
        client.modern("tools/call", json!({"name": "mirrored", "arguments": arguments}))
    };
    let version = |builder: reqwest::RequestBuilder, version: &str| {
        builder.header("mcp-protocol-version", version)
    };
    let cases = [
        ("discover", client.modern("server/discover", json!({})), 200, Value::Null),
        ("initialize", client.modern("initialize", json!({})), 404, json!(-32601)),
        (
            "no meta",
            version(client.legacy("tools/list", json!({})), "2026-07-28"),
            400,
            json!(-32602),
        ),
        ("no headers", client.legacy("tools/list", meta("2026-07-28")), 400, json!(-32020)),
        (
            "no method header",
            version(client.legacy("tools/list", meta("2026-07-28")), "2026-07-28"),
            400,
            json!(-32020),
        ),
        (
            "old version",
            version(client.legacy("tools/list", meta("2027-01-01")), "2027-01-01"),
            400,
            json!(-32022),
        ),
        ("unknown tool", client.modern("tools/call", json!({"name": "none"})), 200, json!(-32602)),
        ("argument not mirrored", call(json!({"region": "eu"})), 400, json!(-32020)),
        (
            "argument mirrored",
            call(json!({"region": "eu"})).header("mcp-param-region", "eu"),
            200,
            Value::Null,
        ),
        ("GET", client.raw(Method::GET), 405, Value::Null),
    ];
    for (label, request, status, code) in cases {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status, "{label}");
        let body: Value = response.json().await.unwrap_or_default();
        assert_eq!(body["error"]["code"], code, "{label}");
    }
    let list = client.modern("tools/list", json!({})).send().await.unwrap();
    let list: Value = list.json().await.unwrap();
    let result = &list["result"];
    assert_eq!(
        (&result["resultType"], &result["ttlMs"], &result["cacheScope"]),
        (&json!("complete"), &json!(5000), &json!("public"))
    );
}

#[tokio::test]
async fn notifications_reach_streams_of_both_eras() {
    let server = ScriptedServer::builder().dual().start().await;
    assert_eq!(server.notify_list_changed(1).await, 0, "nobody listens yet");
    let legacy = Client::in_session(&server).await.raw(Method::GET).send().await.unwrap();
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let modern = Client::new(&server).modern("subscriptions/listen", filter).send().await.unwrap();
    assert_eq!(server.open_streams(), 2);
    let storm = async { assert_eq!(server.notify_list_changed(3000).await, 6000) };
    let (legacy, modern, ()) = tokio::join!(events(legacy, 3000), events(modern, 3001), storm);
    assert!(legacy.iter().all(|event| event["method"] == LIST_CHANGED));
    assert_eq!(modern[0]["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(modern[3000]["method"], LIST_CHANGED);
    assert_eq!(modern[3000]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    wait_until(PATIENCE, async || (server.open_streams() == 0).then_some(())).await;
}

#[tokio::test]
async fn a_listen_stream_ends_in_good_order() {
    let server = ScriptedServer::builder().modern().start().await;
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let listen = Client::new(&server).modern("subscriptions/listen", filter).send().await.unwrap();
    server.set_tools_and_notify([Tool::echo("new")]).await;
    server.end_streams().await;
    let events = events(listen, usize::MAX).await;
    assert_eq!(events.len(), 3);
    assert_eq!(events[2]["result"]["resultType"], "complete");
}

#[tokio::test]
async fn the_old_transport_answers_on_its_stream() {
    let server = ScriptedServer::builder().sse_transport().tools([Tool::echo("t")]).start().await;
    let client = Client::new(&server);
    assert_eq!(
        client.legacy("initialize", initialize_params()).send().await.unwrap().status(),
        405
    );
    let stream = client.raw(Method::GET).send().await.unwrap();
    for message in [
        request("initialize", initialize_params()),
        request("tools/list", json!({})),
        request("tools/call", json!({"name": "t", "arguments": {"x": 1}})),
    ] {
        let response =
            client.post_to("/messages?session=session-1", &message).send().await.unwrap();
        assert_eq!(response.status(), 202);
    }
    let text = tokio::join!(read_text(stream), stop_when_called(&server)).0;
    assert!(text.starts_with("event: endpoint\ndata: /messages?session=session-1\n\n"), "{text}");
    for expected in ["\"protocolVersion\":\"2025-06-18\"", "\"name\":\"t\"", "\"x\":1"] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}

async fn read_text(response: reqwest::Response) -> String {
    use futures::StreamExt as _;
    let chunks: Vec<_> = response.bytes_stream().collect().await;
    chunks.into_iter().flatten().map(|chunk| String::from_utf8_lossy(&chunk).into_owned()).collect()
}

async fn stop_when_called(server: &ScriptedServer) {
    let finished = async || (server.stats().finished_calls == 1).then_some(());
    wait_until(PATIENCE, finished).await;
    server.end_streams().await;
}

#[tokio::test]
async fn it_dies_and_comes_back_without_its_sessions() {
    let server = ScriptedServer::builder().tools([Tool::echo("t")]).start().await;
    let client = Client::in_session(&server).await;
    let list = || client.legacy("tools/list", json!({})).send();
    server.stop().await;
    // Refused or reset, depending on how fast the system closes connections.
    assert!(list().await.is_err());
    server.restart_on_same_port().await;
    assert_eq!(list().await.unwrap().status(), 404);
    Client::in_session(&server).await;
    assert_eq!((server.stats().initialize_count, server.open_sessions()), (2, 1));
}

#[tokio::test]
async fn pages_sessions_tokens_and_event_answers_as_asked() {
    let server =
        ScriptedServer::builder().tools(demo_catalogue(25)).tools_per_page(10).start().await;
    let client = Client::in_session(&server).await;
    let (mut names, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
        let page = client.ask("tools/list", params).await;
        names.extend(page["result"]["tools"].as_array().unwrap().clone());
        cursor = page["result"]["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((names.len(), server.stats().list_count, server.stats().page_count), (25, 1, 3));

    let server =
        ScriptedServer::builder().pages(2).tools_per_page(7).without_sessions().start().await;
    let client = Client::in_session(&server).await;
    assert_eq!(client.session, None);
    let page = client.ask("tools/list", json!({"cursor": "page-1"})).await;
    assert_eq!(page["result"]["tools"][6]["name"], "tool_0000013");
    assert_eq!(page["result"]["nextCursor"], Value::Null);

    let server = ScriptedServer::builder().requires_bearer("k").answers_as_events().start().await;
    let initialize = || Client::new(&server).legacy("initialize", initialize_params());
    let refused = initialize().send().await.unwrap();
    assert_eq!(refused.status(), 401);
    assert!(refused.headers().contains_key("www-authenticate"));
    let welcome = initialize().bearer_auth("k").send().await.unwrap();
    assert_eq!(events(welcome, 1).await[0]["result"]["serverInfo"]["name"], "scripted");
}

#[tokio::test]
async fn the_small_helpers() {
    assert_ne!(free_port(), 0);
    let config = TempConfig::new("a: 1\n");
    config.rewrite("a: 2\n");
    assert_eq!(std::fs::read_to_string(config.path()).unwrap(), "a: 2\n");
    let mut count = 0;
    let third = wait_until(PATIENCE, async || {
        count += 1;
        (count == 3).then_some(count)
    });
    assert_eq!(third.await, 3);
}
