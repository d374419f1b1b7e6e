//! The state of a connection attempt that has not ended, for progress displays and logs.

use std::fmt;
use std::time::Duration;

use switchboard_model::render_duration;

/// The state of a connection attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The awaited message or event.
    pub step: &'static str,
    pub elapsed: Duration,
    /// The server's `connect_timeout`.
    pub limit: Duration,
    /// The last line of the child's standard error.
    pub output: Option<String>,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elapsed = render_duration(Duration::from_secs(self.elapsed.as_secs()));
        let limit = render_duration(self.limit);
        write!(f, "waiting for {} ({elapsed} of {limit})", self.step)?;
        self.output.as_ref().map_or(Ok(()), |line| write!(f, "; it wrote: {line}"))
    }
}
