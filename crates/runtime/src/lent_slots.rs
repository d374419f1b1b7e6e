//! What the slots of one tool know of being lent: who waits, what was used, and whom to tell when more or fewer are needed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_model::{CanonicalName, ToolLimits};
use switchboard_telemetry::slots_held;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::board_lease::BoardLease;

/// The tools whose slots are needed and that nobody trades for yet.
#[derive(Debug, Default)]
pub(crate) struct SlotDemand {
    tools: Mutex<BTreeSet<CanonicalName>>,
    added: Notify,
}

impl SlotDemand {
    fn add(&self, tool: &CanonicalName) {
        self.tools.lock().insert(tool.clone());
        self.added.notify_one();
    }

    /// Waits for tools. Dropping the future loses none.
    pub(crate) async fn next(&self) -> BTreeSet<CanonicalName> {
        loop {
            let added = self.added.notified();
            let tools = std::mem::take(&mut *self.tools.lock());
            if !tools.is_empty() {
                return tools;
            }
            added.await;
        }
    }
}

/// The limits of a tool that matter to its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotTerms {
    pub(crate) max: u32,
    /// How long a call may take.
    pub(crate) timeout: Duration,
}

impl From<&ToolLimits> for SlotTerms {
    fn from(limits: &ToolLimits) -> Self {
        Self { max: limits.max_instances, timeout: limits.timeout }
    }
}

/// Whom the slots of all tools share.
#[derive(Debug, Clone)]
pub(crate) struct SlotLending {
    pub(crate) lease: Arc<BoardLease>,
    pub(crate) demand: Arc<SlotDemand>,
}

/// The lent side of the slots of a tool.
#[derive(Debug)]
pub(crate) struct LentSlots {
    tool: CanonicalName,
    terms: Mutex<SlotTerms>,
    lending: SlotLending,
    waiting: Mutex<BTreeSet<(Instant, u64)>>,
    next_waiter: AtomicU64,
    /// How often a slot was taken.
    uses: AtomicU64,
    /// The most slots that were in use since this was last asked.
    peak: AtomicU32,
    /// Whether calls wait at other boards, so that free slots go back at once.
    others_wait: AtomicBool,
    /// Whether a task trades for the tool.
    is_traded: AtomicBool,
    changed: Notify,
}

/// A call that waits. Dropping it leaves.
#[derive(Debug)]
pub(crate) struct SlotWaiter<'a> {
    slots: &'a LentSlots,
    entry: (Instant, u64),
}

impl LentSlots {
    pub(crate) fn new(tool: &CanonicalName, terms: SlotTerms, lending: SlotLending) -> Self {
        Self {
            tool: tool.clone(),
            terms: Mutex::new(terms),
            lending,
            waiting: Mutex::default(),
            next_waiter: AtomicU64::new(0),
            uses: AtomicU64::new(0),
            peak: AtomicU32::new(0),
            others_wait: AtomicBool::new(false),
            is_traded: AtomicBool::new(false),
            changed: Notify::new(),
        }
    }

    pub(crate) fn terms(&self) -> SlotTerms {
        *self.terms.lock()
    }

    pub(crate) fn set_terms(&self, terms: SlotTerms) {
        let before = std::mem::replace(&mut *self.terms.lock(), terms);
        if before != terms {
            self.changed.notify_one();
        }
    }

    pub(crate) fn lease(&self) -> &BoardLease {
        &self.lending.lease
    }

    /// Shows in the metrics how many slots the board has.
    pub(crate) fn report(&self, held: u32) {
        slots_held(self.tool.server().as_str(), self.tool.tool(), held);
    }

    pub(crate) fn is_of(&self, tool: &str) -> bool {
        self.tool.as_str() == tool
    }

    /// Enters a call that waits, and asks for a slot.
    pub(crate) fn wait(&self) -> SlotWaiter<'_> {
        let entry = (Instant::now(), self.next_waiter.fetch_add(1, Ordering::Relaxed));
        self.waiting.lock().insert(entry);
        self.ask();
        SlotWaiter { slots: self, entry }
    }

    /// Asks for a trade.
    pub(crate) fn ask(&self) {
        if self.is_traded.swap(true, Ordering::AcqRel) {
            self.changed.notify_one();
        } else {
            self.lending.demand.add(&self.tool);
        }
    }

    /// The number of calls that wait, and how long the oldest has.
    pub(crate) fn waiting(&self) -> (u32, Option<Duration>) {
        let waiting = self.waiting.lock();
        let oldest = waiting.first().map(|(since, _)| since.elapsed());
        (u32::try_from(waiting.len()).unwrap_or(u32::MAX), oldest)
    }

    /// Notes that a slot was taken, as one of `busy`.
    pub(crate) fn taken(&self, busy: u32) {
        self.uses.fetch_add(1, Ordering::Relaxed);
        self.peak.fetch_max(busy, Ordering::Relaxed);
    }

    /// Notes that a slot came back, and whether it is of use to others.
    pub(crate) fn came_back(&self, is_free: bool) {
        if is_free && self.others_wait.load(Ordering::Acquire) {
            self.changed.notify_one();
        }
    }

    pub(crate) fn set_others_wait(&self, they_wait: bool) {
        self.others_wait.store(they_wait, Ordering::Release);
    }

    pub(crate) fn uses(&self) -> u64 {
        self.uses.load(Ordering::Relaxed)
    }

    /// The most slots in use since the last time, and from now on at least `busy`.
    pub(crate) fn take_peak(&self, busy: u32) -> u32 {
        self.peak.swap(busy, Ordering::Relaxed)
    }

    /// Returns when there is a reason to trade again.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Ends the trade for the tool, unless a call waits. Returns whether it ended.
    pub(crate) fn end_trade(&self) -> bool {
        self.is_traded.store(false, Ordering::Release);
        let waits = !self.waiting.lock().is_empty();
        // A call that came in between has seen that nobody trades, or is seen here.
        !waits || self.is_traded.swap(true, Ordering::AcqRel)
    }
}

impl Drop for SlotWaiter<'_> {
    fn drop(&mut self) {
        self.slots.waiting.lock().remove(&self.entry);
    }
}

#[cfg(test)]
mod tests {
    use switchboard_model::ServerName;

    use super::*;

    fn slots() -> (LentSlots, Arc<SlotDemand>) {
        let lending = SlotLending { lease: Arc::new(BoardLease::new()), demand: Arc::default() };
        let demand = lending.demand.clone();
        let terms = SlotTerms { max: 6, timeout: Duration::from_secs(1) };
        let tool = CanonicalName::new(&ServerName::new("crm"), "find");
        (LentSlots::new(&tool, terms, lending), demand)
    }

    #[tokio::test]
    async fn the_first_waiter_asks_and_the_last_one_that_leaves_ends_it() {
        let (slots, demand) = slots();
        assert_eq!(slots.waiting(), (0, None));
        let first = slots.wait();
        assert_eq!(demand.next().await.len(), 1);
        let second = slots.wait();
        assert!(demand.tools.lock().is_empty(), "somebody trades already");
        assert_eq!(slots.waiting().0, 2);
        slots.changed().await;
        assert!(!slots.end_trade(), "calls wait");
        drop((first, second));
        assert!(slots.end_trade());
        let _third = slots.wait();
        assert_eq!(demand.next().await.len(), 1);
    }
}
