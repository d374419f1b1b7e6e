//! Sign-ins at providers that wait for the answer of an authorization server.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_oauth::CodeFlow;
use tokio::time::Instant;

/// How long a sign-in may be finished.
pub(crate) const SIGN_IN_LIFETIME: Duration = Duration::from_mins(10);
/// How many may be open; beyond it the oldest is given up.
const MAX_OPEN: usize = 64;

/// The sign-ins that are open.
#[derive(Debug, Default)]
pub(crate) struct OpenSignIns(Mutex<HashMap<String, OpenSignIn>>);

/// A sign-in at a provider.
#[derive(Debug)]
pub(crate) struct OpenSignIn {
    pub(crate) provider: String,
    pub(crate) credential: String,
    /// The person who began it.
    pub(crate) person: Arc<str>,
    pub(crate) since: Instant,
    pub(crate) flow: CodeFlow,
}

impl OpenSignIns {
    pub(crate) fn add(&self, id: String, sign_in: OpenSignIn) {
        let mut open = self.0.lock();
        open.retain(|_, other| other.since.elapsed() < SIGN_IN_LIFETIME);
        if open.len() >= MAX_OPEN
            && let Some(oldest) =
                open.iter().min_by_key(|(_, it)| it.since).map(|(id, _)| id.clone())
        {
            open.remove(&oldest);
        }
        open.insert(id, sign_in);
    }

    /// Takes a sign-in of this person: it is used then.
    pub(crate) fn take(&self, id: &str, provider: &str, person: &str) -> Option<OpenSignIn> {
        let mut open = self.0.lock();
        let found = open.get(id)?;
        let is_theirs = found.provider == provider && *found.person == *person;
        let is_open = found.since.elapsed() < SIGN_IN_LIFETIME;
        if is_theirs && is_open { open.remove(id) } else { None }
    }
}
