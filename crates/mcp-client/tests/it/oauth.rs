//! Tests of OAuth: stored tokens, refreshing them, and when a sign-in is required.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use switchboard_mcp_client::{ConnectOptions, Connection, challenge_request};
use switchboard_model::{
    ClientProof, Endpoint, GrantId, LoopbackRedirect, OAuthGrant, OAuthSettings, OwnClient, Secret,
    ServerName, ServerSpec, SignInClient, SigningAlgorithm, UpstreamAuth,
};
use switchboard_oauth::{
    GrantState, MemoryTokens, OrphanCause, Renewal, SignIn, SignInCause, SignInState, SignIns,
    SignedIn, StoredGrant, TokenStore,
};
use switchboard_outbound::HttpPool;
use switchboard_test_support::{FakeAuthServer, OWN_CLIENT, wait_until};

use crate::support::{PATIENCE, call, failure, names, shown, spec, text};

/// A store that forgets everything with the test, and a clock that stands still.
#[derive(Debug)]
struct Drawer {
    tokens: Arc<MemoryTokens>,
    now: Arc<AtomicI64>,
}

impl Default for Drawer {
    fn default() -> Self {
        let now = Arc::new(AtomicI64::new(1_000_000));
        let clock = now.clone();
        Self {
            tokens: Arc::new(MemoryTokens::new(Arc::new(move || clock.load(Ordering::SeqCst)))),
            now,
        }
    }
}

impl Drawer {
    fn wait(&self, duration: Duration) {
        self.now.fetch_add(i64::try_from(duration.as_millis()).unwrap(), Ordering::SeqCst);
    }

    async fn grant(&self) -> Option<StoredGrant> {
        self.tokens.load(&tested(), None).await.unwrap()
    }
}

/// The grant that the connections of these tests use.
fn tested() -> GrantId {
    GrantId::of_server(&ServerName::new("tested"))
}

fn with_oauth(office: &FakeAuthServer, grant: OAuthGrant) -> ServerSpec {
    let (url, headers) = (office.url().parse().unwrap(), BTreeMap::new());
    let auth = UpstreamAuth::OAuth(OAuthSettings { grant, ..OAuthSettings::default() });
    spec(Endpoint::StreamableHttp { url, headers, auth })
}

fn signing_in(office: &FakeAuthServer) -> ServerSpec {
    with_oauth(office, OAuthGrant::default())
}

/// The program is its own client, with the given proof.
fn coming_itself(office: &FakeAuthServer, proof: ClientProof) -> ServerSpec {
    let client = OwnClient { id: OWN_CLIENT.0.into(), proof, issuer: None };
    with_oauth(office, OAuthGrant::ClientCredentials(client))
}

fn secret(secret: &str) -> ClientProof {
    ClientProof::Secret(Secret::new(secret))
}

fn options(drawer: &Arc<Drawer>) -> ConnectOptions {
    ConnectOptions {
        sign_ins: Some(SignIns::new(drawer.tokens.clone())),
        ..ConnectOptions::default()
    }
}

/// The page is opened, and whoever is there agrees.
async fn sign_in(spec: &ServerSpec, drawer: &Arc<Drawer>) -> Result<SignedIn, String> {
    let unsigned = challenge_request(spec, &HttpPool::default()).unwrap();
    let begun = SignIn::begin(spec, unsigned, drawer.tokens.clone()).await;
    let begun = begun.map_err(|error| shown(&error))?;
    let page = reqwest::get(begun.url().to_owned());
    let (signed_in, page) = tokio::join!(begun.finish(), page);
    assert!(page.unwrap().status().is_success());
    signed_in.map_err(|error| shown(&error))
}

async fn connected(office: &FakeAuthServer, drawer: &Arc<Drawer>) -> Arc<Connection> {
    sign_in(&signing_in(office), drawer).await.unwrap();
    Connection::open(&signing_in(office), &options(drawer)).await.unwrap().0
}

const NEEDS: &str = "sign-in: needs sign-in: run `switchboard auth login tested`";

