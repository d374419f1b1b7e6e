//! Attacks on sign-ins: reused and foreign answers, foreign issuers, unsafe addresses, and secrets in messages.

use serde_json::json;
use switchboard_model::{ConnectError, DescribedIssuer, SignInClient};
use switchboard_oauth::{
    AuthorizationResponse, CodeFlow, RequestAttempt, RevocationTarget, SignIn, SignIns, SignedOut,
    TokenStore, is_web_address, sign_out,
};
use switchboard_test_support::{CODE, FakeAuthServer};

use crate::support::{Desk, id, issuer, spec, url};

async fn flow(server: &FakeAuthServer, desk: &Desk) -> CodeFlow {
    let redirect_uri = "https://board.example.com/oauth/callback";
    CodeFlow::described(id(), &url(server), &issuer(server), redirect_uri, desk.tokens.clone())
        .await
        .unwrap()
}

/// Opens the page, so that the server knows the challenge of the flow.
async fn open(page: &str) {
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
    client.unwrap().get(page).send().await.unwrap();
}

#[tokio::test]
async fn attack_2_an_answer_counts_once_and_for_its_own_flow() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    let answer = |state: &str| {
        AuthorizationResponse::from_query(&format!(
            "code={CODE}&state={state}&iss={}",
            server.issuer()
        ))
    };
    let refused = flow(&server, &desk).await.finish(answer("another")).await.unwrap_err();
    assert_eq!(refused.message, "the answer belongs to another sign-in");
    assert_eq!(server.signed_in(), 0, "the code was not sent");
    let first = flow(&server, &desk).await;
    open(first.url()).await;
    let state = first.state().to_owned();
    first.finish(answer(&state)).await.unwrap();
    // The flow is gone. Its code is bound to its verifier: another flow cannot use it.
    let second = flow(&server, &desk).await;
    assert_ne!(second.state(), state);
    let state = second.state().to_owned();
    let refused = second.finish(answer(&state)).await.unwrap_err();
    assert!(refused.message.contains("invalid_grant"), "{refused}");
}

#[tokio::test]
async fn attack_2_a_wrong_issuer_is_refused_before_the_code_is_sent_and_its_text_is_not_shown() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    for query in [
        format!("code={CODE}&iss=https://evil.example.com"),
        format!("code={CODE}&iss={}/", server.issuer()),
        "error=access_denied&error_description=call+555-EVIL&iss=https://evil.example.com".into(),
    ] {
        let flow = flow(&server, &desk).await;
        let query = format!("{query}&state={}", flow.state());
        let refused = flow.finish(AuthorizationResponse::from_query(&query)).await.unwrap_err();
        assert!(refused.message.contains("issuer mismatch"), "{refused}");
        assert!(!format!("{refused:?}").to_lowercase().contains("evil"), "{refused:?}");
    }
    assert_eq!(server.signed_in(), 0);
    assert!(desk.tokens.load(&id(), None).await.unwrap().is_none());
}

async fn sign_in_at(server: &FakeAuthServer, desk: &Desk) -> Result<(), ConnectError> {
    let spec = spec(server, SignInClient::default());
    let begun = SignIn::begin(&spec, None, desk.tokens.clone()).await?;
    let browser = reqwest::get(begun.url().to_owned());
    let (signed_in, _page) = tokio::join!(begun.finish(), browser);
    signed_in.map(|_| ())
}

#[tokio::test]
async fn attack_2_an_announced_issuer_must_not_be_missing() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    server.omit_iss();
    let refused = sign_in_at(&server, &desk).await.unwrap_err();
    assert!(refused.message.contains("issuer mismatch: the answer names no issuer"), "{refused}");
    assert_eq!(server.signed_in(), 0);
    server.set_metadata(json!({"authorization_response_iss_parameter_supported": null}));
    sign_in_at(&server, &desk).await.unwrap();
}

#[tokio::test]
async fn an_error_of_the_right_issuer_is_shown() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    server.refuse_at_page("access_denied", "not%20today%0A");
    let refused = sign_in_at(&server, &desk).await.unwrap_err();
    assert_eq!(
        refused.message,
        "the authorization server refused the sign-in: access_denied: not today "
    );
}

#[tokio::test]
async fn a_server_without_pkce_is_not_signed_in_at() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    for methods in [json!(null), json!(["plain"])] {
        server.set_metadata(json!({"code_challenge_methods_supported": methods}));
        let refused = sign_in_at(&server, &desk).await.unwrap_err();
        assert!(refused.message.contains("does not announce PKCE with S256"), "{refused}");
    }
}

#[tokio::test]
async fn attack_3_tokens_and_clients_are_not_taken_to_another_issuer() {
    let (server, other, desk) =
        (FakeAuthServer::open().await, FakeAuthServer::open().await, Desk::new());
    sign_in_at(&server, &desk).await.unwrap();
    server.revoke_access();
    server.name_issuer(&other.issuer());
    let spec = spec(&server, SignInClient::default());
    let authorization = SignIns::new(desk.tokens.clone()).authorization(&spec).unwrap();
    let used = authorization.token().await.unwrap().unwrap();
    let (status, headers) = (http::StatusCode::UNAUTHORIZED, http::HeaderMap::new());
    let judged = authorization.judge(Some(&used), status, &headers, RequestAttempt::First).await;
    assert!(judged.unwrap_err().message.starts_with("needs sign-in"));
    assert_eq!((server.refreshed(), other.refreshed(), other.token_requests().len()), (0, 0, 0));
    let (url, settings) = spec.endpoint.oauth().unwrap();
    let target = RevocationTarget::Server(url, settings);
    let id = switchboard_model::GrantId::of_server(&spec.name);
    let out = sign_out(&id, target, &*desk.tokens).await.unwrap();
    assert_eq!((out, other.revocations().len()), (SignedOut::Forgotten, 0));
    // A sign-in at the other issuer begins with a client of its own.
    sign_in_at(&server, &desk).await.unwrap();
    assert_eq!((server.registered(), other.registered()), (1, 1));
}

