//! How long a source that fails is left alone.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// The first pause after a failure. Pauses double, with jitter.
const MIN_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause, unless the source is refreshed less often anyway.
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// The pauses between attempts.
#[derive(Debug)]
pub(crate) struct FetchBackoff {
    pauses: ExponentialBackoff,
    longest: Duration,
}

impl FetchBackoff {
    pub(crate) fn new(refresh: Duration) -> Self {
        let longest = refresh.max(MAX_PAUSE);
        let pauses = ExponentialBuilder::default()
            .with_min_delay(MIN_PAUSE)
            .with_max_delay(longest)
            .with_jitter()
            .without_max_times();
        Self { pauses: pauses.build(), longest }
    }

    pub(crate) fn next_pause(&mut self) -> Duration {
        self.pauses.next().unwrap_or(self.longest)
    }
}
