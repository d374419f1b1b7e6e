//! Tokens of the client credentials grant: the program authenticates as a registered client, without a user.

use std::sync::Arc;

use http::StatusCode;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, ClientCredentialsConfig, JwtSigningAlgorithm,
};
use serde::Serialize;
use switchboard_model::{
    ClientProof, ConnectError, ConnectErrorKind, OAuthSettings, OwnClient, SigningAlgorithm,
    is_on_this_machine,
};
use tokio::runtime::Handle;
use url::Url;

use crate::discovery::{describe, discover};
use crate::failure::unusable;
use crate::grant::Grant;
use crate::token_client::{TokenClient, TokenOutcome};

/// A scope for refresh tokens, which this grant does not use.
const OFFLINE: &str = "offline_access";
/// Maximum number of characters of an authorization server's error that are shown.
const LONGEST_TOLD: usize = 500;

/// The inputs of a token request.
#[derive(Debug)]
pub(crate) struct Asking<'a> {
    pub(crate) server: &'a Url,
    pub(crate) settings: &'a OAuthSettings,
    pub(crate) client: &'a OwnClient,
    /// The server's `WWW-Authenticate` challenge.
    pub(crate) challenge: Option<&'a str>,
    /// Scopes in addition to those of the configuration, or those that the server names at first.
    pub(crate) more: &'a [String],
    /// The issuer of the last token.
    pub(crate) issuer: Option<&'a str>,
}

/// Requests a token from the authorization server that the MCP server names.
pub(crate) async fn obtain(asking: Asking<'_>, now_ms: i64) -> Result<Grant, ConnectError> {
    let Asking { server, settings, client, challenge, more, issuer: before } = asking;
    let found = discover(server, challenge).await?;
    let issuer = found.issuer.clone();
    check_issuer(&issuer, client.issuer.as_deref(), before)?;
    check_token_endpoint(server, &found.metadata.token_endpoint)?;
    let mut scopes = found.scopes(settings, more).await;
    if !settings.scopes.iter().any(|scope| scope == OFFLINE) {
        // rmcp adds it for interactive sign-ins, and issuers reject it for this grant.
        scopes.retain(|scope| scope != OFFLINE);
    }
    let config = credentials(server, client, &scopes);
    let tokens = Arc::new(TokenClient::new(server).await?);
    let refused = |error: AuthError| refused(&issuer, &client.id, &error, tokens.take_outcome());
    let manager = AuthorizationManager::new_with_oauth_http_client(server.clone(), tokens.clone());
    let mut manager = manager.await.map_err(&refused)?;
    manager.set_metadata(found.metadata);
    manager.validate_client_credentials_metadata(&config).map_err(&refused)?;
    manager.configure_client_credentials(&config).map_err(&refused)?;
    let answer = exchange(manager, config).await?.map_err(refused)?;
    // The secret is in the configuration and is not stored a second time.
    let mut grant = Grant {
        client_id: client.id.clone(),
        asked: scopes.clone(),
        granted: scopes,
        is_own: true,
        since: more.to_vec(),
        ..Grant::without_tokens(server, &issuer)
    };
    let answer = serde_json::to_value(&answer).unwrap_or_default();
    grant.take(&answer, now_ms).map_err(|why| unusable(&why))?;
    Ok(grant)
}

/// Refuses another issuer than before: a compromised server could name its own, which must not get the client's
/// credentials.
fn check_issuer(
    found: &str,
    configured: Option<&str>,
    before: Option<&str>,
) -> Result<(), ConnectError> {
    let (expected, hint) = match (configured, before) {
        (Some(configured), _) => (configured, "`issuer` in `auth.oauth` names the expected issuer"),
        (None, Some(before)) => {
            (before, "if the change is intended, `switchboard auth logout` removes the old one")
        }
        (None, None) => return Ok(()),
    };
    // Compared as text and as a normalized URL.
    if found.trim_end_matches('/') == expected.trim_end_matches('/') {
        return Ok(());
    }
    let message =
        format!("the server names the issuer {found}, but the client belongs to {expected}");
    Err(ConnectError::new(ConnectErrorKind::Unauthorized, message).with_operator_hint(hint))
}

/// Refuses to send a long-lived secret without TLS.
fn check_token_endpoint(server: &Url, endpoint: &str) -> Result<(), ConnectError> {
    let url = Url::parse(endpoint).ok();
    let is_safe = url.is_some_and(|url| {
        url.scheme() == "https" || (is_on_this_machine(server) && is_on_this_machine(&url))
    });
    if is_safe {
        return Ok(());
    }
    let message = format!("the authorization server names {endpoint:?}, which is not safe to use");
    Err(ConnectError::new(ConnectErrorKind::Protocol, message)
        .with_operator_hint("client credentials are sent over https only"))
}

/// Runs on a thread of its own, because rmcp's future (3.8) is not `Send`.
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

/// The error of a token request. Its kind follows from what the authorization server did, never from rmcp's text, which is
/// only shown where there is nothing else to show.
fn refused(
    issuer: &str,
    client_id: &str,
    error: &AuthError,
    outcome: Option<TokenOutcome>,
) -> ConnectError {
    use ConnectErrorKind::{Protocol, Unauthorized, Unreachable};
    let (kind, why, hints) = match outcome {
        Some(TokenOutcome::NoAnswer(failure)) => (failure.kind, failure.message, failure.hints),
        Some(TokenOutcome::Answered { status, .. }) if status.is_success() => {
            (Protocol, describe(error).message, Vec::new())
        }
        Some(TokenOutcome::Answered { status, reason }) => {
            let is_temporary = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
            let kind = if is_temporary { Unreachable } else { Unauthorized };
            (kind, reason.unwrap_or_else(|| format!("HTTP {status}")), Vec::new())
        }
        // The request could not be made, for example because the key cannot be used.
        None => (Unauthorized, describe(error).message, Vec::new()),
    };
    let why = why.chars().map(|c| if c.is_control() { ' ' } else { c });
    let why: String = why.take(LONGEST_TOLD).collect();
    let message = format!("{issuer} issues no token to the client '{client_id}': {why}");
    let error = ConnectError { hints, ..ConnectError::new(kind, message) };
    if kind != Unauthorized {
        return error;
    }
    error.with_operator_hint("check `client_id`, its credentials and `scopes` in `auth.oauth`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_shown_to_one_issuer() {
        for (found, configured, before, is_shown) in [
            ("https://a", None, None, true),
            ("https://a/", Some("https://a"), None, true),
            ("https://b", Some("https://a"), None, false),
            ("https://a", None, Some("https://a"), true),
            ("https://b", None, Some("https://a"), false),
            ("https://b", Some("https://b"), Some("https://a"), true),
        ] {
            let checked = check_issuer(found, configured, before);
            assert_eq!(checked.is_ok(), is_shown, "{found} {configured:?} {before:?}");
        }
    }

    #[test]
    fn a_proof_is_not_sent_in_the_clear() {
        for (server, endpoint, is_safe) in [
            ("https://h/mcp", "https://as/token", true),
            ("http://h/mcp", "http://as/token", false),
            ("http://h/mcp", "http://127.0.0.1/token", false),
            ("http://127.0.0.1/mcp", "http://as/token", false),
            ("http://127.0.0.1/mcp", "http://127.0.0.1/token", true),
            ("http://127.0.0.1/mcp", "token", false),
        ] {
            let server = Url::parse(server).unwrap();
            assert_eq!(check_token_endpoint(&server, endpoint).is_ok(), is_safe, "{endpoint}");
        }
    }
}
