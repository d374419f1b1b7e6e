//! Discovers the authorization server of an MCP server.
//!
//! rmcp reads the metadata of the server and of its authorization server, compares the identifiers in them with the
//! URLs they came from, and does not follow them to loopback or private addresses unless the server itself is there.

use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig,
};
use switchboard_model::{ConnectError, ConnectErrorKind, OAuthSettings};
use switchboard_outbound::error_chain;
use url::Url;

use crate::authorization_server::{AuthorizationServer, check_pkce, endpoint as check_address};
use crate::grant::union;
use crate::token_client::TokenClient;

/// An rmcp manager with the discovered authorization server.
pub(crate) struct Discovered {
    pub(crate) manager: AuthorizationManager,
    pub(crate) metadata: AuthorizationMetadata,
    pub(crate) issuer: String,
    /// The MCP server.
    pub(crate) url: Url,
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
        check_address(endpoint)?;
    }
    manager.set_metadata(resolved.metadata.clone());
    Ok(Discovered { manager, metadata: resolved.metadata, issuer, url: server.clone() })
}

impl Discovered {
    /// The authorization server for flows.
    pub(crate) async fn server(mut self) -> Result<AuthorizationServer, ConnectError> {
        check_pkce(&self.metadata, &self.issuer)?;
        let resource = self.resource().await?;
        let http = TokenClient::new(&self.url).await?;
        AuthorizationServer::discovered(&self.metadata, &self.issuer, resource, http)
    }

    /// The `resource` of the server's metadata, or else its URL. rmcp writes it into authorization requests only.
    pub(crate) async fn resource(&mut self) -> Result<String, ConnectError> {
        let nobody = OAuthClientConfig::new("-", "http://127.0.0.1/");
        self.manager.configure_client(nobody).map_err(|error| describe(&error))?;
        let page = self.manager.get_authorization_url(&[]).await;
        let page = Url::parse(&page.map_err(|error| describe(&error))?).ok();
        let resource = page.and_then(|page| {
            let mut pairs = page.query_pairs();
            pairs.find(|(key, _)| key == "resource").map(|(_, value)| value.into_owned())
        });
        Ok(resource.unwrap_or_else(|| self.url.to_string()))
    }

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

/// Converts an error of rmcp.
pub(crate) fn describe(error: &AuthError) -> ConnectError {
    let kind = match error {
        AuthError::HttpError(_) | AuthError::TokenRefreshFailed(_) => ConnectErrorKind::Unreachable,
        _ => ConnectErrorKind::Protocol,
    };
    ConnectError::new(kind, error_chain(error))
}
