//! Every invalid request is answered with a problem document, including requests that axum itself rejects.

use reqwest::Method;
use serde_json::json;

use crate::api_server::{Answer, Api, ApiServer, yaml};

async fn board() -> (ApiServer, Api) {
    let server = ApiServer::start(&yaml(&["{name: sum_numbers}"], &[])).await;
    let api = server.api();
    (server, api)
}

/// What is sent: method, path, content type, body.
type Sent<'a> = (Method, &'a str, Option<&'a str>, String);

async fn check(api: &Api, sent: Sent<'_>, status: u16, kind: &str, detail: &str) {
    let (method, path, content_type, body) = sent;
    let shown = format!("{method} {path} {content_type:?} {body}");
    let mut request = api.request(method, path).body(body);
    if let Some(content_type) = content_type {
        request = request.header("content-type", content_type);
    }
    let answer = Answer::of(request).await;
    assert_eq!(answer.headers.contains_key("allow"), answer.status == 405, "{shown}");
    let said = answer.problem(status, kind);
    assert!(said.contains(detail), "{shown}: {said}");
    for word in ["untagged", " enum ", " struct "] {
        assert!(!said.contains(word), "{shown} is answered in words of the source: {said}");
    }
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_a_problem() {
    let (_server, api) = board().await;
    let json = Some("application/json");
    let deep = format!("{{\"arguments\": {}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let (call, sessions) = ("/api/v1/tools/sum_numbers/call", "/api/v1/sessions");
    let turns = "/api/v1/sessions/work/turns";
    api.new_session(json!({"id": "work"})).await;
    for (path, kind, body, status, detail) in [
        (call, json, "{", 400, "EOF"),
        (call, json, "", 400, "EOF"),
        (call, None, "{}", 415, "application/json"),
        (call, Some("text/plain"), "{}", 415, "application/json"),
        (call, json, "[]", 422, "expected an object"),
        (call, json, "{\"argument\": {}}", 422, "`argument`"),
        (call, json, "null", 422, "expected an object"),
        (call, json, &deep, 400, "recursion limit exceeded"),
        (sessions, json, "[\"work\"]", 422, "expected an object"),
        (sessions, json, "{\"id\": \"a b\"}", 422, "cannot name a session"),
        (sessions, json, "{\"id\": 7}", 422, "id: invalid type: integer `7`"),
        (sessions, json, "{\"toolsets\": [\"x\"]}", 422, "toolsets: invalid type: sequence"),
        (
            turns,
            json,
            "{\"message\": 7}",
            422,
            "message: invalid type: integer `7`, expected a text",
        ),
        (turns, json, "{\"message\": [{\"type\": \"video\"}]}", 422, "unknown variant `video`"),
        (turns, json, "{\"message\": [7]}", 422, "message[0]: invalid type: integer `7`"),
        (turns, json, "{\"message\": \"x\", \"edits\": [7]}", 422, "edits[0]: invalid type"),
        (turns, json, "{\"messages\": \"x\"}", 422, "unknown field `messages`"),
    ] {
        let sent = (Method::POST, path, kind, body.to_owned());
        check(&api, sent, status, "bad_request", detail).await;
    }
}

#[tokio::test]
async fn a_refused_value_of_a_body_is_named_by_its_pointer() {
    let (_server, api) = board().await;
    let work = api.new_session(json!({"id": "work"})).await;
    let sessions = "/api/v1/sessions";
    for (method, path, body, pointer) in [
        (Method::POST, sessions, json!({"id": 7}), "/id"),
        (Method::POST, sessions, json!({"id": "a b"}), "/id"),
        (Method::POST, sessions, json!({"ID": "x"}), "/ID"),
        (Method::POST, sessions, json!({"toolsets": {"local": 7}}), "/toolsets/local"),
        (Method::POST, sessions, json!({"own_servers": {"a": {"url": 7}}}), "/own_servers/a/url"),
        (Method::PATCH, &work, json!({"servers": ["none"]}), "/servers"),
        (Method::PATCH, &work, json!({"toolsets": {"a/b~": true}}), "/toolsets/a~1b~0"),
        (Method::PATCH, &work, json!({"tools": {"none": true}}), "/tools/none"),
        (Method::PATCH, &work, json!({"allow": {"none": []}}), "/allow/none"),
        (Method::PATCH, &work, json!({"strategy": "none"}), "/strategy"),
        (Method::PATCH, &work, json!({"own_servers": {"a": {"url": "x"}}}), "/own_servers/a"),
    ] {
        let answer = api.send(method, path, Some(body.clone())).await;
        assert_eq!(answer.status, 422, "{body}: {:#}", answer.body);
        let errors = answer.body["errors"].as_array().unwrap();
        assert_eq!(errors.len(), 1, "{body}: {:#}", answer.body);
        assert_eq!(errors[0]["path"], pointer, "{body}: {:#}", answer.body);
        assert!(errors[0]["message"].is_string(), "{body}: {:#}", answer.body);
    }
}

#[tokio::test]
async fn a_path_or_a_query_that_cannot_be_read_is_a_problem() {
    let (_server, api) = board().await;
    api.new_session(json!({"id": "work"})).await;
    let long = format!("/api/v1/calls?tool={}", "x".repeat(513));
    for (method, path, detail) in [
        (Method::GET, "/api/v1/tools/%ff", "UTF-8"),
        (Method::POST, "/api/v1/tools/%ff/call", "UTF-8"),
        (Method::DELETE, "/api/v1/sessions/%ff", "UTF-8"),
        (Method::GET, "/api/v1/results/%ff", "UTF-8"),
        (Method::GET, "/api/v1/results/a?offset=-1", "offset"),
        (Method::GET, "/api/v1/results/a?offset=9007199254740992", "at most 9007199254740991"),
        (Method::GET, "/api/v1/results/a?length=18446744073709551616", "length"),
        (Method::GET, "/api/v1/calls?limit=x", "limit"),
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
        check(&api, sent, 400, "bad_request", detail).await;
    }
}

#[tokio::test]
async fn what_a_session_cannot_be_is_a_problem() {
    let (_server, api) = board().await;
    let json = Some("application/json");
    let at = |path: &str| format!("/api/v1/sessions{path}");
    api.new_session(json!({"id": "work"})).await;
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
        check(&api, sent, status, kind, detail).await;
    }
    let title = json!({"title": "ä".repeat(512)});
    assert_eq!(api.patch(&at("/work"), title.clone()).await.good()["title"], title["title"]);
}

#[tokio::test]
async fn paths_and_methods_that_are_not_there_are_problems() {
    let (_server, api) = board().await;
    let sent = |method, path| (method, path, None, String::new());
    for path in [
        "/nowhere",
        "/api",
        "/api/v1",
        "/api/v1/",
        "/api/v1/tools/",
        "/api/v2/tools",
        "/api/v1/tools/a/b/c",
    ] {
        check(&api, sent(Method::GET, path), 404, "not_found", path).await;
    }
    for (method, path) in [
        (Method::PUT, "/api/v1/tools"),
        (Method::DELETE, "/api/v1/tools"),
        (Method::POST, "/healthz"),
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
        check(&api, sent(method, path), 405, "method_not_allowed", path).await;
    }
}
