//! How many files the process may have open: each connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// As many as all connections at once need, with as many again for servers. More is of no use here, and programs that
/// this one starts inherit the limit: some of them close every possible descriptor when they start.
const WANTED: u64 = 32_768;

/// Raises the soft limit as far as the hard one lets it.
pub(crate) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(WANTED, |hard| hard.min(WANTED));
    let Some(soft) = limit.current.filter(|soft| *soft < wanted) else { return };
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tracing::debug!(from = soft, to = wanted, "the limit of open files was raised"),
        Err(error) => {
            tracing::warn!(%error, limit = soft, "the limit of open files could not be raised");
        }
    }
}
