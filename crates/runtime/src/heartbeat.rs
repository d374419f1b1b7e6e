//! Keeps the row of this board in a shared database alive, and ends what depends on it in time when that fails.

use std::sync::Arc;
use std::time::Duration;

use switchboard_store::{ReplicaRenewal, Store};
use switchboard_telemetry::board_lease;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::board_lease::{BoardLease, LEASE, LeaseState, boot_time};
use crate::slot_lender::SlotLender;

const RENEW_EVERY: Duration = Duration::from_secs(3);
/// After how many renewals rates that are not used up are forgotten.
const TIDY_AFTER: u32 = 100;
/// How soon a failed renewal is tried again.
const RETRY_EVERY: Duration = Duration::from_millis(500);
/// How long a renewal may take, so that another one fits into the lease.
const RENEWAL_TIMEOUT: Duration = Duration::from_millis(2500);
/// The longest time until a lease that ended during a sleep of the machine is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long leaving in order may take.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Renews the lease of this board.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    pub(crate) store: Store,
    pub(crate) name: String,
    pub(crate) lease: Arc<BoardLease>,
    pub(crate) lender: Arc<SlotLender>,
}

impl Heartbeat {
    /// Runs until `stop`, and then removes the row, so that others need not wait for the end of the lease.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let both = async { tokio::join!(self.renew(), self.watch()) };
        let _stopped = stop.run_until_cancelled(both).await;
        let leaving = self.store.remove_replica(self.lender.board());
        match timeout(LEAVE_TIMEOUT, leaving).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(error = error.in_full(), "the row of this board was not removed");
            }
            Err(_elapsed) => tracing::debug!("the row of this board was not removed in time"),
        }
    }

    async fn renew(&self) {
        let (mut started_ms, mut has_failed, mut renewals) = (None, false, 0_u32);
        loop {
            let sent = boot_time();
            let next = Instant::now() + RENEW_EVERY;
            let renewing = self.store.renew_replica(self.lender.board(), &self.name, LEASE);
            let failure = match timeout(RENEWAL_TIMEOUT, renewing).await {
                Ok(Ok(renewal)) => {
                    if has_failed {
                        tracing::info!("the database can be reached again");
                    }
                    self.renewed(sent, &renewal, &mut started_ms);
                    renewals = renewals.wrapping_add(1);
                    if renewals % TIDY_AFTER == 0 {
                        self.tidy().await;
                    }
                    None
                }
                Ok(Err(error)) => Some(error.in_full()),
                Err(_elapsed) => Some(format!("no answer within {RENEWAL_TIMEOUT:?}")),
            };
            if let Some(error) = &failure
                && !has_failed
            {
                let left = self.lease.left();
                tracing::warn!(
                    error,
                    ?left,
                    "the lease of this board in the database was not renewed"
                );
            }
            has_failed = failure.is_some();
            let next = if has_failed { Instant::now() + RETRY_EVERY } else { next };
            let _asked = tokio::time::timeout_at(next, self.lender.renew_now.notified()).await;
        }
    }

    fn renewed(&self, sent: Duration, renewal: &ReplicaRenewal, started_ms: &mut Option<i64>) {
        self.lender.set_boards(renewal.live.len());
        board_lease(true);
        let before = self.lease.state();
        if self.lease.renewed(sent) && before != LeaseState::Waiting {
            self.lender.regained();
        }
        let started = Some(renewal.database_started_ms);
        if std::mem::replace(started_ms, started).is_some_and(|before| Some(before) != started) {
            tracing::warn!("the database was restarted: boards say again which slots they hold");
            self.lender.look_again(None);
        }
    }

    async fn tidy(&self) {
        if let Ok(Err(error)) = timeout(RENEWAL_TIMEOUT, self.store.forget_full_buckets()).await {
            tracing::debug!(error = error.in_full(), "full buckets of rates were not deleted");
        }
    }

    /// Ends the lease when it was not renewed in time.
    async fn watch(&self) {
        let began = Instant::now();
        loop {
            let left = self.lease.left();
            match self.lease.state() {
                LeaseState::Held if left.is_zero() => self.lender.fence(),
                LeaseState::Waiting if began.elapsed() >= LEASE => self.lender.fence(),
                LeaseState::Held
                | LeaseState::Waiting
                | LeaseState::Lost
                | LeaseState::OnItsOwn => {}
            }
            tokio::time::sleep(left.clamp(Duration::from_millis(10), LOOK_EVERY)).await;
        }
    }
}

/// The name of this machine, for people.
pub(crate) fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "a board".into() } else { name.chars().take(100).collect() }
}
