//! Who is asking and what they may do.

use std::sync::Arc;

use switchboard_model::{Caller, Face, Role};

/// Whoever asks. Two requests with the same `id` come from the same one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal {
    /// Stays the same when a token is renewed: `local`, `key:<id>`, or `jwt:<issuer>|<client_id>|<sub>`, where `|`,
    /// `%` and control characters within a part are percent-encoded.
    pub id: Arc<str>,
    /// What they may do.
    pub role: Role,
    /// What people call them, when that is known.
    pub name: Option<Arc<str>>,
}

impl Principal {
    /// Whoever asks while nobody needs credentials: this machine's user, who may do everything.
    pub fn local() -> Self {
        Self { id: "local".into(), role: Role::Admin, name: None }
    }

    /// As the caller of a request that came through this face.
    pub fn caller(&self, face: Face) -> Caller {
        Caller::new(self.id.clone(), self.role, face)
    }
}
