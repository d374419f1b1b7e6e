//! Stores sign-ins to servers in the data directory's store.

use futures::FutureExt;
use jiff::Timestamp;
use switchboard_model::{Secret, ServerName};
use switchboard_oauth::{Kept, TokenStore};
use switchboard_store::Store;

/// Sign-ins in the data directory, shared by all processes that use it.
#[derive(Debug, Clone)]
pub struct StoredTokens(Store);

impl StoredTokens {
    pub fn new(store: Store) -> Self {
        Self(store)
    }
}

impl TokenStore for StoredTokens {
    fn load<'a>(
        &'a self,
        server: &'a ServerName,
        issuer: Option<&'a str>,
    ) -> Kept<'a, Option<Secret>> {
        self.0.oauth_grant(server, issuer).map(in_words).boxed()
    }

    fn save<'a>(&'a self, server: &'a ServerName, issuer: &'a str, grant: Secret) -> Kept<'a, ()> {
        async move {
            in_words(self.0.keep_oauth_grant(server, issuer, &grant, self.now_ms()).await)
        }
        .boxed()
    }

    fn forget<'a>(&'a self, server: &'a ServerName) -> Kept<'a, bool> {
        self.0.forget_oauth_grants(server).map(in_words).boxed()
    }

    fn wanted<'a>(&'a self, server: &'a ServerName) -> Kept<'a, Option<String>> {
        self.0.oauth_wanted(server).map(in_words).boxed()
    }

    fn want<'a>(&'a self, server: &'a ServerName, wanted: Option<String>) -> Kept<'a, ()> {
        async move { in_words(self.0.want_oauth(server, wanted.as_deref()).await) }.boxed()
    }

    fn now_ms(&self) -> i64 {
        Timestamp::now().as_millisecond()
    }
}

fn in_words<T>(kept: Result<T, switchboard_store::StoreError>) -> Result<T, String> {
    kept.map_err(|error| error.to_string())
}
