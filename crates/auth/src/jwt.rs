//! JSON Web Tokens: verified once, then cached by their hash until they expire.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Header, Validation, decode, decode_header};
use parking_lot::{Mutex, RwLock};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value, json};
use switchboard_model::{Identity, JwtGrants, LiveAccess, WeakAccess};
use url::Url;

use crate::claim_access::granted;
use crate::jwks::{ACCEPTED, IssuerKey, Jwks, KeySet, NoKey};
use crate::keys::now_ms;
use crate::{AuthError, KeySetSource, Principal, Refusal, Role};

/// The accepted tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwtOptions {
    /// The exact value of `iss`.
    pub issuer: String,
    /// The value that `aud` must contain.
    pub audience: String,
    /// The resource identifier in the metadata of RFC 9728.
    pub resource: Url,
    /// The location of the issuer's keys.
    pub jwks: KeySetSource,
    /// The scopes that a token must have.
    pub required_scopes: Vec<String>,
    /// The permitted difference between the clocks of the issuer and this machine.
    pub leeway: Duration,
    /// What tokens grant, by their claims.
    pub grants: JwtGrants,
}

const OPERATOR_SCOPE: &str = "switchboard:operator";
const ADMIN_SCOPE: &str = "switchboard:admin";
/// The maximum of `leeway`.
const MAX_LEEWAY: Duration = Duration::from_mins(10);
/// The maximum number of cached tokens. A token that is not cached is verified again.
const MAX_REMEMBERED: usize = 4096;
const LONGEST_NAME: usize = 100;

/// Verifies the tokens of one issuer.
pub(crate) struct Tokens {
    options: JwtOptions,
    jwks: Arc<Jwks>,
    remembered: RwLock<HashMap<blake3::Hash, CachedToken>>,
    grants: ArcSwap<JwtGrants>,
    /// The access of each token that is in use somewhere, with its claims, to be computed again when the rules change.
    live: Mutex<Vec<LiveToken>>,
}

type LiveToken = (WeakAccess, Arc<Map<String, Value>>);

struct CachedToken {
    principal: Principal,
    until_ms: i64,
    /// The generation of the keys that verified the token; a new generation makes the entry invalid.
    generation: u64,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    exp: Number,
    sub: Option<String>,
    client_id: Option<String>,
    azp: Option<String>,
    scope: Option<Scopes>,
    scp: Option<Scopes>,
    name: Option<Value>,
    preferred_username: Option<Value>,
    email: Option<Value>,
    email_verified: Option<Value>,
}

/// The claims that are used here, and all of them for rules.
struct TokenClaims {
    claims: Claims,
    whole: Map<String, Value>,
}

impl<'de> Deserialize<'de> for TokenClaims {
    fn deserialize<D: Deserializer<'de>>(token: D) -> Result<Self, D::Error> {
        let whole = Map::deserialize(token)?;
        let claims = Claims::deserialize(&Value::Object(whole.clone()));
        Ok(Self { claims: claims.map_err(D::Error::custom)?, whole })
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Scopes {
    Text(String),
    List(Vec<String>),
}

impl Tokens {
    pub(crate) async fn new(options: JwtOptions) -> Result<Self, AuthError> {
        let jwks = Jwks::new(options.jwks.clone()).await?;
        let options = JwtOptions { leeway: options.leeway.min(MAX_LEEWAY), ..options };
        let grants = ArcSwap::from_pointee(options.grants.clone());
        let (remembered, live) = (RwLock::default(), Mutex::default());
        Ok(Self { options, jwks, remembered, grants, live })
    }

    /// Fetches the issuer's keys if they are old.
    pub(crate) async fn refresh(&self) {
        // The fetch has logged its error; the current keys stay in use.
        let _told = self.jwks.refresh_when_old().await;
    }

    pub(crate) fn required_scopes(&self) -> &[String] {
        &self.options.required_scopes
    }

    /// The metadata of RFC 9728. Scopes that raise the role are left out, because clients request all scopes they find here.
    pub(crate) fn resource_metadata(&self) -> Value {
        json!({
            "resource": self.options.resource.as_str(),
            "authorization_servers": [self.options.issuer],
            "scopes_supported": self.options.required_scopes,
            "bearer_methods_supported": ["header"],
            "resource_name": "Switchboard",
        })
    }

