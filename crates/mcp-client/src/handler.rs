//! The rmcp client handler: declares the client's identity and capabilities. Messages of the server are handled by
//! [`PendingRequests`].

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitationCapability, FormElicitationCapability,
    Implementation, ProtocolVersion, RootsCapabilities, SamplingCapability,
    UrlElicitationCapability,
};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};

use crate::pending_requests::PendingRequests;

/// Declares the capabilities of the clients behind the connection.
#[derive(Debug, Clone)]
pub(crate) struct UpstreamHandler {
    pub(crate) pending: Arc<PendingRequests>,
    /// The capabilities of the one client that the connection belongs to.
    pub(crate) capabilities: Option<ClientCapabilities>,
}

impl ClientHandler for UpstreamHandler {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("switchboard", env!("CARGO_PKG_VERSION"));
        let capabilities = self.capabilities.clone().unwrap_or_else(of_any_client);
        let mut config = ClientConfig::new(capabilities, us);
        // rmcp's default is its newest version, which has no `initialize`.
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.pending.changed().notify_one();
    }
}

/// The capabilities for a shared connection: those that any client may have. A client that lacks one refuses the
/// server's request.
fn of_any_client() -> ClientCapabilities {
    let elicitation = ElicitationCapability::new()
        .with_form(FormElicitationCapability::default())
        .with_url(UrlElicitationCapability::default());
    let mut capabilities = ClientCapabilities::default();
    capabilities.sampling = Some(SamplingCapability::default());
    capabilities.elicitation = Some(elicitation);
    // Without `listChanged`: a change of roots would concern one of many clients.
    capabilities.roots = Some(RootsCapabilities::default());
    capabilities
}
