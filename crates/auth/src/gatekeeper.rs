//! Authenticates requests by API key or token.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::{HeaderMap, HeaderName};
use serde_json::Value;
use switchboard_store::{HintNotice, Store};
use tokio::sync::{Semaphore, broadcast, watch};

use crate::credential::{self, Credential};
use crate::jwt::Tokens;
use crate::keys::{KeyHasher, KnownKeys};
use crate::{AuthError, JwtOptions, Principal, Refusal};
use switchboard_model::{JwtGrants, LiveAccess, Role};

/// The accepted credentials beside API keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GatekeeperOptions {
    /// Tokens of an issuer; `None` accepts no tokens.
    pub jwt: Option<JwtOptions>,
}

/// Authenticates requests from a snapshot of the API keys and of the issuer's keys.
pub struct Gatekeeper {
    store: Store,
    hasher: KeyHasher,
    keys: ArcSwap<KnownKeys>,
    /// One refresh at a time: a snapshot that was read before a key was revoked must not replace one that was read later.
    turn: Semaphore,
    tokens: Option<Tokens>,
    /// Created once, because it is returned for every request while no credentials are required.
    local: Principal,
    /// Counts the changes of what credentials grant.
    access_version: watch::Sender<u64>,
}

impl Gatekeeper {
    /// The headers that may carry credentials.
    pub const HEADERS: [HeaderName; 2] = credential::HEADERS;

    /// Reads the API keys and fetches the issuer's keys. If the issuer does not respond, it is asked again when a token
    /// arrives.
    pub async fn new(store: Store, security: GatekeeperOptions) -> Result<Arc<Self>, AuthError> {
        let hasher = KeyHasher::new(&store).await?;
        let keys = KnownKeys::read(&store, &KnownKeys::default()).await?;
        let tokens = match security.jwt {
            Some(options) => Some(Tokens::new(options).await?),
            None => None,
        };
        let (keys, local) = (ArcSwap::from_pointee(keys), Principal::local());
        let (turn, access_version) = (Semaphore::new(1), watch::Sender::new(0));
        Ok(Arc::new(Self { store, hasher, keys, turn, tokens, local, access_version }))
    }

    /// Whether no credentials are required: no API key was ever created, and no tokens are configured. When all keys are
    /// revoked or expired, credentials are still required.
    pub fn is_open(&self) -> bool {
        self.tokens.is_none() && !self.keys.load().any_ever()
    }

    /// The principal of a request. Waits only when a token is signed with an unknown key, which is then fetched.
    ///
    /// While [`Self::is_open`], credentials are not checked.
    pub async fn admit(&self, headers: &HeaderMap) -> Result<Principal, Refusal> {
        if self.is_open() {
            return Ok(self.local.clone());
        }
        match credential::shown(headers)? {
            Credential::Key(key) => self.keys.load().admit(key, &self.hasher),
            Credential::Token(token) => match &self.tokens {
                Some(tokens) => tokens.admit(token).await,
                None => {
                    Err(Refusal::bad("this is not an API key, and tokens are not accepted here"))
                }
            },
        }
    }

    /// The token of a request, if it shows one instead of an API key. It is not checked here.
    pub fn token_of(headers: &HeaderMap) -> Option<&str> {
        match credential::shown(headers) {
            Ok(Credential::Token(token)) => Some(token),
            Ok(Credential::Key(_)) | Err(_) => None,
        }
    }

    /// Whether a person is gone: one that only keys stand for, and all of them are revoked or expired. Of the persons in
    /// tokens nothing is known.
    pub fn is_gone(&self, person: &str) -> bool {
        let has_keys = person.starts_with("key:") || person.starts_with("user:");
        has_keys && !self.keys.load().has_person(person)
    }

    /// The protected resource metadata (RFC 9728), if tokens are accepted.
    pub fn resource_metadata(&self) -> Option<Value> {
        self.tokens.as_ref().map(Tokens::resource_metadata)
    }

    /// The scopes that every token needs.
    pub fn required_scopes(&self) -> &[String] {
        self.tokens.as_ref().map_or(&[], Tokens::required_scopes)
    }

    /// The scopes that give a token this role, if tokens are accepted.
    pub fn scopes_of(&self, role: Role) -> Option<Vec<String>> {
        self.tokens.as_ref().map(|tokens| tokens.scopes_of(role))
    }

    /// Changes with what a credential grants. The change is in force before it is announced here.
    pub fn access_versions(&self) -> watch::Receiver<u64> {
        self.access_version.subscribe()
    }

    /// The principals of all keys, with what they grant.
    pub fn key_access(&self) -> Vec<(Arc<str>, LiveAccess)> {
        let keys = self.keys.load();
        keys.accesses().map(|(principal, access)| (principal.clone(), access.clone())).collect()
    }

    /// Replaces the rules that say what tokens grant. Running sessions and calls follow at once.
    pub fn set_grants(&self, grants: &JwtGrants) {
        if self.tokens.as_ref().is_some_and(|tokens| tokens.set_grants(grants)) {
            self.access_version.send_modify(|version| *version += 1);
        }
    }

    /// What other boards of the same store say. After a change of the keys, [`Gatekeeper::refresh`] has to be called.
    pub fn notices(&self) -> broadcast::Receiver<HintNotice> {
        self.store.hints().subscribe()
    }

    /// Reads the API keys again, records which ones were used, and fetches the issuer's keys if they are old. Call it after
    /// a change of the keys and every few seconds. If the keys cannot be read, the last snapshot stays in effect.
    pub async fn refresh(&self) -> Result<(), AuthError> {
        let turn = self.turn.acquire().await;
        let before = self.keys.load_full();
        let keys = Arc::new(KnownKeys::read(&self.store, &before).await?);
        self.keys.store(Arc::clone(&keys));
        drop(turn);
        if keys.has_changed {
            self.access_version.send_modify(|version| *version += 1);
        }
        if let Some(tokens) = &self.tokens {
            tokens.refresh().await;
        }
        keys.note_uses(&self.store).await
    }
}

impl fmt::Debug for Gatekeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gatekeeper").field("is_open", &self.is_open()).finish_non_exhaustive()
    }
}
