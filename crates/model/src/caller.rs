//! The identity behind a request, and the interface that it arrived on.

use std::sync::Arc;

use crate::{Identity, LiveAccess};

/// The interface that a request arrived on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Face {
    Cli,
    Http,
    Mcp,
    /// A model called a tool in a turn.
    Turn,
}

impl Face {
    pub const ALL: [Self; 4] = [Self::Cli, Self::Http, Self::Mcp, Self::Turn];

    /// The face of this word in records.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|face| face.as_str() == word)
    }

    /// The word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Http => "http",
            Self::Mcp => "mcp",
            Self::Turn => "turn",
        }
    }
}

/// What a principal may do. Each role includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// May use the tools.
    Client,
    /// May also see the activity of other principals.
    Operator,
    /// May also change configuration and state.
    Admin,
}

impl Role {
    /// All roles, lowest first.
    pub const ALL: [Self; 3] = [Self::Client, Self::Operator, Self::Admin];

    /// The word in the configuration and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// Parses the word that [`Role::as_str`] writes.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

/// The name and version that an MCP client reports (`clientInfo`). Shown only; no decision uses it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientInfo {
    pub name: Option<Arc<str>>,
    pub version: Option<Arc<str>>,
}

/// The identity behind a request, created where the request enters the process and passed along until it is stored in
/// the call's record. Authorization and accounting use only this value, never arguments or headers of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The authenticated principal, such as `local` or `key:<id>`.
    pub principal: Arc<str>,
    /// The person behind the credential, whichever program uses it.
    pub identity: Arc<Identity>,
    /// What the principal may do.
    pub role: Role,
    /// The tools that the credential grants, and its limits.
    pub access: LiveAccess,
    /// The owner of the session: the principal itself, unless an operator acts in another principal's session.
    pub owner: Arc<str>,
    pub client: ClientInfo,
    /// The session in which it is made.
    pub session: Option<Arc<str>>,
    pub face: Face,
    /// The agent profile under which it is made; its limits apply to the call.
    pub agent: Option<Arc<str>>,
    /// How many prompt tools may still run inside each other, as the prompt tools around this call permit. `None` if
    /// none runs around it.
    pub prompt_tools_left: Option<u32>,
}

impl Caller {
    /// A principal that acts for itself, in no session, without an MCP client and with access to everything.
    pub fn new(principal: Arc<str>, identity: Arc<Identity>, role: Role, face: Face) -> Self {
        let owner = principal.clone();
        Self {
            principal,
            identity,
            access: LiveAccess::default(),
            role,
            owner,
            client: ClientInfo::default(),
            session: None,
            face,
            agent: None,
            prompt_tools_left: None,
        }
    }

    /// The user of this machine, who may do everything.
    pub fn local(face: Face) -> Self {
        let local: Arc<str> = Identity::LOCAL.into();
        Self::new(local.clone(), Arc::new(Identity::of(local)), Role::Admin, face)
    }

    /// The person behind the credential: the key under which what belongs to a person is stored.
    pub fn person(&self) -> &Arc<str> {
        &self.identity.person
    }

    /// The model of a turn that this caller began. It has the rights of a client, and acts for the same person.
    #[must_use]
    pub fn in_turn(&self) -> Self {
        Self { role: Role::Client, face: Face::Turn, ..self.clone() }
    }

    /// The model of a prompt tool with this `max_depth` that this caller called. It has the rights of a client. A tool
    /// never permits more than the tools around it.
    #[must_use]
    pub fn inside_prompt_tool(&self, max_depth: u32) -> Self {
        let own = max_depth.saturating_sub(1);
        let left = self.prompt_tools_left.map_or(own, |left| own.min(left.saturating_sub(1)));
        Self { role: Role::Client, face: Face::Turn, prompt_tools_left: Some(left), ..self.clone() }
    }

    /// The same caller in a session of this owner.
    #[must_use]
    pub fn in_session(self, session: Arc<str>, owner: Arc<str>) -> Self {
        Self { session: Some(session), owner, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_include_those_before_them_and_are_read_as_they_are_written() {
        assert!(Role::Client < Role::Operator && Role::Operator < Role::Admin);
        for role in Role::ALL {
            assert_eq!(Role::from_word(role.as_str()), Some(role));
        }
        assert_eq!(Role::from_word("Admin"), None);
        let faces = [Face::Cli, Face::Http, Face::Mcp, Face::Turn];
        assert_eq!(faces.map(Face::as_str), ["cli", "http", "mcp", "turn"]);
    }

    #[test]
    fn a_caller_keeps_its_principal_in_the_session_of_another_owner() {
        let caller = Caller::local(Face::Cli);
        assert_eq!((&*caller.principal, &*caller.owner), ("local", "local"));
        assert_eq!((caller.role, caller.session.clone()), (Role::Admin, None));
        let inside = caller.clone().in_session("work".into(), "key:1".into());
        assert_eq!((&*inside.principal, &*inside.owner), ("local", "key:1"));
        assert_eq!(inside.session.as_deref(), Some("work"));
        assert_eq!((inside.role, inside.face), (caller.role, caller.face));
        assert_eq!(&**inside.person(), "local");
        let turn = inside.in_turn();
        assert_eq!((turn.role, turn.face), (Role::Client, Face::Turn));
        assert_eq!((turn.person(), &turn.owner), (inside.person(), &inside.owner));
    }

    #[test]
    fn a_prompt_tool_permits_no_more_prompt_tools_than_those_around_it() {
        let left = |depths: &[u32]| {
            let caller = Caller::local(Face::Cli);
            let inside = |caller: Caller, depth: &u32| caller.inside_prompt_tool(*depth);
            depths.iter().fold(caller, inside).prompt_tools_left
        };
        assert_eq!(left(&[]), None);
        assert_eq!(left(&[1]), Some(0));
        assert_eq!(left(&[3]), Some(2));
        assert_eq!(left(&[3, 9]), Some(1), "the outer one decides");
        assert_eq!(left(&[3, 1]), Some(0), "the inner one may permit less");
        assert_eq!(left(&[0]), Some(0));
    }
}
