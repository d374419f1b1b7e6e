//! The calls that wait or run, and their cancellation from outside.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use switchboard_model::{CallId, Caller, CanonicalName};
use tokio_util::sync::CancellationToken;

use crate::board::Board;

/// A call that waits for its slots or runs.
#[derive(Debug)]
pub struct RunningCall {
    pub id: CallId,
    pub tool: CanonicalName,
    pub caller: Arc<Caller>,
    pub started_at_ms: i64,
    has_slots: AtomicBool,
    cancel: CancellationToken,
    /// Why the board cancelled it.
    cut: OnceLock<&'static str>,
}

impl RunningCall {
    /// Whether the call has its slots; otherwise it waits for them.
    pub fn has_slots(&self) -> bool {
        self.has_slots.load(Ordering::Relaxed)
    }

    pub(crate) fn note_slots(&self) {
        // Before the call looks at the lease of its slots: see `RunningCalls::cut`.
        self.has_slots.store(true, Ordering::SeqCst);
    }

    /// Why the board cancelled it, if it did.
    pub(crate) fn cut_reason(&self) -> Option<&'static str> {
        self.cut.get().copied()
    }
}

/// All calls that wait or run. The number of calls is bounded where they are admitted.
#[derive(Debug, Default, Clone)]
pub(crate) struct RunningCalls(Arc<Mutex<HashMap<String, Arc<RunningCall>>>>);

impl RunningCalls {
    /// Enters a call. Cancelling `cancel` must end it.
    pub(crate) fn enter(
        &self,
        id: &CallId,
        tool: &CanonicalName,
        caller: &Arc<Caller>,
        started_at_ms: i64,
        cancel: CancellationToken,
    ) -> Arc<RunningCall> {
        let call = Arc::new(RunningCall {
            id: id.clone(),
            tool: tool.clone(),
            caller: caller.clone(),
            started_at_ms,
            has_slots: AtomicBool::new(false),
            cancel,
            cut: OnceLock::new(),
        });
        self.0.lock().insert(id.0.clone(), call.clone());
        call
    }

    /// Cancels all calls that have slots that were lent, and returns how many there were.
    pub(crate) fn cut(&self, reason: &'static str) -> usize {
        let calls: Vec<_> = self.0.lock().values().cloned().collect();
        let have_slots = calls.iter().filter(|call| {
            call.has_slots.load(Ordering::SeqCst) && !call.tool.server().is_attached()
        });
        have_slots
            .inspect(|call| {
                let _already_cut = call.cut.set(reason);
                call.cancel.cancel();
            })
            .count()
    }

    pub(crate) fn leave(&self, id: &CallId) {
        self.0.lock().remove(&id.0);
    }
}

impl Board {
    /// The calls that wait or run, oldest first.
    pub fn running_calls(&self) -> Vec<Arc<RunningCall>> {
        let mut calls: Vec<_> = self.running.0.lock().values().cloned().collect();
        calls.sort_by(|one, other| one.id.0.cmp(&other.id.0));
        calls
    }

    /// The call of this id, if it waits or runs.
    pub fn running_call(&self, id: &CallId) -> Option<Arc<RunningCall>> {
        self.running.0.lock().get(&id.0).cloned()
    }

    /// The call that is made with exactly this caller, if it waits or runs.
    pub fn running_call_of(&self, caller: &Arc<Caller>) -> Option<Arc<RunningCall>> {
        self.running.0.lock().values().find(|call| Arc::ptr_eq(&call.caller, caller)).cloned()
    }

    /// Cancels a call: its slots are released, its server is told, and its caller gets the error `cancelled`. Returns
    /// whether it was still waiting or running.
    pub fn cancel_call(&self, id: &CallId) -> bool {
        let call = self.running_call(id);
        call.inspect(|call| call.cancel.cancel()).is_some()
    }
}
