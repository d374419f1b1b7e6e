//! The authenticated identity of a request, and its role.

use std::sync::Arc;

use switchboard_model::{Caller, Face, Role};

/// The authenticated identity of a request. Requests with the same `id` have the same identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal {
    /// Stays the same when a token is renewed: `local`, `key:<id>`, or `jwt:<issuer>|<client_id>|<sub>`, where `|`,
    /// `%` and control characters within a part are percent-encoded.
    pub id: Arc<str>,
    /// The role, which decides the permitted operations.
    pub role: Role,
    /// The name for display, if one is known.
    pub name: Option<Arc<str>>,
}

impl Principal {
    /// The principal of all requests while no credentials are required: the user of this machine, with every permission.
    pub fn local() -> Self {
        Self { id: "local".into(), role: Role::Admin, name: None }
    }

    /// The principal as the caller of a request through this face.
    pub fn caller(&self, face: Face) -> Caller {
        Caller::new(self.id.clone(), self.role, face)
    }
}
