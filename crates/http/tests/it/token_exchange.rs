//! Servers that are called with tokens which the issuer of the board exchanges for those of callers.

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_auth::{GatekeeperOptions, Role};
use switchboard_test_support::{AccountEra, AccountServer, wait_until};

use crate::api_server::{Api, ApiServer, PATIENCE};
use crate::jwt_key::JwtKey;

const CALL: &str = "/api/v1/tools/tracker.whoami/call";

/// A board that accepts tokens of the authorization server of its MCP server.
struct Exchanges {
    server: ApiServer,
    tracker: AccountServer,
    key: JwtKey,
    _directory: tempfile::TempDir,
}

impl Exchanges {
    async fn start(era: AccountEra) -> Self {
        let (tracker, key) = (AccountServer::open(era).await, JwtKey::new());
        let directory = tempfile::tempdir().unwrap();
        let options = key.options(&tracker.issuer(), directory.path());
        let server = ApiServer::without_board_but(GatekeeperOptions { jwt: Some(options) }).await;
        server.start_board(&config(&tracker, directory.path().to_str().unwrap())).await;
        Self { server, tracker, key, _directory: directory }
    }

    fn of(&self, person: &str) -> Api {
        self.server.api().with_key(&self.token(person, 3600))
    }

    fn token(&self, person: &str, lifetime: i64) -> String {
        self.key.sign(&self.tracker.issuer(), person, lifetime)
    }
}

fn config(tracker: &AccountServer, directory: &str) -> String {
    let issuer = tracker.issuer();
    format!(
        "switchboard:\n  security:\n    jwt:\n      issuer: \"{issuer}\"\n      audience: https://board.example/mcp\n      \
         jwks_file: {directory}/jwks.json\n  toolbox:\n    mcps:\n      - {{name: tracker, url: \"{}\", \
         mode: dynamic, default_tool_config: {{max_instances: 10, timeout: 30s}}, auth: {{oauth: {{grant: token_exchange, \
         client_id: exchanger, client_secret: s3cret-exchanger, scopes: [basic]}}}}}}\n",
        tracker.url()
    )
}

async fn call(api: &Api) -> String {
    let called = wait_until(PATIENCE, async || {
        let called = api.post(CALL, json!({})).await;
        // Until the first token was shown, the tools are not known.
        (called.status != 404).then_some(called)
    })
    .await;
    called.good()["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn each_caller_uses_the_token_that_was_exchanged_for_their_own() {
    for era in [AccountEra::Session, AccountEra::Stateless] {
        let exchanges = Exchanges::start(era).await;
        let (alice, bob) = (exchanges.of("alice"), exchanges.of("bob"));
        for _ in 0..5 {
            assert_eq!(call(&alice).await, "alice");
            assert_eq!(call(&bob).await, "bob");
        }
        assert_eq!(exchanges.tracker.exchanges(), 2, "a token is exchanged once and then used");
        assert_eq!(exchanges.tracker.violations(), Vec::<String>::new());
        let shown = exchanges.tracker.bearers();
        assert!(!shown.is_empty());
        for inbound in [alice.key().unwrap(), bob.key().unwrap()] {
            assert!(!shown.iter().any(|token| token == inbound), "an inbound token was sent on");
        }
    }
}

#[tokio::test]
async fn tokens_of_one_person_with_different_scopes_are_exchanged_for_different_ones() {
    let exchanges = Exchanges::start(AccountEra::Stateless).await;
    let with = |scope: &str| {
        let token = exchanges.key.sign_for(&exchanges.tracker.issuer(), "alice", 3600, scope);
        exchanges.server.api().with_key(&token)
    };
    let (reads, writes, same) = (with("read"), with("write read"), with("read write"));
    for (api, made) in [(&reads, 1), (&writes, 2), (&reads, 2), (&same, 2)] {
        assert_eq!(call(api).await, "alice");
        assert_eq!(exchanges.tracker.exchanges(), made);
    }
}

#[tokio::test]
async fn an_exchanged_token_that_the_server_refuses_is_exchanged_again_once() {
    let exchanges = Exchanges::start(AccountEra::Stateless).await;
    let alice = exchanges.of("alice");
    call(&alice).await;
    let before = exchanges.tracker.exchanges();
    exchanges.tracker.revoke_access();
    assert_eq!(call(&alice).await, "alice");
    assert_eq!(exchanges.tracker.exchanges(), before + 1);
}

#[tokio::test]
async fn a_caller_without_a_token_is_told_so() {
    let exchanges = Exchanges::start(AccountEra::Stateless).await;
    call(&exchanges.of("alice")).await;
    let keyed = exchanges.server.api_of("robot", Role::Client).await;
    let refused = keyed.post(CALL, json!({})).await;
    assert!(refused.body["detail"].as_str().unwrap().contains("the token of the caller"));
    refused.problem(503, "unavailable");
    assert_eq!(exchanges.tracker.calls(), ["alice"]);
}

#[tokio::test]
async fn a_refusal_of_the_issuer_names_the_way_out_and_no_token() {
    let exchanges = Exchanges::start(AccountEra::Stateless).await;
    call(&exchanges.of("alice")).await;
    exchanges.tracker.refuse_exchanges("invalid_target");
    let bob = exchanges.of("bob");
    let refused = bob.post(CALL, json!({})).await;
    let detail = refused.body.to_string();
    assert!(detail.contains("invalid_target"), "{detail}");
    assert!(!detail.contains(bob.key().unwrap()) && !detail.contains("s3cret"), "{detail}");
    refused.problem(503, "unavailable");
}

#[tokio::test]
async fn an_issuer_that_returns_the_inbound_token_is_refused() {
    let exchanges = Exchanges::start(AccountEra::Stateless).await;
    call(&exchanges.of("alice")).await;
    exchanges.tracker.echo_exchanges();
    let refused = exchanges.of("bob").post(CALL, json!({})).await;
    assert!(refused.body["detail"].as_str().unwrap().contains("caller's own token"));
    assert_eq!(exchanges.tracker.calls(), ["alice"]);
}
