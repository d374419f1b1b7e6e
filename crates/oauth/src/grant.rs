//! The stored results of sign-ins.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use http::HeaderValue;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_model::{OAuthGrant, OAuthSettings, Secret};
use url::Url;

use crate::authorization_server::FlowClient;
use crate::token_source::TokenSource;
use crate::token_store::StoredGrant;

/// The issuer in the rows of tokens that owners store themselves.
pub(crate) const STORED: &str = "stored";
/// Requests wait for the renewal of tokens that expire sooner than this.
const SHORTLY_MS: i64 = 30_000;
/// The part of its lifetime after which a token is renewed, in thousandths: between these two, different for each token.
const RENEWED_AFTER: (i64, i64) = (760, 840);

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
    /// Whether it comes from the client credentials grant or a token exchange rather than from a sign-in.
    #[serde(default)]
    pub(crate) is_own: bool,
    /// For the client credentials grant: scopes that the server requested in addition to those of the configuration, or
    /// named at first.
    #[serde(default)]
    pub(crate) since: Vec<String>,
    /// The ID token of the last answer that had one.
    #[serde(default)]
    pub(crate) id_token: Option<String>,
    /// When the access token is to be renewed, before it expires.
    #[serde(default)]
    pub(crate) renew_at_ms: Option<i64>,
    /// The version of the stored grant that this is.
    #[serde(skip)]
    pub(crate) version: i64,
}

