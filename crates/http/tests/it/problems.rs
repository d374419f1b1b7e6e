//! Every invalid request is answered with a problem document, including requests that axum itself rejects.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Home, Serve, yaml};

async fn board() -> (Home, Serve) {
    let home = Home::new(yaml(&["{name: sum_numbers}"], &[]));
    let serve = home.serve().await;
    (home, serve)
}

/// What is sent: method, path, content type, body.
type Sent<'a> = (Method, &'a str, Option<&'a str>, String);

async fn check(serve: &Serve, sent: Sent<'_>, status: u16, kind: &str, detail: &str) {
    let (method, path, content_type, body) = sent;
    let shown = format!("{method} {path} {content_type:?}");
    let mut request = serve.http.request(method, serve.at(path)).body(body);
    if let Some(content_type) = content_type {
        request = request.header("content-type", content_type);
    }
    let response = request.send().await.unwrap();
    assert_eq!(response.status().as_u16(), status, "{shown}");
    assert_eq!(response.headers()["content-type"], "application/problem+json", "{shown}");
    let is_allow_told = response.headers().contains_key("allow");
    assert_eq!(is_allow_told, status == 405, "{shown}");
    let problem: Value = response.json().await.unwrap();
    assert_eq!(problem["type"], format!("urn:switchboard:problem:{kind}"), "{shown}");
    assert_eq!(problem["status"], status, "{shown}");
    let said = problem["detail"].as_str().unwrap();
    assert!(said.contains(detail), "{shown}: {said}");
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_a_problem() {
    let (_home, serve) = board().await;
    let json = Some("application/json");
    let (call, sessions) = ("/api/v1/tools/sum_numbers/call", "/api/v1/sessions");
    for (path, kind, body, status, detail) in [
        (call, json, "{", 400, "EOF"),
        (call, json, "", 400, "EOF"),
        (call, None, "{}", 415, "application/json"),
        (call, Some("text/plain"), "{}", 415, "application/json"),
        (call, json, "[]", 422, "expected an object"),
        (call, json, "{\"argument\": {}}", 422, "`argument`"),
        (sessions, json, "[\"work\"]", 422, "expected an object"),
        (sessions, json, "{\"id\": \"a b\"}", 422, "cannot name a session"),
    ] {
        let sent = (Method::POST, path, kind, body.to_owned());
        check(&serve, sent, status, "bad_request", detail).await;
    }
}

#[tokio::test]
async fn a_path_or_a_query_that_cannot_be_read_is_a_problem() {
    let (_home, serve) = board().await;
    let made = serve.http.post(serve.at("/api/v1/sessions")).json(&json!({"id": "work"}));
    assert_eq!(made.send().await.unwrap().status().as_u16(), 201);
    let long = format!("/api/v1/calls?tool={}", "x".repeat(513));
    for (method, path, detail) in [
        (Method::GET, "/api/v1/tools/%ff", "UTF-8"),
        (Method::POST, "/api/v1/tools/%ff/call", "UTF-8"),
        (Method::DELETE, "/api/v1/sessions/%ff", "UTF-8"),
        (Method::GET, "/api/v1/results/%ff", "UTF-8"),
        (Method::GET, "/api/v1/results/a?offset=-1", "offset"),
        (Method::GET, "/api/v1/results/a?offset=9007199254740992", "at most 9007199254740991"),
        (Method::GET, "/api/v1/results/a?length=18446744073709551616", "length"),
        (Method::GET, "/api/v1/calls?limit=0", "`limit` is 1 to 1000"),
        (Method::GET, "/api/v1/calls?limit=1001", "`limit` is 1 to 1000"),
        (Method::GET, "/api/v1/calls?limit=1&limit=2", "limit"),
        (Method::GET, "/api/v1/calls?nonsense=1", "`nonsense`"),
        (Method::GET, "/api/v1/sessions/work/render", "`provider`"),
        (
            Method::GET,
            "/api/v1/sessions/work/render?provider=OpenAI",
            "there is no provider `OpenAI`",
        ),
        (Method::GET, "/api/v1/sessions/work/render?provider=mcp&since=0", "`since` is 1 to"),
        (Method::GET, "/api/v1/sessions/work/render?provider=mcp&explain=yes", "explain"),
        (Method::GET, "/api/v1/sessions/work/events?follow=yes", "follow"),
        (Method::GET, &long, "`tool` has at most 512 characters"),
    ] {
        let sent = (method, path, Some("application/json"), "{}".to_owned());
        check(&serve, sent, 400, "bad_request", detail).await;
    }
}

#[tokio::test]
async fn what_a_session_cannot_be_is_a_problem() {
    let (_home, serve) = board().await;
    let json = Some("application/json");
    let at = |path: &str| format!("/api/v1/sessions{path}");
    let made = serve.http.post(serve.at(&at(""))).json(&json!({"id": "work"}));
    assert_eq!(made.send().await.unwrap().status().as_u16(), 201);
    let long = json!({"title": "ä".repeat(513)}).to_string();
    for (method, path, body, status, kind, detail) in [
        (Method::POST, "", r#"{"id": "work"}"#, 409, "session_exists", "'work' already"),
        (Method::POST, "", r#"{"id": "mcp-1"}"#, 422, "bad_request", "not `mcp-` at the beginning"),
        (Method::PATCH, "/work", &*long, 422, "bad_request", "longer than 512 characters"),
        (Method::PATCH, "/work", r#"{"tools_revision": 0}"#, 409, "stale_revision", "not 0"),
        (Method::PATCH, "/work", r#"{"allow": {"x": []}}"#, 422, "bad_request", "no provider `x`"),
        (
            Method::PUT,
            "/work/bindings",
            r#"{"servers": ["x"]}"#,
            422,
            "bad_request",
            "no MCP server 'x'",
        ),
        (
            Method::PUT,
            "/work/toolsets/x",
            r#"{"enabled": true}"#,
            422,
            "bad_request",
            "no toolset 'x'",
        ),
        (
            Method::PUT,
            "/work/toolsets/x",
            r#"{"enabled": false}"#,
            422,
            "bad_request",
            "no toolset 'x'",
        ),
        (
            Method::PUT,
            "/work/toolsets/local",
            r#"{"enabled": null}"#,
            422,
            "bad_request",
            "must be true or false",
        ),
        (Method::PUT, "/work/tools/x", r#"{"enabled": true}"#, 422, "bad_request", "no tool 'x'"),
        (Method::PUT, "/work/servers/x", r#"{"url": "x"}"#, 422, "bad_request", "is invalid"),
        (Method::DELETE, "/work/servers/x", "", 404, "unknown_server", "no server 'x' of its own"),
        (Method::POST, "/work/tools/x/call", "{}", 404, "unknown_tool", "no tool 'x'"),
        (Method::GET, "/other/tools", "", 404, "unknown_session", "no session 'other'"),
    ] {
        let sent = (method, &*at(path), json, body.to_owned());
        check(&serve, sent, status, kind, detail).await;
    }
    let title = json!({"title": "ä".repeat(512)});
    let changed = serve.http.patch(serve.at(&at("/work"))).json(&title);
    assert_eq!(changed.send().await.unwrap().status().as_u16(), 200);
}

#[tokio::test]
async fn paths_and_methods_that_are_not_there_are_problems() {
    let (_home, serve) = board().await;
    let sent = |method, path| (method, path, None, String::new());
    for path in
        ["/api", "/api/v1", "/api/v1/", "/api/v1/tools/", "/api/v2/tools", "/api/v1/tools/a/b/c"]
    {
        check(&serve, sent(Method::GET, path), 404, "not_found", path).await;
    }
    for (method, path) in [
        (Method::PUT, "/api/v1/tools"),
        (Method::POST, "/api/v1/calls"),
        (Method::GET, "/api/v1/tools/sum_numbers/call"),
        (Method::PATCH, "/api/v1/sessions"),
        (Method::POST, "/api/v1/sessions/work"),
        (Method::GET, "/api/v1/sessions/work/bindings"),
        (Method::POST, "/api/v1/sessions/work/render"),
        (Method::POST, "/api/v1/openapi.json"),
        (Method::DELETE, "/api/v1/docs"),
        (Method::OPTIONS, "/api/v1/servers"),
        (Method::POST, "/readyz"),
    ] {
        check(&serve, sent(method, path), 405, "method_not_allowed", path).await;
    }
}
