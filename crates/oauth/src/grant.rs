//! The stored results of sign-ins, and the pending requests for sign-ins.

use std::fmt;
use std::sync::Arc;

use http::HeaderValue;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_model::{OAuthGrant, OAuthSettings, Secret};
use url::Url;

/// Tokens that expire sooner than this are refreshed before use.
const SHORTLY_MS: i64 = 30_000;

/// Maximum number of remembered scopes: a server may name any number.
const MOST_SCOPES: usize = 100;

/// Tokens, with the OAuth client that they belong to.
#[derive(Clone, Serialize, Deserialize)]
pub struct Grant {
    /// The URL that the tokens are for. They are never sent elsewhere, even if the server of this name changes.
    pub(crate) server_url: String,
    pub(crate) issuer: String,
    pub(crate) client_id: String,
    pub(crate) client_secret: Option<String>,
    pub(crate) redirect_uri: String,
    pub(crate) access_token: String,
    pub(crate) refresh_token: Option<String>,
    pub(crate) expires_at_ms: Option<i64>,
    /// The scopes that were requested. A scope that was requested and is refused all the same is not requested again.
    pub(crate) asked: Vec<String>,
    pub(crate) granted: Vec<String>,
    /// Whether it comes from the client credentials grant rather than from a sign-in.
    #[serde(default)]
    pub(crate) is_own: bool,
    /// For the client credentials grant: scopes that the server requested in addition to those of the configuration, or
    /// named at first.
    #[serde(default)]
    pub(crate) since: Vec<String>,
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl Grant {
    pub(crate) fn read(kept: &Secret) -> Option<Self> {
        serde_json::from_str(kept.expose()).ok()
    }

    pub(crate) fn write(&self) -> Secret {
        Secret::new(serde_json::to_string(self).unwrap_or_default())
    }

    /// Whether it was issued for this URL, by the grant type that is configured now.
    pub(crate) fn is_for(&self, server: &Url, settings: &OAuthSettings) -> bool {
        let is_same_kind = match &settings.grant {
            OAuthGrant::SignIn(_) => !self.is_own,
            OAuthGrant::ClientCredentials(client) => self.is_own && self.client_id == client.id,
        };
        is_same_kind && self.server_url == server.as_str()
    }

    /// Takes over the response of a token endpoint. Only bearer tokens are accepted.
    pub(crate) fn take(&mut self, answer: &Value, now_ms: i64) -> Result<(), String> {
        let text = |key: &str| answer.get(key).and_then(Value::as_str).map(str::to_owned);
        if !text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
            return Err("the authorization server issued a token that is not a bearer token".into());
        }
        let token = text("access_token").filter(|token| header(token).is_some());
        self.access_token = token.ok_or("the authorization server issued no usable token")?;
        self.refresh_token = text("refresh_token").or(self.refresh_token.take());
        let lifetime = answer.get("expires_in").and_then(Value::as_i64);
        self.expires_at_ms =
            lifetime.map(|seconds| now_ms.saturating_add(seconds.saturating_mul(1000)));
        if let Some(scope) = text("scope") {
            self.granted = words(&scope);
        }
        Ok(())
    }

    pub(crate) fn expires_shortly(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|end| end.saturating_sub(now_ms) < SHORTLY_MS)
    }

    pub(crate) fn is_over(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|end| end <= now_ms)
    }

    /// The `Authorization` header of a request; `None` if the token cannot be sent.
    pub fn header(&self) -> Option<HeaderValue> {
        header(&self.access_token)
    }
}

fn header(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Why a server requires a sign-in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignInReason {
    /// The server's `WWW-Authenticate` challenge.
    pub(crate) challenge: Option<String>,
    /// Scopes to request in addition to those that the server names at first.
    pub(crate) scopes: Vec<String>,
}

impl SignInReason {
    pub(crate) fn read(kept: &str) -> Option<Self> {
        serde_json::from_str(kept).ok()
    }

    pub(crate) fn write(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

pub(crate) fn token_of(grant: Option<&Arc<Grant>>) -> Option<&str> {
    grant.map(|grant| grant.access_token.as_str())
}

/// The scopes in a text.
pub(crate) fn words(scopes: &str) -> Vec<String> {
    scopes.split_whitespace().take(MOST_SCOPES).map(str::to_owned).collect()
}

/// The union of both lists, without duplicates, in order.
pub(crate) fn union(one: &[String], other: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for scope in one.iter().chain(other) {
        if !all.contains(scope) && all.len() < MOST_SCOPES {
            all.push(scope.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn grant() -> Grant {
        Grant {
            server_url: "https://h/mcp".into(),
            issuer: "https://as".into(),
            client_id: "us".into(),
            client_secret: Some("s3cret-client".into()),
            redirect_uri: String::new(),
            access_token: "s3cret-access".into(),
            refresh_token: Some("s3cret-refresh".into()),
            expires_at_ms: None,
            asked: vec!["a".into()],
            granted: vec!["a".into()],
            is_own: false,
            since: Vec::new(),
        }
    }

    #[test]
    fn a_grant_is_kept_whole_and_shown_without_secrets() {
        let read = Grant::read(&grant().write()).unwrap();
        assert_eq!(read.refresh_token.as_deref(), Some("s3cret-refresh"));
        assert!(!format!("{:?} {:?}", grant(), grant().write()).contains("s3cret"));
    }

    #[test]
    fn an_answer_replaces_what_it_names() {
        let mut grant = grant();
        let answer = json!({"access_token": "new", "token_type": "Bearer", "expires_in": 60});
        grant.take(&answer, 1_000).unwrap();
        assert_eq!(grant.access_token, "new");
        assert_eq!(grant.refresh_token.as_deref(), Some("s3cret-refresh"));
        assert_eq!(grant.granted, ["a"]);
        let times = [(30_999, false, false), (31_001, true, false), (61_000, true, true)];
        for (now, shortly, over) in times {
            assert_eq!((grant.expires_shortly(now), grant.is_over(now)), (shortly, over), "{now}");
        }
    }

    #[test]
    fn only_bearer_tokens_are_taken() {
        for answer in [
            json!({"access_token": "new", "token_type": "DPoP"}),
            json!({"access_token": "new\nline", "token_type": "bearer"}),
            json!({"token_type": "bearer"}),
        ] {
            assert!(grant().take(&answer, 0).is_err(), "{answer}");
        }
    }

    #[test]
    fn a_union_has_each_once() {
        assert_eq!(union(&words("a b"), &words(" b  c ")), words("a b c"));
    }
}
