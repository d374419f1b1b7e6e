//! The models of discovery: an MCP server of an agent, and the options of a request.

use std::collections::BTreeMap;
use std::fmt;

use switchboard_model::{Secret, redact_url};
use url::Url;

/// An MCP server that an agent may use.
#[derive(Clone, PartialEq, Eq)]
pub struct McpServerConfig {
    /// The name for people; never blank.
    pub mcp_server_name: String,
    /// The name in addresses; never blank. Older gateways put the whole URL here.
    pub mcp_server_unique_name: String,
    /// The address of the server, always absolute.
    pub url: Url,
    /// The headers of requests to this server. `Authorization` is there when a token is known that is for this server.
    pub headers: BTreeMap<String, Secret>,
    /// The application that tokens for the server must be issued for; absent for servers of the platform itself.
    pub audience: Option<String>,
    /// The OAuth scope without its audience, such as `Tools.ListInvoke.All`.
    pub scope: Option<String>,
    /// The publisher of the server.
    pub publisher: Option<String>,
    /// Whether the accounts behind the server are connected.
    pub connectivity: Connectivity,
}

impl McpServerConfig {
    /// A server without headers, for which every other member is absent.
    pub fn new(name: impl Into<String>, unique_name: impl Into<String>, url: Url) -> Self {
        Self {
            mcp_server_name: name.into(),
            mcp_server_unique_name: unique_name.into(),
            url,
            headers: BTreeMap::new(),
            audience: None,
            scope: None,
            publisher: None,
            connectivity: Connectivity::default(),
        }
    }
}

/// Shows neither the headers' values nor credentials in the URL.
impl fmt::Debug for McpServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            mcp_server_name,
            mcp_server_unique_name,
            url,
            headers,
            audience,
            scope,
            publisher,
            connectivity,
        } = self;
        // Older gateways put the URL into the unique name.
        let unique_name = match Url::parse(mcp_server_unique_name) {
            Ok(url) => redact_url(&url),
            Err(_) => mcp_server_unique_name.clone(),
        };
        f.debug_struct("McpServerConfig")
            .field("mcp_server_name", mcp_server_name)
            .field("mcp_server_unique_name", &unique_name)
            .field("url", &redact_url(url))
            .field("headers", headers)
            .field("audience", audience)
            .field("scope", scope)
            .field("publisher", publisher)
            .field("connectivity", connectivity)
            .finish()
    }
}

/// Whether the connections behind a server, or behind all servers of an agent, are set up. Every member is absent when
/// the gateway does not report it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Connectivity {
    /// `Ready`, `Pending` or a word of a later gateway.
    pub status: Option<String>,
    /// The page on which the missing connections are set up.
    pub missing_connections_url: Option<String>,
    /// The page with all connections.
    pub all_connections_url: Option<String>,
}

impl Connectivity {
    /// Whether a connection is missing. A status that is absent counts as ready.
    pub fn is_pending(&self) -> bool {
        self.status.as_deref().is_some_and(|status| !status.eq_ignore_ascii_case("ready"))
    }
}

/// The options of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolOptions {
    /// The name of the program that runs the agent, for the `User-Agent` header.
    pub orchestrator_name: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_shown_without_its_credentials() {
        let address = "https://me:s3cret-pw@mail.test/mcp?key=s3cret-key";
        let mut server = McpServerConfig::new("mail", address, Url::parse(address).unwrap());
        server.headers.insert("Authorization".to_owned(), Secret::new("Bearer s3cret-token"));
        let shown = format!("{server:?}");
        assert!(!shown.contains("s3cret"), "{shown}");
        assert!(shown.contains("Authorization") && shown.contains("mail.test/mcp"), "{shown}");
    }

    #[test]
    fn tool_options_name_no_orchestrator_by_default() {
        assert_eq!(ToolOptions::default(), ToolOptions { orchestrator_name: None });
    }

    #[test]
    fn a_connection_is_missing_unless_the_status_is_ready_or_absent() {
        for (status, expected) in [
            (None, false),
            (Some("Ready"), false),
            (Some("ready"), false),
            (Some("Pending"), true),
            (Some("Blocked"), true),
        ] {
            let status = status.map(str::to_owned);
            let connectivity = Connectivity { status: status.clone(), ..Connectivity::default() };
            assert_eq!(connectivity.is_pending(), expected, "{status:?}");
        }
    }
}
