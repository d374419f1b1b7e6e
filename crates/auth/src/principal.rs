//! Who is asking and what they may do.

use std::sync::Arc;

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

impl Principal {
    /// Whoever asks while nobody needs credentials: this machine's user, who may do everything.
    pub fn local() -> Self {
        Self { id: "local".into(), role: Role::Admin, name: None }
    }
}
