//! The one who lets people in.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::{HeaderMap, HeaderName};
use serde_json::Value;
use switchboard_store::Store;
use tokio::sync::Semaphore;

use crate::credential::{self, Credential};
use crate::jwt::Tokens;
use crate::keys::{KeyHasher, KnownKeys};
use crate::{AuthError, JwtOptions, Principal, Refusal};
use switchboard_model::Role;

/// What the gatekeeper accepts besides API keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GatekeeperOptions {
    /// Tokens of an issuer.
    pub jwt: Option<JwtOptions>,
}

/// Tells who is asking, from a snapshot of the keys and the issuer's keys.
pub struct Gatekeeper {
    store: Store,
    hasher: KeyHasher,
    keys: ArcSwap<KnownKeys>,
    /// One reader at a time: a snapshot that was read before a key was revoked must not be put in place after one
    /// that was read later.
    turn: Semaphore,
    tokens: Option<Tokens>,
    /// Made once: the open door is the hottest path of all.
    local: Principal,
}

impl Gatekeeper {
    /// The headers that are looked at.
    pub const HEADERS: [HeaderName; 2] = credential::HEADERS;

    /// Reads the keys, and asks the issuer for its own. An issuer that does not answer is asked again when a token
    /// comes.
    pub async fn new(store: Store, security: GatekeeperOptions) -> Result<Arc<Self>, AuthError> {
        let hasher = KeyHasher::new(&store).await?;
        let keys = KnownKeys::read(&store, &KnownKeys::default()).await?;
        let tokens = match security.jwt {
            Some(options) => Some(Tokens::new(options).await?),
            None => None,
        };
        let (keys, local) = (ArcSwap::from_pointee(keys), Principal::local());
        Ok(Arc::new(Self { store, hasher, keys, turn: Semaphore::new(1), tokens, local }))
    }

    /// True when nobody needs credentials: there has never been a key, and no tokens are configured. A board whose
    /// keys are all revoked or expired is not open.
    pub fn is_open(&self) -> bool {
        self.tokens.is_none() && !self.keys.load().any_ever()
    }

    /// Who is asking. Waits only when a token is signed with a key that has not been seen before.
    ///
    /// While the door is open, credentials are not looked at.
    pub async fn admit(&self, headers: &HeaderMap) -> Result<Principal, Refusal> {
        if self.is_open() {
            return Ok(self.local.clone());
        }
        match credential::shown(headers)? {
            Credential::Key(key) => self.keys.load().admit(key, &self.hasher),
            Credential::Token(token) => match &self.tokens {
                Some(tokens) => tokens.admit(token).await,
                None => Err(Refusal::bad("this is no API key, and tokens are not accepted here")),
            },
        }
    }

    /// The document of RFC 9728, when tokens are accepted.
    pub fn resource_metadata(&self) -> Option<Value> {
        self.tokens.as_ref().map(Tokens::resource_metadata)
    }

    /// The scopes that every token needs.
    pub fn required_scopes(&self) -> &[String] {
        self.tokens.as_ref().map_or(&[], Tokens::required_scopes)
    }

    /// The scopes with which a token has this role, when tokens are accepted.
    pub fn scopes_of(&self, role: Role) -> Option<Vec<String>> {
        self.tokens.as_ref().map(|tokens| tokens.scopes_of(role))
    }

    /// Reads the keys anew, notes which ones were used, and asks the issuer when its last answer is old. To be
    /// called after a change of the keys and every few seconds. When the keys cannot be read, the last snapshot
    /// stays.
    pub async fn refresh(&self) -> Result<(), AuthError> {
        let turn = self.turn.acquire().await;
        let before = self.keys.load_full();
        let keys = Arc::new(KnownKeys::read(&self.store, &before).await?);
        self.keys.store(Arc::clone(&keys));
        drop(turn);
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
