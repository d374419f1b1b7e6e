//! How long a supervisor waits before it connects to a lost server again.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// The first delay, and the longest: delays double in between, with jitter.
const MIN_DELAY: Duration = Duration::from_millis(500);
const MAX_DELAY: Duration = Duration::from_secs(30);
/// A connection that lasted for less counts as a failed attempt: the delays go on growing.
const LASTING: Duration = Duration::from_secs(30);

/// The delays between attempts to connect to one server.
#[derive(Debug)]
pub(crate) struct ReconnectBackoff(ExponentialBackoff);

impl ReconnectBackoff {
    pub(crate) fn new() -> Self {
        let delays = ExponentialBuilder::default()
            .with_min_delay(MIN_DELAY)
            .with_max_delay(MAX_DELAY)
            .with_jitter()
            .without_max_times();
        Self(delays.build())
    }

    /// The delay before the next attempt.
    pub(crate) fn next_delay(&mut self) -> Duration {
        self.0.next().unwrap_or(MAX_DELAY)
    }

    /// Begins again with the first delay where the connection has lasted.
    pub(crate) fn note_connected_for(&mut self, time: Duration) {
        if time >= LASTING {
            *self = Self::new();
        }
    }
}
