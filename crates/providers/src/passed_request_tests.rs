//! Tests of requests in the provider's format, over real sockets and both clients.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use pretty_assertions::assert_eq;
use switchboard_chat::FaultKind;
use switchboard_model::{ProviderAuth, ProviderKind, ProviderPlan, Secret};

use crate::test_support::{KEY, Server, endpoint, endpoints, plan};
use crate::{PassedRequest, headers_for_provider};

fn answers(path: &str, _: usize) -> Response {
    match path {
        "/v1/messages?beta=true" => {
            let pieces = stream::iter(["one ", "two"]).map(Ok::<_, Infallible>);
            let headers = [("content-type", "text/event-stream"), ("request-id", "req_1")];
            (headers, Body::from_stream(pieces)).into_response()
        }
        "/limited" => {
            let headers = [("retry-after", "7"), ("set-cookie", "a=b")];
            let body = format!(r#"{{"error": {{"message": "too much for {KEY}"}}}}"#);
            (StatusCode::TOO_MANY_REQUESTS, headers, body).into_response()
        }
        "/html" => (StatusCode::BAD_GATEWAY, "<html>no</html>").into_response(),
        "/hangs" => {
            let pieces = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"one "))]);
            Body::from_stream(pieces.chain(stream::pending())).into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn asked<'a>(path: &'a str, headers: &'a HeaderMap) -> PassedRequest<'a> {
    PassedRequest {
        method: Method::POST,
        path,
        headers,
        body: Bytes::from_static(b"{ \"a\":1 }"),
        session: "s-1",
        credential: None,
        app_credential: None,
        is_streamed: true,
    }
}

fn app_headers() -> HeaderMap {
    let pairs = [
        ("anthropic-beta", "a"),
        ("anthropic-beta", "b"),
        ("x-api-key", "key-of-the-app"),
        ("cookie", "c=d"),
        ("x-team", "blue"),
    ];
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers_for_provider(&headers)
}

#[tokio::test]
async fn bytes_pass_both_ways_with_the_boards_credential() {
    let server = Server::start(answers).await;
    let headers = app_headers();
    for endpoint in endpoints(&plan(ProviderKind::Anthropic, &server.base)) {
        let mut response = endpoint.pass(asked("/v1/messages?beta=true", &headers)).await.unwrap();
        assert_eq!(response.headers["request-id"], "req_1");
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.unwrap() {
            body.extend_from_slice(&piece);
        }
        assert_eq!(body, b"one two");
        let seen = server.seen().pop().unwrap();
        assert_eq!(seen.body, "{ \"a\":1 }", "not a byte differs");
        let sent = |name: &str| seen.headers.get(name).map(|value| value.to_str().unwrap());
        assert_eq!(sent("authorization"), Some(format!("Bearer {KEY}").as_str()));
        assert_eq!(sent("anthropic-beta"), Some("a,b,oauth-2025-04-20"));
        assert_eq!(sent("anthropic-version"), Some("2023-06-01"));
        assert_eq!((sent("x-team"), sent("x-api-key"), sent("cookie")), (Some("blue"), None, None));
    }
}

#[tokio::test]
async fn an_apps_own_credential_takes_the_place_of_the_boards() {
    let server = Server::start(answers).await;
    let endpoint = endpoint(plan(ProviderKind::Anthropic, &server.base));
    let headers = HeaderMap::new();
    let own = (HeaderName::from_static("x-api-key"), HeaderValue::from_static("key-of-the-app"));
    let request =
        PassedRequest { app_credential: Some(own), ..asked("/v1/messages?beta=true", &headers) };
    let body = endpoint.pass(request).await.unwrap().whole(100).await.unwrap();
    assert_eq!(&body[..], b"one two");
    let seen = server.seen().pop().unwrap();
    assert_eq!(seen.headers["x-api-key"], "key-of-the-app");
    assert!(!format!("{:?}", seen.headers).contains(KEY), "{:?}", seen.headers);
}

#[tokio::test]
async fn a_refusal_has_the_providers_words_without_secrets() {
    let server = Server::start(answers).await;
    let headers = HeaderMap::new();
    for endpoint in endpoints(&plan(ProviderKind::OpenAi, &server.base)) {
        let failed = endpoint.pass(asked("/limited", &headers)).await.unwrap_err();
        assert_eq!((failed.fault.kind, failed.fault.status), (FaultKind::RateLimited, Some(429)));
        assert_eq!(failed.body.unwrap(), r#"{"error": {"message": "too much for ***"}}"#);
        assert_eq!(failed.headers["retry-after"], "7");
        assert!(!failed.headers.contains_key("set-cookie"));
        let failed = endpoint.pass(asked("/html", &headers)).await.unwrap_err();
        assert_eq!((failed.fault.status, failed.body), (Some(502), None));
    }
}

#[tokio::test]
async fn silence_and_size_have_limits() {
    let server = Server::start(answers).await;
    let headers = HeaderMap::new();
    let hasty = ProviderPlan {
        idle_timeout: Duration::from_millis(50),
        ..plan(ProviderKind::OpenAi, &server.base)
    };
    let mut response = endpoint(hasty).pass(asked("/hangs", &headers)).await.unwrap();
    assert_eq!(response.chunk().await.unwrap().unwrap(), "one ");
    let fault = response.chunk().await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Timeout);
    assert!(fault.message.contains("idle_timeout"), "{fault}");
    let endpoint = endpoint(plan(ProviderKind::OpenAi, &server.base));
    let response = endpoint.pass(asked("/v1/messages?beta=true", &headers)).await.unwrap();
    assert_eq!(response.whole(3).await.unwrap_err().kind, FaultKind::TooLarge);
}

#[tokio::test]
async fn nothing_is_sent_without_a_credential_or_to_the_demo_model() {
    let headers = HeaderMap::new();
    let keyless = ProviderPlan::new("test", ProviderKind::OpenAi);
    let failed = endpoint(keyless).pass(asked("/responses", &headers)).await.unwrap_err();
    assert_eq!(failed.fault.kind, FaultKind::Credentials);
    let demo = ProviderPlan {
        auth: ProviderAuth::ApiKey(Secret::new("k")),
        ..ProviderPlan::new("test", ProviderKind::Demo)
    };
    let failed = endpoint(demo).pass(asked("/responses", &headers)).await.unwrap_err();
    assert_eq!(failed.fault.kind, FaultKind::NotFound);
}
