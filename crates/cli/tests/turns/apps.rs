//! Apps with the unmodified libraries of model providers, pointed at a session.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use switchboard_test_program::accounts::{narrowed_key, sign_in, tracker_entry};
use switchboard_test_support::model_backends::FakeBackends;
use switchboard_test_support::{AccountEra, AccountServer, peers, wait_until};
use tokio::process::Command;

use crate::chat::Api;
use crate::lab::{Lab, Plan, assert_clean};
use crate::support::{Home, PATIENCE, Serve};

/// The running board notices the first key after a moment.
async fn until_keys_count(serve: &Serve) {
    wait_until(PATIENCE, async || {
        let answer = Api::of(serve).send(Method::GET, "/me", None).await;
        (answer.status == StatusCode::UNAUTHORIZED).then_some(())
    })
    .await;
}

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
    until_keys_count(serve).await;
    api.send(Method::POST, "/sessions", Some(json!({"id": "apps"}))).await.good();
    let checked = run((home, serve, fake), Command::from(peers::app(program)), &key, &[]).await;
    assert!(checked > 1, "{program} checked {checked} cases");
    assert_clean(fake, serve);
}

/// Runs the cases of an app whose names contain these words. Returns how many there are; all of them pass.
async fn run(
    (home, serve, fake): (&Home, &Serve, &FakeBackends),
    mut app: Command,
    key: &str,
    words: &[&str],
) -> u64 {
    let output = app
        .args([serve.url.as_str(), key, &fake.root_url()])
        .args(words)
        .env("HOME", home.path())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let wrong: Vec<_> =
        said["wrong"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), serve.stderr());
    said["checked"].as_u64().unwrap()
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

/// A key that grants two tools, and an account of each person: the libraries see these tools, the model hears where to sign in,
/// and each call uses the account of the person whose key the app has.
#[tokio::test]
async fn the_libraries_use_the_tools_of_a_narrowed_key_and_the_account_of_its_person() {
    let tracker = AccountServer::open(AccountEra::Stateless).await;
    let lab = Lab::with(Plan { servers: vec![tracker_entry(&tracker)], ..Plan::default() }).await;
    let [alice, bob] =
        ["alice", "bob"].map(|person| narrowed_key(&lab.home, person, "shop.find,tracker.whoami"));
    let api_of = |key: &str| Api::of(&lab.serve).with_key(key);
    until_keys_count(&lab.serve).await;
    let session = |person: &str| format!("session-{}", person.len());
    for (person, key) in [("alice", &alice), ("bob", &bob)] {
        let wanted = Some(json!({"id": session(person)}));
        api_of(key).send(Method::POST, "/sessions", wanted).await.good();
    }
    let app = async |person: &str, key: &str, cases: &str| {
        let mut app = Command::from(peers::app("people_app.py"));
        app.env("APP_PERSON", person).env("APP_SESSION", session(person));
        run((&lab.home, &lab.serve, &lab.fake), app, key, &[cases]).await
    };
    sign_in(&api_of(&alice), &tracker, "alice").await;
    assert_eq!(app("bob", &bob, "asks_to_sign_in").await, 1);
    assert_eq!(tracker.calls(), Vec::<String>::new(), "nothing was sent for bob");
    sign_in(&api_of(&bob), &tracker, "bob").await;
    for (person, key) in [("alice", &alice), ("bob", &bob)] {
        assert_eq!(app(person, key, "signed_in").await, 2);
    }
    assert_eq!(lab.calls(), 0, "a tool that was not granted was called");
    assert_eq!(tracker.violations(), Vec::<String>::new());
    assert_clean(&lab.fake, &lab.serve);
}
