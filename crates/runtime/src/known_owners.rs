//! Which owners of accounts are gone.

use std::fmt;
use std::sync::{Arc, OnceLock};

use switchboard_model::GrantOwner;

type IsGone = dyn Fn(&str) -> bool + Send + Sync;

/// Says whether a person is gone: one whose keys were all revoked, for example. Until it is told, nobody is. Clones share
/// it.
#[derive(Clone, Default)]
pub(crate) struct KnownOwners(Arc<OnceLock<Box<IsGone>>>);

impl KnownOwners {
    /// Sets the check. Later calls have no effect.
    pub(crate) fn set(&self, is_gone: Box<IsGone>) {
        let _there_is_one = self.0.set(is_gone);
    }

    pub(crate) fn is_gone(&self, owner: &GrantOwner) -> bool {
        match owner {
            GrantOwner::Person(person) => self.0.get().is_some_and(|is_gone| is_gone(person)),
            GrantOwner::Board | GrantOwner::Session(_) => false,
        }
    }
}

impl fmt::Debug for KnownOwners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KnownOwners")
    }
}
