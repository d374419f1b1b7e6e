//! Tests of finding the project of a Google account.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::IntoResponse;
use futures::future;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_chat::{FaultKind, ModelFault};
use switchboard_model::{ProviderKind, ProviderPlan, Secret};

use crate::ProviderEndpoint;
use crate::test_support::{Answers, KEY, Seen, Server, endpoint, plan};

fn assist(base: &str) -> Arc<ProviderEndpoint> {
    endpoint(plan(ProviderKind::CodeAssist, base))
}

/// The project that an endpoint finds, or the error; and its requests.
async fn project(answers: Answers) -> (Result<String, ModelFault>, Vec<Seen>) {
    let server = Server::start(answers).await;
    let endpoint = assist(&server.base);
    let found = endpoint.project(None).await;
    (found, server.seen())
}

fn body(seen: &Seen) -> Value {
    serde_json::from_str(&seen.body).unwrap()
}

#[tokio::test]
async fn an_account_that_is_set_up_has_a_project() {
    let server = Server::start(|_, _| {
        axum::Json(json!({"currentTier": {"id": "t"}, "cloudaicompanionProject": "p-1"}))
            .into_response()
    })
    .await;
    let mut plan = plan(ProviderKind::CodeAssist, &server.base);
    plan.headers.insert("x-team".into(), Secret::new("blue"));
    let endpoint = endpoint(plan);
    let waiters = future::join_all((0..5).map(|_| endpoint.project(None))).await;
    assert!(waiters.iter().all(|project| project.as_deref() == Ok("p-1")), "{waiters:?}");
    let seen = server.seen();
    assert_eq!(seen.len(), 1, "one asks for all");
    assert_eq!(seen[0].path, "/v1internal:loadCodeAssist");
    assert_eq!(seen[0].headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(seen[0].headers["x-team"], "blue");
    assert_eq!(body(&seen[0])["metadata"]["pluginType"], "GEMINI");
}

#[tokio::test]
async fn a_new_account_is_set_up_and_waited_for() {
    let (found, seen) = project(|path, _| {
        let answer = match path {
            "/v1internal:loadCodeAssist" => {
                json!({"allowedTiers": [{"id": "x"}, {"id": "free-tier", "isDefault": true}]})
            }
            "/v1internal:onboardUser" => json!({"name": "operations/1", "done": false}),
            _ => json!({"done": true, "response": {"cloudaicompanionProject": {"id": "p-2"}}}),
        };
        axum::Json(answer).into_response()
    })
    .await;
    assert_eq!(found.as_deref(), Ok("p-2"));
    let paths: Vec<_> = seen.iter().map(|seen| seen.path.as_str()).collect();
    let expected =
        ["/v1internal:loadCodeAssist", "/v1internal:onboardUser", "/v1internal/operations/1"];
    assert_eq!(paths, expected);
    assert_eq!(body(&seen[1])["tierId"], "free-tier");
    assert!(body(&seen[1]).get("cloudaicompanionProject").is_none());
}

#[tokio::test]
async fn what_is_missing_is_told() {
    let (found, _) = project(|_, _| {
        let tier = json!({
            "reasonCode": "VALIDATION_REQUIRED",
            "reasonMessage": "Verify your account",
            "validationUrl": "https://accounts.example/verify",
        });
        axum::Json(json!({"ineligibleTiers": [tier]})).into_response()
    })
    .await;
    insta::assert_snapshot!(found.unwrap_err(), @"forbidden: Verify your account: open https://accounts.example/verify");
    let (found, _) = project(|_, _| axum::Json(json!({"currentTier": {}})).into_response()).await;
    insta::assert_snapshot!(found.unwrap_err(), @"credentials: this Google account needs a Google Cloud project for Code Assist: set `project` in the entry of the provider, or GOOGLE_CLOUD_PROJECT");
    let (found, _) = project(|_, _| "what?".into_response()).await;
    insta::assert_snapshot!(found.unwrap_err(), @"unreadable: Code Assist answered /v1internal:loadCodeAssist with what?");
    let numbered = ProviderPlan {
        project: Some("1234".into()),
        ..plan(ProviderKind::CodeAssist, "http://127.0.0.1:1")
    };
    insta::assert_snapshot!(endpoint(numbered).project(None).await.unwrap_err(), @"credentials: `1234` is the number of a Google Cloud project; set its id instead");
}

#[tokio::test]
async fn a_failed_try_is_tried_again() {
    let server = Server::start(|_, count| {
        if count == 1 {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
        axum::Json(json!({"currentTier": {}, "cloudaicompanionProject": "p"})).into_response()
    })
    .await;
    let endpoint = assist(&server.base);
    assert_eq!(endpoint.project(None).await.unwrap_err().kind, FaultKind::Overloaded);
    assert_eq!(endpoint.project(None).await.as_deref(), Ok("p"));
}

#[tokio::test]
async fn a_project_that_is_written_down_is_not_asked_for() {
    let written = ProviderPlan {
        project: Some("mine".into()),
        ..plan(ProviderKind::CodeAssist, "http://127.0.0.1:1")
    };
    assert_eq!(endpoint(written).project(None).await.as_deref(), Ok("mine"));
}
