//! The ways to sign in: loopback page, hosted callback, pasted answer, other device; and to sign out.

use std::sync::Arc;

use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use switchboard_model::{
    ConnectErrorKind, DescribedIssuer, GrantId, GrantOwner, LoopbackRedirect, RedirectHost, Secret,
    ServerName, SignInClient, TokenRequestFormat,
};
use switchboard_oauth::{
    AuthorizationResponse, DeviceFlow, GrantState, HostedSignIn, RevocationTarget, SignIn, SignIns,
    SignedOut, TokenStore, sign_out,
};
use switchboard_test_support::{CODE, FakeAuthServer, free_port};
use url::Url;

use crate::support::{Desk, HOUR, bearer, id, issuer, spec, url};

#[tokio::test]
async fn a_described_issuer_needs_no_discovery() {
    for format in [TokenRequestFormat::Form, TokenRequestFormat::Json] {
        let (server, desk) = (FakeAuthServer::open().await, Desk::new());
        let mut issuer = issuer(&server);
        issuer.token_auth = format;
        issuer.client_secret = Some(Secret::new("s3cret"));
        let port = free_port();
        issuer.redirect = LoopbackRedirect {
            host: RedirectHost::Localhost,
            port: Some(port),
            path: "/auth/callback".into(),
        };
        let begun =
            SignIn::described(id(), &url(&server), &issuer, desk.tokens.clone()).await.unwrap();
        let page: Url = begun.url().parse().unwrap();
        let pairs: Vec<(String, String)> = page.query_pairs().into_owned().collect();
        let value =
            |key: &str| pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
        assert_eq!(value("access_type"), Some("offline"));
        assert_eq!(value("redirect_uri"), Some(&*format!("http://localhost:{port}/auth/callback")));
        assert_eq!(value("scope"), Some("chat"));
        assert_eq!(value("resource"), None);
        let browser = reqwest::get(begun.url().to_owned());
        let (signed_in, _page) = tokio::join!(begun.finish(), browser);
        assert_eq!(signed_in.unwrap().scopes, ["chat"]);
        let asked = server.token_requests().remove(0);
        assert_eq!(
            (asked["client_id"].as_str(), asked["client_secret"].as_str()),
            ("ours", "s3cret")
        );
        let token = desk.process(&server).token().await.unwrap().unwrap();
        assert_eq!(bearer(&token), "access-1");
        assert_eq!(desk.state(&server).await, GrantState::Active);
    }
}

#[tokio::test]
async fn a_sign_in_to_a_server_names_the_resource_in_both_requests() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    let spec = spec(&server, SignInClient::default());
    let begun = SignIn::begin(&spec, None, desk.tokens.clone()).await.unwrap();
    let page: Url = begun.url().parse().unwrap();
    let resource = page.query_pairs().find(|(key, _)| key == "resource").unwrap().1.into_owned();
    assert_eq!(resource, server.url());
    let browser = reqwest::get(begun.url().to_owned());
    let (signed_in, _page) = tokio::join!(begun.finish(), browser);
    signed_in.unwrap();
    assert_eq!(server.token_requests()[0]["resource"], server.url());
    assert_eq!(server.registrations()[0]["application_type"], "native");
}

/// Follows the redirects of the sign-in page up to the callback, and gives back its query.
async fn answer_of(page: &str) -> String {
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
    let answer = client.unwrap().get(page).send().await.unwrap();
    let back = answer.headers()["location"].to_str().unwrap().to_owned();
    back.split_once('?').unwrap().1.to_owned()
}

#[tokio::test]
async fn the_answer_may_be_pasted() {
    for form in ["url", "code#state", "code"] {
        let (server, desk) = (FakeAuthServer::open().await, Desk::new());
        let begun = SignIn::described(id(), &url(&server), &issuer(&server), desk.tokens.clone())
            .await
            .unwrap();
        let query = answer_of(begun.url()).await;
        let read = AuthorizationResponse::from_query(&query);
        assert!(!format!("{read:?}").contains("s3cret"));
        let value = |key: &str| {
            let mut pairs = url::form_urlencoded::parse(query.as_bytes());
            pairs.find(|(name, _)| name == key).unwrap().1.into_owned()
        };
        let text = match form {
            "url" => format!("http://127.0.0.1:1/callback?{query}"),
            "code" => value("code"),
            _ => format!("{}#{}", value("code"), value("state")),
        };
        let pasted = AuthorizationResponse::from_pasted(&text).unwrap();
        // What is pasted without its `iss` cannot be checked by it; the verifier binds the code to this flow.
        let signed_in = begun.finish_or_pasted(async { pasted }).await;
        assert!(signed_in.is_ok(), "{form}: {signed_in:?}");
    }
}

