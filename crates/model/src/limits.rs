//! Limits of a tool and the merge of their three layers.
//!
//! A [`LimitsOverlay`] holds the configured fields, with `None` for each field that is not configured; only
//! [`ToolLimits`] is complete. The two types are separate so that the precedence "explicit over server default over
//! built-in" holds per field.

use std::fmt;
use std::time::Duration;

use crate::Rate;

/// Default of `max_result_bytes`. Larger results are stored in full and answered with a preview and a handle.
pub const DEFAULT_MAX_RESULT_BYTES: u64 = 1 << 20;

/// Default of `max_concurrent`, the number of calls that run at the same time over all tools.
pub const DEFAULT_MAX_CONCURRENT: u32 = 64;

/// Default of `max_timeout`, the longest duration of a call that reports progress.
pub const DEFAULT_MAX_TIMEOUT: Duration = Duration::from_mins(10);

/// The limits of a tool without any configured limit.
pub const BUILT_IN_LIMITS: ToolLimits = ToolLimits {
    max_instances: 5,
    timeout: Duration::from_secs(30),
    max_timeout: DEFAULT_MAX_TIMEOUT,
    queue_timeout: Duration::from_secs(30),
    inactivity_timeout: None,
    max_result_bytes: DEFAULT_MAX_RESULT_BYTES,
    rate: None,
};

/// The limits under which a tool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ToolLimits {
    /// Maximum number of calls of this tool that run at the same time, over all callers.
    pub max_instances: u32,
    /// How long a call may run once it has its slots; each progress report restarts it.
    pub timeout: Duration,
    /// The longest total duration of a call that reports progress; never less than `timeout`.
    pub max_timeout: Duration,
    /// How long a call may wait for its slots.
    pub queue_timeout: Duration,
    /// How long a running call may stay without any message from the server; any message for the call restarts it.
    pub inactivity_timeout: Option<Duration>,
    /// The largest result that is returned inline.
    pub max_result_bytes: u64,
    /// How often the tool may be called, over all callers.
    pub rate: Option<Rate>,
}

/// Limits as configured: a field that is not configured is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct LimitsOverlay {
    /// See [`ToolLimits::max_instances`].
    pub max_instances: Option<u32>,
    /// See [`ToolLimits::timeout`].
    pub timeout: Option<Duration>,
    /// See [`ToolLimits::max_timeout`].
    pub max_timeout: Option<Duration>,
    /// See [`ToolLimits::queue_timeout`]; if not configured, it equals `timeout`.
    pub queue_timeout: Option<Duration>,
    /// See [`ToolLimits::inactivity_timeout`].
    pub inactivity_timeout: Option<Duration>,
    /// See [`ToolLimits::max_result_bytes`].
    pub max_result_bytes: Option<u64>,
    /// See [`ToolLimits::rate`].
    pub rate: Option<Rate>,
}

impl ToolLimits {
    /// Whether progress reports affect these limits. If so, the server is asked for progress.
    pub fn depend_on_progress(&self) -> bool {
        self.max_timeout > self.timeout || self.inactivity_timeout.is_some()
    }
}

impl LimitsOverlay {
    /// Lays `self` over `below`, field by field: a configured field of `self` wins.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            max_instances: self.max_instances.or(below.max_instances),
            timeout: self.timeout.or(below.timeout),
            max_timeout: self.max_timeout.or(below.max_timeout),
            queue_timeout: self.queue_timeout.or(below.queue_timeout),
            inactivity_timeout: self.inactivity_timeout.or(below.inactivity_timeout),
            max_result_bytes: self.max_result_bytes.or(below.max_result_bytes),
            rate: self.rate.or(below.rate),
        }
    }

    /// Fills the fields that are not configured from the built-in limits.
    pub fn resolve(self) -> ToolLimits {
        let timeout = self.timeout.unwrap_or(BUILT_IN_LIMITS.timeout);
        ToolLimits {
            max_instances: self.max_instances.unwrap_or(BUILT_IN_LIMITS.max_instances),
            timeout,
            max_timeout: self.max_timeout.unwrap_or(BUILT_IN_LIMITS.max_timeout).max(timeout),
            queue_timeout: self.queue_timeout.unwrap_or(timeout),
            inactivity_timeout: self.inactivity_timeout,
            max_result_bytes: self.max_result_bytes.unwrap_or(BUILT_IN_LIMITS.max_result_bytes),
            rate: self.rate,
        }
    }
}

