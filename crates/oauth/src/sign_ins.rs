//! The OAuth state of all servers, so that the connections to a server share its tokens.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_model::{ServerName, ServerSpec};

use crate::authorization::Authorization;
use crate::grant::token_of;
use crate::token_store::TokenStore;

/// The interval at which a server that waits for a sign-in reads the store.
const LOOKING: Duration = Duration::from_secs(1);

/// The sign-ins of all servers of a board. Clones share them.
#[derive(Debug, Clone)]
pub struct SignIns {
    tokens: Arc<dyn TokenStore>,
    known: Arc<Mutex<HashMap<ServerName, Arc<Authorization>>>>,
}

impl SignIns {
    pub fn new(tokens: Arc<dyn TokenStore>) -> Self {
        Self { tokens, known: Arc::default() }
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

    /// The shared OAuth state of a server, so that two connections do not refresh the same token.
    pub fn authorization(&self, spec: &ServerSpec) -> Option<Arc<Authorization>> {
        let (url, settings) = spec.endpoint.oauth()?;
        let mut known = self.known.lock();
        let present = known.get(&spec.name);
        if let Some(present) = present.filter(|it| it.is_for(url, settings)) {
            return Some(present.clone());
        }
        let tokens = self.tokens.clone();
        let fresh = Arc::new(Authorization::new(&spec.name, url, settings, tokens));
        known.insert(spec.name.clone(), fresh.clone());
        Some(fresh)
    }
}
