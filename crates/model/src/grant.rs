//! The identity of a stored grant: what its tokens are for, and whose they are.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::ServerName;

/// What the tokens of a grant are used for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GrantPurpose {
    /// Requests to the MCP server of this name.
    Server(ServerName),
    /// Requests to an LLM provider, with one of its named credentials.
    Provider { provider: Arc<str>, credential: Arc<str> },
}

/// Whose account the tokens of a grant belong to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GrantOwner {
    /// One account for all callers of the board.
    #[default]
    Board,
    /// One person, such as `jwt:ISSUER|SUBJECT`, `user:LABEL`, `key:ID` or `local`.
    Person(Arc<str>),
    /// One session.
    Session(Arc<str>),
}

/// Identifies the grants of one owner for one purpose. With the issuer it identifies one row of the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GrantId {
    pub purpose: GrantPurpose,
    pub owner: GrantOwner,
}

/// The answer to a process that wants to renew the tokens of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenewalTurn {
    /// The turn is taken: the process asks the issuer, then writes the result or ends the turn.
    Taken,
    /// Another process renews the tokens until this time, in milliseconds since 1970.
    Held { until_ms: i64 },
    /// The grant has another version by now, or is gone.
    Changed,
}

/// A text that is no [`GrantPurpose`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownPurpose;

const SERVER: &str = "server:";
const PROVIDER: &str = "provider:";
const BOARD: &str = "board";
const SESSION: &str = "session:";

impl GrantId {
    /// The account at a server that all callers share.
    pub fn of_server(server: &ServerName) -> Self {
        Self { purpose: GrantPurpose::Server(server.clone()), owner: GrantOwner::Board }
    }

    /// The account at a provider that all callers share.
    pub fn of_provider(provider: &str, credential: &str) -> Self {
        let (provider, credential) = (provider.into(), credential.into());
        let purpose = GrantPurpose::Provider { provider, credential };
        Self { purpose, owner: GrantOwner::Board }
    }

    /// The same purpose for another owner.
    #[must_use]
    pub fn with_owner(self, owner: GrantOwner) -> Self {
        Self { owner, ..self }
    }
}

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.purpose, self.owner)
    }
}

/// The form in the store: `server:NAME` or `provider:NAME/CREDENTIAL`. Names contain no slash.
impl fmt::Display for GrantPurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(name) => write!(f, "{SERVER}{name}"),
            Self::Provider { provider, credential } => {
                write!(f, "{PROVIDER}{provider}/{credential}")
            }
        }
    }
}

impl FromStr for GrantPurpose {
    type Err = UnknownPurpose;

    fn from_str(text: &str) -> Result<Self, UnknownPurpose> {
        if let Some(name) = text.strip_prefix(SERVER) {
            return Ok(Self::Server(ServerName::new(name)));
        }
        let names = text.strip_prefix(PROVIDER).and_then(|names| names.split_once('/'));
        let (provider, credential) = names.ok_or(UnknownPurpose)?;
        Ok(Self::Provider { provider: provider.into(), credential: credential.into() })
    }
}

/// The form in the store. A person is written as it is: all persons begin with `jwt:`, `user:` or `key:`, or are
/// `local`.
impl fmt::Display for GrantOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Board => f.write_str(BOARD),
            Self::Person(person) => f.write_str(person),
            Self::Session(session) => write!(f, "{SESSION}{session}"),
        }
    }
}

impl From<&str> for GrantOwner {
    fn from(text: &str) -> Self {
        match text.strip_prefix(SESSION) {
            Some(session) => Self::Session(session.into()),
            None if text == BOARD => Self::Board,
            None => Self::Person(text.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_and_owners_are_read_as_they_are_written() {
        let purposes = [
            (GrantId::of_server(&ServerName::new("tracker")).purpose, "server:tracker"),
            (GrantId::of_provider("google", "work").purpose, "provider:google/work"),
        ];
        for (purpose, text) in purposes {
            assert_eq!(purpose.to_string(), text);
            assert_eq!(text.parse(), Ok(purpose));
        }
        for unknown in ["", "tracker", "provider:google", "server"] {
            assert_eq!(unknown.parse::<GrantPurpose>(), Err(UnknownPurpose), "{unknown}");
        }
        let owners = [
            (GrantOwner::Board, "board"),
            (GrantOwner::Session("s1".into()), "session:s1"),
            (GrantOwner::Person("jwt:https://i|alice".into()), "jwt:https://i|alice"),
            (GrantOwner::Person("local".into()), "local"),
        ];
        for (owner, text) in owners {
            assert_eq!(owner.to_string(), text);
            assert_eq!(GrantOwner::from(text), owner);
        }
    }
}