#[tokio::test]
async fn attack_3_tokens_are_not_used_for_another_address_or_issuer() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    desk.sign_in(&server).await;
    let token = async |url: &str, issuer: &DescribedIssuer| {
        let process = SignIns::new(desk.tokens.clone());
        process.described(id(), &url.parse().unwrap(), issuer).token().await.unwrap()
    };
    let (url, own) = (server.url(), issuer(&server));
    assert!(token(&url, &own).await.is_some());
    assert!(token(&url.replace("/mcp", "/other"), &own).await.is_none(), "another address");
    let other = DescribedIssuer { issuer: Some("https://evil.example.com".into()), ..own };
    assert!(token(&url, &other).await.is_none(), "another issuer");
}

#[tokio::test]
async fn attack_4_metadata_does_not_lead_to_private_addresses() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    for key in ["token_endpoint", "registration_endpoint", "authorization_endpoint"] {
        server.set_metadata(json!({key: "http://169.254.169.254/latest"}));
        let refused = sign_in_at(&server, &desk).await.unwrap_err();
        assert!(refused.message.contains("not safe to use"), "{key}: {refused}");
    }
    // Another private network than the one that the server is in.
    server.set_metadata(json!({"registration_endpoint": "https://10.1.2.3/register"}));
    let refused = sign_in_at(&server, &desk).await.unwrap_err();
    assert!(refused.message.contains("'10.1.2.3', which is not a public address"), "{refused}");
}

/// Begins a sign-in with the challenge of the server's own refusal.
async fn begin_after_refusal(server: &FakeAuthServer, desk: &Desk) -> Result<SignIn, ConnectError> {
    let spec = spec(server, SignInClient::default());
    let unsigned = reqwest::Client::new().post(server.url()).body("{}");
    SignIn::begin(&spec, Some(unsigned), desk.tokens.clone()).await
}

#[tokio::test]
async fn attack_4_a_challenge_cannot_name_the_metadata_of_another_server() {
    let (server, other, desk) =
        (FakeAuthServer::open().await, FakeAuthServer::open().await, Desk::new());
    begin_after_refusal(&server, &desk).await.unwrap();
    let registered = server.registered();
    server.name_resource_metadata(&format!(
        "{}/.well-known/oauth-protected-resource/mcp",
        other.issuer()
    ));
    // That document is about another server.
    let refused = begin_after_refusal(&server, &desk).await.unwrap_err();
    assert!(refused.message.contains("resource mismatch"), "{refused}");
    assert_eq!((server.registered(), other.registered()), (registered, 0));
}

#[tokio::test]
async fn attack_4_a_challenge_does_not_lead_to_other_schemes_and_networks() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    for metadata in [
        "http://169.254.169.254/latest/meta-data",
        "http://10.255.255.1/metadata",
        "file:///etc/passwd",
        "javascript:alert(1)",
    ] {
        server.name_resource_metadata(metadata);
        // No host answers at these addresses: a request there would take longer.
        let begun = tokio::time::timeout(
            std::time::Duration::from_secs(20),
            begin_after_refusal(&server, &desk),
        );
        let begun = begun.await.unwrap_or_else(|_| panic!("{metadata} was asked")).unwrap();
        assert!(begun.url().starts_with(&server.issuer()), "{metadata}: {}", begun.url());
    }
}

#[tokio::test]
async fn attack_5_unsafe_sign_in_pages_are_never_opened() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    for page in ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "--help"] {
        server.set_metadata(json!({"authorization_endpoint": page}));
        sign_in_at(&server, &desk).await.unwrap_err();
        assert!(!is_web_address(page));
    }
    // Characters of a shell stay part of the one argument, and are encoded.
    server.set_metadata(json!({"authorization_endpoint": format!("{}/authorize;$(id)`id` \n&&id", server.issuer())}));
    let spec = spec(&server, SignInClient::default());
    let begun = SignIn::begin(&spec, None, desk.tokens.clone()).await.unwrap();
    assert!(is_web_address(begun.url()), "{}", begun.url());
}

#[tokio::test]
async fn attack_11_no_message_has_a_code_a_state_or_a_token() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    let flow = flow(&server, &desk).await;
    open(flow.url()).await;
    let state = flow.state().to_owned();
    let shown = format!("{flow:?}");
    server.answer_token_requests(
        http::StatusCode::BAD_REQUEST,
        &json!({"error": "invalid_request", "error_description": "unknown parameter"}).to_string(),
    );
    let query = format!("code={CODE}&state={state}&iss={}", server.issuer());
    let failed = flow.finish(AuthorizationResponse::from_query(&query)).await.unwrap_err();
    let shown = format!("{shown} {failed} {failed:?} {:?}", desk.tokens);
    for secret in [CODE, &state] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
