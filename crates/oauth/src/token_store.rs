//! The store of grants, as a trait: the program decides where tokens are kept.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use switchboard_model::{GrantId, RenewalTurn, Secret};

/// Stores the results of sign-ins: one grant for each purpose, owner and issuer. All of it may be secret.
///
/// Processes that share a store renew a grant one at a time: [`TokenStore::begin_renewal`] gives the turn to one of
/// them, and [`TokenStore::finish_renewal`] writes only if the grant is still the one that was renewed.
pub trait TokenStore: fmt::Debug + Send + Sync {
    /// The grant of the last sign-in or, with an issuer, of the one at that issuer. A grant that cannot be decrypted is
    /// an error.
    fn load<'a>(
        &'a self,
        id: &'a GrantId,
        issuer: Option<&'a str>,
    ) -> Kept<'a, Option<StoredGrant>>;
    /// All grants, those that cannot be decrypted too.
    fn list(&self) -> Kept<'_, Vec<StoredGrant>>;
    /// Stores the result of a sign-in, in place of an earlier one at the same issuer, and ends the need for one.
    fn save<'a>(&'a self, id: &'a GrantId, issuer: &'a str, content: Secret) -> Kept<'a, ()>;
    /// Takes the turn to renew the grant that was read with this version. `abandoned` is the end of a turn that had no
    /// effect for longer than a turn lasts; it is taken over.
    fn begin_renewal<'a>(
        &'a self,
        id: &'a GrantId,
        issuer: &'a str,
        version: i64,
        abandoned: Option<i64>,
    ) -> Kept<'a, RenewalTurn>;
    /// Writes the renewed content and ends the turn, if the grant still has this version. Returns whether it had.
    fn finish_renewal<'a>(
        &'a self,
        id: &'a GrantId,
        issuer: &'a str,
        version: i64,
        content: Secret,
    ) -> Kept<'a, bool>;
    /// Ends a turn without a result.
    fn end_renewal<'a>(&'a self, id: &'a GrantId, issuer: &'a str, version: i64) -> Kept<'a, ()>;
    /// Removes the grants of this purpose and owner. Returns whether there were any.
    fn forget<'a>(&'a self, id: &'a GrantId) -> Kept<'a, bool>;
    /// Why a sign-in is required, and what it must request; `None` if none is.
    fn need<'a>(&'a self, id: &'a GrantId) -> Kept<'a, Option<String>>;
    /// Notes that a sign-in is required.
    fn set_need<'a>(&'a self, id: &'a GrantId, need: String) -> Kept<'a, ()>;
    /// Milliseconds since 1970.
    fn now_ms(&self) -> i64;
}

/// A grant as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredGrant {
    pub id: GrantId,
    pub issuer: String,
    /// What was saved; an error if it cannot be decrypted.
    pub content: Result<Secret, TokenStoreError>,
    pub is_encrypted: bool,
    /// Grows with every change of the content.
    pub version: i64,
    /// Until when one process renews it.
    pub renewing_until_ms: i64,
}

/// Why the store does not take or return grants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenStoreError {
    pub message: String,
    /// What the operator can do about it.
    pub hint: Option<String>,
}

/// The result of a [`TokenStore`] operation.
pub type Kept<'a, T> = BoxFuture<'a, Result<T, TokenStoreError>>;

/// Reads the time, in milliseconds since 1970.
pub type WallClock = Arc<dyn Fn() -> i64 + Send + Sync>;
