//! Tokens for the program itself: it proves to be a client that was registered for it, and nobody signs in.

use rmcp::transport::auth::{
    AuthError, AuthorizationManager, ClientCredentialsConfig, JwtSigningAlgorithm,
};
use serde::Serialize;
use switchboard_model::{ClientProof, OAuthSettings, OwnClient, SigningAlgorithm};
use tokio::runtime::Handle;
use url::Url;

use super::discovery::{describe, discover};
use super::grant::Grant;
use super::{scopes, unusable};
use crate::error::{ConnectError, ConnectErrorKind};

/// Asks the authorization server that the server names. `more` are scopes besides those that it names at first.
pub(super) async fn obtain(
    server: &Url,
    settings: &OAuthSettings,
    client: &OwnClient,
    challenge: Option<&str>,
    more: &[String],
    now_ms: i64,
) -> Result<Grant, ConnectError> {
    let mut found = discover(server, challenge).await?;
    let scopes = scopes(&found, settings, more).await;
    let config = credentials(server, client, &scopes);
    let issuer = found.issuer;
    let refused = |error: AuthError| refused(&issuer, &client.id, &describe(&error));
    found.manager.validate_client_credentials_metadata(&config).map_err(&refused)?;
    found.manager.configure_client_credentials(&config).map_err(&refused)?;
    let answer = exchange(found.manager, config).await?.map_err(refused)?;
    let mut grant = Grant {
        server_url: server.as_str().to_owned(),
        issuer,
        client_id: client.id.clone(),
        // What the configuration has needs no second place.
        client_secret: None,
        redirect_uri: String::new(),
        access_token: String::new(),
        refresh_token: None,
        expires_at_ms: None,
        asked: scopes.clone(),
        granted: scopes,
        is_own: true,
    };
    let answer = serde_json::to_value(&answer).unwrap_or_default();
    grant.take(&answer, now_ms).map_err(|why| unusable(&why))?;
    Ok(grant)
}

/// On a thread of its own: rmcp's future (3.8) keeps something over its awaits that may not change threads.
async fn exchange(
    manager: AuthorizationManager,
    config: ClientCredentialsConfig,
) -> Result<Result<impl Serialize, AuthError>, ConnectError> {
    let runtime = Handle::current();
    let asking = move || runtime.block_on(manager.exchange_client_credentials(&config));
    let asked = tokio::task::spawn_blocking(asking).await;
    asked.map_err(|_| unusable("the authorization server could not be asked for a token"))
}

fn credentials(server: &Url, client: &OwnClient, scopes: &[String]) -> ClientCredentialsConfig {
    let (client_id, scopes) = (client.id.clone(), scopes.to_vec());
    let resource = Some(server.as_str().to_owned());
    match &client.proof {
        ClientProof::Secret(secret) => ClientCredentialsConfig::ClientSecret {
            client_id,
            client_secret: secret.expose().to_owned(),
            scopes,
            resource,
        },
        ClientProof::Key { pem, algorithm } => ClientCredentialsConfig::PrivateKeyJwt {
            client_id,
            signing_key: pem.expose().as_bytes().to_vec(),
            signing_algorithm: in_rmcp(*algorithm),
            token_endpoint_audience: None,
            scopes,
            resource,
        },
    }
}

fn in_rmcp(algorithm: SigningAlgorithm) -> JwtSigningAlgorithm {
    match algorithm {
        SigningAlgorithm::Es256 => JwtSigningAlgorithm::ES256,
        SigningAlgorithm::Es384 => JwtSigningAlgorithm::ES384,
        SigningAlgorithm::Rs256 => JwtSigningAlgorithm::RS256,
        SigningAlgorithm::Rs384 => JwtSigningAlgorithm::RS384,
        SigningAlgorithm::Rs512 => JwtSigningAlgorithm::RS512,
    }
}

fn refused(issuer: &str, client_id: &str, why: &ConnectError) -> ConnectError {
    let message = format!("{issuer} gives no token to the client '{client_id}': {}", why.message);
    ConnectError::new(ConnectErrorKind::Unauthorized, message)
        .with_hint("look at `client_id`, its proof and `scopes` in `auth.oauth`")
}
