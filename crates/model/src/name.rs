//! Names of servers and tools.
//!
//! A canonical name is `server.tool`. It is made from its two halves and looked up whole; it is never
//! split again, because MCP tool names may hold dots themselves. Server names may not.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The server part of the canonical name of built-in tools.
pub const LOCAL_SERVER: &str = "local";

/// First character of the names of attached servers.
const ATTACHED: char = '@';

/// The name of one upstream server, or [`LOCAL_SERVER`].
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerName(Arc<str>);

impl ServerName {
    /// Wraps a name without checking it; the configuration loader has done that.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The internal name of an attached server, unique by `digest`. It begins with a character that
    /// [`ServerName::is_valid`] rejects, so it cannot collide with a configured name.
    pub fn attached(digest: &str) -> Self {
        Self::new(format!("{ATTACHED}{digest}"))
    }

    /// Whether the server was attached by a session.
    pub fn is_attached(&self) -> bool {
        self.0.starts_with(ATTACHED)
    }

    /// The pseudo-server of the built-in tools.
    pub fn local() -> Self {
        Self::new(LOCAL_SERVER)
    }

    /// Whether this is the pseudo-server of the built-in tools.
    pub fn is_local(&self) -> bool {
        &*self.0 == LOCAL_SERVER
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `name` may name a server: at most 64 ASCII letters, digits, `_` and `-`, starting with a letter or
    /// digit.
    pub fn is_valid(name: &str) -> bool {
        name.len() <= 64
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `server.tool`: the key of a tool in the catalog.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CanonicalName {
    server: ServerName,
    whole: Arc<str>,
}

impl CanonicalName {
    /// Joins a server name and a tool name of that server.
    pub fn new(server: &ServerName, tool: &str) -> Self {
        Self { server: server.clone(), whole: format!("{server}.{tool}").into() }
    }

    /// The server that offers the tool.
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// The name that the server itself uses.
    pub fn tool(&self) -> &str {
        self.whole.get(self.server.as_str().len() + 1..).unwrap_or_default()
    }

    /// The whole name, `server.tool`.
    pub fn as_str(&self) -> &str {
        &self.whole
    }
}

/// Hashes the whole name only, which contains the server's; every call does several lookups by it.
impl Hash for CanonicalName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.whole.hash(state);
    }
}

impl fmt::Debug for CanonicalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.whole, f)
    }
}

impl fmt::Display for CanonicalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_halves_come_back_even_when_the_tool_holds_dots() {
        let name = CanonicalName::new(&ServerName::new("crm"), "a.b.c");
        assert_eq!(
            (name.server().as_str(), name.tool(), name.as_str()),
            ("crm", "a.b.c", "crm.a.b.c")
        );
    }

    #[test]
    fn server_names_have_no_dots_spaces_or_leading_marks() {
        for good in ["customers", "internal-tools", "a_1", "0x"] {
            assert!(ServerName::is_valid(good), "{good}");
        }
        for bad in ["", "a.b", "a b", "-a", "_a", "é", &"x".repeat(65)] {
            assert!(!ServerName::is_valid(bad), "{bad}");
        }
    }

    #[test]
    fn no_configuration_can_name_what_a_session_brought() {
        let name = ServerName::attached("1f");
        assert!(name.is_attached() && !ServerName::is_valid(name.as_str()));
        assert!(!ServerName::new("1f").is_attached() && !ServerName::local().is_attached());
    }
}
