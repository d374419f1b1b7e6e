//! `Host`, `Origin` and credentials are checked once, for MCP endpoints and for the API alike.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by ending")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::Response;
use bytes::Buf as _;
use http_body_util::Full;
use parking_lot::Mutex;
use switchboard_auth::{Gatekeeper, GatekeeperOptions, NewKey, Role};
use switchboard_http::{
    BoardPlace, BodyChunk, HostPolicy, McpEndpoint, McpRequest, McpRoute, ServeOptions, serve,
};
use switchboard_store::Store;
use switchboard_telemetry::install_metrics;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// An MCP server that notes who asked for what.
#[derive(Debug, Default)]
struct Noting(Mutex<Vec<(McpRoute, String)>>);

impl Noting {
    fn note(&self, request: McpRequest) -> Response<Full<BodyChunk>> {
        self.0.lock().push((request.route, request.principal.id.to_string()));
        let nothing = Bytes::new();
        Response::new(Full::new(Bytes::from("{}").chain(nothing.clone()).chain(nothing)))
    }
}

impl McpEndpoint for Noting {
    type Body = Full<BodyChunk>;

    fn max_body_bytes(&self) -> usize {
        1024
    }

    async fn post(&self, request: McpRequest, _: Bytes) -> Response<Self::Body> {
        self.note(request)
    }

    async fn get(&self, request: McpRequest) -> Response<Self::Body> {
        self.note(request)
    }

    async fn delete(&self, request: McpRequest) -> Response<Self::Body> {
        self.note(request)
    }
}

struct Program {
    address: SocketAddr,
    mcp: Arc<Noting>,
    key: String,
    principal: String,
    _stop: DropGuard,
}

impl Program {
    /// Serves a board that has not started, to callers with a key.
    async fn start() -> Self {
        let store = Store::in_memory().await.unwrap();
        let made = NewKey::add(&store, "laptop", Role::Client, None).await.unwrap();
        let options = ServeOptions {
            board: BoardPlace::default(),
            metrics: install_metrics(),
            hosts: HostPolicy::default(),
            gatekeeper: Gatekeeper::new(store, GatekeeperOptions::default()).await.unwrap(),
            drain: Duration::ZERO,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mcp, stop) = (Arc::new(Noting::default()), CancellationToken::new());
        let serving = serve(listener, options, mcp.clone(), stop.clone().cancelled_owned());
        TaskTracker::new().spawn(serving);
        let (key, principal) = (made.key.expose().to_owned(), format!("key:{}", made.stored.id));
        Self { address, mcp, key, principal, _stop: stop.drop_guard() }
    }

    /// The status and the headers of the answer.
    async fn ask(&self, method: &str, path: &str, headers: &[&str]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let headers: String = headers.iter().flat_map(|header| [*header, "\r\n"]).collect();
        let head =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n");
        stream.write_all(format!("{head}{headers}\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.to_ascii_lowercase()
    }
}

/// Method, path, headers, status, and what reaches the MCP server.
type Row<'a> = (&'a str, &'a str, &'a [&'a str], u16, Option<McpRoute>);

#[tokio::test]
async fn every_path_is_checked_once_and_alike() {
    let program = Program::start().await;
    let host = format!("Host: {}", program.address);
    let key = format!("Authorization: Bearer {}", program.key);
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
        ("GET", "/api/v1/calls", &[&host, &key], 403, None),
        ("GET", "/healthz", &[evil_host], 403, None),
    ];
    for (method, path, headers, status, route) in rows {
        program.mcp.0.lock().clear();
        let answer = program.ask(method, path, headers).await;
        assert!(answer.starts_with(&format!("http/1.1 {status} ")), "{method} {path}: {answer}");
        assert!(answer.contains("x-content-type-options: nosniff"), "{method} {path}: {answer}");
        let reached = program.mcp.0.lock().first().cloned();
        let wanted = route.map(|route| (route, program.principal.clone()));
        assert_eq!(reached, wanted, "{method} {path}");
    }
    assert!(program.ask("GET", "/healthz", &[&host]).await.starts_with("http/1.1 200 "));
}