async fn hosted(
    server: &FakeAuthServer,
    desk: &Desk,
    owner: &str,
    document: Option<&Url>,
) -> HostedSignIn {
    let redirect_uri = "https://board.example.com/oauth/callback".parse().unwrap();
    let spec = spec(server, SignInClient::default());
    let owner = GrantOwner::Person(owner.into());
    let tokens = desk.tokens.clone();
    HostedSignIn::begin(&spec, owner, &redirect_uri, document, None, tokens).await.unwrap()
}

#[tokio::test]
async fn the_boards_callback_stores_the_account_of_the_owner() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    let iss = server.issuer();
    for person in ["user:alice", "user:bob"] {
        let flow = hosted(&server, &desk, person, None).await;
        answer_of(flow.url()).await;
        assert!(flow.accepts_issuer(Some(&iss)) && !flow.accepts_issuer(None));
        flow.finish(CODE, Some(&iss)).await.unwrap();
        let id = GrantId::of_server(&ServerName::new("tracker"))
            .with_owner(GrantOwner::Person(person.into()));
        assert!(desk.tokens.load(&id, None).await.unwrap().is_some());
    }
    let board = GrantId::of_server(&ServerName::new("tracker"));
    assert!(desk.tokens.load(&board, None).await.unwrap().is_none());
    // One registration serves all owners.
    assert_eq!(server.registrations()[0]["application_type"], "web");
    assert_eq!(server.registered(), 1);
}

#[tokio::test]
async fn a_client_metadata_document_takes_the_place_of_a_registration() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    server.read_documents();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: Url =
        format!("http://{}/client.json", listener.local_addr().unwrap()).parse().unwrap();
    let document = json!({
        "client_id": address.as_str(), "client_name": "Switchboard",
        "redirect_uris": ["https://board.example.com/oauth/callback"],
    });
    let router = Router::new().route("/client.json", get(move || async move { Json(document) }));
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
    let flow = hosted(&server, &desk, "user:alice", Some(&address)).await;
    answer_of(flow.url()).await;
    flow.finish(CODE, Some(&server.issuer())).await.unwrap();
    assert_eq!(server.registered(), 0);
    assert_eq!(server.token_requests()[0]["client_id"], address.as_str());
}

