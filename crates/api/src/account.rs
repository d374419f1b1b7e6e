//! Accounts of users at MCP servers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ProviderAccountView;

/// Accounts at MCP servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccountList {
    pub accounts: Vec<AccountView>,
    /// With `all=true`: the accounts of the board at model providers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<ProviderAccountView>,
}

/// One account at an MCP server. Tokens are never shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccountView {
    #[schema(example = "tracker")]
    pub server: String,
    /// Whose account it is: a person such as `user:alice`, `key:ID`, `jwt:ISSUER|SUBJECT` or `local`, a session such as
    /// `session:ID`, or `board`.
    #[schema(example = "user:alice")]
    pub owner: String,
    /// `active`, `renewing`, `needs_sign_in`, `orphaned`, `locked` or `automatic`.
    #[schema(example = "active")]
    pub state: String,
    /// Why it is in this state, if there is a reason to give.
    #[schema(required)]
    pub reason: Option<String>,
    /// The authorization server that issued its tokens.
    #[schema(required)]
    pub issuer: Option<String>,
    pub scopes: Vec<String>,
    /// Scopes that the server has required since the sign-in.
    pub wanted_scopes: Vec<String>,
    /// When its token expires.
    #[schema(required)]
    pub expires_at: Option<String>,
    /// Whether its token is renewed without a sign-in.
    pub is_renewed: bool,
}

/// A page where a person signs in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignInView {
    #[schema(example = "tracker")]
    pub server: String,
    /// The id of the sign-in.
    pub id: String,
    /// The page, for a browser. It can be used once.
    #[schema(example = "https://tools.example.com/connect/0f1e")]
    pub url: String,
    /// What the page asks for, so that only the person who made the request can use it. Absent where it asks for
    /// nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// `open`, `signed_in` or `failed`.
    #[schema(example = "open")]
    pub state: String,
    /// When the page stops working, in milliseconds since 1970.
    pub expires_at_ms: i64,
}

/// A token that was issued beforehand.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountToken {
    #[schema(min_length = 1, max_length = 16384)]
    pub token: String,
}

impl std::fmt::Debug for AccountToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccountToken").finish_non_exhaustive()
    }
}

/// The result of a sign-out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignOutView {
    #[schema(example = "tracker")]
    pub server: String,
    /// Whether there was an account.
    pub signed_out: bool,
}
