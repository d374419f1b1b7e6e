//! What the store says about the sign-in to a server.

use switchboard_model::{ConnectError, ConnectErrorKind, OAuthGrant, OAuthSettings, ServerSpec};
use url::Url;

use crate::failure::unkept;
use crate::grant::{Grant, SignInReason};
use crate::token_store::TokenStore;

/// The stored state of the sign-in to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInState {
    /// There is a sign-in for this URL.
    pub is_signed_in: bool,
    /// The server has required a sign-in since.
    pub is_wanted: bool,
    pub issuer: Option<String>,
    pub scopes: Vec<String>,
    /// Scopes that the server has required since.
    pub wanted_scopes: Vec<String>,
    pub expires_at_ms: Option<i64>,
    pub renewal: Renewal,
}

/// The source of the next token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// An interactive sign-in.
    SignIn,
    /// The refresh token of the last sign-in.
    Refresh,
    /// The client credentials grant; no user is needed.
    OwnClient,
}

impl SignInState {
    /// Reads the stored state.
    pub async fn read(spec: &ServerSpec, tokens: &dyn TokenStore) -> Result<Self, ConnectError> {
        let (url, settings) = wants_oauth(spec)?;
        let kept = tokens.load(&spec.name, None).await.map_err(|error| unkept(&error))?;
        let grant = kept.as_ref().and_then(Grant::read);
        let grant = grant.filter(|grant| grant.is_for(url, settings));
        let wanted = tokens.wanted(&spec.name).await.map_err(|error| unkept(&error))?;
        let scopes = wanted.as_deref().and_then(SignInReason::read).unwrap_or_default().scopes;
        let refreshes = grant.as_ref().is_some_and(|grant| grant.refresh_token.is_some());
        let renewal = match &settings.grant {
            OAuthGrant::ClientCredentials(_) => Renewal::OwnClient,
            OAuthGrant::SignIn(_) if refreshes => Renewal::Refresh,
            OAuthGrant::SignIn(_) => Renewal::SignIn,
        };
        Ok(Self {
            is_signed_in: grant.is_some(),
            is_wanted: wanted.is_some(),
            issuer: grant.as_ref().map(|grant| grant.issuer.clone()),
            scopes: grant.as_ref().map(|grant| grant.granted.clone()).unwrap_or_default(),
            wanted_scopes: scopes,
            expires_at_ms: grant.as_ref().and_then(|grant| grant.expires_at_ms),
            renewal,
        })
    }
}

/// The URL and the OAuth settings of a server that has them.
pub(crate) fn wants_oauth(spec: &ServerSpec) -> Result<(&Url, &OAuthSettings), ConnectError> {
    spec.endpoint.oauth().ok_or_else(|| {
        let message = format!("no sign-in is configured for the server '{}'", spec.name);
        ConnectError::new(ConnectErrorKind::Protocol, message)
            .with_operator_hint("add `auth: {oauth: {}}` to its entry")
    })
}
