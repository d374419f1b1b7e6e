//! The authenticated identity of a request, and its role.

use std::sync::Arc;

use switchboard_model::{Caller, Face, Identity, Role};

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
    /// The person behind the credential, whichever program uses it.
    pub identity: Arc<Identity>,
}

impl Principal {
    /// The principal of all requests while no credentials are required: the user of this machine, with every permission.
    pub fn local() -> Self {
        let id: Arc<str> = Identity::LOCAL.into();
        let identity = Arc::new(Identity::of(id.clone()));
        Self { id, role: Role::Admin, name: None, identity }
    }

    /// The principal as the caller of a request through this face.
    pub fn caller(&self, face: Face) -> Caller {
        Caller::new(self.id.clone(), self.identity.clone(), self.role, face)
    }
}
