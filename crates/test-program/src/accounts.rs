//! People who connect an account of their own at an [`AccountServer`], in a browser.

use reqwest::redirect::Policy;
use reqwest::{Client, Method};
use serde_json::Value;
use switchboard_test_support::{AccountServer, wait_until};

use crate::chat::Api;
use crate::support::{Home, PATIENCE, dynamic, with};

/// The name of the server in the configuration.
const TRACKER: &str = "tracker";

/// The entry of a server at which each user has an account.
pub fn tracker_entry(tracker: &AccountServer) -> String {
    let more = "required: false, auth: {oauth: {per: user}}";
    with(&dynamic(TRACKER, &tracker.url()), more)
}

/// A new key of a person that grants only tools that match these patterns. Made before the program serves, so that it knows
/// the key from the start.
pub fn narrowed_key(home: &Home, person: &str, tools: &str) -> String {
    let line = format!("key add {person} --user {person} --role client --tools {tools} --json");
    let made = home.line(&line).expect(0).json();
    made["key"].as_str().unwrap().to_owned()
}

/// Goes through the page of a sign-in: shows that the call was theirs with an own key or the code of the page, and signs in at
/// the server as `person`.
pub async fn sign_in_on(page: &str, proof: &str, tracker: &AccountServer, person: &str) {
    let browser = Client::builder().redirect(Policy::none()).no_proxy().build().unwrap();
    let form = browser.post(page).header("content-type", "application/x-www-form-urlencoded");
    let proven = form.body(format!("proof={proof}")).send().await.unwrap();
    assert!(proven.status().is_redirection(), "{}", proven.status());
    let cookie = proven.headers()["set-cookie"].to_str().unwrap().to_owned();
    let cookie = cookie.split(';').next().unwrap();
    let open = async |url: &str| {
        let answer = browser.get(url).header("cookie", cookie).send().await.unwrap();
        assert!(answer.status().is_success(), "{url}: {}", answer.status());
        answer.text().await.unwrap()
    };
    let consent = open(page).await;
    let (_, link) = consent.split_once("href=\"").unwrap();
    let link = link.split_once('"').unwrap().0.replace("&amp;", "&");
    open(&tracker.visit(&link, person).await).await;
}

/// Signs a person in through the API with their own key, and waits until the tools of the server are known.
pub async fn sign_in(api: &Api, tracker: &AccountServer, person: &str) {
    let begun = api.send(Method::POST, &format!("/accounts/{TRACKER}/sign-ins"), None).await;
    let begun = begun.good();
    let said = |name: &str| begun[name].as_str().unwrap();
    sign_in_on(said("url"), said("code"), tracker, person).await;
    wait_until(PATIENCE, async || {
        let list = api.get("/tools").await.good();
        let is_whoami = |tool: &Value| tool["name"] == "tracker.whoami";
        list["tools"].as_array().unwrap().iter().any(is_whoami).then_some(())
    })
    .await;
}