#[tokio::test]
async fn a_server_that_wants_a_sign_in_says_so_and_works_after_it() {
    let (office, drawer) = (FakeAuthServer::open().await, Arc::<Drawer>::default());
    let (spec, options) = (signing_in(&office), options(&drawer));
    let refused = failure(Connection::open(&spec, &options).await);
    assert_eq!(refused, format!("{NEEDS} -> it opens the server's sign-in page in a browser"));
    let state = SignInState::read(&spec, &*drawer.tokens).await.unwrap();
    assert!(state.is_wanted && !state.is_signed_in);

    let sign_ins = options.sign_ins.clone().unwrap();
    let noticed = tokio::time::timeout(PATIENCE, sign_ins.changed(&spec));
    let (signed_in, noticed) = tokio::join!(sign_in(&spec, &drawer), noticed);
    let expected = SignedIn { issuer: office.issuer(), scopes: vec!["basic".into()] };
    assert_eq!((signed_in.unwrap(), noticed.is_ok()), (expected, true));
    let (connection, list) = Connection::open(&spec, &options).await.unwrap();
    assert_eq!(names(&list), ["greet"]);
    assert_eq!(text(&call(&connection, "greet", json!({})).await.unwrap()), "hello");
    let state = SignInState::read(&spec, &*drawer.tokens).await.unwrap();
    assert!(!state.is_wanted && state.is_signed_in && state.renewal == Renewal::Refresh);
    // Every request but those of strangers had the token.
    let seen = office.tokens_seen();
    assert_eq!(seen.iter().filter(|token| token.is_empty()).count(), 2, "{seen:?}");
    assert!(!format!("{drawer:?} {connection:?} {sign_ins:?}").contains("access-1"));
}

#[tokio::test]
async fn tokens_outlive_the_process_that_signed_in() {
    let (office, drawer) = (FakeAuthServer::open().await, Arc::<Drawer>::default());
    sign_in(&signing_in(&office), &drawer).await.unwrap();
    for _ in 0..2 {
        // Nothing is shared but what is kept.
        let opened = Connection::open(&signing_in(&office), &options(&drawer)).await;
        opened.unwrap().0.close().await;
    }
    assert_eq!((office.signed_in(), office.refreshed()), (1, 0));
}

