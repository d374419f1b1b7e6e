//! What a client has switched on, whoever it is and however it connects.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Whose state a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionKind {
    /// The session of one legacy client; ends with it.
    Client,
    /// A session endpoint, which clients of both eras may share.
    Endpoint,
    /// Everybody who shows the same credential.
    Principal,
}

impl SessionKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Endpoint => "endpoint",
            Self::Principal => "principal",
        }
    }
}

/// The toolsets that are switched on.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: Arc<str>,
    pub(crate) kind: SessionKind,
    pub(crate) owner: Arc<str>,
    pub(crate) created_at_ms: i64,
    enabled: Mutex<Arc<BTreeSet<String>>>,
}

impl Session {
    pub(crate) fn new(
        id: Arc<str>,
        kind: SessionKind,
        owner: Arc<str>,
        enabled: BTreeSet<String>,
        created_at_ms: i64,
    ) -> Arc<Self> {
        Arc::new(Self { id, kind, owner, created_at_ms, enabled: Mutex::new(Arc::new(enabled)) })
    }

    pub(crate) fn enabled(&self) -> Arc<BTreeSet<String>> {
        self.enabled.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes what is switched on in one step: two calls at the same time never undo each other.
    pub(crate) fn switch<T>(
        &self,
        decide: impl FnOnce(&Arc<BTreeSet<String>>) -> Result<(BTreeSet<String>, T), String>,
    ) -> Result<T, String> {
        let mut enabled = self.enabled.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, answer) = decide(&enabled)?;
        *enabled = Arc::new(now);
        Ok(answer)
    }
}
