//! The state of a source, for people.

use std::time::Duration;

use switchboard_model::FoundServer;

use crate::source::UnusableEntry;

/// The state of a source.
#[derive(Debug, Clone)]
pub struct SourceStatus {
    /// The name of the source.
    pub name: String,
    /// `manifest`, `gateway` or `registry`.
    pub kind: &'static str,
    /// Where it looks, without credentials.
    pub place: String,
    /// Why the environment chose it; `None` for a configured source.
    pub chosen_because: Option<String>,
    /// Whether it is a file of this machine.
    pub is_file: bool,
    /// The interval between two fetches.
    pub refresh: Duration,
    /// The last known servers; those of the last success.
    pub servers: Vec<FoundServer>,
    /// Entries of the last success that cannot be used.
    pub unusable: Vec<UnusableEntry>,
    /// Warnings about the last success.
    pub warnings: Vec<String>,
    /// When it was last fetched successfully.
    pub succeeded_at_ms: Option<i64>,
    /// Why the last fetch failed; `None` if it succeeded, or has not ended yet.
    pub failure: Option<SourceFailure>,
}

/// A failed fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFailure {
    pub message: String,
    /// The way out.
    pub hint: Option<String>,
    pub at_ms: i64,
    /// How many fetches have failed since the last success.
    pub count: u64,
}

impl SourceStatus {
    /// `ok`, `failing`, or `waiting`: before the first fetch has ended, and for a manifest that the environment would take
    /// once there is one.
    pub fn state(&self) -> &'static str {
        match (&self.failure, self.succeeded_at_ms) {
            (Some(_), _) => "failing",
            (None, Some(_)) => "ok",
            (None, None) => "waiting",
        }
    }
}
