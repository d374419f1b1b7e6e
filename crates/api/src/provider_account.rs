//! Accounts of the board at model providers.

use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A credential of a model provider that is a sign-in or the token file of another program. Tokens are never shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProviderAccountView {
    #[schema(example = "google")]
    pub provider: String,
    #[schema(example = "default")]
    pub credential: String,
    /// `active`, `renewing`, `needs_sign_in`, `orphaned` or `locked`.
    #[schema(example = "active")]
    pub state: String,
    /// Why it is in this state, if there is a reason to give.
    #[schema(required)]
    pub reason: Option<String>,
    /// The authorization server that issued its tokens.
    #[schema(required)]
    pub issuer: Option<String>,
    pub scopes: Vec<String>,
    /// When its token expires.
    #[schema(required)]
    pub expires_at: Option<String>,
    /// Whether its token is renewed without a sign-in.
    pub is_renewed: bool,
}

/// What a sign-in at a provider is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderSignInBody {
    /// The name of the credential; without it, the default one. A new name is a further sign-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 64, example = "work")]
    pub credential: Option<String>,
    /// The port at which your machine waits for the browser. Used where the configuration has no `redirect_port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u16>, minimum = 1, maximum = 65535, example = 8765)]
    pub port: Option<NonZeroU16>,
}

/// A sign-in at a provider that waits for its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProviderSignInView {
    #[schema(example = "google")]
    pub provider: String,
    #[schema(example = "default")]
    pub credential: String,
    /// The id of the sign-in.
    pub id: String,
    /// The page of the authorization server, for a browser.
    #[schema(example = "https://login.example.com/authorize?client_id=my-client")]
    pub url: String,
    /// Where the browser comes back to, on the machine of the person.
    #[schema(example = "http://127.0.0.1:8765/callback")]
    pub redirect_uri: String,
    /// When it can no longer be finished, in milliseconds since 1970.
    pub expires_at_ms: i64,
}

/// The answer of an authorization server.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderSignInAnswer {
    /// The address that the browser ended at, or the code that a page showed.
    #[schema(min_length = 1, max_length = 16384)]
    pub answer: String,
}

impl std::fmt::Debug for ProviderSignInAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderSignInAnswer").finish_non_exhaustive()
    }
}

/// A finished sign-in at a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProviderSignedInView {
    #[schema(example = "google")]
    pub provider: String,
    #[schema(example = "default")]
    pub credential: String,
    #[schema(example = "https://login.example.com")]
    pub issuer: String,
    pub scopes: Vec<String>,
}

/// The result of a sign-out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProviderSignOutView {
    #[schema(example = "google")]
    pub provider: String,
    #[schema(example = "default")]
    pub credential: String,
    /// Whether there was an account.
    pub signed_out: bool,
    /// Whether its tokens were revoked at the authorization server.
    pub revoked: bool,
    /// Why they could not be revoked, if they should have been.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_revoked: Option<String>,
}