async fn device(server: &FakeAuthServer, desk: &Desk) -> DeviceFlow {
    let (url, issuer) = (url(server), issuer(server));
    DeviceFlow::described(id(), &url, &issuer, desk.tokens.clone()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_device_is_asked_for_until_the_person_agrees() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    server.answer_device(&["authorization_pending", "slow_down", "authorization_pending"]);
    let flow = device(&server, &desk).await;
    assert_eq!(flow.user_code, "WDJB-MJHT");
    assert_eq!(flow.verification_uri, format!("{}/verify", server.issuer()));
    let began = tokio::time::Instant::now();
    assert_eq!(flow.finish().await.unwrap().scopes, ["chat"]);
    // 1 s, 1 s, then 6 s twice.
    assert_eq!((server.device_polls(), began.elapsed().as_secs()), (4, 14));
    assert_eq!(bearer(&desk.process(&server).token().await.unwrap().unwrap()), "access-1");
}

#[tokio::test(start_paused = true)]
async fn a_device_code_that_ends_says_how() {
    for (error, kind, shown) in [
        ("expired_token", ConnectErrorKind::Timeout, "the code has expired"),
        ("access_denied", ConnectErrorKind::Unauthorized, "refused on the other device"),
        ("invalid_client", ConnectErrorKind::Unauthorized, "refuses: invalid_client"),
    ] {
        let (server, desk) = (FakeAuthServer::open().await, Desk::new());
        server.answer_device(&["authorization_pending", error]);
        let failed = device(&server, &desk).await.finish().await.unwrap_err();
        assert_eq!(failed.kind, kind, "{error}");
        assert!(failed.message.contains(shown), "{failed}");
        assert_eq!(server.device_polls(), 2);
        assert!(desk.tokens.load(&id(), None).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn signing_out_revokes_the_refresh_token_and_forgets_it() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    let described = issuer(&server);
    let out = async || {
        sign_out(&id(), RevocationTarget::Described(&described), &*desk.tokens).await.unwrap()
    };
    assert_eq!(out().await, SignedOut::WasNot);
    desk.sign_in(&server).await;
    assert_eq!(out().await, SignedOut::Revoked);
    assert_eq!(server.revocations(), ["refresh-1"]);
    assert!(desk.tokens.load(&id(), None).await.unwrap().is_none());

    desk.sign_in(&server).await;
    let gone = DescribedIssuer {
        revoke_url: Some(format!("http://127.0.0.1:{}/revoke", free_port()).parse().unwrap()),
        ..described.clone()
    };
    let target = RevocationTarget::Described(&gone);
    let left = sign_out(&id(), target, &*desk.tokens).await.unwrap();
    assert!(matches!(left, SignedOut::NotRevoked(_)), "{left:?}");
    assert!(desk.tokens.load(&id(), None).await.unwrap().is_none(), "forgotten all the same");
}

#[tokio::test]
async fn signing_out_of_a_server_revokes_where_its_metadata_says() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    let spec = spec(&server, SignInClient::default());
    let begun = SignIn::begin(&spec, None, desk.tokens.clone()).await.unwrap();
    let browser = reqwest::get(begun.url().to_owned());
    let (signed_in, _page) = tokio::join!(begun.finish(), browser);
    signed_in.unwrap();
    let (url, settings) = spec.endpoint.oauth().unwrap();
    let tokens: Arc<dyn TokenStore> = desk.tokens.clone();
    let id = GrantId::of_server(&spec.name);
    let out = sign_out(&id, RevocationTarget::Server(url, settings), &*tokens).await.unwrap();
    assert_eq!((out, server.revocations()), (SignedOut::Revoked, vec!["refresh-1".into()]));
}

/// The authorization server, named by its issuer alone.
fn named(server: &FakeAuthServer) -> DescribedIssuer {
    DescribedIssuer {
        authorize_url: None,
        token_url: None,
        device_url: None,
        revoke_url: None,
        ..issuer(server)
    }
}

#[tokio::test]
async fn the_endpoints_of_an_issuer_are_read_from_its_metadata() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    let named = named(&server);
    let begun = SignIn::described(id(), &url(&server), &named, desk.tokens.clone()).await.unwrap();
    let browser = reqwest::get(begun.url().to_owned());
    let (signed_in, _page) = tokio::join!(begun.finish(), browser);
    assert_eq!(signed_in.unwrap().issuer, server.issuer());
    let account = SignIns::new(desk.tokens.clone()).described(id(), &url(&server), &named);
    assert_eq!(bearer(&account.token().await.unwrap().unwrap()), "access-1");
    desk.wait(HOUR);
    assert_eq!(bearer(&account.token().await.unwrap().unwrap()), "access-2", "renewed there too");
    let target = RevocationTarget::Described(&named);
    assert_eq!(sign_out(&id(), target, &*desk.tokens).await.unwrap(), SignedOut::Revoked);
    let url = url(&server);
    let device = DeviceFlow::described(id(), &url, &named, desk.tokens.clone()).await.unwrap();
    assert!(device.finish().await.is_ok());
}

#[tokio::test]
async fn an_answer_without_the_announced_issuer_is_refused_for_a_named_issuer() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    server.omit_iss();
    let (url, named) = (url(&server), named(&server));
    let begun = SignIn::described(id(), &url, &named, desk.tokens.clone()).await.unwrap();
    let browser = reqwest::get(begun.url().to_owned());
    let (signed_in, _page) = tokio::join!(begun.finish(), browser);
    assert!(signed_in.unwrap_err().message.contains("issuer mismatch"));
    assert_eq!(server.signed_in(), 0, "the code was not sent");
}

#[tokio::test]
async fn metadata_that_names_another_issuer_is_not_used() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    server.claim_issuer("https://evil.example");
    let begun = SignIn::described(id(), &url(&server), &named(&server), desk.tokens.clone()).await;
    let refused = begun.unwrap_err();
    assert_eq!(refused.kind, ConnectErrorKind::Protocol);
    assert!(refused.message.contains("names the issuer"), "{refused}");
}

#[tokio::test]
async fn a_client_for_another_device_is_registered_once_and_with_its_grant_type() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    let spec = spec(&server, SignInClient::default());
    for _ in 0..2 {
        let flow = DeviceFlow::server(&spec, None, desk.tokens.clone()).await.unwrap();
        flow.finish().await.unwrap();
    }
    let registrations = server.registrations();
    assert_eq!(registrations.len(), 1, "{registrations:?}");
    let types = registrations[0]["grant_types"].as_array().unwrap();
    assert!(types.contains(&json!("urn:ietf:params:oauth:grant-type:device_code")), "{types:?}");
}
