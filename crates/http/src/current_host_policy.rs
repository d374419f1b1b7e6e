//! The accepted hosts and origins of the current configuration.

use std::sync::Arc;

use arc_swap::ArcSwap;
use switchboard_model::Plan;

use crate::board_place::BoardPlace;
use crate::origin_check::HostPolicy;

/// The host policy of the current configuration. A reload applies to the next request.
#[derive(Debug)]
pub(crate) struct CurrentHostPolicy {
    board: BoardPlace,
    derived: ArcSwap<Derived>,
}

#[derive(Debug)]
struct Derived {
    /// The plan that `policy` was derived from; `None` before the board has started.
    plan: Option<Arc<Plan>>,
    policy: Arc<HostPolicy>,
}

impl CurrentHostPolicy {
    /// `policy` applies until the board has started.
    pub(crate) fn new(board: BoardPlace, policy: HostPolicy) -> Self {
        let derived = Derived { plan: None, policy: Arc::new(policy) };
        Self { board, derived: ArcSwap::from_pointee(derived) }
    }

    /// The current policy.
    pub(crate) fn current(&self) -> Arc<HostPolicy> {
        let derived = self.derived.load();
        let Some(board) = self.board.board() else { return derived.policy.clone() };
        let plan = board.plan();
        if derived.plan.as_ref().is_some_and(|known| Arc::ptr_eq(known, &plan)) {
            return derived.policy.clone();
        }
        let policy = Arc::new(HostPolicy {
            hosts: plan.security.allowed_hosts.clone(),
            origins: plan.security.allowed_origins.clone(),
            is_wide: derived.policy.is_wide,
        });
        // Two requests may derive it at the same time. If the older plan is stored last, the next request derives it again.
        self.derived.store(Arc::new(Derived { plan: Some(plan), policy: policy.clone() }));
        policy
    }
}
