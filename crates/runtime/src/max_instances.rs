//! `ConcurrencyLimits`: a fair limit on concurrent calls that can be resized while calls run.
//!
//! [`tokio::sync::Semaphore`] grants permits in order of arrival and takes one back when its holder is dropped. It
//! cannot shrink below the number of permits in use. The difference is kept here as a debt and paid with permits as
//! they come back, so a lower limit applies to the next call and no running call is cancelled.
//!
//! With a database that several boards share, the limit of a tool is what the board was lent ([`LentSlots`]); then a slot
//! is taken only while the lease of the board holds.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use switchboard_model::CanonicalName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::lent_slots::{LentSlots, SlotLending, SlotTerms};

/// From this number on, slots of callers that no call holds are dropped. Running calls are bounded elsewhere.
const TIDY_CALLERS_FROM: usize = 1024;

/// A resizable number of slots.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimits {
    semaphore: Arc<Semaphore>,
    limit: AtomicUsize,
    /// Permits to be removed instead of given back.
    debt: AtomicUsize,
    lent: Option<LentSlots>,
}

/// An acquired slot. Dropping it releases it.
#[derive(Debug)]
pub(crate) struct Slot {
    permit: Option<OwnedSemaphorePermit>,
    slots: Arc<ConcurrencyLimits>,
}

impl ConcurrencyLimits {
    pub(crate) fn new(limit: u32) -> Arc<Self> {
        Self::with(limit, None)
    }

    /// Slots that are lent; none at first.
    pub(crate) fn lent(slots: LentSlots) -> Arc<Self> {
        Self::with(0, Some(slots))
    }

    fn with(limit: u32, lent: Option<LentSlots>) -> Arc<Self> {
        let limit = limit as usize;
        Arc::new(Self {
            semaphore: Arc::new(Semaphore::new(limit)),
            limit: AtomicUsize::new(limit),
            debt: AtomicUsize::new(0),
            lent,
        })
    }

    /// Waits for a slot. Dropping the future leaves the queue. `None` if the lease of the board is lost.
    pub(crate) async fn take(self: &Arc<Self>) -> Option<Slot> {
        let Some(lent) = &self.lent else {
            return self.slot(self.semaphore.clone().acquire_owned().await.ok()?);
        };
        loop {
            if let Some(slot) = self.take_now() {
                return Some(slot);
            }
            let _waiter = lent.wait();
            let permit = tokio::select! {
                biased;
                () = lent.lease().lost() => return None,
                permit = self.semaphore.clone().acquire_owned() => permit.ok()?,
            };
            // Without the lease the slot goes back, and the wait goes on until that was noted.
            if let Some(slot) = self.slot(permit) {
                return Some(slot);
            }
            lent.lease().held_or_lost().await;
        }
    }

    /// A slot, if one is free and no other call is queued for it.
    pub(crate) fn take_now(self: &Arc<Self>) -> Option<Slot> {
        self.slot(self.semaphore.clone().try_acquire_owned().ok()?)
    }

    /// A permit as a slot, if calls may begin.
    fn slot(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Option<Slot> {
        let slot = Slot { permit: Some(permit), slots: self.clone() };
        if let Some(lent) = &self.lent {
            if !lent.lease().permits_calls() {
                return None;
            }
            lent.taken(self.busy());
        }
        Some(slot)
    }

    pub(crate) fn lent_side(&self) -> Option<&LentSlots> {
        self.lent.as_ref()
    }

    /// The slots that exist here: in use, or free.
    pub(crate) fn existing(&self) -> u32 {
        let existing = self.limit() + self.debt.load(Ordering::Acquire);
        u32::try_from(existing).unwrap_or(u32::MAX)
    }

    /// The slots in use.
    pub(crate) fn busy(&self) -> u32 {
        let free = u32::try_from(self.semaphore.available_permits()).unwrap_or(u32::MAX);
        self.existing().saturating_sub(free)
    }

    /// The limit of the tool over all boards, or of whatever these slots are for.
    pub(crate) fn most(&self) -> usize {
        self.lent.as_ref().map_or_else(|| self.limit(), |lent| lent.terms().max as usize)
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Ordering::Acquire)
    }

    /// Changes the limit. Only the reconciler calls this, the table of callers under its lock, or, for slots that are lent,
    /// [`crate::slot_lender`] under the lock of their loan, so two resizes never race.
    pub(crate) fn resize(&self, limit: u32) {
        let limit = limit as usize;
        let before = self.limit.swap(limit, Ordering::AcqRel);
        if limit >= before {
            let mut grown = limit - before;
            // Growing cancels unpaid debt first.
            while grown > 0 && self.pay_one() {
                grown -= 1;
            }
            self.semaphore.add_permits(grown);
        } else {
            self.debt.fetch_add(before - limit, Ordering::AcqRel);
            // Released permits pay the debt from here on; the free ones are removed now.
            while self.semaphore.forget_permits(1) == 1 {
                if !self.pay_one() {
                    self.semaphore.add_permits(1);
                    break;
                }
            }
        }
    }

