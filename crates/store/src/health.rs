//! Detects outages of the database: an outage begins with the first write that fails for a reason outside of this
//! program.
//!
//! During an outage, one task tries a write of its own every [`PROBE_EVERY`]. The outage ends when that write is committed
//! and no other write has failed since the one before: on a disk that is almost full, small writes succeed between large
//! ones that fail. The outage is logged when it begins and when it ends, not for every failed write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::task::TaskTracker;

use crate::statement::query;
use crate::{Store, StoreError};

const PROBE_EVERY: Duration = Duration::from_millis(500);
/// Size of the probe's write, which cannot be compressed. A much smaller write than those of callers would end an outage
/// too early: a full disk may still have room for one page.
const PROBE_BYTES: usize = 64 * 1024;

/// A period in which writes fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreOutage {
    /// The reason, without file names.
    pub reason: &'static str,
    pub since: Instant,
    /// Number of failed writes so far.
    pub failed_writes: u64,
}

#[derive(Debug)]
pub(crate) struct Health {
    outage: watch::Sender<Option<StoreOutage>>,
    /// Whether there is an outage; cheaper to read than `outage`.
    is_failing: AtomicBool,
    probe: TaskTracker,
}

impl Default for Health {
    fn default() -> Self {
        switchboard_telemetry::store_up(true);
        Self {
            outage: watch::Sender::new(None),
            is_failing: AtomicBool::new(false),
            probe: TaskTracker::new(),
        }
    }
}

impl Health {
    /// Ends the outage.
    fn end(&self) {
        let mut ended = None;
        self.outage.send_modify(|outage| {
            ended = outage.take();
            self.is_failing.store(false, Ordering::Release);
            switchboard_telemetry::store_up(true);
        });
        if let Some(outage) = ended {
            tracing::info!(
                failed_writes = outage.failed_writes,
                seconds = outage.since.elapsed().as_secs(),
                "the store takes writes again"
            );
        }
    }

    /// Records a failed write. Returns whether an outage began with it.
    fn failed(&self, error: &StoreError) -> bool {
        if !error.is_outage() {
            return false;
        }
        let (reason, mut begins) = (error.reason(), false);
        switchboard_telemetry::store_write_failed(error.kind());
        self.outage.send_modify(|outage| {
            let since = Instant::now();
            begins = outage.is_none();
            let outage = outage.get_or_insert(StoreOutage { reason, since, failed_writes: 0 });
            outage.reason = reason;
            outage.failed_writes += 1;
            self.is_failing.store(true, Ordering::Release);
            switchboard_telemetry::store_up(false);
        });
        if begins {
            tracing::error!(
                error = error.in_full(),
                "the store does not take writes; tools can still be listed and called"
            );
        }
        begins
    }

    /// Number of writes that failed in this outage.
    fn failures(&self) -> u64 {
        self.outage.borrow().as_ref().map_or(0, |outage| outage.failed_writes)
    }
}

impl Store {
    /// The current outage, if there is one.
    pub fn outage(&self) -> Option<StoreOutage> {
        self.health.outage.borrow().clone()
    }

    /// Announces the beginning and the end of outages.
    pub fn outages(&self) -> watch::Receiver<Option<StoreOutage>> {
        self.health.outage.subscribe()
    }

    /// Checks that the store accepts writes, by making one.
    pub async fn check_writable(&self) -> Result<(), StoreError> {
        let mut filler = vec![0; PROBE_BYTES];
        // Without random bytes it tries less, and that is all.
        let _zeros_do = getrandom::fill(&mut filler);
        let mut write = self.write("try a write").await?;
        query(
            "INSERT INTO write_probe (singleton, filler) VALUES (1, $1)
             ON CONFLICT (singleton) DO UPDATE SET filler = excluded.filler",
        )
        .bind(filler)
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        write.commit().await
    }

    /// Records a failed write. The first one of an outage starts the probe task.
    pub(crate) fn note_failure(&self, error: &StoreError) {
        if self.health.failed(error) {
            let store = self.clone();
            self.health.probe.spawn(async move { store.probe_until_it_ends().await });
        }
    }

    async fn probe_until_it_ends(self) {
        let mut failures = self.health.failures();
        while !self.pool.is_closed() {
            sleep(PROBE_EVERY).await;
            let tried = self.check_writable().await;
            let failures_before = std::mem::replace(&mut failures, self.health.failures());
            match tried {
                Ok(()) if failures == failures_before => return self.health.end(),
                Ok(()) => tracing::debug!("the store takes small writes only"),
                Err(error) => {
                    tracing::debug!(error = error.in_full(), "the store still takes no writes");
                }
            }
        }
    }
}

pub(crate) type SharedHealth = Arc<Health>;

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
