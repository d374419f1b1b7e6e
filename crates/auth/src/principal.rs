//! The authenticated identity of a request, and its role.

use std::sync::Arc;

use switchboard_model::{Caller, Face, Identity, LiveAccess, Role};

/// The authenticated identity of a request. Requests with the same `id` have the same identity.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// What the credential grants, at each moment.
    pub access: LiveAccess,
}

impl Principal {
    /// The principal of all requests while no credentials are required: the user of this machine, with every permission.
    pub fn local() -> Self {
        let id: Arc<str> = Identity::LOCAL.into();
        let identity = Arc::new(Identity::of(id.clone()));
        Self { id, role: Role::Admin, name: None, identity, access: LiveAccess::default() }
    }

    /// The role that decides which paths the principal may use. An operator with narrowed access counts as a client,
    /// because an operator sees what others do with all tools. An administrator can widen its own access, so it keeps
    /// its role.
    pub fn effective_role(&self) -> Role {
        match self.role {
            Role::Operator if !self.access.load().has_all_tools() => Role::Client,
            role => role,
        }
    }

    /// Whether the principal may see all tools and what others do with them: an operator from whom no tool is withheld.
    /// An operator or administrator with narrowed access is treated as a client wherever tools are concerned.
    pub fn oversees(&self) -> bool {
        self.role >= Role::Operator && self.access.load().has_all_tools()
    }

    /// The principal as the caller of a request through this face.
    pub fn caller(&self, face: Face) -> Caller {
        let access = self.access.clone();
        Caller { access, ..Caller::new(self.id.clone(), self.identity.clone(), self.role, face) }
    }
}
