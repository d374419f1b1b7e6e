//! Stores grants in the data directory's store.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use jiff::Timestamp;
use switchboard_model::{GrantId, RenewalTurn, Secret};
use switchboard_oauth::{Kept, StoredGrant, TokenStore, TokenStoreError, WallClock};
use switchboard_store::{GrantRow, Store, StoreError};

/// Grants in the data directory, shared by all processes that use it.
#[derive(Clone)]
pub struct StoredTokens {
    store: Store,
    clock: WallClock,
}

impl fmt::Debug for StoredTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredTokens").field("store", &self.store).finish_non_exhaustive()
    }
}

impl StoredTokens {
    pub fn new(store: Store) -> Self {
        Self::with_clock(store, Arc::new(|| Timestamp::now().as_millisecond()))
    }

    /// With another clock than that of the system.
    pub fn with_clock(store: Store, clock: WallClock) -> Self {
        Self { store, clock }
    }

    fn stored(&self, row: GrantRow) -> StoredGrant {
        let content = row.content.map_err(|lock| in_words(&self.store.locked(&row.id, lock)));
        StoredGrant {
            id: row.id,
            issuer: row.issuer,
            content,
            is_encrypted: row.is_encrypted,
            version: row.version,
            renewing_until_ms: row.renewing_until_ms,
        }
    }
}

impl TokenStore for StoredTokens {
    fn load<'a>(
        &'a self,
        id: &'a GrantId,
        issuer: Option<&'a str>,
    ) -> Kept<'a, Option<StoredGrant>> {
        async move {
            let row = self.store.grant(id, issuer).await.map_err(|error| in_words(&error))?;
            let Some(stored) = row.map(|row| self.stored(row)) else { return Ok(None) };
            match &stored.content {
                Ok(_) => Ok(Some(stored)),
                Err(locked) => Err(locked.clone()),
            }
        }
        .boxed()
    }

    fn list(&self) -> Kept<'_, Vec<StoredGrant>> {
        async move {
            let rows = self.store.grants().await.map_err(|error| in_words(&error))?;
            Ok(rows.into_iter().map(|row| self.stored(row)).collect())
        }
        .boxed()
    }

    fn save<'a>(&'a self, id: &'a GrantId, issuer: &'a str, content: Secret) -> Kept<'a, ()> {
        async move { kept(self.store.save_grant(id, issuer, &content, self.now_ms()).await) }
            .boxed()
    }

    fn begin_renewal<'a>(
        &'a self,
        id: &'a GrantId,
        issuer: &'a str,
        version: i64,
        abandoned: Option<i64>,
    ) -> Kept<'a, RenewalTurn> {
        self.store.begin_renewal(id, issuer, version, abandoned).map(kept).boxed()
    }

    fn finish_renewal<'a>(
        &'a self,
        id: &'a GrantId,
        issuer: &'a str,
        version: i64,
        content: Secret,
    ) -> Kept<'a, bool> {
        async move {
            let now_ms = self.now_ms();
            kept(self.store.finish_renewal(id, issuer, version, &content, now_ms).await)
        }
        .boxed()
    }

    fn end_renewal<'a>(&'a self, id: &'a GrantId, issuer: &'a str, version: i64) -> Kept<'a, ()> {
        self.store.end_renewal(id, issuer, version).map(kept).boxed()
    }

    fn forget<'a>(&'a self, id: &'a GrantId) -> Kept<'a, bool> {
        self.store.forget_grants(id).map(kept).boxed()
    }

    fn need<'a>(&'a self, id: &'a GrantId) -> Kept<'a, Option<String>> {
        self.store.grant_need(id).map(kept).boxed()
    }

    fn set_need<'a>(&'a self, id: &'a GrantId, need: String) -> Kept<'a, ()> {
        async move { kept(self.store.need_grant(id, &need).await) }.boxed()
    }

    fn now_ms(&self) -> i64 {
        (self.clock)()
    }
}

fn kept<T>(result: Result<T, StoreError>) -> Result<T, TokenStoreError> {
    result.map_err(|error| in_words(&error))
}

fn in_words(error: &StoreError) -> TokenStoreError {
    TokenStoreError { message: error.to_string(), hint: error.hint() }
}
