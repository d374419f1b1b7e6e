//! Rates of calls: one bucket for each tool that has a rate, and one for each tool and caller whose key or token has one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_model::{CanonicalName, Rate, RateBucket};
use tokio::time::Instant;

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

/// The buckets of all tools and callers. They outlive catalogs, so that a reload refills none.
#[derive(Debug)]
pub(crate) struct RateTable {
    began: Instant,
    buckets: Mutex<Buckets>,
}

#[derive(Debug, Default)]
struct Buckets {
    by_tool: HashMap<CanonicalName, RateBucket>,
    by_caller: HashMap<(Arc<str>, CanonicalName), RateBucket>,
}

impl RateTable {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), buckets: Mutex::default() }
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
