//! Rates of calls: one bucket for each tool that has a rate, and one for each tool and caller whose key or token has one.
//!
//! Boards of a shared database share its buckets ([`SharedRates`]). The calls of a fast rate are taken in batches.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_model::{CanonicalName, OnStoreLoss, Rate, RateBucket};
use switchboard_store::Store;
use tokio::time::{Instant, timeout};

use crate::slot_lender::SlotLender;

/// How long calls that were taken from a shared bucket may be made.
const TAKEN_FOR: Duration = Duration::from_millis(100);
/// How long counting against a shared bucket may take.
const COUNT_TIMEOUT: Duration = Duration::from_secs(3);

/// The most buckets that are kept. Beyond it, full ones are dropped, which changes nothing. If that is not enough, the
/// table begins anew, and callers may call earlier than their rate allows.
const MAX_BUCKETS: usize = 100_000;

/// Which limit a call has reached, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RateExceeded {
    pub(crate) rate: Rate,
    pub(crate) whose: RateOwner,
    pub(crate) wait: Duration,
}

/// What a rate belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateOwner {
    Tool,
    Caller,
}

/// Why a call may not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotCounted {
    Exceeded(RateExceeded),
    /// The database that has the buckets cannot be reached.
    NoStore,
}

/// The buckets of all tools and callers. They outlive catalogs, so that a reload refills none.
#[derive(Debug)]
pub(crate) struct RateTable {
    began: Instant,
    buckets: Mutex<Buckets>,
    shared: Option<SharedRates>,
}

/// The buckets that boards share.
#[derive(Debug)]
struct SharedRates {
    store: Store,
    lender: Arc<SlotLender>,
    /// Calls that were taken and not made yet.
    taken: Mutex<HashMap<RateKey, TakenCalls>>,
}

/// A tool, and a caller if the rate is that of one.
type RateKey = (Option<Arc<str>>, CanonicalName);

#[derive(Debug)]
struct TakenCalls {
    left: u32,
    until: Instant,
}

#[derive(Debug, Default)]
struct Buckets {
    by_tool: HashMap<CanonicalName, RateBucket>,
    by_caller: HashMap<(Arc<str>, CanonicalName), RateBucket>,
}

impl RateTable {
    /// With a lender of slots, the buckets are those of the database.
    pub(crate) fn new(store: &Store, lender: Option<&Arc<SlotLender>>) -> Self {
        let shared = lender.map(|lender| SharedRates {
            store: store.clone(),
            lender: lender.clone(),
            taken: Mutex::default(),
        });
        Self { began: Instant::now(), buckets: Mutex::default(), shared }
    }

    /// Counts a call as [`RateTable::take`] does, over all boards.
    pub(crate) async fn count(
        &self,
        tool: &CanonicalName,
        of_tool: Option<Rate>,
        caller: &Arc<str>,
        of_caller: Option<Rate>,
    ) -> Result<(), NotCounted> {
        let is_rated = of_tool.is_some() || of_caller.is_some();
        // The names of servers that sessions bring are made up, and would collect in the database.
        let shared = self.shared.as_ref().filter(|_| is_rated && !tool.server().is_attached());
        let Some(shared) = shared else {
            return self.take(tool, of_tool, caller, of_caller).map_err(NotCounted::Exceeded);
        };
        let wanted = [
            of_tool.map(|rate| (rate, RateOwner::Tool, (None, tool.clone()))),
            of_caller.map(|rate| (rate, RateOwner::Caller, (Some(caller.clone()), tool.clone()))),
        ];
        let counted = Box::pin(shared.take(wanted.iter().flatten().collect())).await;
        match counted {
            Err(NotCounted::NoStore) if shared.lender.on_store_loss() == OnStoreLoss::Share => {
                let share = |rate: Rate| rate.share(shared.lender.boards());
                let taken = self.take(tool, of_tool.map(share), caller, of_caller.map(share));
                taken.map_err(NotCounted::Exceeded)
            }
            counted => counted,
        }
    }

    /// Counts a call of a tool against the rate of the tool and that of the caller. A call that one of them refuses counts
    /// against neither.
    pub(crate) fn take(
        &self,
        tool: &CanonicalName,
        of_tool: Option<Rate>,
        caller: &Arc<str>,
        of_caller: Option<Rate>,
    ) -> Result<(), RateExceeded> {
        if of_tool.is_none() && of_caller.is_none() {
            return Ok(());
        }
        self.buckets.lock().take(self.began.elapsed(), tool, of_tool, caller, of_caller)
    }
}

impl SharedRates {
    /// Takes one call of each, or none.
    async fn take(&self, wanted: Vec<&(Rate, RateOwner, RateKey)>) -> Result<(), NotCounted> {
        while let Some((rate, whose, key)) = self.take_what_is_there(&wanted) {
            let (caller, tool) = key;
            let taking =
                self.store.take_calls(tool.as_str(), caller.as_deref(), *rate, rate.batch());
            let Ok(Ok(taken)) = timeout(COUNT_TIMEOUT, taking).await else {
                return Err(NotCounted::NoStore);
            };
            let taken = taken.map_err(|wait| {
                NotCounted::Exceeded(RateExceeded { rate: *rate, whose: *whose, wait })
            })?;
            self.add(key, taken);
        }
        Ok(())
    }

