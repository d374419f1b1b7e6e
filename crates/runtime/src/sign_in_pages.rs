//! The address of the sign-in pages, which the HTTP server knows.

use std::fmt;
use std::sync::{Arc, OnceLock};

use url::Url;

/// The address of the pages, and how they know the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInPages {
    /// The address of the board, to which paths are appended.
    pub base: Url,
    /// Whether a person must show that the call was theirs. Not where everybody who reaches the board is its user.
    pub needs_proof: bool,
}

type Current = dyn Fn() -> Option<SignInPages> + Send + Sync;

/// Reads the address of the pages when it is needed: a reload may change it, and the first key makes a proof necessary.
/// Clones share it.
#[derive(Clone, Default)]
pub(crate) struct PagesSource(Arc<OnceLock<Box<Current>>>);

impl PagesSource {
    /// Sets where the address is read. Later calls have no effect.
    pub(crate) fn set(&self, current: Box<Current>) {
        let _there_is_one = self.0.set(current);
    }

    pub(crate) fn current(&self) -> Option<SignInPages> {
        self.0.get().and_then(|current| current())
    }
}

impl fmt::Debug for PagesSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PagesSource")
    }
}