    pub(crate) async fn admit(&self, token: &str) -> Result<Principal, Refusal> {
        let hash = blake3::hash(token.as_bytes());
        let mut keys = self.jwks.keys();
        if let Some(principal) = self.recall(&hash, keys.generation) {
            return Ok(principal);
        }
        let header = readable_header(token)?;
        if find(&keys, &header)?.is_none() {
            let heard = self.jwks.look_for_new().await;
            keys = self.jwks.keys();
            if heard.is_err() && find(&keys, &header)?.is_none() {
                let reason =
                    "the keys of the token's issuer cannot be fetched now; try again later";
                return Err(Refusal::Unavailable(reason.to_owned()));
            }
        }
        let key = find(&keys, &header)?.ok_or_else(|| {
            Refusal::bad("the token is signed with a key that its issuer does not have")
        })?;
        let TokenClaims { claims, whole } = self.check(token, key)?;
        let rules = self.grants.load_full();
        let principal = self.principal(&claims, whole)?;
        self.remember(hash, &principal, &claims, keys.generation, &rules);
        Ok(principal)
    }

    fn check(&self, token: &str, key: &IssuerKey) -> Result<TokenClaims, Refusal> {
        let mut validation = Validation::default();
        validation.algorithms.clone_from(&key.algorithms);
        validation.set_issuer(&[&self.options.issuer]);
        validation.set_audience(&[&self.options.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation.validate_nbf = true;
        validation.leeway = self.options.leeway.as_secs();
        decode::<TokenClaims>(token, &key.key, &validation)
            .map(|checked| checked.claims)
            .map_err(|error| Refusal::bad(reason(error.kind())))
    }

    /// The scopes that give a token this role.
    pub(crate) fn scopes_of(&self, role: Role) -> Vec<String> {
        let more = match role {
            Role::Client => None,
            Role::Operator => Some(OPERATOR_SCOPE),
            Role::Admin => Some(ADMIN_SCOPE),
        };
        let required = self.options.required_scopes.iter().cloned();
        required.chain(more.map(str::to_owned)).collect()
    }

    fn principal(&self, claims: &Claims, whole: Map<String, Value>) -> Result<Principal, Refusal> {
        let client = claims.client_id.as_deref().or(claims.azp.as_deref()).unwrap_or_default();
        let subject = claims.sub.as_deref().unwrap_or_default();
        if client.is_empty() && subject.is_empty() {
            return Err(Refusal::bad("the token has no subject (`sub`)"));
        }
        let scopes = claims.scopes();
        let has = |scope: &str| scopes.contains(&scope);
        if !self.options.required_scopes.iter().all(|scope| has(scope)) {
            let needed = self.options.required_scopes.clone();
            return Err(Refusal::InsufficientScope { needed });
        }
        let role = match (has(ADMIN_SCOPE), has(OPERATOR_SCOPE)) {
            (true, _) => Role::Admin,
            (false, true) => Role::Operator,
            (false, false) => Role::Client,
        };
        let id = format!("jwt:{}|{}|{}", part(&claims.iss), part(client), part(subject));
        let name = claims.preferred_username.as_ref().or(claims.name.as_ref());
        let name = name.and_then(Value::as_str).map(harmless).filter(|name| !name.is_empty());
        let name: Option<Arc<str>> = name.map(Into::into);
        let identity = Arc::new(claims.identity(client, subject, name.clone()));
        let (granted_role, access) = self.keep(whole);
        let role = granted_role.map_or(role, |granted| granted.max(role));
        Ok(Principal { id: id.into(), role, name, identity, access })
    }

    /// The role and the access that the rules of this moment give to a token. Its claims are remembered for as long as the access is
    /// in use. The lock is the one under which the rules change, so that no token keeps what earlier rules granted.
    fn keep(&self, claims: Map<String, Value>) -> (Option<Role>, LiveAccess) {
        let mut live = self.live.lock();
        let (role, access) = granted(&self.grants.load(), &claims);
        let access = LiveAccess::new(access);
        if live.len() == live.capacity() {
            live.retain(|(access, _)| access.upgrade().is_some());
        }
        live.push((access.downgrade(), Arc::new(claims)));
        (role, access)
    }

    /// Replaces the rules. Tokens in use get their new access at once. Returns whether that of one has changed.
    pub(crate) fn set_grants(&self, grants: &JwtGrants) -> bool {
        let mut live = self.live.lock();
        if **self.grants.load() == *grants {
            return false;
        }
        self.grants.store(Arc::new(grants.clone()));
        // The roles of cached principals may be others now.
        self.remembered.write().clear();
        let mut has_changed = false;
        live.retain(|(access, claims)| {
            let Some(access) = access.upgrade() else { return false };
            has_changed |= access.set(granted(grants, claims).1);
            true
        });
        has_changed
    }

    fn recall(&self, hash: &blake3::Hash, generation: u64) -> Option<Principal> {
        let remembered = self.remembered.read();
        let found = remembered.get(hash)?;
        found.holds(now_ms(), generation).then(|| found.principal.clone())
    }

    fn remember(
        &self,
        hash: blake3::Hash,
        principal: &Principal,
        claims: &Claims,
        generation: u64,
        rules: &Arc<JwtGrants>,
    ) {
        // A time with a fraction is rare: such a token is not cached.
        let Some(end) = claims.exp.as_i64() else { return };
        let leeway = i64::try_from(self.options.leeway.as_secs()).unwrap_or(0);
        let until_ms = end.saturating_add(leeway).saturating_mul(1000);
        let mut remembered = self.remembered.write();
        // The rules have changed meanwhile, and with them perhaps the role.
        if !Arc::ptr_eq(&self.grants.load(), rules) {
            return;
        }
        if remembered.len() >= MAX_REMEMBERED {
            let now = now_ms();
            remembered.retain(|_, token| token.holds(now, generation));
            if remembered.len() >= MAX_REMEMBERED {
                remembered.clear();
            }
        }
        remembered.insert(hash, CachedToken { principal: principal.clone(), until_ms, generation });
    }
}

impl CachedToken {
    fn holds(&self, now_ms: i64, generation: u64) -> bool {
        now_ms < self.until_ms && self.generation == generation
    }
}

impl Claims {
    /// The person of the token. The client is left out, so that a person is the same in all programs.
    fn identity(&self, client: &str, subject: &str, name: Option<Arc<str>>) -> Identity {
        let person = if subject.is_empty() {
            format!("jwt:{}||{}", part(&self.iss), part(client))
        } else {
            format!("jwt:{}|{}", part(&self.iss), part(subject))
        };
        let known = if subject.is_empty() { client } else { subject };
        // An address that its issuer says is not verified may be anybody's. Some issuers write the word as a text.
        let is_unverified = match &self.email_verified {
            Some(Value::Bool(is_verified)) => !is_verified,
            Some(Value::String(text)) => text.eq_ignore_ascii_case("false"),
            _ => false,
        };
        let email = self.email.as_ref().filter(|_| !is_unverified).and_then(Value::as_str);
        let is_plain = |text: &&str| !text.is_empty() && !text.chars().any(char::is_control);
        Identity {
            person: person.into(),
            subject: Some(known).filter(is_plain).map(Into::into),
            email: email.filter(is_plain).map(Into::into),
            name,
            key: None,
            scopes: self.sorted_scopes(),
        }
    }

    fn sorted_scopes(&self) -> Option<Arc<str>> {
        let mut scopes = self.scopes();
        scopes.retain(|scope| !scope.is_empty());
        scopes.sort_unstable();
        scopes.dedup();
        (!scopes.is_empty()).then(|| scopes.join(" ").into())
    }

    fn scopes(&self) -> Vec<&str> {
        [&self.scope, &self.scp]
            .into_iter()
            .flatten()
            .flat_map(|scopes| match scopes {
                Scopes::Text(text) => text.split(' ').collect::<Vec<_>>(),
                Scopes::List(list) => list.iter().map(String::as_str).collect(),
            })
            .collect()
    }
}

/// The header of a token, if the token has an accepted form.
fn readable_header(token: &str) -> Result<Header, Refusal> {
    let header = decode_header(token).map_err(|_| {
        Refusal::bad(
            "this is neither a key nor a token, or a token with an algorithm that is not accepted",
        )
    })?;
    if !ACCEPTED.contains(&header.alg) {
        return Err(Refusal::bad("the token is signed with an algorithm that is not accepted"));
    }
    // RFC 7515, section 4.1.11: a critical extension that is not supported makes the token invalid.
    if header.crit.is_some() {
        return Err(Refusal::bad(
            "the token has a critical extension that is not supported (`crit`)",
        ));
    }
    Ok(header)
}

/// The key for this header, or `None` if a newer set of keys may have it.
fn find<'k>(keys: &'k KeySet, header: &Header) -> Result<Option<&'k IssuerKey>, Refusal> {
    match keys.find(header.kid.as_deref(), header.alg) {
        Ok(key) => Ok(Some(key)),
        Err(NoKey::Unknown) => Ok(None),
        Err(NoKey::WrongAlgorithm) => {
            Err(Refusal::bad("the token's key does not permit the token's algorithm"))
        }
        Err(NoKey::Ambiguous) => {
            Err(Refusal::bad("the token does not say which key it is signed with (`kid`)"))
        }
    }
}

fn reason(error: &ErrorKind) -> String {
    match error {
        ErrorKind::ExpiredSignature => "the token has expired".into(),
        ErrorKind::ImmatureSignature => "the token is not valid yet".into(),
        ErrorKind::InvalidIssuer => "the token is from another issuer".into(),
        ErrorKind::InvalidAudience => "the token is meant for another audience".into(),
        ErrorKind::InvalidSignature => "the signature of the token is wrong".into(),
        ErrorKind::MissingRequiredClaim(claim) | ErrorKind::InvalidClaimFormat(claim) => {
            format!("the token has no usable `{claim}`")
        }
        // The full message may quote the token.
        ErrorKind::Json(_) => {
            "a claim of the token is missing or of the wrong type; `iss` and `exp` must be there"
                .into()
        }
        _ => "the token is malformed or cannot be verified".into(),
    }
}

/// Escapes a part of a principal id, so that it cannot contain the separator.
fn part(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, c| {
        if matches!(c, '|' | '%') || c.is_control() {
            // Writing to a string does not fail.
            let _written = write!(escaped, "%{:02X}", u32::from(c));
        } else {
            escaped.push(c);
        }
        escaped
    })
}

