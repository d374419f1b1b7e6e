//! Connects the HTTP server to the MCP gateway.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use switchboard_http::{McpEndpoint, McpRequest, McpRoute};
use switchboard_mcp_server::{Gateway, GatewayBody, HttpRequest, Route};

/// Adapter between the two crates, which do not depend on each other.
#[derive(Debug)]
pub(crate) struct GatewayEndpoint(pub(crate) Arc<Gateway>);

impl McpEndpoint for GatewayEndpoint {
    type Body = GatewayBody;

    fn max_body_bytes(&self) -> usize {
        self.0.max_body_bytes()
    }

    async fn post(&self, request: McpRequest, body: Bytes) -> Response<GatewayBody> {
        self.0.post(gateway_request(request), body).await
    }

    async fn get(&self, request: McpRequest) -> Response<GatewayBody> {
        self.0.get(gateway_request(request)).await
    }

    async fn delete(&self, request: McpRequest) -> Response<GatewayBody> {
        self.0.delete(gateway_request(request)).await
    }
}

fn gateway_request(request: McpRequest) -> HttpRequest {
    let McpRequest { route, query, headers, principal } = request;
    let route = match route {
        McpRoute::All => Route::All,
        McpRoute::Server(name) => Route::Server(name),
        McpRoute::Toolsets(names) => Route::Toolsets(names),
        McpRoute::Session(id) => Route::Session(id),
        McpRoute::Agent { agent, server } => Route::Agent { agent, server },
    };
    HttpRequest { route, query, headers, principal }
}
