//! The OAuth state of all servers and owners, so that the connections with one account share its tokens.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_model::{
    DescribedIssuer, GrantId, GrantOwner, OAuthGrant, OAuthSettings, ServerSpec,
};
use url::Url;

use crate::authorization::Authorization;
use crate::grant::token_of;
use crate::memory_tokens::MemoryTokens;
use crate::subject_tokens::SubjectTokens;
use crate::token_source::TokenSource;
use crate::token_store::TokenStore;

/// The interval at which a server that waits for a sign-in reads the store.
const LOOKING: Duration = Duration::from_secs(1);
/// How many states are kept although no connection uses them.
const MAX_KNOWN: usize = 1024;

/// The sign-ins of all servers of a board. Clones share them.
#[derive(Debug, Clone)]
pub struct SignIns {
    tokens: Arc<dyn TokenStore>,
    known: Arc<Mutex<HashMap<GrantId, Arc<Authorization>>>>,
    subjects: Arc<SubjectTokens>,
}

impl SignIns {
    pub fn new(tokens: Arc<dyn TokenStore>) -> Self {
        Self { tokens, known: Arc::default(), subjects: Arc::default() }
    }

    /// Returns when a sign-in to the server was stored or removed. Cancel-safe.
    pub async fn changed(&self, spec: &ServerSpec) {
        let Some(authorization) = self.authorization(spec) else {
            return std::future::pending().await;
        };
        let before = authorization.remembered();
        loop {
            tokio::time::sleep(LOOKING).await;
            let now = authorization.look().await.ok().flatten();
            if token_of(now.as_ref()) != token_of(before.as_ref()) {
                return;
            }
        }
    }

    /// Forgets what is known about a grant: it was changed in this process.
    pub fn look_again(&self, id: &GrantId) {
        self.known.lock().remove(id);
    }

    /// The tokens of callers, for servers whose tokens are exchanged for them.
    pub fn subjects(&self) -> &Arc<SubjectTokens> {
        &self.subjects
    }

    /// The store of the grants.
    pub fn tokens(&self) -> &Arc<dyn TokenStore> {
        &self.tokens
    }

    /// The shared OAuth state of a server for the account that all callers share.
    pub fn authorization(&self, spec: &ServerSpec) -> Option<Arc<Authorization>> {
        self.authorization_of(spec, GrantOwner::Board)
    }

    /// The shared OAuth state of a server for one owner, so that two connections do not refresh the same token. States
    /// that no connection uses are dropped when there are many: the store has what they know.
    pub fn authorization_of(
        &self,
        spec: &ServerSpec,
        owner: GrantOwner,
    ) -> Option<Arc<Authorization>> {
        let (url, settings) = spec.endpoint.oauth()?;
        let id = GrantId::of_server(&spec.name).with_owner(owner);
        Some(self.shared(id, url, TokenSource::Server(settings.clone())))
    }

    /// The shared OAuth state of an account at an issuer that the configuration describes. `url` is the address that the
    /// tokens are for; they are not sent elsewhere.
    pub fn described(
        &self,
        id: GrantId,
        url: &Url,
        issuer: &DescribedIssuer,
    ) -> Arc<Authorization> {
        self.shared(id, url, TokenSource::Described(Box::new(issuer.clone())))
    }

    fn shared(&self, id: GrantId, url: &Url, source: TokenSource) -> Arc<Authorization> {
        let mut known = self.known.lock();
        let present = known.get(&id);
        if let Some(present) = present.filter(|it| it.is_for(url, &source)) {
            return present.clone();
        }
        if known.len() >= MAX_KNOWN {
            known.retain(|_, it| Arc::strong_count(it) > 1);
        }
        let fresh = match &source {
            // Exchanged tokens are not stored: they end with this state.
            TokenSource::Server(OAuthSettings { grant: OAuthGrant::TokenExchange(_), .. }) => {
                let clock = self.tokens.clone();
                let memory = MemoryTokens::new(Arc::new(move || clock.now_ms()));
                Authorization::new(id.clone(), url, source, Arc::new(memory))
                    .with_subjects(self.subjects.clone())
            }
            TokenSource::Server(_) | TokenSource::Described(_) => {
                Authorization::new(id.clone(), url, source, self.tokens.clone())
            }
        };
        let fresh = Arc::new(fresh);
        known.insert(id, fresh.clone());
        fresh
    }
}
