//! Apps with the unmodified libraries of model providers, pointed at a session.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use switchboard_test_support::model_backends::FakeBackends;
use switchboard_test_support::{peers, wait_until};
use tokio::process::Command;

use crate::chat::Api;
use crate::lab::{Lab, assert_clean};
use crate::support::{Home, PATIENCE, Serve};

/// Runs an app against a usual board.
async fn check(program: &str) {
    let lab = Lab::open().await;
    passes(program, &lab.home, &lab.serve, &lab.fake).await;
}

/// Runs an app with a key of the board against the session `apps`, and expects all of its cases to pass.
pub(crate) async fn passes(program: &str, home: &Home, serve: &Serve, fake: &FakeBackends) {
    let made = home.line("key add apps --role client --json").expect(0).json();
    let key = made["key"].as_str().unwrap().to_owned();
    let api = Api::of(serve).with_key(&key);
    // The running board notices the first key after a moment.
    wait_until(PATIENCE, async || {
        let answer = Api::of(serve).send(Method::GET, "/me", None).await;
        (answer.status == StatusCode::UNAUTHORIZED).then_some(())
    })
    .await;
    api.send(Method::POST, "/sessions", Some(json!({"id": "apps"}))).await.good();
    let output = Command::from(peers::app(program))
        .args([&serve.url, &key, &fake.root_url()])
        .env("HOME", home.path())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {complaint}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let wrong: Vec<_> =
        said["wrong"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), serve.stderr());
    assert!(said["checked"].as_u64().unwrap() > 1, "{said}");
    assert_clean(fake, serve);
}

#[tokio::test]
async fn the_library_of_openai_gets_the_tools_of_a_session() {
    check("openai_app.py").await;
}

#[tokio::test]
async fn the_library_of_anthropic_gets_the_tools_of_a_session() {
    check("anthropic_app.py").await;
}

#[tokio::test]
async fn the_library_of_google_gets_the_tools_of_a_session() {
    check("google_app.py").await;
}

#[tokio::test]
async fn the_agents_sdk_of_openai_gets_the_tools_of_a_session() {
    check("agents_app.py").await;
}

#[tokio::test]
async fn the_npm_libraries_get_the_tools_of_a_session() {
    check("node_apps.mjs").await;
}
