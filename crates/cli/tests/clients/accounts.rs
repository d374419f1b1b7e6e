//! People with keys that grant few tools, and with accounts of their own: the official TypeScript SDKs see what is granted, open
//! the page that a call asks for, and use the account of the person whose key they have.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_program::accounts::{narrowed_key, sign_in, sign_in_on, tracker_entry};
use switchboard_test_program::chat::Api;
use switchboard_test_support::{AccountEra, AccountServer};

use crate::client::{Place, Script};
use crate::scripted;
use crate::support::{Home, dynamic, yaml};

const GRANTED: &str = "demo.echo,tracker.whoami";

/// What the SDK saw, after its person has signed in on each page that it was asked to open.
async fn saw(script: Script, url: &str, key: &str, tracker: &AccountServer, person: &str) -> Value {
    let mut client = script.with(key).start(&Place::Http(url.to_owned()));
    loop {
        let said = client.said().await;
        let Some(page) = said.get("asks") else { return said };
        assert_eq!(page["mode"], "url", "{page}");
        assert!(page["message"].as_str().unwrap().starts_with("Switchboard: "), "{page}");
        sign_in_on(page["url"].as_str().unwrap(), key, tracker, person).await;
    }
}

async fn two_people(era: AccountEra, script: impl Fn() -> Script) {
    let (tracker, demo) = (AccountServer::open(era).await, scripted().await);
    let home = Home::new(yaml(&[], &[dynamic("demo", &demo.url()), tracker_entry(&tracker)]));
    let [alice, bob] = ["alice", "bob"].map(|person| narrowed_key(&home, person, GRANTED));
    let serve = home.serve().await;
    // Nobody knows the tools of the tracker yet; a key that names one of them can sign in all the same.
    sign_in(&Api::of(&serve).with_key(&alice), &tracker, "alice").await;
    let url = serve.at("/mcp");
    for (key, person, asked) in [(&alice, "alice", 0), (&bob, "bob", 1), (&bob, "bob", 0)] {
        let saw = saw(script(), &url, key, &tracker, person).await;
        assert_eq!(saw["tools"], json!(["demo__echo", "tracker__whoami"]), "{saw}");
        assert_eq!((&saw["whoami"], &saw["asked"]), (&json!([person, person]), &json!(asked)));
        let [withheld, unknown] = ["withheld", "unknown"].map(|name| saw[name].as_str().unwrap());
        assert_eq!(withheld.replace("demo__slow", "demo__slaw"), unknown);
        assert!(unknown.contains("demo__slaw"), "{saw}");
    }
    assert_eq!(demo.stats().total_calls(), 0, "a tool that was not granted was called");
    assert_eq!(tracker.violations(), Vec::<String>::new());
    assert_eq!(tracker.calls(), ["alice", "alice", "bob", "bob", "bob", "bob"]);
    for token in tracker.tokens() {
        assert!(!serve.stderr().contains(&token), "a token is in the log");
    }
}

#[tokio::test]
async fn two_people_with_the_typescript_sdk_1() {
    two_people(AccountEra::Session, || Script::node("accounts.mjs", "legacy").with("1")).await;
}

#[tokio::test]
async fn two_people_with_the_typescript_client_2_in_the_session_era() {
    two_people(AccountEra::Stateless, || Script::node("accounts.mjs", "legacy").with("2")).await;
}

#[tokio::test]
async fn two_people_with_the_typescript_client_2_in_the_stateless_era() {
    two_people(AccountEra::Session, || Script::node("accounts.mjs", "modern").with("2")).await;
}
