//! The present access of the owners of sessions.
//!
//! A session lasts longer than a request, so it looks up what its owner may use whenever its tools are computed.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_model::{AccessRules, LiveAccess};

/// The most owners that are remembered. Beyond it, those that nothing else uses are forgotten: an owner comes back with
/// its next request.
const MAX_OWNERS: usize = 65_536;

/// The access of each principal that was seen, by the credential that it showed last.
#[derive(Debug, Default)]
pub(crate) struct OwnerAccess(Mutex<HashMap<Arc<str>, LiveAccess>>);

impl OwnerAccess {
    /// Notes the credential of a principal. Returns whether it is another one than before.
    pub(crate) fn note(&self, principal: &Arc<str>, access: &LiveAccess) -> bool {
        let mut owners = self.0.lock();
        if owners.get(principal).is_some_and(|known| known.is_same(access)) {
            return false;
        }
        if owners.len() >= MAX_OWNERS {
            owners.retain(|_, access| access.is_used_elsewhere());
        }
        owners.insert(principal.clone(), access.clone());
        true
    }

    /// What the owner may use now; `None` if nothing is withheld.
    pub(crate) fn rules_of(&self, owner: &str) -> Option<Arc<AccessRules>> {
        self.0.lock().get(owner)?.tools()
    }
}
