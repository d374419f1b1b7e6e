//! The answer of a tooling gateway, for a program that is one.

use serde::Serialize;

/// The servers of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolServersAnswer {
    /// The servers.
    pub mcp_servers: Vec<ToolServerEntry>,
    /// `Ready`, or `Pending` when a server needs a connection that the user has not set up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connectivity_status: Option<String>,
    /// The page on which the missing connections are set up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_connections_url: Option<String>,
    /// The page with all connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_connections_url: Option<String>,
}

/// One server of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolServerEntry {
    /// The name for people.
    pub mcp_server_name: String,
    /// The name in addresses. Clients of the design document's gateway expect the whole URL here.
    pub mcp_server_unique_name: String,
    /// The address of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The application that tokens for the server must be issued for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// The OAuth scope without its audience.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The publisher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publisher: Option<String>,
    /// `Ready` or `Pending`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connectivity_status: Option<String>,
    /// The page on which the missing connections are set up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_connections_url: Option<String>,
    /// The page with all connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_connections_url: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::gateway_answer::parse_gateway_answer;

    #[test]
    fn the_client_reads_what_a_gateway_writes() {
        let entry = ToolServerEntry {
            mcp_server_name: "mail".to_owned(),
            mcp_server_unique_name: "mail".to_owned(),
            url: Some("https://board.test/mcp/agents/sales/servers/mail".to_owned()),
            connectivity_status: Some("Pending".to_owned()),
            missing_connections_url: Some("https://board.test/sign-in".to_owned()),
            ..ToolServerEntry::default()
        };
        let answer = ToolServersAnswer {
            mcp_servers: vec![entry],
            connectivity_status: Some("Pending".to_owned()),
            ..ToolServersAnswer::default()
        };
        let body = serde_json::to_vec(&answer).unwrap();
        let found = parse_gateway_answer(&body, &Environment::from_lookup(|_| None)).unwrap();
        let server = &found.servers[0];
        assert_eq!(server.url.as_str(), "https://board.test/mcp/agents/sales/servers/mail");
        assert!(server.connectivity.is_pending() && found.connectivity.is_pending());
        assert_eq!((found.problems.len(), found.warnings.len()), (0, 0));
    }
}
