//! Tests of token requests of the client credentials grant: what a failure is follows from what the authorization server
//! did, not from the words that describe it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use switchboard_model::{
    ClientProof, ConnectError, ConnectErrorKind, Endpoint, EraChoice, HintAudience, OAuthGrant,
    OAuthSettings, OwnClient, Secret, ServerName, ServerSpec, Sharing, UpstreamAuth,
};
use switchboard_oauth::{MemoryTokens, RequestAttempt, SignIns, TokenVerdict};
use switchboard_test_support::{FakeAuthServer, OWN_CLIENT, free_port};

fn spec(office: &FakeAuthServer, proof: ClientProof) -> ServerSpec {
    let client = OwnClient { id: OWN_CLIENT.0.into(), proof, issuer: None };
    let grant = OAuthGrant::ClientCredentials(client);
    let endpoint = Endpoint::StreamableHttp {
        url: office.url().parse().unwrap(),
        headers: BTreeMap::new(),
        auth: UpstreamAuth::OAuth(OAuthSettings { grant, ..OAuthSettings::default() }),
    };
    ServerSpec {
        name: ServerName::new("tested"),
        place: endpoint.to_string(),
        endpoint,
        referenced: Vec::new(),
        caller_headers: Vec::new(),
        era: EraChoice::Auto,
        connect_timeout: Duration::from_secs(5),
        sharing: Sharing::Shared,
        egress: None,
    }
}

/// The verdict on a refused request, for which a token is requested.
async fn refused_request(office: &FakeAuthServer) -> Result<TokenVerdict, ConnectError> {
    let proof = ClientProof::Secret(Secret::new(OWN_CLIENT.1));
    let sign_ins = SignIns::new(Arc::new(MemoryTokens::new(Arc::new(|| 0))));
    let authorization = sign_ins.authorization(&spec(office, proof)).unwrap();
    assert!(authorization.token().await.unwrap().is_none());
    let (status, headers) = (StatusCode::UNAUTHORIZED, HeaderMap::new());
    authorization.judge(None, status, &headers, RequestAttempt::First).await
}

#[tokio::test]
async fn a_refused_request_is_repeated_with_a_token_of_the_client() {
    let office = FakeAuthServer::open().await;
    let Ok(TokenVerdict::Again(grant)) = refused_request(&office).await else { panic!() };
    assert_eq!(grant.header().unwrap(), "Bearer access-1");
}

#[tokio::test]
async fn the_status_of_the_authorization_server_decides_and_not_its_words() {
    use ConnectErrorKind::{Protocol, Unauthorized, Unreachable};
    let misleading = r#"{"error":"invalid_client","error_description":"Request failed: HTTP 500"}"#;
    let office = FakeAuthServer::open().await;
    for (status, body, kind, shown) in [
        (401, misleading, Unauthorized, "invalid_client: Request failed: HTTP 500"),
        (400, r#"{"error":"invalid_scope"}"#, Unauthorized, "invalid_scope"),
        (403, "<html>request failed</html>", Unauthorized, "HTTP 403 Forbidden"),
        (500, r#"{"error":"server_error"}"#, Unreachable, "server_error"),
        (503, "", Unreachable, "HTTP 503 Service Unavailable"),
        (429, r#"{"error":"slow_down"}"#, Unreachable, "slow_down"),
        (200, "<html>request failed</html>", Protocol, ""),
        (302, "", Unauthorized, "HTTP 302 Found"),
    ] {
        office.answer_token_requests(StatusCode::from_u16(status).unwrap(), body);
        let error = refused_request(&office).await.unwrap_err();
        let (issuer, client) = (office.issuer(), OWN_CLIENT.0);
        let expected = format!("{issuer} issues no token to the client '{client}': {shown}");
        assert!(error.message.starts_with(&expected), "{status}: {error}");
        assert_eq!(error.kind, kind, "{status}: {error}");
        let hints: Vec<_> = error.hints.iter().map(|hint| hint.audience).collect();
        let credentials = if kind == Unauthorized { vec![HintAudience::Operator] } else { vec![] };
        assert_eq!(hints, credentials, "{status}: {error:?}");
    }
}

#[tokio::test]
async fn an_authorization_server_that_does_not_answer_is_unreachable() {
    let office = FakeAuthServer::open().await;
    office.name_token_endpoint(&format!("http://127.0.0.1:{}/token", free_port()));
    let error = refused_request(&office).await.unwrap_err();
    assert_eq!((error.kind, error.hint()), (ConnectErrorKind::Unreachable, None), "{error}");
    assert!(error.message.contains("': cannot connect: "), "{error}");
}

#[tokio::test]
async fn a_key_that_cannot_sign_is_a_matter_of_the_configuration() {
    let office = FakeAuthServer::open().await;
    let pem = Secret::new("-----BEGIN s3cret-key");
    let algorithm = switchboard_model::SigningAlgorithm::Es256;
    let sign_ins = SignIns::new(Arc::new(MemoryTokens::new(Arc::new(|| 0))));
    let spec = spec(&office, ClientProof::Key { pem, algorithm });
    let authorization = sign_ins.authorization(&spec).unwrap();
    let (status, headers) = (StatusCode::UNAUTHORIZED, HeaderMap::new());
    let judged = authorization.judge(None, status, &headers, RequestAttempt::First).await;
    let error = judged.unwrap_err();
    assert_eq!(error.kind, ConnectErrorKind::Unauthorized);
    assert!(error.hint().unwrap().contains("`auth.oauth`") && !error.message.contains("s3cret"));
    assert_eq!(office.came_itself(), 0);
}