fn harmless(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use pretty_assertions::assert_eq;
    use switchboard_model::{Access, AccessRule, CallerLimits, ClaimGrant};

    use super::*;

    /// The issuer's key of RFC 8037, appendix A.
    const JWKS: &str = r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

    async fn tokens(directory: &std::path::Path) -> Tokens {
        let jwks = directory.join("jwks.json");
        std::fs::write(&jwks, JWKS).unwrap();
        let options = JwtOptions {
            issuer: "https://issuer.example".into(),
            audience: "board".into(),
            resource: Url::parse("https://board.example").unwrap(),
            jwks: KeySetSource::File(jwks),
            required_scopes: Vec::new(),
            leeway: Duration::ZERO,
            grants: JwtGrants::default(),
        };
        Tokens::new(options).await.unwrap()
    }

    fn only(toolset: String) -> (AccessRule, JwtGrants) {
        let rule = AccessRule { toolsets: Some(vec![toolset]), ..AccessRule::ALL };
        let otherwise = ClaimGrant { rule: rule.clone(), ..ClaimGrant::default() };
        (rule, JwtGrants { rules: Some(Vec::new()), otherwise: Some(otherwise) })
    }

    #[tokio::test]
    async fn a_token_that_is_admitted_while_the_rules_change_has_the_new_ones() {
        let directory = tempfile::tempdir().unwrap();
        let tokens = tokens(directory.path()).await;
        let claims = json!({"iss": "https://issuer.example", "exp": 1, "sub": "anna"});
        let admitted = || {
            let TokenClaims { claims, whole } = TokenClaims::deserialize(&claims).unwrap();
            tokens.principal(&claims, whole).unwrap()
        };
        for round in 0..200 {
            let (rule, rules) = only(format!("set-{round}"));
            let principals = thread::scope(|scope| {
                let admitting = scope.spawn(|| (0..50).map(|_| admitted()).collect::<Vec<_>>());
                thread::yield_now();
                tokens.set_grants(&rules);
                admitting.join().unwrap()
            });
            let expected = Access::of(rule, CallerLimits::default());
            for principal in principals {
                assert_eq!(*principal.access.load(), expected, "round {round}");
            }
        }
    }
}
