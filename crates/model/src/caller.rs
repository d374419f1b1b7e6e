//! Who makes a request, and through which face it came in.

use std::sync::Arc;

/// Through which face a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Face {
    Cli,
    Http,
    Mcp,
    /// A model called a tool in a turn.
    Turn,
}

impl Face {
    /// The word that records show.
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
    /// May also see what others do.
    Operator,
    /// May also change things.
    Admin,
}

impl Role {
    /// All roles, the least first.
    pub const ALL: [Self; 3] = [Self::Client, Self::Operator, Self::Admin];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// The role of a word, when there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

/// The name and the version that an MCP client gives itself (`clientInfo`). Shown to people and checked by nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientInfo {
    pub name: Option<Arc<str>>,
    pub version: Option<Arc<str>>,
}

/// Who makes a request. It is made at the edge where the request comes in, and goes with every call into its record;
/// what a caller may do, and on whose account, is decided by it and by nothing that a tool is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The authenticated principal, such as `local` or `key:<id>`.
    pub principal: Arc<str>,
    /// What the principal may do.
    pub role: Role,
    /// Whose session it is made in: the principal, unless an operator acts in the session of another one.
    pub owner: Arc<str>,
    pub client: ClientInfo,
    /// The session in which it is made.
    pub session: Option<Arc<str>>,
    pub face: Face,
}

impl Caller {
    /// A principal that acts for itself, in no session and without an MCP client.
    pub fn new(principal: Arc<str>, role: Role, face: Face) -> Self {
        let owner = principal.clone();
        Self { principal, role, owner, client: ClientInfo::default(), session: None, face }
    }

    /// The user of this machine, who may do everything.
    pub fn local(face: Face) -> Self {
        Self::new("local".into(), Role::Admin, face)
    }

    /// The same caller in a session of this owner.
    #[must_use]
    pub fn in_session(self, session: Arc<str>, owner: Arc<str>) -> Self {
        Self { session: Some(session), owner, ..self }
    }
}
