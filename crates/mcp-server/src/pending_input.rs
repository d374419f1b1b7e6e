//! Requests of the stateless era that wait for their client to return with the input that a server asked for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::upstream_exchange::UpstreamExchange;

/// How long a client may take to return with its input.
pub(crate) const PATIENCE: Duration = Duration::from_mins(10);
/// The maximum number of waiting requests of one principal; beyond it the oldest is dropped.
const MAX_PER_PRINCIPAL: usize = 64;

/// The waiting requests, by their `requestState`.
#[derive(Default)]
pub(crate) struct PendingInputs(Mutex<HashMap<String, PendingInput>>);

struct PendingInput {
    exchange: Box<UpstreamExchange>,
    principal: Arc<str>,
    since: Instant,
}

impl PendingInputs {
    fn all(&self) -> parking_lot::MutexGuard<'_, HashMap<String, PendingInput>> {
        self.0.lock()
    }

    pub(crate) fn put(&self, state: String, exchange: Box<UpstreamExchange>) {
        let principal = exchange.context.caller.principal.clone();
        let mut all = self.all();
        let mut own: Vec<_> = all
            .iter()
            .filter(|(_, waiting)| waiting.principal == principal)
            .map(|(state, waiting)| (waiting.since, state.clone()))
            .collect();
        if own.len() >= MAX_PER_PRINCIPAL {
            own.sort();
            if let Some((_, oldest)) = own.first() {
                all.remove(oldest);
            }
        }
        all.insert(state, PendingInput { exchange, principal, since: Instant::now() });
    }

    /// Removes and returns the call that waits for its caller's input under this `requestState`. A call of another
    /// principal, or one for which `is_same` denies that the retry has the same method and parameters, stays and waits on.
    pub(crate) fn take(
        &self,
        state: &str,
        principal: &str,
        is_same: impl FnOnce(&UpstreamExchange) -> bool,
    ) -> Option<Box<UpstreamExchange>> {
        let mut all = self.all();
        let waiting = all.get(state)?;
        if *waiting.principal != *principal || !is_same(&waiting.exchange) {
            return None;
        }
        all.remove(state).map(|waiting| waiting.exchange)
    }

    pub(crate) fn expire(&self, now: Instant) {
        self.all().retain(|_, waiting| now - waiting.since < PATIENCE);
    }

    pub(crate) fn clear(&self) {
        self.all().clear();
    }
}
