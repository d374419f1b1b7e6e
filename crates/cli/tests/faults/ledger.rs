//! Counts of events, and descriptions of violations.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many violations are told.
const TOLD: usize = 20;
/// The longest that a request may take while the program is up, however the store is doing, on a busy machine.
pub(crate) const SLOWEST: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) kills: AtomicU64,
    pub(crate) full_disks: AtomicU64,
    pub(crate) locks: AtomicU64,
    pub(crate) reloads: AtomicU64,
    pub(crate) floods: AtomicU64,
    /// Writes that were answered with success.
    pub(crate) acknowledged: AtomicU64,
    /// Writes that were answered with a refusal.
    pub(crate) refused: AtomicU64,
    /// Writes without a response.
    pub(crate) unanswered: AtomicU64,
    /// Comparisons of what is there with what was promised.
    pub(crate) compared: AtomicU64,
    /// Calls of tools that were answered, those while the store failed among them.
    pub(crate) calls: AtomicU64,
    pub(crate) calls_in_outages: AtomicU64,
    /// Lists that were looked through for what is hidden.
    pub(crate) lists: AtomicU64,
    /// Attempts to call what is hidden.
    pub(crate) attempts: AtomicU64,
    slowest_ms: AtomicU64,
    violations: Mutex<Vec<String>>,
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Ledger {
    pub(crate) fn violation(&self, text: String) {
        self.violations.lock().unwrap().push(text);
    }

    pub(crate) fn took(&self, time: Duration) {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.slowest_ms.fetch_max(ms, Ordering::Relaxed);
    }

    pub(crate) fn verify(&self) {
        let violations = self.violations.lock().unwrap();
        let told: Vec<_> = violations.iter().take(TOLD).cloned().collect();
        assert!(violations.is_empty(), "{} violations:\n{}", violations.len(), told.join("\n"));
        for (what, counter) in [
            ("kills", &self.kills),
            ("acknowledged", &self.acknowledged),
            ("refused", &self.refused),
            ("compared", &self.compared),
            ("calls in outages", &self.calls_in_outages),
            ("lists", &self.lists),
        ] {
            assert!(counter.load(Ordering::Relaxed) > 0, "the run tried nothing: no {what}");
        }
        let slowest = self.slowest_ms.load(Ordering::Relaxed);
        assert!(u128::from(slowest) < SLOWEST.as_millis(), "a request took {slowest} ms");
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write!(
            f,
            "{} kills, {} full disks, {} locks, {} reloads, {} floods; writes: {} acknowledged, {} refused, {} \
             unanswered; {} comparisons; {} calls, {} of them while the store failed; {} lists, {} attempts on what is \
             hidden; slowest request {} ms; {} violations",
            of(&self.kills),
            of(&self.full_disks),
            of(&self.locks),
            of(&self.reloads),
            of(&self.floods),
            of(&self.acknowledged),
            of(&self.refused),
            of(&self.unanswered),
            of(&self.compared),
            of(&self.calls),
            of(&self.calls_in_outages),
            of(&self.lists),
            of(&self.attempts),
            of(&self.slowest_ms),
            self.violations.lock().unwrap().len(),
        )
    }
}
