//! An HTTP request to the MCP endpoint, and the endpoint that it names.

use http::HeaderMap;
use switchboard_auth::Principal;

/// The MCP endpoint that a request is sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// `/mcp`
    All,
    /// `/mcp/servers/{server}`
    Server(String),
    /// `/mcp/toolsets/{a,b}`
    Toolsets(String),
    /// `/mcp/sessions/{id}`
    Session(String),
    /// `/mcp/agents/{agent}/servers/{server}`
    Agent { agent: String, server: String },
}

/// The parts of an HTTP request that the transport has read and authenticated.
#[derive(Debug)]
pub struct HttpRequest {
    pub route: Route,
    pub query: Option<String>,
    pub headers: HeaderMap,
    pub principal: Principal,
}
