//! Administrators sign the board in at model providers, from their own machine.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::{Value, json};
use switchboard_auth::Role;
use switchboard_test_support::FakeAuthServer;

use crate::api_server::{Answer, Api, ApiServer};

const SIGN_INS: &str = "/api/v1/providers/cloud/sign-ins";

/// A board with a provider that has a sign-in, and with one that has a key.
async fn start(office: &FakeAuthServer) -> ApiServer {
    let issuer = office.issuer();
    ApiServer::start(&format!(
        "switchboard:\n  providers:\n    - {{name: cloud, kind: openai-chat, base_url: \"{issuer}/v1\", model: m, \
         auth: {{kind: oauth, issuer: \"{issuer}\", client_id: ours, scopes: [chat]}}}}\n    \
         - {{name: keyed, kind: openai-chat, base_url: \"{issuer}/v1\", api_key: k}}\n  toolbox:\n    mcps: []\n"
    ))
    .await
}

async fn begin(api: &Api, body: Value) -> Value {
    let begun = api.post(SIGN_INS, body).await;
    assert_eq!(begun.status, 201, "{}", begun.body);
    begun.body
}

/// The address that the browser ends at.
async fn visit(page: &Value) -> String {
    let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let browser = browser.no_proxy().build().unwrap();
    let answer = browser.get(page["url"].as_str().unwrap()).send().await.unwrap();
    answer.headers()["location"].to_str().unwrap().to_owned()
}

async fn finish(api: &Api, page: &Value, answer: &str) -> Answer {
    let path = format!("{SIGN_INS}/{}", page["id"].as_str().unwrap());
    api.post(&path, json!({ "answer": answer })).await
}

#[tokio::test]
async fn an_administrator_signs_in_with_a_browser_that_is_elsewhere() {
    let office = FakeAuthServer::open().await;
    let server = start(&office).await;
    let admin = server.api_of("admin", Role::Admin).await;
    let page = begin(&admin, json!({"credential": "work", "port": 4711})).await;
    assert_eq!(page["redirect_uri"], "http://127.0.0.1:4711/callback");
    let back = visit(&page).await;
    assert!(back.starts_with("http://127.0.0.1:4711/callback?"), "{back}");
    let done = finish(&admin, &page, &back).await.good();
    assert_eq!((&done["issuer"], &done["credential"]), (&json!(office.issuer()), &json!("work")));

    let all = admin.get("/api/v1/accounts?all=true").await.good();
    let states: Vec<_> = all["providers"].as_array().unwrap().iter().collect();
    let shown: Vec<_> = states.iter().map(|it| (&it["credential"], &it["state"])).collect();
    assert_eq!(
        shown,
        [(&json!("default"), &json!("needs_sign_in")), (&json!("work"), &json!("active"))]
    );
    for secret in ["access-1", "refresh-1", "s3cret"] {
        assert!(!all.to_string().contains(secret), "{secret}: {all}");
    }
    let path = "/api/v1/providers/cloud/account?credential=work";
    let out = admin.send(Method::DELETE, path, None).await.good();
    assert_eq!((&out["signed_out"], &out["revoked"]), (&json!(true), &json!(true)));
    assert_eq!(office.revocations(), ["refresh-1"]);
    let again = admin.send(Method::DELETE, path, None).await.good();
    assert_eq!(again["signed_out"], false);
}

#[tokio::test]
async fn an_answer_counts_once_and_only_from_the_person_who_began() {
    let office = FakeAuthServer::open().await;
    let server = start(&office).await;
    let (alice, bob) =
        (server.api_of("alice", Role::Admin).await, server.api_of("bob", Role::Admin).await);
    let page = begin(&alice, json!({"port": 4711})).await;
    let back = visit(&page).await;
    finish(&bob, &page, &back).await.problem(404, "unknown_sign_in");
    finish(&alice, &page, "two words").await.problem(409, "sign_in_failed");
    finish(&alice, &page, &back).await.good();
    finish(&alice, &page, &back).await.problem(404, "unknown_sign_in");

    let page = begin(&alice, json!({"port": 4711})).await;
    let back = visit(&page).await.replace("state=", "state=x");
    finish(&alice, &page, &back).await.problem(409, "sign_in_failed");
    assert_eq!(office.signed_in(), 1, "the code of the forged answer was not sent");
}

#[tokio::test]
async fn only_administrators_change_accounts_at_providers_and_only_where_there_is_a_sign_in() {
    let office = FakeAuthServer::open().await;
    let server = start(&office).await;
    let (operator, admin) = (
        server.api_of("operator", Role::Operator).await,
        server.api_of("admin", Role::Admin).await,
    );
    operator.post(SIGN_INS, json!({})).await.problem(403, "forbidden");
    let gone = "/api/v1/providers/cloud/account";
    operator.send(Method::DELETE, gone, None).await.problem(403, "forbidden");
    admin.post(SIGN_INS, json!({})).await.problem(409, "sign_in_failed");
    let bad = admin.post(SIGN_INS, json!({"credential": "a/b", "port": 1})).await;
    bad.problem(404, "unknown_credential");
    let keyed = admin.post("/api/v1/providers/keyed/sign-ins", json!({"port": 1})).await;
    keyed.problem(409, "no_account");
    let unknown = admin.post("/api/v1/providers/nowhere/sign-ins", json!({"port": 1})).await;
    unknown.problem(404, "unknown_provider");
    assert_eq!(admin.post(SIGN_INS, json!({"port": 0})).await.status, 422);
}