/// How urgent the renewal of an access token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RenewalUrgency {
    NotYet,
    /// The token can be used while it is renewed.
    Due,
    /// The token expires at once, or has expired.
    Now,
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl Grant {
    /// A grant of these scopes that a client requests of an issuer; it has no tokens yet.
    pub(crate) fn requested(
        url: &Url,
        issuer: &str,
        client: &FlowClient,
        scopes: Vec<String>,
    ) -> Self {
        let client_secret = client.secret.as_ref().map(|secret| secret.expose().to_owned());
        let client_id = client.id.clone();
        let grant = Self::without_tokens(url, issuer);
        Self { client_id, client_secret, asked: scopes.clone(), granted: scopes, ..grant }
    }

    /// A grant of an issuer for this URL, without a client, scopes and tokens.
    pub(crate) fn without_tokens(url: &Url, issuer: &str) -> Self {
        Self {
            server_url: url.as_str().to_owned(),
            issuer: issuer.to_owned(),
            client_id: String::new(),
            client_secret: None,
            redirect_uri: String::new(),
            access_token: String::new(),
            refresh_token: None,
            expires_at_ms: None,
            asked: Vec::new(),
            granted: Vec::new(),
            is_own: false,
            since: Vec::new(),
            id_token: None,
            renew_at_ms: None,
            version: 0,
        }
    }

    pub(crate) fn read(kept: &StoredGrant) -> Option<Self> {
        let content = kept.content.as_ref().ok()?;
        let grant: Self = serde_json::from_str(content.expose()).ok()?;
        Some(Self { version: kept.version, ..grant })
    }

    pub(crate) fn write(&self) -> Secret {
        Secret::new(serde_json::to_string(self).unwrap_or_default())
    }

    /// Whether it was issued for this URL, by the grant type that is configured now.
    pub(crate) fn is_for(&self, server: &Url, settings: &OAuthSettings) -> bool {
        let is_same_kind = match &settings.grant {
            OAuthGrant::SignIn(_) => !self.is_own && self.issuer != STORED,
            OAuthGrant::StoredToken => self.issuer == STORED,
            OAuthGrant::ClientCredentials(client) => self.is_own && self.client_id == client.id,
            OAuthGrant::TokenExchange(client) => {
                self.is_own && self.client_id == client.id && self.issuer == client.issuer
            }
        };
        is_same_kind && self.server_url == server.as_str()
    }

    /// Whether it was issued for this URL, from this source.
    pub(crate) fn fits(&self, url: &Url, source: &TokenSource) -> bool {
        match source {
            TokenSource::Server(settings) => self.is_for(url, settings),
            TokenSource::Described(issuer) => {
                !self.is_own && self.server_url == url.as_str() && self.issuer == issuer.name()
            }
        }
    }

    /// Takes over the response of a token endpoint. Only bearer tokens are accepted.
    pub(crate) fn take(&mut self, answer: &Value, now_ms: i64) -> Result<(), String> {
        let text = |key: &str| answer.get(key).and_then(Value::as_str).map(str::to_owned);
        // Some providers leave it out.
        if text("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            return Err("the authorization server issued a token that is not a bearer token".into());
        }
        let token = text("access_token").filter(|token| header(token).is_some());
        self.access_token = token.ok_or("the authorization server issued no usable token")?;
        self.refresh_token = text("refresh_token").or(self.refresh_token.take());
        let lifetime = answer.get("expires_in").and_then(Value::as_i64);
        self.expires_at_ms =
            lifetime.map(|seconds| now_ms.saturating_add(seconds.saturating_mul(1000)));
        self.renew_at_ms = lifetime.map(|seconds| now_ms.saturating_add(self.used_for_ms(seconds)));
        self.id_token = text("id_token").or(self.id_token.take());
        if let Some(scope) = text("scope") {
            self.granted = words(&scope);
        }
        Ok(())
    }

    /// How long the token is used before it is renewed. Tokens that were issued together are not renewed together.
    fn used_for_ms(&self, lifetime_seconds: i64) -> i64 {
        let mut hasher = DefaultHasher::new();
        self.access_token.hash(&mut hasher);
        let (least, most) = RENEWED_AFTER;
        let spread = i64::from(hasher.finish().to_le_bytes()[0]) * (most - least) / 255;
        lifetime_seconds.saturating_mul(least + spread)
    }

    pub(crate) fn urgency(&self, now_ms: i64) -> RenewalUrgency {
        let Some(end) = self.expires_at_ms else { return RenewalUrgency::NotYet };
        let lifetime_ms = self.renew_at_ms.map(|at| end.saturating_sub(at));
        // A short token is used for most of its life all the same.
        let shortly = lifetime_ms.map_or(SHORTLY_MS, |left| left.clamp(0, SHORTLY_MS));
        if end.saturating_sub(now_ms) <= shortly {
            RenewalUrgency::Now
        } else if self.renew_at_ms.is_some_and(|at| at <= now_ms) {
            RenewalUrgency::Due
        } else {
            RenewalUrgency::NotYet
        }
    }

    pub(crate) fn is_over(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|end| end <= now_ms)
    }

    /// The access token, for what its claims say of the account.
    pub fn access_token(&self) -> Secret {
        Secret::new(self.access_token.as_str())
    }

    /// The ID token, if the issuer gave one.
    pub fn id_token(&self) -> Option<Secret> {
        self.id_token.as_deref().map(Secret::new)
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
    use switchboard_model::{GrantId, ServerName};

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
            id_token: None,
            renew_at_ms: None,
            version: 0,
        }
    }

    fn stored(grant: &Grant) -> StoredGrant {
        StoredGrant {
            id: GrantId::of_server(&ServerName::new("s")),
            issuer: grant.issuer.clone(),
            content: Ok(grant.write()),
            is_encrypted: false,
            version: 7,
            renewing_until_ms: 0,
        }
    }

    #[test]
    fn a_grant_is_kept_whole_and_shown_without_secrets() {
        let read = Grant::read(&stored(&grant())).unwrap();
        assert_eq!((read.refresh_token.as_deref(), read.version), (Some("s3cret-refresh"), 7));
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
    }

    #[test]
    fn a_token_is_renewed_after_about_four_fifths_of_its_life() {
        use RenewalUrgency::{Due, NotYet, Now};
        let of = |token: &str, seconds: i64| {
            let mut grant = grant();
            let answer =
                json!({"access_token": token, "token_type": "Bearer", "expires_in": seconds});
            grant.take(&answer, 0).unwrap();
            grant
        };
        let hour = of("new", 3600);
        for (second, urgency) in
            [(0, NotYet), (2700, NotYet), (3060, Due), (3569, Due), (3571, Now)]
        {
            assert_eq!(hour.urgency(second * 1000), urgency, "{second}");
        }
        assert!(!hour.is_over(3_599_999) && hour.is_over(3_600_000));
        let minute = of("new", 60);
        for (second, urgency) in [(0, NotYet), (45, NotYet), (51, Now), (61, Now)] {
            assert_eq!(minute.urgency(second * 1000), urgency, "{second}");
        }
        let at = |n: i32| of(&format!("token-{n}"), 3600).renew_at_ms.unwrap();
        let all: std::collections::BTreeSet<i64> = (0..50).map(at).collect();
        assert!(all.len() > 20, "they differ: {all:?}");
        assert!(all.iter().all(|at| (2_736_000..=3_024_000).contains(at)), "{all:?}");
        // One that an earlier version stored.
        let old = Grant { expires_at_ms: Some(60_000), ..grant() };
        assert_eq!((old.urgency(29_000), old.urgency(31_000)), (NotYet, Now));
        assert_eq!(grant().urgency(i64::MAX), NotYet, "it does not expire");
        assert_eq!(of("new", i64::MAX).urgency(0), NotYet);
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
