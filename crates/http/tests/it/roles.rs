//! Roles: which credentials each path needs, and how the others are refused.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::json;
use switchboard_auth::Role;

use crate::api_server::{Answer, ApiServer, yaml};
use crate::event_reader::EventReader;

#[tokio::test]
async fn each_path_needs_its_role() {
    let server = ApiServer::start(&yaml(&["{name: sum_numbers}"], &[])).await;
    let client = server.api_of("client", Role::Client).await;
    let operator = server.api_of("operator", Role::Operator).await;
    let admin = server.api_of("admin", Role::Admin).await;
    let nobody = server.api();
    for (path, without, as_client, as_operator) in [
        ("/", 200, 200, 200),
        ("/healthz", 200, 200, 200),
        ("/readyz", 200, 200, 200),
        ("/api/v1/openapi.json", 200, 200, 200),
        ("/api/v1/docs", 200, 200, 200),
        ("/.well-known/oauth-protected-resource", 404, 404, 404),
        ("/api/v1/servers", 401, 200, 200),
        ("/api/v1/tools", 401, 200, 200),
        ("/api/v1/toolsets", 401, 200, 200),
        ("/api/v1/sessions", 401, 200, 200),
        ("/api/v1/providers", 401, 200, 200),
        ("/api/v1/nowhere", 401, 404, 404),
        ("/api/v1/calls", 401, 200, 200),
        ("/api/v1/calls/export", 401, 403, 200),
        ("/api/v1/calls/nowhere", 401, 404, 404),
        ("/metrics", 401, 403, 200),
        ("/api/v1/config", 401, 403, 200),
        ("/api/v1/sources", 401, 403, 200),
        ("/api/v1/tools/sum_numbers/declaration", 401, 403, 200),
        ("/api/v1/servers/nowhere", 401, 403, 404),
    ] {
        let mut seen = Vec::new();
        for api in [&nobody, &client, &operator, &admin] {
            seen.push(api.get(path).await.status);
        }
        assert_eq!(seen, [without, as_client, as_operator, as_operator], "{path}");
    }
}

#[tokio::test]
async fn the_configuration_is_changed_by_administrators_only() {
    let server = ApiServer::start(&yaml(&["{name: sum_numbers}"], &[])).await;
    let operator = server.api_of("operator", Role::Operator).await;
    let before = std::fs::read_to_string(server.file()).unwrap();
    for (method, path) in [
        (Method::PUT, "/api/v1/tools/sum_numbers/declaration"),
        (Method::DELETE, "/api/v1/tools/sum_numbers/declaration"),
        (Method::PUT, "/api/v1/servers/a"),
        (Method::DELETE, "/api/v1/servers/a"),
    ] {
        let said = operator.send(method, path, Some(json!({}))).await.problem(403, "forbidden");
        assert_eq!(said, "this needs the role admin, and the credentials have operator");
    }
    assert_eq!(std::fs::read_to_string(server.file()).unwrap(), before);
}

#[tokio::test]
async fn a_refusal_says_what_is_missing_and_never_repeats_the_credentials() {
    let server = ApiServer::start(&yaml(&[], &[])).await;
    let client = server.api_of("client", Role::Client).await;
    let said = client.get("/api/v1/calls/export").await.problem(403, "forbidden");
    assert_eq!(said, "this needs the role operator, and the credentials have client");
    for credentials in [None, Some("Bearer sbk_s3cret"), Some("Basic czNjcmV0"), Some("s3cret")] {
        let request = server.api().request(Method::GET, "/api/v1/tools");
        let answer = Answer::of(match credentials {
            Some(value) => request.header("authorization", value),
            None => request,
        })
        .await;
        let challenge = answer.headers["www-authenticate"].to_str().unwrap().to_owned();
        assert!(challenge.starts_with("Bearer"), "{credentials:?}: {challenge}");
        let said = answer.problem(401, "unauthorized");
        assert!(!said.is_empty(), "{credentials:?}");
        let all = format!("{said}{challenge}");
        assert!(!all.contains("s3cret") && !all.contains("czNjcmV0"), "{credentials:?}: {all}");
    }
}

#[tokio::test]
async fn a_revoked_key_is_refused_and_its_event_stream_ends() {
    let server = ApiServer::start(&yaml(&["{name: sum_numbers}"], &[])).await;
    let leaving = server.api_of("leaving", Role::Client).await;
    let staying = server.api_of("staying", Role::Client).await;
    let mut streams = Vec::new();
    for api in [&leaving, &staying] {
        let path = api.new_session(json!({})).await;
        let mut events = EventReader::open(api, &format!("{path}/events"), None).await;
        assert_eq!(events.next().await.unwrap().name, "current");
        streams.push((path, events));
    }
    assert!(server.store.revoke_key("leaving", 1).await.unwrap());
    let (_, ended) = &mut streams[0];
    assert_eq!(ended.rest().await, [], "the stream ends when the keys are read again");
    leaving.get("/api/v1/tools").await.problem(401, "unauthorized");
    let (path, open) = &mut streams[1];
    staying.patch(path, json!({"tools": {"local.sum_numbers": false}})).await.good();
    assert_eq!(open.next().await.unwrap().name, "revision", "the other stream goes on");
}
