//! Gives the grants of the current configuration to the gatekeeper.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use switchboard_auth::Gatekeeper;
use switchboard_model::Plan;

use crate::board_place::BoardPlace;

/// The grants of the current configuration, given to the gatekeeper when they have changed.
#[derive(Debug, Default)]
pub(crate) struct CurrentGrants(ArcSwapOption<Plan>);

impl CurrentGrants {
    /// Applies the grants of the configuration in force. Cheap while the configuration stays the same.
    pub(crate) fn apply(&self, place: &BoardPlace, gatekeeper: &Gatekeeper) {
        let Some(board) = place.board() else { return };
        let plan = board.plan();
        if self.0.load().as_ref().is_some_and(|known| Arc::ptr_eq(known, &plan)) {
            return;
        }
        if let Some(jwt) = &plan.security.jwt {
            gatekeeper.set_grants(&jwt.grants);
        }
        self.0.store(Some(plan));
    }
}
