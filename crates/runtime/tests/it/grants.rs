//! Grants in the store of two processes, with an issuer that ends a sign-in when a refresh token is used twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures::future::join_all;
use switchboard_model::{
    DescribedIssuer, GrantId, LoopbackRedirect, StoreKey, StoreKeys, TokenRequestFormat,
};
use switchboard_oauth::{SignIn, SignIns};
use switchboard_runtime::StoredTokens;
use switchboard_store::Store;
use switchboard_test_support::FakeAuthServer;
use url::Url;

const ACCOUNTS: usize = 50;
const ROUNDS: usize = 20;

fn issuer(server: &FakeAuthServer) -> DescribedIssuer {
    let at = |path: &str| format!("{}/{path}", server.issuer()).parse().unwrap();
    DescribedIssuer {
        issuer: Some(server.issuer()),
        authorize_url: Some(at("authorize")),
        token_url: at("token"),
        device_url: None,
        revoke_url: None,
        client_id: "ours".into(),
        client_secret: None,
        scopes: Vec::new(),
        extra_params: BTreeMap::new(),
        token_auth: TokenRequestFormat::Form,
        redirect: LoopbackRedirect::default(),
    }
}

/// Each account is renewed by both processes at once, round after round: 1,000 rounds in all. The accounts take turns at
/// the same time, because a process that waits for another one polls.
#[tokio::test(flavor = "multi_thread")]
async fn attack_8_two_processes_renew_a_thousand_times_and_lose_no_sign_in() {
    let directory = tempfile::tempdir().unwrap();
    let server = FakeAuthServer::open().await;
    server.revoke_families_on_reuse();
    let (issuer, url): (_, Url) = (issuer(&server), server.url().parse().unwrap());
    let now = Arc::new(AtomicI64::new(1_700_000_000_000));
    let key = StoreKey::parse(&"07".repeat(32));
    let mut processes = Vec::new();
    for _ in 0..2 {
        let store = Store::open(directory.path()).await.unwrap();
        store.set_grant_keys(&StoreKeys { current: key.clone(), previous: Vec::new() });
        let clock = now.clone();
        let clock = Arc::new(move || clock.load(Ordering::SeqCst));
        processes.push(SignIns::new(Arc::new(StoredTokens::with_clock(store, clock))));
    }
    let accounts: Vec<_> =
        (0..ACCOUNTS).map(|n| GrantId::of_provider("google", &format!("c{n}"))).collect();
    for id in &accounts {
        let tokens = processes[0].tokens().clone();
        let begun = SignIn::described(id.clone(), &url, &issuer, tokens).await.unwrap();
        let page = reqwest::get(begun.url().to_owned());
        let (signed_in, _page) = tokio::join!(begun.finish(), page);
        signed_in.unwrap();
    }
    for round in 1..=ROUNDS {
        now.fetch_add(7_200_000, Ordering::SeqCst);
        let users = accounts.iter().flat_map(|id| {
            processes.iter().map(|process| {
                let account = process.described(id.clone(), &url, &issuer);
                async move { account.token().await.unwrap().unwrap().access_token() }
            })
        });
        let tokens = join_all(users).await;
        for pair in tokens.chunks(2) {
            assert_eq!(pair[0].expose(), pair[1].expose(), "both use the one new token");
        }
        assert_eq!((server.refreshed(), server.reused()), (round * ACCOUNTS, 0), "round {round}");
    }
    for id in &accounts {
        let kept = processes[1].tokens().load(id, None).await.unwrap().unwrap();
        assert_eq!(kept.version, i64::try_from(ROUNDS + 1).unwrap());
        assert!(kept.is_encrypted);
    }
}