    /// Uses one call of each, if there is one of each; else returns the first that is missing.
    fn take_what_is_there<'w>(
        &self,
        wanted: &[&'w (Rate, RateOwner, RateKey)],
    ) -> Option<&'w (Rate, RateOwner, RateKey)> {
        let mut taken = self.taken.lock();
        let now = Instant::now();
        let is_there = |(_, _, key): &(Rate, RateOwner, RateKey)| {
            taken.get(key).is_some_and(|calls| calls.left > 0 && calls.until > now)
        };
        if let Some(missing) = wanted.iter().copied().find(|it| !is_there(it)) {
            return Some(missing);
        }
        for (_, _, key) in wanted {
            if let Some(calls) = taken.get_mut(key) {
                calls.left -= 1;
            }
        }
        None
    }

    fn add(&self, key: &RateKey, count: u32) {
        let mut taken = self.taken.lock();
        let now = Instant::now();
        if taken.len() >= MAX_BUCKETS / 10 {
            taken.retain(|_, calls| calls.left > 0 && calls.until > now);
        }
        let calls = taken.entry(key.clone()).or_insert(TakenCalls { left: 0, until: now });
        let left = if calls.until > now { calls.left } else { 0 };
        *calls = TakenCalls { left: left.saturating_add(count), until: now + TAKEN_FOR };
    }
}

impl Buckets {
    fn take(
        &mut self,
        now: Duration,
        tool: &CanonicalName,
        of_tool: Option<Rate>,
        caller: &Arc<str>,
        of_caller: Option<Rate>,
    ) -> Result<(), RateExceeded> {
        self.make_room(now);
        let Self { by_tool, by_caller } = self;
        let mut shared =
            of_tool.map(|rate| (rate, RateOwner::Tool, by_tool.entry(tool.clone()).or_default()));
        let mut own = of_caller.map(|rate| {
            let key = (caller.clone(), tool.clone());
            (rate, RateOwner::Caller, by_caller.entry(key).or_default())
        });
        // Both are asked before one is used up.
        for (rate, whose, bucket) in shared.iter().chain(&own) {
            bucket.check(*rate, now).map_err(|wait| RateExceeded {
                rate: *rate,
                whose: *whose,
                wait,
            })?;
        }
        for (rate, _, bucket) in shared.iter_mut().chain(&mut own) {
            // It was asked a moment ago, under the same lock.
            let _permitted = bucket.take(*rate, now);
        }
        Ok(())
    }

    fn make_room(&mut self, now: Duration) {
        if self.by_tool.len() + self.by_caller.len() < MAX_BUCKETS {
            return;
        }
        self.by_tool.retain(|_, bucket| !bucket.is_full(now));
        self.by_caller.retain(|_, bucket| !bucket.is_full(now));
        if self.by_tool.len() + self.by_caller.len() >= MAX_BUCKETS {
            self.by_caller.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use switchboard_model::ServerName;

    use super::*;

    #[test]
    fn callers_have_buckets_of_their_own_and_share_that_of_the_tool() {
        let (mut buckets, server) = (Buckets::default(), ServerName::new("s"));
        let (read, write) =
            (CanonicalName::new(&server, "read"), CanonicalName::new(&server, "write"));
        let (anna, ben): (Arc<str>, Arc<str>) = ("key:1".into(), "key:2".into());
        let rate = |text: &str| text.parse::<Rate>().ok();
        let mut take_at = |seconds, tool, of_tool, caller, of_caller| {
            let now = Duration::from_secs(seconds);
            let taken = buckets.take(now, tool, of_tool, caller, of_caller);
            taken.map_err(|it| (it.whose, it.wait.as_secs()))
        };
        let mut take =
            |tool, of_tool, caller, of_caller| take_at(0, tool, of_tool, caller, of_caller);
        let own = rate("2/min");
        assert_eq!(take(&read, None, &anna, own), Ok(()));
        assert_eq!(take(&read, None, &anna, own), Ok(()));
        assert_eq!(take(&read, None, &anna, own), Err((RateOwner::Caller, 30)));
        assert_eq!(take(&write, None, &anna, own), Ok(()), "another tool");
        assert_eq!(take(&read, None, &ben, own), Ok(()), "another caller");
        assert_eq!(take(&read, None, &anna, None), Ok(()), "the limit was removed");

        let shared = rate("2/min");
        assert_eq!(take(&write, shared, &ben, None), Ok(()));
        assert_eq!(take(&write, shared, &anna, rate("100/min")), Ok(()));
        assert_eq!(take(&write, shared, &ben, own), Err((RateOwner::Tool, 30)));
        let mut later =
            |tool, of_tool, caller, of_caller| take_at(30, tool, of_tool, caller, of_caller);
        assert_eq!(later(&write, shared, &ben, own), Ok(()), "the refused call counted for nobody");
        assert_eq!(later(&read, None, &anna, own), Ok(()));
    }
}