impl fmt::Display for LimitsOverlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let durations = [
            ("timeout", self.timeout),
            ("max_timeout", self.max_timeout),
            ("queue_timeout", self.queue_timeout),
            ("inactivity_timeout", self.inactivity_timeout),
        ];
        let written = self
            .max_instances
            .map(|n| format!("max_instances={n}"))
            .into_iter()
            .chain(durations.into_iter().filter_map(|(key, value)| {
                value.map(|value| format!("{key}={}", render_duration(value)))
            }))
            .chain(self.max_result_bytes.map(|n| format!("max_result_bytes={n}")))
            .chain(self.rate.map(|rate| format!("rate={rate}")));
        write!(f, "{{{}}}", written.collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Display for ToolLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            max_instances,
            timeout,
            max_timeout,
            queue_timeout,
            inactivity_timeout,
            max_result_bytes,
            rate,
        } = *self;
        let whole = LimitsOverlay {
            max_instances: Some(max_instances),
            timeout: Some(timeout),
            max_timeout: Some(max_timeout),
            queue_timeout: Some(queue_timeout),
            inactivity_timeout,
            max_result_bytes: Some(max_result_bytes),
            rate,
        };
        whole.fmt(f)
    }
}

/// Formats a duration as the configuration writes it: `30s`, `1m30s`, `2h`, `250ms`.
pub fn render_duration(duration: Duration) -> String {
    let (hours, minutes, seconds) =
        (duration.as_secs() / 3600, duration.as_secs() / 60 % 60, duration.as_secs() % 60);
    let millis = duration.subsec_millis();
    let parts = [(hours, "h"), (minutes, "m"), (seconds, "s"), (u64::from(millis), "ms")];
    let parts: Vec<_> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect();
    let text = parts.concat();
    match (text.is_empty(), duration.is_zero()) {
        (false, _) => text,
        (true, true) => "0s".into(),
        (true, false) => format!("{duration:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn overlay(max_instances: Option<u32>, timeout: Option<u32>) -> LimitsOverlay {
        LimitsOverlay { max_instances, timeout: timeout.map(|s| SECOND * s), ..Default::default() }
    }

    #[test]
    fn a_partial_explicit_entry_keeps_the_other_field_of_the_server_default() {
        let merged = overlay(Some(1), None).over(overlay(Some(9), Some(99))).resolve();
        assert_eq!((merged.max_instances, merged.timeout), (1, SECOND * 99));
    }

    #[test]
    fn nothing_written_means_five_instances_and_thirty_seconds() {
        assert_eq!(LimitsOverlay::default().resolve(), BUILT_IN_LIMITS);
    }

    #[test]
    fn the_queue_timeout_follows_the_timeout_until_somebody_writes_it() {
        assert_eq!(overlay(None, Some(7)).resolve().queue_timeout, SECOND * 7);
        let written = LimitsOverlay { queue_timeout: Some(SECOND), ..overlay(None, Some(7)) };
        assert_eq!(written.resolve().queue_timeout, SECOND);
    }

    #[test]
    fn the_longest_time_is_never_below_the_timeout() {
        let longest = |timeout, max_timeout: Option<u32>| {
            let max_timeout = max_timeout.map(|s| SECOND * s);
            LimitsOverlay { max_timeout, ..overlay(None, timeout) }.resolve().max_timeout
        };
        assert_eq!(longest(None, None), DEFAULT_MAX_TIMEOUT);
        assert_eq!(longest(Some(3600), None), SECOND * 3600);
        assert_eq!(longest(Some(7), Some(7)), SECOND * 7);
        assert_eq!(longest(Some(7), Some(3)), SECOND * 7);
        assert_eq!(longest(None, Some(90)), SECOND * 90);
    }

    #[test]
    fn durations_and_overlays_print_as_people_write_them() {
        let texts = [0, 250, 30_000, 90_000, 7_200_000, 1_500]
            .map(|ms| render_duration(Duration::from_millis(ms)));
        assert_eq!(texts, ["0s", "250ms", "30s", "1m30s", "2h", "1s500ms"]);
        assert_eq!(render_duration(Duration::from_micros(5)), "5µs");
        assert_eq!(overlay(Some(3), Some(7)).to_string(), "{max_instances=3, timeout=7s}");
        let rest = LimitsOverlay {
            queue_timeout: Some(SECOND),
            inactivity_timeout: Some(SECOND),
            max_result_bytes: Some(9),
            rate: "60/min".parse().ok(),
            ..Default::default()
        };
        assert_eq!(
            rest.to_string(),
            "{queue_timeout=1s, inactivity_timeout=1s, max_result_bytes=9, rate=60/min}"
        );
        assert_eq!(
            BUILT_IN_LIMITS.to_string(),
            "{max_instances=5, timeout=30s, max_timeout=10m, queue_timeout=30s, max_result_bytes=1048576}"
        );
    }
}
