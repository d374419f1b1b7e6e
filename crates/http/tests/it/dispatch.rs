//! `Host`, `Origin` and credentials are checked once, for MCP endpoints and for the API alike.

use switchboard_auth::{KeyDraft, NewKey, Role};
use switchboard_http::McpRoute;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::api_server::ApiServer;

/// The status and the headers of the response, in lower case.
async fn ask(server: &ApiServer, method: &str, path: &str, headers: &[&str]) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let headers: String = headers.iter().flat_map(|header| [*header, "\r\n"]).collect();
    let head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n");
    stream.write_all(format!("{head}{headers}\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.to_ascii_lowercase()
}

/// Method, path, headers, status, and what reaches the MCP server.
type Row<'a> = (&'a str, &'a str, &'a [&'a str], u16, Option<McpRoute>);

#[tokio::test]
async fn every_path_is_checked_once_and_alike() {
    let server = ApiServer::without_board().await;
    let made = NewKey::add(&server.store, KeyDraft::new("laptop", Role::Client)).await.unwrap();
    server.gatekeeper.refresh().await.unwrap();
    let host = format!("Host: {}", server.address);
    let key = format!("Authorization: Bearer {}", made.key.expose());
    let principal = format!("key:{}", made.stored.id);
    let (evil_host, evil_origin) = ("Host: evil.example", "Origin: https://evil.example");
    let all = Some(McpRoute::All);
    // The board has not started, so the API answers 503 to a caller that it lets in.
    let rows: [Row<'_>; 14] = [
        ("POST", "/mcp", &[&host], 401, None),
        ("POST", "/mcp", &[&host, "Authorization: Bearer sbk_wrong"], 401, None),
        ("POST", "/mcp", &[&host, &key], 200, all.clone()),
        ("GET", "/mcp", &[&host, &key], 200, all.clone()),
        ("DELETE", "/mcp", &[&host, &key], 200, all),
        ("PATCH", "/mcp", &[&host, &key], 405, None),
        ("POST", "/mcp", &[evil_host, &key], 403, None),
        ("POST", "/mcp", &[&host, evil_origin, &key], 403, None),
        ("POST", "/mcp/servers/a%62", &[&host], 401, None),
        ("POST", "/mcp/servers/a%62", &[&host, &key], 200, Some(McpRoute::Server("ab".into()))),
        ("GET", "/api/v1/tools", &[&host], 401, None),
        ("GET", "/api/v1/tools", &[&host, &key], 503, None),
        ("GET", "/api/v1/calls/export", &[&host, &key], 403, None),
        ("GET", "/healthz", &[evil_host], 403, None),
    ];
    for (method, path, headers, status, route) in rows {
        server.mcp.0.lock().clear();
        let answer = ask(&server, method, path, headers).await;
        assert!(answer.starts_with(&format!("http/1.1 {status} ")), "{method} {path}: {answer}");
        assert!(answer.contains("x-content-type-options: nosniff"), "{method} {path}: {answer}");
        let reached = server.mcp.0.lock().first().cloned();
        let wanted = route.map(|route| (route, principal.clone()));
        assert_eq!(reached, wanted, "{method} {path}");
    }
    assert!(ask(&server, "GET", "/healthz", &[&host]).await.starts_with("http/1.1 200 "));
}
