//! Our side of a connection: what an upstream server may tell us.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
    ProtocolVersion,
};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::{Notify, mpsc};

use crate::call::Progress;

/// Who waits for the progress of which request.
#[derive(Debug, Default)]
pub(crate) struct ProgressTable(Mutex<HashMap<ProgressToken, mpsc::Sender<Progress>>>);

impl ProgressTable {
    pub(crate) fn insert(&self, token: ProgressToken, listener: mpsc::Sender<Progress>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(token, listener);
    }

    pub(crate) fn remove(&self, token: &ProgressToken) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(token);
    }

    fn listener(&self, token: &ProgressToken) -> Option<mpsc::Sender<Progress>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }
}

/// Passes on what a server says, and declares nothing that we cannot do.
#[derive(Debug, Clone)]
pub(crate) struct UpstreamHandler {
    /// Holds at most one permit, so a storm of notifications is one wake-up.
    pub(crate) changed: Arc<Notify>,
    pub(crate) progress: Arc<ProgressTable>,
}

impl ClientHandler for UpstreamHandler {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("switchboard", env!("CARGO_PKG_VERSION"));
        let mut config = ClientConfig::new(ClientCapabilities::default(), us);
        // rmcp would name its newest version, which has no `initialize`, in an `initialize`.
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        if let Some(listener) = self.progress.listener(&params.progress_token) {
            let progress = Progress {
                progress: params.progress,
                total: params.total,
                message: params.message,
            };
            // A listener that does not keep up has enough signs of life already.
            let _full = listener.try_send(progress);
        }
    }
}
