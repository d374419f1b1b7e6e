//! The store of sign-ins, as a trait: the program decides where tokens are kept.

use std::fmt;

use futures::future::BoxFuture;
use switchboard_model::{Secret, ServerName};

/// Stores the results of sign-ins. All of it may be secret. An error is a message.
pub trait TokenStore: fmt::Debug + Send + Sync {
    /// The result of the last sign-in to this server or, with an issuer, of the last one at that issuer.
    fn load<'a>(
        &'a self,
        server: &'a ServerName,
        issuer: Option<&'a str>,
    ) -> Kept<'a, Option<Secret>>;
    fn save<'a>(&'a self, server: &'a ServerName, issuer: &'a str, grant: Secret) -> Kept<'a, ()>;
    /// Removes all sign-ins to this server. Returns whether there were any.
    fn forget<'a>(&'a self, server: &'a ServerName) -> Kept<'a, bool>;
    /// What the next sign-in must request, if one is required.
    fn wanted<'a>(&'a self, server: &'a ServerName) -> Kept<'a, Option<String>>;
    fn want<'a>(&'a self, server: &'a ServerName, wanted: Option<String>) -> Kept<'a, ()>;
    /// Milliseconds since 1970.
    fn now_ms(&self) -> i64;
}

/// The result of a [`TokenStore`] operation.
pub type Kept<'a, T> = BoxFuture<'a, Result<T, String>>;
