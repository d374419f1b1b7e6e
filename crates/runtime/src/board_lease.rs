//! The lease of this board in a shared database: as long as it holds, nobody else is given what this board was lent.
//!
//! A lease counts from the moment before its renewal was sent, on a clock that also runs while the machine sleeps. The board
//! uses it for [`USED`] only: by its end the board has stopped what it must not do without the lease.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// How long a lease lasts after its last renewal. A board that falls silent is given up after this time.
pub(crate) const LEASE: Duration = Duration::from_secs(10);
/// How much of it the board uses.
const USED: Duration = Duration::from_secs(8);

/// What a board may do with what it was lent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseState {
    /// The first renewal has not been answered yet.
    Waiting,
    /// Everything.
    Held,
    /// Nothing: the database could not be reached for too long.
    Lost,
    /// The database could not be reached, and the board goes on with a fixed share.
    OnItsOwn,
}

/// The lease of this board.
#[derive(Debug)]
pub(crate) struct BoardLease {
    /// When it ends, in milliseconds of [`boot_time`]; 0 without one.
    ends_ms: AtomicU64,
    state: watch::Sender<LeaseState>,
}

impl BoardLease {
    pub(crate) fn new() -> Self {
        Self { ends_ms: AtomicU64::new(0), state: watch::Sender::new(LeaseState::Waiting) }
    }

    pub(crate) fn state(&self) -> LeaseState {
        *self.state.borrow()
    }

    /// Whether calls may begin. This looks at the clock: after a sleep nobody may have had the time to note that it is over.
    pub(crate) fn permits_calls(&self) -> bool {
        milliseconds(boot_time()) < self.ends_ms.load(Ordering::Acquire)
    }

    /// Notes a renewal that was sent at `sent`. Returns whether the lease was not held before.
    pub(crate) fn renewed(&self, sent: Duration) -> bool {
        let ends = sent + USED;
        if boot_time() >= ends {
            return false;
        }
        let was_held = self.state() == LeaseState::Held;
        self.ends_ms.store(milliseconds(ends), Ordering::Release);
        self.state.send_replace(LeaseState::Held);
        !was_held
    }

    /// How long the lease lasts; zero if it is over.
    pub(crate) fn left(&self) -> Duration {
        let ends = Duration::from_millis(self.ends_ms.load(Ordering::Acquire));
        ends.saturating_sub(boot_time())
    }

    /// Ends the lease. With `on_its_own` calls may begin all the same, until the next renewal.
    pub(crate) fn lose(&self, on_its_own: bool) {
        let (ends, state) =
            if on_its_own { (u64::MAX, LeaseState::OnItsOwn) } else { (0, LeaseState::Lost) };
        self.ends_ms.store(ends, Ordering::Release);
        self.state.send_replace(state);
    }

    /// Returns when the lease is held.
    pub(crate) async fn held(&self) {
        let mut states = self.state.subscribe();
        let held = states.wait_for(|state| *state == LeaseState::Held).await;
        drop(held);
    }

    /// Returns when calls may begin, or it is clear that they may not.
    pub(crate) async fn held_or_lost(&self) {
        let mut states = self.state.subscribe();
        let decided = states.wait_for(|state| match state {
            LeaseState::Held | LeaseState::OnItsOwn => self.permits_calls(),
            LeaseState::Lost => true,
            LeaseState::Waiting => false,
        });
        drop(decided.await);
    }

    /// Returns when no call may begin.
    pub(crate) async fn lost(&self) {
        let mut states = self.state.subscribe();
        let lost = states.wait_for(|state| *state == LeaseState::Lost).await;
        drop(lost);
    }
}

/// The time since the machine was started, with the time in which it slept.
pub(crate) fn boot_time() -> Duration {
    #[cfg(target_os = "linux")]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    let now = rustix::time::clock_gettime(CLOCK);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default())
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_counts_from_before_its_renewal_was_sent() {
        let lease = BoardLease::new();
        assert!(!lease.permits_calls());
        let now = boot_time();
        assert!(lease.renewed(now), "new");
        assert!(lease.permits_calls() && lease.left() <= USED);
        assert!(!lease.renewed(boot_time()), "held already");
        lease.lose(false);
        assert!(!lease.permits_calls() && lease.left().is_zero());
        let Some(long_ago) = now.checked_sub(USED) else { return };
        assert!(!lease.renewed(long_ago), "the answer came too late");
        assert_eq!((lease.state(), lease.permits_calls()), (LeaseState::Lost, false));
        lease.lose(true);
        assert!(lease.permits_calls());
    }
}
