//! Discovers the authorization server of an MCP server.
//!
//! rmcp reads the metadata of the server and of its authorization server, compares the identifiers in them with the
//! URLs they came from, and does not follow them to loopback or private addresses unless the server itself is there.

use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationMetadata};
use switchboard_model::{ConnectError, ConnectErrorKind, OAuthSettings, is_on_this_machine};
use switchboard_outbound::error_chain;
use url::Url;

use crate::grant::union;

/// An rmcp manager with the discovered authorization server.
pub(crate) struct Discovered {
    pub(crate) manager: AuthorizationManager,
    pub(crate) metadata: AuthorizationMetadata,
    pub(crate) issuer: String,
}

pub(crate) async fn discover(
    server: &Url,
    challenge: Option<&str>,
) -> Result<Discovered, ConnectError> {
    let mut manager =
        AuthorizationManager::new(server.clone()).await.map_err(|error| describe(&error))?;
    let resolved = manager
        .resolve_metadata_from_challenge(challenge)
        .await
        .map_err(|error| describe(&error))?;
    // Guessed endpoints have no issuer that tokens could be bound to.
    let issuer = resolved.metadata.issuer.clone().filter(|_| resolved.source.is_discovered());
    let Some(issuer) = issuer else {
        let message = "the server publishes no OAuth metadata, so there is nowhere to sign in";
        return Err(ConnectError::new(ConnectErrorKind::Protocol, message).with_operator_hint(
            "for a server with fixed credentials, set `auth.bearer` or `headers`",
        ));
    };
    let metadata = &resolved.metadata;
    let endpoints = [&metadata.authorization_endpoint, &metadata.token_endpoint];
    for endpoint in endpoints.into_iter().chain(&metadata.registration_endpoint) {
        check_endpoint(endpoint)?;
    }
    manager.set_metadata(resolved.metadata.clone());
    Ok(Discovered { manager, metadata: resolved.metadata, issuer })
}

impl Discovered {
    /// The configured scopes, or else those that the server names; plus those that it requested later.
    pub(crate) async fn scopes(&self, settings: &OAuthSettings, more: &[String]) -> Vec<String> {
        let first = if settings.scopes.is_empty() {
            self.manager.select_initial_scopes(&[]).await
        } else {
            settings.scopes.clone()
        };
        union(&first, more)
    }
}

/// Checks that an endpoint uses https or is on this machine: codes, secrets and tokens are sent in the clear only
/// there.
fn check_endpoint(endpoint: &str) -> Result<(), ConnectError> {
    let is_safe = Url::parse(endpoint).is_ok_and(|url| match url.scheme() {
        "https" => true,
        "http" => is_on_this_machine(&url),
        _ => false,
    });
    if is_safe {
        return Ok(());
    }
    let message = format!("the authorization server names {endpoint:?}, which is not safe to use");
    Err(ConnectError::new(ConnectErrorKind::Protocol, message).with_operator_hint(
        "the endpoints of OAuth must be https, unless they are on this machine",
    ))
}

/// Converts an error of rmcp.
pub(crate) fn describe(error: &AuthError) -> ConnectError {
    let kind = match error {
        AuthError::HttpError(_) | AuthError::TokenRefreshFailed(_) => ConnectErrorKind::Unreachable,
        _ => ConnectErrorKind::Protocol,
    };
    ConnectError::new(kind, error_chain(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_beyond_this_machine_is_https() {
        let rows = [
            ("https://as/authorize", true),
            ("http://as/authorize", false),
            ("http://10.0.0.1/authorize", false),
            ("http://127.0.0.1/authorize", true),
            ("http://localhost:8080/authorize", true),
            ("http://[::1]/authorize", true),
            ("file:///etc/passwd", false),
            ("/authorize", false),
        ];
        for (endpoint, is_safe) in rows {
            assert_eq!(check_endpoint(endpoint).is_ok(), is_safe, "{endpoint}");
        }
    }
}
