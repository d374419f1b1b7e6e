//! Our side of a connection, as far as rmcp keeps it: who we are. What a server says is heard at the desk.

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitationCapability, FormElicitationCapability,
    Implementation, ProtocolVersion, RootsCapabilities, SamplingCapability,
    UrlElicitationCapability,
};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};

use crate::pending_requests::PendingRequests;

/// Declares what the clients behind the connection can do.
#[derive(Debug, Clone)]
pub(crate) struct UpstreamHandler {
    pub(crate) desk: Arc<PendingRequests>,
    /// What the one client declares that the connection is for.
    pub(crate) capabilities: Option<ClientCapabilities>,
}

impl ClientHandler for UpstreamHandler {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("switchboard", env!("CARGO_PKG_VERSION"));
        let capabilities = self.capabilities.clone().unwrap_or_else(of_any_client);
        let mut config = ClientConfig::new(capabilities, us);
        // rmcp would name its newest version, which has no `initialize`, in an `initialize`.
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.desk.changed().notify_one();
    }
}

/// What one of many clients may be able to do. Whether the one that calls is, it says when it is asked.
fn of_any_client() -> ClientCapabilities {
    let elicitation = ElicitationCapability::new()
        .with_form(FormElicitationCapability::default())
        .with_url(UrlElicitationCapability::default());
    let mut capabilities = ClientCapabilities::default();
    capabilities.sampling = Some(SamplingCapability::default());
    capabilities.elicitation = Some(elicitation);
    // Not that we tell of changes: whose roots changed would concern one of many callers.
    capabilities.roots = Some(RootsCapabilities::default());
    capabilities
}
