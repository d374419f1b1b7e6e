//! Raises the limit of open files, because each connection needs one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The maximum number of client connections, and as many again for servers. Not more, because child processes inherit
/// the limit, and some of them close every possible descriptor at their start.
const WANTED: u64 = 32_768;

/// Raises the soft limit of open files (`RLIMIT_NOFILE`), at most to the hard limit.
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