    fn pay_one(&self) -> bool {
        self.debt
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |debt| debt.checked_sub(1))
            .is_ok()
    }
}

impl Slot {
    /// Whether a call may begin with it.
    pub(crate) fn is_valid(&self) -> bool {
        self.slots.lent.as_ref().is_none_or(|lent| lent.lease().permits_calls())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        let is_paid = self.slots.pay_one();
        if is_paid {
            permit.forget();
        } else {
            drop(permit);
        }
        if let Some(lent) = &self.slots.lent {
            lent.came_back(is_paid || self.slots.semaphore.available_permits() > 0);
        }
    }
}

type ToolOfCaller = (Arc<str>, CanonicalName);

/// The slots of all tools. They outlive catalogs, so that a reload does not allow a tool twice its limit.
#[derive(Debug)]
pub(crate) struct ConcurrencyTable {
    all: Arc<ConcurrencyLimits>,
    by_tool: Mutex<HashMap<CanonicalName, Arc<ConcurrencyLimits>>>,
    /// Where the slots of tools come from, if boards share them.
    lending: Option<SlotLending>,
    /// The slots of the agents that have a limit, by the name of their profile.
    by_agent: Mutex<HashMap<String, Arc<ConcurrencyLimits>>>,
    /// The slots of each tool for the callers whose key or token has a limit, while they are in use.
    by_caller: Mutex<HashMap<ToolOfCaller, Arc<ConcurrencyLimits>>>,
}

impl ConcurrencyTable {
    pub(crate) fn new(max_concurrent: u32, lending: Option<SlotLending>) -> Self {
        Self {
            all: ConcurrencyLimits::new(max_concurrent),
            by_tool: Mutex::default(),
            lending,
            by_agent: Mutex::default(),
            by_caller: Mutex::default(),
        }
    }

    pub(crate) fn global(&self) -> &Arc<ConcurrencyLimits> {
        &self.all
    }

    /// The slots of a tool; created with `terms` if the tool is not in the catalog, or no longer.
    pub(crate) fn of(&self, tool: &CanonicalName, terms: SlotTerms) -> Arc<ConcurrencyLimits> {
        let mut by_tool = self.by_tool.lock();
        match by_tool.get(tool) {
            Some(slots) => slots.clone(),
            None => {
                by_tool.entry(tool.clone()).or_insert_with(|| self.new_slots(tool, terms)).clone()
            }
        }
    }

    /// The slots of a tool, if there are any.
    pub(crate) fn present(&self, tool: &CanonicalName) -> Option<Arc<ConcurrencyLimits>> {
        self.by_tool.lock().get(tool).cloned()
    }

    /// The slots of all tools.
    pub(crate) fn of_tools(&self) -> Vec<Arc<ConcurrencyLimits>> {
        self.by_tool.lock().values().cloned().collect()
    }

    fn new_slots(&self, tool: &CanonicalName, terms: SlotTerms) -> Arc<ConcurrencyLimits> {
        // The names of servers that sessions bring are made up, and would collect in the database.
        match self.lending.as_ref().filter(|_| !tool.server().is_attached()) {
            Some(lending) => ConcurrencyLimits::lent(LentSlots::new(tool, terms, lending.clone())),
            None => ConcurrencyLimits::new(terms.max),
        }
    }

    /// The slots of an agent; created with `limit` if the configuration has no limit for it, or no longer.
    pub(crate) fn of_agent(&self, agent: &str, limit: u32) -> Arc<ConcurrencyLimits> {
        let mut by_agent = self.by_agent.lock();
        match by_agent.get(agent) {
            Some(slots) => slots.clone(),
            None => by_agent
                .entry(agent.to_owned())
                .or_insert_with(|| ConcurrencyLimits::new(limit))
                .clone(),
        }
    }

    /// The slots of a caller for one tool. A changed `limit` applies to the calls that run too.
    pub(crate) fn of_caller(
        &self,
        caller: &Arc<str>,
        tool: &CanonicalName,
        limit: u32,
    ) -> Arc<ConcurrencyLimits> {
        let mut by_caller = self.by_caller.lock();
        if by_caller.len() >= TIDY_CALLERS_FROM {
            by_caller.retain(|_, slots| Arc::strong_count(slots) > 1);
        }
        let slots = by_caller
            .entry((caller.clone(), tool.clone()))
            .or_insert_with(|| ConcurrencyLimits::new(limit));
        if slots.limit() != limit as usize {
            slots.resize(limit);
        }
        slots.clone()
    }

