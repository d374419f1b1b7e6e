//! Refreshing the tokens of a sign-in.

use rmcp::transport::auth::{
    AuthError, AuthorizationManager, CredentialStore, InMemoryCredentialStore, OAuthClientConfig,
    StoredCredentials,
};
use serde_json::json;
use switchboard_model::ConnectError;
use url::Url;

use crate::discovery::{describe, discover};
use crate::failure::unusable;
use crate::grant::Grant;
use crate::sign_in_need::SignInCause;

/// The result of a refresh.
pub(crate) enum Refreshed {
    Renewed(Box<Grant>),
    /// The refresh token is missing or no longer valid.
    Refused,
}

/// A refresh that is ready to be sent.
pub(crate) struct PreparedRefresh {
    manager: AuthorizationManager,
    used: Grant,
}

impl PreparedRefresh {
    /// Finds the token endpoint. The inner error is the reason why there is nothing to send.
    pub(crate) async fn new(
        server: &Url,
        used: &Grant,
        challenge: Option<&str>,
    ) -> Result<Result<Self, SignInCause>, ConnectError> {
        let Some(refresh_token) = &used.refresh_token else {
            return Ok(Err(SignInCause::Refused));
        };
        let mut found = discover(server, challenge).await?;
        if found.issuer != used.issuer {
            // Neither the token nor the client is valid there.
            return Ok(Err(SignInCause::IssuerChanged));
        }
        found.manager.configure_client(client_of(used)).map_err(|error| describe(&error))?;
        let old = json!({
            "access_token": used.access_token, "token_type": "bearer", "refresh_token": refresh_token,
        });
        let old = serde_json::from_value(old).ok();
        let old = StoredCredentials::new(used.client_id.clone(), old, used.granted.clone(), None);
        let credentials = InMemoryCredentialStore::new();
        credentials
            .save(old.with_issuer(Some(used.issuer.clone())))
            .await
            .map_err(|error| describe(&error))?;
        found.manager.set_credential_store(credentials);
        Ok(Ok(Self { manager: found.manager, used: used.clone() }))
    }

    /// Exchanges the refresh token for another access token.
    pub(crate) async fn run(self, now_ms: i64) -> Result<Refreshed, ConnectError> {
        match self.manager.refresh_token().await {
            Ok(answer) => {
                let mut renewed = self.used;
                let answer = serde_json::to_value(&answer).unwrap_or_default();
                renewed.take(&answer, now_ms).map_err(|why| unusable(&why))?;
                Ok(Refreshed::Renewed(Box::new(renewed)))
            }
            Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => {
                Ok(Refreshed::Refused)
            }
            Err(error) => Err(describe(&error)),
        }
    }
}

/// The OAuth client that a grant belongs to.
pub(crate) fn client_of(grant: &Grant) -> OAuthClientConfig {
    let config = OAuthClientConfig::new(&grant.client_id, &grant.redirect_uri);
    match &grant.client_secret {
        Some(secret) => config.with_client_secret(secret),
        None => config,
    }
}
