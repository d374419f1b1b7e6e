//! Requests for other hosts and from pages of other sites are refused on every path.

use serde_json::{Value, json};
use switchboard_test_support::Tool;

use crate::api_server::{ApiServer, scripted, yaml};

#[tokio::test]
async fn requests_of_other_hosts_and_pages_are_refused_and_reach_nothing() {
    let one = scripted([Tool::echo("echo")]).await;
    let server = ApiServer::start(&yaml(&[], &[("one", &one)])).await;
    let port = server.address.port();
    let call = "POST /api/v1/tools/one.echo/call HTTP/1.1\r\nContent-Type: application/json\r\n\
                Content-Length: 2\r\nConnection: close\r\n";
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nConnection: close\r\n");
    for host in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "localhost.evil:80"] {
        for head in
            [get("/"), get("/healthz"), get("/metrics"), get("/api/v1/tools"), call.to_owned()]
        {
            let (status, body) = server.send_raw(&format!("{head}Host: {host}\r\n\r\n{{}}")).await;
            assert_eq!(status, 403, "{host} {head}");
            assert!(body.contains("the Host header does not name this machine"), "{body}");
        }
    }
    for origin in
        ["http://evil.example", "null", "http://127.0.0.1:1", "file://", "https://localhost"]
    {
        let head = format!("{call}Host: 127.0.0.1:{port}\r\nOrigin: {origin}\r\n\r\n{{}}");
        let (status, body) = server.send_raw(&head).await;
        assert_eq!(status, 403, "{origin}");
        assert!(body.contains("the Origin header names another site"), "{body}");
    }
    assert_eq!(one.stats().total_calls(), 0, "nothing got through");
    for host in ["127.0.0.1", "localhost", "[::1]", "LOCALHOST"] {
        let own = format!("{call}Host: {host}:{port}\r\nOrigin: http://{host}:{port}\r\n\r\n{{}}");
        assert_eq!(server.send_raw(&own).await.0, 200, "{host}");
    }
    assert_eq!(one.stats().total_calls(), 4);
    let page = format!("{}Host: localhost:{port}\r\n\r\n", get("/"));
    let (status, page) = server.send_raw(&page).await;
    assert!(status == 200 && page.contains("<title>Switchboard</title>"), "{page}");
}

#[tokio::test]
async fn a_refused_host_is_a_problem_document() {
    let server = ApiServer::start(&yaml(&[], &[])).await;
    let head = "GET /api/v1/tools HTTP/1.1\r\nConnection: close\r\nHost: evil.example\r\n\r\n";
    let (status, body) = server.send_raw(head).await;
    let problem: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &problem["status"]), (403, &json!(403)));
    assert_eq!(problem["type"], "urn:switchboard:problem:forbidden_host");
}
