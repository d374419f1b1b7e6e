//! An authorization server as the configuration describes it.

use std::collections::BTreeMap;

use url::Url;

use crate::Secret;

/// Where to sign in and to get tokens, and with which client. Without `token_url`, the endpoints that are not described are
/// read from the metadata of `issuer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedIssuer {
    /// The exact `iss` of its authorization responses, if it sends one. Else the token URL identifies the issuer. One of
    /// the two is there.
    pub issuer: Option<String>,
    /// For sign-ins with a browser.
    pub authorize_url: Option<Url>,
    pub token_url: Option<Url>,
    /// For sign-ins on another device (RFC 8628).
    pub device_url: Option<Url>,
    /// Where tokens are revoked (RFC 7009).
    pub revoke_url: Option<Url>,
    pub client_id: String,
    pub client_secret: Option<Secret>,
    pub scopes: Vec<String>,
    /// Further parameters of the authorization request.
    pub extra_params: BTreeMap<String, String>,
    /// The encoding of token requests.
    pub token_auth: TokenRequestFormat,
    /// Where the browser returns to.
    pub redirect: LoopbackRedirect,
}

impl DescribedIssuer {
    /// The name of the issuer in the store.
    pub fn name(&self) -> &str {
        self.issuer.as_deref().or(self.token_url.as_ref().map(Url::as_str)).unwrap_or_default()
    }
}

/// The encoding of a token request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TokenRequestFormat {
    /// As the standard has it: `application/x-www-form-urlencoded`.
    #[default]
    Form,
    /// `application/json`, for issuers that want it.
    Json,
}

/// The redirect URI on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopbackRedirect {
    pub host: RedirectHost,
    /// Any free one if not configured.
    pub port: Option<u16>,
    /// Begins with a slash.
    pub path: String,
}

impl LoopbackRedirect {
    pub const DEFAULT_PATH: &'static str = "/callback";
}

impl Default for LoopbackRedirect {
    fn default() -> Self {
        Self { host: RedirectHost::default(), port: None, path: Self::DEFAULT_PATH.into() }
    }
}

/// The host of the redirect URI: issuers compare it as text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RedirectHost {
    #[default]
    Address,
    Localhost,
}

impl RedirectHost {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Address => "127.0.0.1",
            Self::Localhost => "localhost",
        }
    }
}