    /// Sets every agent's limit and drops unused slots of agents without one.
    pub(crate) fn resize_agents<'a>(&self, agents: impl Iterator<Item = (&'a str, u32)>) {
        let limits: HashMap<_, _> = agents.collect();
        let mut by_agent = self.by_agent.lock();
        by_agent.retain(|agent, slots| match limits.get(agent.as_str()) {
            Some(limit) => {
                if slots.limit() != *limit as usize {
                    slots.resize(*limit);
                }
                true
            }
            None => Arc::strong_count(slots) > 1,
        });
        for (agent, limit) in limits {
            if !by_agent.contains_key(agent) {
                by_agent.insert(agent.to_owned(), ConcurrencyLimits::new(limit));
            }
        }
    }

    /// Sets every tool's limit and drops unused slots of removed tools. Slots are created here rather than by the first
    /// call, which may carry the limit of an older catalog.
    pub(crate) fn resize<'a>(
        &self,
        max_concurrent: u32,
        tools: impl Iterator<Item = (&'a CanonicalName, SlotTerms)>,
    ) {
        if self.all.limit() != max_concurrent as usize {
            self.all.resize(max_concurrent);
        }
        let all_terms: HashMap<_, _> = tools.collect();
        let mut by_tool = self.by_tool.lock();
        by_tool.retain(|tool, slots| match (all_terms.get(tool), &slots.lent) {
            (Some(terms), Some(lent)) => {
                lent.set_terms(*terms);
                true
            }
            (Some(terms), None) => {
                if slots.limit() != terms.max as usize {
                    slots.resize(terms.max);
                }
                true
            }
            (None, _) => Arc::strong_count(slots) > 1,
        });
        for (tool, terms) in all_terms {
            if !by_tool.contains_key(tool) {
                by_tool.insert(tool.clone(), self.new_slots(tool, terms));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;

    use super::*;

    fn terms(max: u32) -> SlotTerms {
        SlotTerms { max, timeout: Duration::from_secs(1) }
    }

    #[tokio::test]
    async fn a_slot_comes_back_however_its_holder_ends() {
        let slots = ConcurrencyLimits::new(1);
        let held = slots.take().await.unwrap();
        assert!(slots.take().now_or_never().is_none());
        drop(held);
        assert!(slots.take().now_or_never().is_some());
        let panicking = slots.clone();
        let task = std::panic::AssertUnwindSafe(async move {
            let _slot = panicking.take().await;
            panic!("a tool gone wrong");
        });
        assert!(task.catch_unwind().await.is_err());
        assert!(slots.take().now_or_never().is_some());
    }

    #[tokio::test]
    async fn first_come_first_served_and_a_waiter_that_leaves_loses_nothing() {
        let slots = ConcurrencyLimits::new(1);
        let held = slots.take().await.unwrap();
        let mut first = Box::pin(slots.take());
        let mut second = Box::pin(slots.take());
        let mut third = Box::pin(slots.take());
        for waiter in [&mut first, &mut second, &mut third] {
            assert!(waiter.now_or_never().is_none());
        }
        drop(second);
        drop(held);
        assert!(slots.take_now().is_none(), "nobody comes before those who wait");
        assert!(third.as_mut().now_or_never().is_none(), "the first one comes first");
        drop(first.as_mut().now_or_never().unwrap());
        assert!(third.as_mut().now_or_never().is_some());
    }

    #[tokio::test]
    async fn shrinking_below_what_is_in_use_is_paid_by_returns() {
        let slots = ConcurrencyLimits::new(3);
        let mut held: Vec<_> =
            (0..3).map(|_| slots.take().now_or_never().flatten().unwrap()).collect();
        slots.resize(1);
        held.pop();
        assert!(slots.take().now_or_never().is_none(), "two are still in use");
        held.pop();
        assert!(slots.take().now_or_never().is_none(), "one is still in use");
        held.pop();
        assert!(slots.take().now_or_never().is_some());
        slots.resize(3);
        assert_eq!(slots.semaphore.available_permits(), 3);
    }

    #[tokio::test]
    async fn growing_forgives_debt_before_it_adds() {
        let slots = ConcurrencyLimits::new(3);
        let held: Vec<_> = (0..3).map(|_| slots.take().now_or_never().flatten().unwrap()).collect();
        slots.resize(1);
        slots.resize(3);
        assert_eq!(slots.semaphore.available_permits(), 0);
        drop(held);
        assert_eq!(slots.semaphore.available_permits(), 3);
    }

    #[test]
    fn a_first_call_from_an_older_catalog_gets_the_present_limit() {
        let table = ConcurrencyTable::new(2, None);
        let name = CanonicalName::new(&switchboard_model::ServerName::new("s"), "t");
        table.resize(2, std::iter::once((&name, terms(1))));
        assert_eq!(table.of(&name, terms(7)).limit(), 1);
    }

    #[tokio::test]
    async fn a_tool_keeps_its_slots_over_catalogs() {
        let table = ConcurrencyTable::new(2, None);
        let name = CanonicalName::new(&switchboard_model::ServerName::new("s"), "t");
        let held = table.of(&name, terms(1)).take().await.unwrap();
        table.resize(2, std::iter::empty());
        assert!(
            table.of(&name, terms(1)).take().now_or_never().is_none(),
            "still in use, so still there"
        );
        drop(held);
        table.resize(5, std::iter::empty());
        assert_eq!(table.of(&name, terms(7)).limit(), 7, "gone and unused, so made anew");
        assert_eq!(table.global().limit(), 5);
    }
}
