//! Servers that were not connected when a chat began, and whose tools come later.

use std::sync::Arc;

use futures::future;
use switchboard_model::{ServerName, ServerState};
use switchboard_runtime::{Board, ServerStatus};
use tokio::sync::watch;

use crate::session_backend::SessionBackend;

/// The servers of a chat's own board that are not connected yet.
pub(super) struct LateServers {
    board: Arc<Board>,
    versions: watch::Receiver<u64>,
    awaited: Vec<ServerName>,
}

impl LateServers {
    /// `None` if there is none, or if a running instance has the servers.
    pub(super) fn of(backend: &SessionBackend) -> Option<Self> {
        let SessionBackend::Embedded(board, _, _) = backend else { return None };
        let versions = board.versions();
        let servers = board.servers().into_iter();
        let awaited: Vec<_> = servers
            .filter(|(_, status)| status.state != ServerState::Ready)
            .map(|(_, status)| status.name)
            .collect();
        (!awaited.is_empty()).then(|| Self { board: board.clone(), versions, awaited })
    }

    /// The awaited servers that are connected by now, and whose tools are in the catalog. They are not awaited any more.
    fn take_connected(&mut self) -> Vec<ServerStatus> {
        let catalog = self.board.catalog();
        let is_published = |status: &ServerStatus| {
            status.offered == 0 || catalog.tools().iter().any(|it| *it.name.server() == status.name)
        };
        let servers = self.board.servers().into_iter().map(|(_, status)| status);
        let connected: Vec<_> = servers
            .filter(|status| status.state == ServerState::Ready && is_published(status))
            .filter(|status| self.awaited.contains(&status.name))
            .collect();
        self.awaited.retain(|name| connected.iter().all(|status| status.name != *name));
        connected
    }
}

/// Waits until servers have connected, and returns a sentence about each. Cancel safe.
pub(super) async fn connected(late: &mut Option<LateServers>) -> Vec<String> {
    let Some(late) = late else { return future::pending().await };
    loop {
        let connected = late.take_connected();
        if !connected.is_empty() {
            let text = |status: ServerStatus| {
                format!("MCP server '{}' is connected: {} tools", status.name, status.offered)
            };
            return connected.into_iter().map(text).collect();
        }
        if late.awaited.is_empty() || late.versions.changed().await.is_err() {
            return future::pending().await;
        }
    }
}
