//! A20: control characters that would inject headers, and URLs that would read files.

use reqwest::Method;
use serde_json::json;
use switchboard_test_support::{ScriptedServer, Tool};

use crate::client::{Peer, raw, status_of};
use crate::fixture::Fixture;
use crate::support::{Home, server};
use crate::world::home;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

fn encoded(text: &str) -> String {
    format!("=?base64?{}?=", STANDARD.encode(text))
}

#[tokio::test]
async fn a20_arguments_that_become_headers_cannot_bring_headers_of_their_own() {
    let schema = json!({"type": "object", "properties": {"tenant": {"type": "string", "x-mcp-header": "Tenant"}}});
    let upstream =
        ScriptedServer::builder().modern().tools([Tool::new("echo").schema(schema)]).start().await;
    let serve = home(&[("one", &upstream.url())], &[]).serve().await;
    let peer = Peer::of(&serve);
    let session = peer.open().await;
    for (calls, value) in [
        "a\r\nX-Evil: 1",
        "a\nX-Evil: 1",
        "\r\n\r\nGET /evil HTTP/1.1",
        "a\u{0}b",
        "\u{7f}\u{1b}[31m",
        "ü\u{2028}",
        " padded ",
        "\t",
        "=?base64?YQ==?=",
    ]
    .into_iter()
    .enumerate()
    {
        let modern = peer.with("mcp-param-tenant", &encoded(value));
        let answers = [
            modern.call("one__echo", json!({"tenant": value})).await,
            session.call("one__echo", json!({"tenant": value})).await,
        ];
        for answer in answers {
            assert_eq!(answer.result()["structuredContent"]["tenant"], value, "{value:?}");
        }
        let stats = upstream.stats();
        assert_eq!(stats.total_calls(), 2 * (calls + 1));
        let request = stats.last_request("tools/call").unwrap();
        assert_eq!(request.headers["mcp-param-tenant"], encoded(value));
        assert!(!request.headers.contains_key("x-evil"), "{request:?}");
        assert!(stats.requests.iter().all(|request| request.path == "/mcp"));
    }
}

#[tokio::test]
async fn a20_names_with_control_characters_are_harmless_on_both_sides() {
    let names =
        ["ev\r\nX-Evil: 1", "nul\u{0}", "esc\u{1b}[2J", "bidi\u{202e}", "../../etc/passwd", "a b"];
    let upstream = ScriptedServer::builder().modern().tools(names.map(Tool::new)).start().await;
    let serve = home(&[("one", &upstream.url())], &[]).serve().await;
    let peer = Peer::of(&serve);
    let listed = peer.tools().await;
    for name in &listed {
        assert!(
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)),
            "{name:?}"
        );
        assert!(!peer.call(name, json!({})).await.is_refusal(), "{name}");
    }
    let stats = upstream.stats();
    assert_eq!(stats.total_calls(), listed.len());
    assert!(stats.requests.iter().all(|request| !request.headers.contains_key("x-evil")));
    // Asked for under their own names they are simply unknown, and nothing of them becomes a header or a line.
    let session = peer.open().await;
    for name in names {
        let answer = session.call(&format!("one__{name}"), json!({})).await;
        assert!(answer.is_unknown_tool(), "{name:?} {}", answer.body);
        assert!(!answer.headers.contains_key("x-evil"));
    }
    assert_eq!(upstream.stats().total_calls(), listed.len());
    assert!(!serve.stderr().lines().any(|line| line.starts_with("X-Evil")), "{}", serve.stderr());
    assert!(!serve.stderr().contains(['\u{0}', '\u{1b}']), "{}", serve.stderr());
}

#[tokio::test]
async fn a20_strange_session_ids_are_unknown_and_nothing_else() {
    let upstream = server([Tool::new("echo")]).await;
    let serve = home(&[("one", &upstream.url())], &[]).serve().await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    for id in ["x", "' OR 1=1 --", "../../data", "a\tb", "%0d%0aX-Evil:%201", "ü", "*", "null"] {
        let peer = Peer::of(&serve).with("mcp-session-id", id);
        let status = peer.post(list.clone(), &[]).await.status;
        assert!([400, 404].contains(&status), "{id:?} {status}");
        let ended = peer.request(Method::DELETE, &[]).send().await.unwrap().status().as_u16();
        assert!([400, 404].contains(&ended), "{id:?} {ended}");
    }
    for path in ["%0d%0aX-Evil:1", "..%2f..%2fetc", "%00", "%ff", "a%20b", "%E2%80%AE"] {
        for place in ["sessions", "servers", "toolsets"] {
            let peer = Peer::of(&serve).at(serve.at(&format!("/mcp/{place}/{path}")));
            let answer = peer.modern("tools/list", json!({})).await;
            assert!([400, 404].contains(&answer.status), "{place} {path}: {answer:?}");
            assert!(!answer.headers.contains_key("x-evil"), "{answer:?}");
        }
        let peer = Peer::of(&serve).at(serve.at("/api/v1/sessions"));
        let made = peer.post(json!({"id": path}).to_string(), &[]).await;
        assert_eq!(made.status, 422, "{path}: {}", made.body);
    }
    let split =
        "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nMcp-Session-Id: a\rb\r\nConnection: close\r\n\r\n";
    assert_eq!(status_of(&raw(&serve, split.as_bytes()).await), "400");
    let nul = split.replace('\r', "\u{0}").replace("\u{0}\n", "\r\n");
    assert_eq!(status_of(&raw(&serve, nul.as_bytes()).await), "400");
}

#[tokio::test]
async fn a20_no_address_of_a_resource_is_read_by_the_gateway_itself() {
    let addresses = [
        "file:///etc/passwd",
        "file://localhost/etc/passwd",
        "file:///etc/../etc/passwd",
        "/etc/passwd",
        "../../../../etc/passwd",
        "file:///%2e%2e/%2e%2e/etc/passwd",
        "file:etc/passwd",
        "test://template/../../etc/passwd/data",
        "http://127.0.0.1:1/",
        "\r\nX-Evil: 1",
        "",
    ];
    let secret = Home::empty();
    let file = secret.file("secret.txt", "the-secret-of-this-machine");
    let own = format!("file://{}", file.display());
    for era in ["legacy", "modern"] {
        let fixture = Fixture::start(era);
        let other = server([Tool::new("echo")]).await;
        let serve = home(&[("fix", &fixture.url), ("other", &other.url())], &[]).serve().await;
        let peer = Peer::of(&serve);
        let session = peer.open().await;
        for address in addresses.into_iter().chain([own.as_str()]) {
            let named = [
                ("mcp-protocol-version".to_owned(), "2026-07-28".to_owned()),
                ("mcp-method".to_owned(), "resources/read".to_owned()),
                ("mcp-name".to_owned(), encoded(address)),
            ];
            let message = peer.modern_message("resources/read", &json!({"uri": address}));
            let modern = peer.post(message.to_string(), &named);
            let legacy = session.ask("resources/read", json!({"uri": address}));
            for answer in [modern.await, legacy.await] {
                let is_template = address.starts_with("test://template/");
                assert!(answer.is_refusal() || is_template, "{address}: {}", answer.body);
                assert!(
                    !answer.body.contains("root:") && !answer.body.contains("the-secret"),
                    "{}",
                    answer.body
                );
                assert!(!answer.headers.contains_key("x-evil"));
            }
        }
        assert!(
            !session.ask("resources/read", json!({"uri": "test://static-text"})).await.is_refusal()
        );
        // The other server has no resources and was asked for none.
        assert!(other.stats().last_request("resources/read").is_none());
    }
}
