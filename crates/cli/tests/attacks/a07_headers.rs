//! A7: headers that contradict the body are refused before routing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use switchboard_test_support::{ScriptedServer, Tool};

use crate::client::{Peer, raw, status_of};
use crate::support::Serve;
use crate::world::home;

const HEADER_MISMATCH: i64 = -32020;

async fn world() -> (ScriptedServer, Serve) {
    let schema = json!({"type": "object", "properties": {
        "tenant": {"type": "string", "x-mcp-header": "Tenant"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
    }});
    let tools = [Tool::new("echo").schema(schema), Tool::new("other")];
    let upstream = ScriptedServer::builder().modern().tools(tools).start().await;
    let serve = home(&[("one", &upstream.url())], &[]).serve().await;
    (upstream, serve)
}

fn encoded(text: &str) -> String {
    format!("=?base64?{}?=", STANDARD.encode(text))
}

/// Sends the call of `one__echo` under these headers.
async fn send(peer: &Peer, headers: &[(&str, String)], arguments: &Value) -> (u16, i64) {
    let message =
        peer.modern_message("tools/call", &json!({"name": "one__echo", "arguments": arguments}));
    let headers: Vec<_> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let answer = peer.post(message.to_string(), &headers).await;
    (answer.status, answer.code())
}

#[tokio::test]
async fn a7_headers_that_differ_from_the_body_are_refused_before_the_server_sees_anything() {
    let (upstream, serve) = world().await;
    let peer = Peer::of(&serve);
    let version = ("mcp-protocol-version", "2026-07-28".to_owned());
    let method = ("mcp-method", "tools/call".to_owned());
    let name = ("mcp-name", "one__echo".to_owned());
    let text = |name: &'static str, value: &str| (name, value.to_owned());
    let all = [version.clone(), method.clone(), name.clone()];
    let cases: Vec<Vec<(&str, String)>> = vec![
        vec![method.clone(), name.clone()],
        vec![version.clone(), name.clone()],
        vec![version.clone(), method.clone()],
        vec![version.clone(), method.clone(), text("mcp-name", "one__other")],
        vec![version.clone(), method.clone(), text("mcp-name", "ONE__ECHO")],
        vec![version.clone(), method.clone(), text("mcp-name", "one__echo,one__other")],
        vec![version.clone(), method.clone(), text("mcp-name", "")],
        vec![version.clone(), method.clone(), ("mcp-name", encoded("one__other"))],
        vec![version.clone(), method.clone(), ("mcp-name", encoded("one__echo").to_uppercase())],
        vec![version.clone(), method.clone(), text("mcp-name", "=?base64?!!?=")],
        vec![version.clone(), method.clone(), text("mcp-name", "=?base64?/w==?=")],
        vec![version.clone(), method.clone(), ("mcp-name", encoded(&encoded("one__echo")))],
        vec![version.clone(), method.clone(), name.clone(), name.clone()],
        vec![version.clone(), method.clone(), name.clone(), text("mcp-name", "one__other")],
        vec![version.clone(), text("mcp-method", "tools/list"), name.clone()],
        vec![version.clone(), text("mcp-method", "Tools/Call"), name.clone()],
        vec![version.clone(), method.clone(), method.clone(), name.clone()],
        vec![version.clone(), version.clone(), method.clone(), name.clone()],
        vec![text("mcp-protocol-version", "2025-11-25"), method.clone(), name.clone()],
        vec![text("mcp-protocol-version", "2026-07-28, 2026-07-28"), method.clone(), name.clone()],
    ];
    // Without an argument that has a header of its own, so that nothing else is wrong.
    for headers in &cases {
        let (status, code) = send(&peer, headers, &json!({})).await;
        assert_eq!((status, code), (400, HEADER_MISMATCH), "{headers:?}");
    }
    let cases: Vec<Vec<(&str, String)>> = vec![
        [all.to_vec(), vec![text("mcp-param-tenant", "other")]].concat(),
        [all.to_vec(), vec![text("mcp-param-tenant", "ACME")]].concat(),
        [all.to_vec(), vec![("mcp-param-tenant", encoded("other"))]].concat(),
        [all.to_vec(), vec![text("mcp-param-tenant", "acme"), text("mcp-param-tenant", "acme")]]
            .concat(),
        [all.to_vec(), vec![text("mcp-param-tenant", "acme"), text("mcp-param-count", "1")]]
            .concat(),
        all.to_vec(),
    ];
    for headers in &cases {
        let (status, code) = send(&peer, headers, &json!({"tenant": "acme"})).await;
        assert_eq!((status, code), (400, HEADER_MISMATCH), "{headers:?}");
    }
    assert_eq!(upstream.stats().total_calls(), 0, "{:?}", upstream.stats().calls);
    // What is only written in another way is the same.
    let tenant = text("mcp-param-tenant", "acme");
    for headers in [
        [all.to_vec(), vec![tenant.clone()]].concat(),
        [all.to_vec(), vec![("mcp-param-tenant", encoded("acme"))]].concat(),
        vec![version.clone(), method.clone(), ("mcp-name", encoded("one__echo")), tenant.clone()],
    ] {
        let (status, code) = send(&peer, &headers, &json!({"tenant": "acme"})).await;
        assert_eq!((status, code), (200, 0), "{headers:?}");
    }
    assert_eq!(upstream.stats().total_calls(), 3);
    let seen = upstream.stats();
    assert_eq!(seen.last_header("tools/call", "mcp-param-tenant"), Some("acme"));
    assert_eq!(seen.last_header("tools/call", "mcp-name"), Some("echo"), "the server's own name");
}

#[tokio::test]
async fn a7_the_case_of_a_header_name_does_not_matter_and_duplicates_in_other_case_count() {
    let (upstream, serve) = world().await;
    let body = Peer::of(&serve)
        .modern_message("tools/call", &json!({"name": "one__other", "arguments": {}}))
        .to_string();
    let ask = async |headers: &str| {
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nConnection: close\r\n\
             Content-Length: {}\r\n{headers}\r\n{body}",
            body.len()
        );
        status_of(&raw(&serve, request.as_bytes()).await).to_owned()
    };
    let good =
        "mCP-pROTOCOL-vERSION: 2026-07-28\r\nMCP-METHOD: tools/call\r\nmcp-Name: one__other\r\n";
    assert_eq!(ask(good).await, "200");
    assert_eq!(ask(&format!("{good}MCP-NAME: one__other\r\n")).await, "400");
    assert_eq!(ask(&good.replace("mcp-Name", "mcp_name")).await, "400");
    assert_eq!(ask(&good.replace("mcp-Name:", "mcp-Name :")).await, "400");
    assert_eq!(ask(&good.replace("one__other", "one__\r\n other")).await, "400", "a folded line");
    assert_eq!(upstream.stats().total_calls(), 1);
}

#[tokio::test]
async fn a7_other_methods_are_held_to_their_headers_too() {
    let (upstream, serve) = world().await;
    let peer = Peer::of(&serve);
    for (method, params) in [
        ("tools/list", json!({})),
        ("resources/read", json!({"uri": "file:///etc/passwd"})),
        ("prompts/get", json!({"name": "x"})),
        ("server/discover", json!({})),
        ("subscriptions/listen", json!({"notifications": {}})),
    ] {
        let message = peer.modern_message(method, &params).to_string();
        let good = Peer::modern_headers(method, &params);
        for (at, _) in good.iter().enumerate() {
            let mut wrong = good.clone();
            wrong[at].1.push('x');
            let answer = peer.post(message.clone(), &wrong).await;
            assert_eq!((answer.status, answer.code()), (400, HEADER_MISMATCH), "{wrong:?}");
            let mut missing = good.clone();
            missing.remove(at);
            let answer = peer.post(message.clone(), &missing).await;
            assert_eq!((answer.status, answer.code()), (400, HEADER_MISMATCH), "{missing:?}");
        }
    }
    assert_eq!(upstream.stats().total_calls(), 0);
}