#[tokio::test]
async fn an_old_token_is_renewed_once_for_all_who_wait() {
    let (office, drawer) = (FakeAuthServer::open().await, Arc::<Drawer>::default());
    let connection = connected(&office, &drawer).await;
    office.set_pause(Duration::from_millis(200));
    drawer.wait(Duration::from_secs(3590));
    let calls = join_all((0..20).map(|_| call(&connection, "greet", json!({})))).await;
    assert!(calls.iter().all(Result::is_ok), "{calls:?}");
    assert_eq!(office.refreshed(), 1);
    let seen = office.tokens_seen();
    assert!(seen.iter().rev().take(20).all(|token| token == "access-2"), "{seen:?}");
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_for_all_who_were_refused() {
    let (office, drawer) = (FakeAuthServer::open().await, Arc::<Drawer>::default());
    let connection = connected(&office, &drawer).await;
    office.set_pause(Duration::from_millis(200));
    office.revoke_access();
    let calls = join_all((0..20).map(|_| call(&connection, "greet", json!({})))).await;
    assert!(calls.iter().all(Result::is_ok), "{calls:?}");
    assert_eq!(office.refreshed(), 1);
}

#[tokio::test]
async fn a_token_that_cannot_be_renewed_needs_a_person() {
    let (office, drawer) = (FakeAuthServer::open().await, Arc::<Drawer>::default());
    let connection = connected(&office, &drawer).await;
    office.revoke_access();
    office.revoke_refresh();
    let before = office.tokens_seen().len();
    let refused = call(&connection, "greet", json!({})).await.unwrap_err();
    assert_eq!(refused.to_string(), "needs sign-in: run `switchboard auth login tested`");
    // It was not tried again with the same token.
    assert_eq!((office.tokens_seen().len() - before, office.refreshed()), (1, 1));
    let state = SignInState::read(&signing_in(&office), &*drawer.tokens).await.unwrap();
    assert_eq!(state.state, GrantState::NeedsSignIn(SignInCause::Refused));
    // Neither this process nor another one tries a refused refresh token again.
    for connection in [
        connection.clone(),
        Connection::open(&signing_in(&office), &options(&drawer))
            .await
            .map_or(connection.clone(), |opened| opened.0),
    ] {
        call(&connection, "greet", json!({})).await.unwrap_err();
    }
    assert_eq!(office.refreshed(), 1);
    sign_in(&signing_in(&office), &drawer).await.unwrap();
    call(&connection, "greet", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_renewed_token_is_kept_though_its_caller_went_away() {
    let (office, drawer) = (FakeAuthServer::open().await, Arc::<Drawer>::default());
    let connection = connected(&office, &drawer).await;
    office.set_pause(Duration::from_millis(300));
    office.revoke_access();
    let calling = call(&connection, "greet", json!({}));
    assert!(tokio::time::timeout(Duration::from_millis(150), calling).await.is_err());
    wait_until(PATIENCE, async || drawer.grant().await.filter(|grant| grant.version == 2)).await;
    call(&connection, "greet", json!({})).await.unwrap();
    assert_eq!(office.refreshed(), 1);
}

#[tokio::test]
async fn more_scopes_are_asked_for_together_with_those_before() {
    let (office, drawer) = (FakeAuthServer::open().await, Arc::<Drawer>::default());
    let connection = connected(&office, &drawer).await;
    office.need_scope("write");
    let refused = call(&connection, "greet", json!({})).await.unwrap_err();
    assert_eq!(refused.to_string(), "needs sign-in: run `switchboard auth login tested`");
    let state = SignInState::read(&signing_in(&office), &*drawer.tokens).await.unwrap();
    assert_eq!(state.wanted_scopes, ["basic", "write"]);
    assert_eq!(state.state, GrantState::NeedsSignIn(SignInCause::MoreScopes));
    sign_in(&signing_in(&office), &drawer).await.unwrap();
    assert_eq!(office.asked(), ["basic", "basic write"]);
    // The same connection, at once.
    call(&connection, "greet", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_wrong_issuer_is_refused_wherever_it_is_named() {
    let (office, drawer) = (FakeAuthServer::open().await, Arc::<Drawer>::default());
    let spec = signing_in(&office);
    for wrong in ["https://evil.example.com".to_owned(), format!("{}/", office.issuer())] {
        office.return_issuer(&wrong);
        let refused = sign_in(&spec, &drawer).await.unwrap_err();
        assert!(refused.contains("issuer mismatch"), "{refused}");
    }
    office.claim_issuer("https://evil.example.com");
    let refused = sign_in(&spec, &drawer).await.unwrap_err();
    assert!(refused.starts_with("protocol: "), "{refused}");
    assert_eq!(office.signed_in(), 0);
    assert!(drawer.grant().await.is_none());
}

#[tokio::test]
async fn tokens_are_sent_to_no_other_address() {
    let (office, other) = (FakeAuthServer::open().await, FakeAuthServer::open().await);
    let drawer = Arc::<Drawer>::default();
    sign_in(&signing_in(&office), &drawer).await.unwrap();
    let refused = failure(Connection::open(&signing_in(&other), &options(&drawer)).await);
    assert!(refused.starts_with(NEEDS), "{refused}");
    assert_eq!(other.tokens_seen(), [""]);
    let state = SignInState::read(&signing_in(&other), &*drawer.tokens).await.unwrap();
    assert_eq!(state.state, GrantState::Orphaned(OrphanCause::AddressChanged));
}

#[tokio::test]
async fn tokens_are_sent_to_no_other_issuer() {
    let (office, other) = (FakeAuthServer::open().await, FakeAuthServer::open().await);
    let drawer = Arc::<Drawer>::default();
    let connection = connected(&office, &drawer).await;
    office.revoke_access();
    office.name_issuer(&other.issuer());
    let refused = call(&connection, "greet", json!({})).await.unwrap_err();
    assert!(refused.to_string().starts_with("needs sign-in"), "{refused}");
    assert_eq!((office.refreshed(), other.refreshed()), (0, 0));
    let state = SignInState::read(&signing_in(&office), &*drawer.tokens).await.unwrap();
    assert_eq!(state.state, GrantState::Orphaned(OrphanCause::IssuerChanged));
}

#[tokio::test]
async fn a_sign_out_elsewhere_is_noticed() {
    let (office, drawer) = (FakeAuthServer::open().await, Arc::<Drawer>::default());
    let connection = connected(&office, &drawer).await;
    drawer.tokens.forget(&tested()).await.unwrap();
    let noticed = async || call(&connection, "greet", json!({})).await.is_err();
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !noticed().await {
        assert!(tokio::time::Instant::now() < deadline, "still let in");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(office.tokens_seen().last().map(String::as_str), Some(""));
}

#[tokio::test]
async fn a_registration_is_used_again_where_the_browser_comes_back_to_the_same_port() {
    let (office, drawer) = (FakeAuthServer::open().await, Arc::<Drawer>::default());
    let port = Some(switchboard_test_support::free_port());
    let redirect = LoopbackRedirect { port, ..LoopbackRedirect::default() };
    let grant = OAuthGrant::SignIn(SignInClient { redirect, ..SignInClient::default() });
    let spec = with_oauth(&office, grant);
    for _ in 0..2 {
        sign_in(&spec, &drawer).await.unwrap();
    }
    assert_eq!((office.signed_in(), office.registered()), (2, 1));
}

#[tokio::test]
async fn a_client_of_its_own_needs_nobody() {
    let (office, drawer) = (FakeAuthServer::open().await, Arc::<Drawer>::default());
    let spec = coming_itself(&office, secret(OWN_CLIENT.1));
    let state = SignInState::read(&spec, &*drawer.tokens).await.unwrap();
    assert!(!state.is_wanted && state.renewal == Renewal::OwnClient);
    let (connection, list) = Connection::open(&spec, &options(&drawer)).await.unwrap();
    assert_eq!(names(&list), ["greet"]);
    assert_eq!(text(&call(&connection, "greet", json!({})).await.unwrap()), "hello");
    connection.close().await;
    // Another process has the token of the first.
    Connection::open(&spec, &options(&drawer)).await.unwrap().0.close().await;
    assert_eq!((office.came_itself(), office.signed_in(), office.registered()), (1, 0, 0));
    assert!(drawer.tokens.need(&tested()).await.unwrap().is_none());
    // Who has the token cannot tell the secret.
    let kept = drawer.grant().await.unwrap().content.unwrap();
    assert!(!kept.expose().contains(OWN_CLIENT.1));
    let refused = sign_in(&spec, &drawer).await.unwrap_err();
    assert!(refused.contains("'tested' needs no sign-in"), "{refused}");
}

#[tokio::test]
async fn a_client_of_its_own_gets_a_new_token_once_for_all_who_wait() {
    let (office, drawer) = (FakeAuthServer::open().await, Arc::<Drawer>::default());
    let spec = coming_itself(&office, secret(OWN_CLIENT.1));
    let (connection, _) = Connection::open(&spec, &options(&drawer)).await.unwrap();
    office.set_pause(Duration::from_millis(200));
    let all_call = async || {
        let calls = join_all((0..20).map(|_| call(&connection, "greet", json!({})))).await;
        assert!(calls.iter().all(Result::is_ok), "{calls:?}");
    };
    drawer.wait(Duration::from_secs(3590));
    all_call().await;
    assert_eq!((office.came_itself(), office.refreshed()), (2, 0), "an old token");
    assert_eq!(office.asked(), ["basic", "basic"], "what the server named at first");
    office.revoke_access();
    all_call().await;
    assert_eq!((office.came_itself(), office.refreshed()), (3, 0), "a refused token");
}

#[tokio::test]
async fn a_client_of_its_own_asks_for_more_scopes_by_itself() {
    let (office, drawer) = (FakeAuthServer::open().await, Arc::<Drawer>::default());
    let spec = coming_itself(&office, secret(OWN_CLIENT.1));
    let (connection, _) = Connection::open(&spec, &options(&drawer)).await.unwrap();
    office.need_scope("write");
    call(&connection, "greet", json!({})).await.unwrap();
    office.revoke_access();
    call(&connection, "greet", json!({})).await.unwrap();
    // What it has once it does not give up; in which order it names them does not matter.
    let asked = office.asked().into_iter().map(|scopes| {
        let mut words: Vec<_> = scopes.split(' ').map(str::to_owned).collect();
        words.sort();
        words.join(" ")
    });
    assert_eq!(asked.collect::<Vec<_>>(), ["basic", "basic write", "basic write"]);
}

#[tokio::test]
async fn a_client_of_its_own_that_is_refused_says_who_refuses_it_and_not_its_proof() {
    let (office, drawer) = (FakeAuthServer::open().await, Arc::<Drawer>::default());
    let key = ClientProof::Key {
        pem: Secret::new("-----BEGIN s3cret-key"),
        algorithm: SigningAlgorithm::Es256,
    };
    for proof in [secret("s3cret-wrong"), key] {
        let refused =
            failure(Connection::open(&coming_itself(&office, proof), &options(&drawer)).await);
        let expected = format!(
            "unauthorized: {} issues no token to the client '{}': ",
            office.issuer(),
            OWN_CLIENT.0
        );
        assert!(refused.starts_with(&expected), "{refused}");
        assert!(
            refused.ends_with("`client_id`, its credentials and `scopes` in `auth.oauth`"),
            "{refused}"
        );
        assert!(!refused.contains("s3cret"), "{refused}");
    }
    assert!(drawer.grant().await.is_none());
}

#[tokio::test]
async fn a_refusal_is_for_all_who_wait() {
    let (office, drawer) = (FakeAuthServer::open().await, Arc::<Drawer>::default());
    let spec = coming_itself(&office, secret(OWN_CLIENT.1));
    let (connection, _) = Connection::open(&spec, &options(&drawer)).await.unwrap();
    office.set_pause(Duration::from_millis(300));
    office.revoke_access();
    office.refuse_own_client();
    let calls = join_all((0..20).map(|_| call(&connection, "greet", json!({})))).await;
    assert!(calls.iter().all(Result::is_err), "{calls:?}");
    // Once before, and then once or twice: somebody may have been refused only after it was asked.
    assert!(office.came_itself() <= 3, "{} times", office.came_itself());
}

#[tokio::test]
async fn a_client_of_its_own_does_not_ask_for_what_only_people_need() {
    let (office, drawer) = (FakeAuthServer::open().await, Arc::<Drawer>::default());
    office.offer_to_stay();
    let spec = coming_itself(&office, secret(OWN_CLIENT.1));
    Connection::open(&spec, &options(&drawer)).await.unwrap().0.close().await;
    sign_in(&signing_in(&office), &drawer).await.unwrap();
    assert_eq!(office.asked(), ["basic", "basic offline_access"]);
}

#[tokio::test]
async fn a_proof_is_not_shown_to_an_issuer_that_takes_the_place_of_another() {
    let (office, other) = (FakeAuthServer::open().await, FakeAuthServer::open().await);
    let drawer = Arc::<Drawer>::default();
    let spec = coming_itself(&office, secret(OWN_CLIENT.1));
    Connection::open(&spec, &options(&drawer)).await.unwrap().0.close().await;
    office.revoke_access();
    office.name_issuer(&other.issuer());
    let refused = failure(Connection::open(&spec, &options(&drawer)).await);
    let expected = format!(
        "unauthorized: the server names the issuer {}, but the client belongs to {} -> if the change is \
         intended, `switchboard auth logout` removes the old one",
        other.issuer(),
        office.issuer()
    );
    assert_eq!(refused, expected);
    assert_eq!(other.came_itself(), 0);
}

#[tokio::test]
async fn the_tokens_of_a_person_and_of_the_program_are_not_taken_for_each_other() {
    let (office, drawer) = (FakeAuthServer::open().await, Arc::<Drawer>::default());
    sign_in(&signing_in(&office), &drawer).await.unwrap();
    let own = coming_itself(&office, secret(OWN_CLIENT.1));
    Connection::open(&own, &options(&drawer)).await.unwrap().0.close().await;
    assert_eq!(office.tokens_seen().last().map(String::as_str), Some("access-2"));
    let refused = failure(Connection::open(&signing_in(&office), &options(&drawer)).await);
    assert!(refused.starts_with(NEEDS), "{refused}");
}

#[tokio::test]
async fn scopes_that_are_taken_out_of_the_configuration_are_not_asked_for_again() {
    let (office, drawer) = (FakeAuthServer::open().await, Arc::<Drawer>::default());
    for scopes in [vec!["basic", "old"], vec!["basic"]] {
        let mut spec = coming_itself(&office, secret(OWN_CLIENT.1));
        if let Endpoint::StreamableHttp { auth: UpstreamAuth::OAuth(settings), .. } =
            &mut spec.endpoint
        {
            settings.scopes = scopes.into_iter().map(str::to_owned).collect();
        }
        office.revoke_access();
        Connection::open(&spec, &options(&drawer)).await.unwrap().0.close().await;
    }
    assert_eq!(office.asked(), ["basic old", "basic"]);
}
