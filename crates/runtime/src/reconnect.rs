//! Connects a server anew, or reads its lists again, on request.

use std::time::Duration;

use switchboard_model::ServerName;

use crate::board::Board;
use crate::server::ServerStatus;

/// How long a request waits for the new connection. The attempt goes on in the background after that.
const WAIT: Duration = Duration::from_secs(30);

impl Board {
    /// Makes a configured server list its tools, prompts and resources again. Returns whether there is such a server.
    pub fn refresh_server(&self, name: &ServerName) -> bool {
        let server = self.published.load().servers.get(name).cloned();
        let is_known = server.is_some();
        if let Some(server) = server {
            server.suspect();
            server.suspect_offers();
        }
        is_known
    }

    /// Connects a configured server anew: now, and not after the pause of the next retry. Running calls end on the old
    /// connection. An attempt that runs already counts. Returns the status after the attempt, or after half a minute;
    /// `None` if there is no such server.
    pub async fn reconnect(&self, name: &ServerName) -> Option<ServerStatus> {
        let server = self.published.load().servers.get(name).cloned()?;
        let connected = async {
            server.reconnect().await;
            // The catalog has the tools of the new list then.
            self.reconcile().await;
        };
        let _still_connecting = tokio::time::timeout(WAIT, connected).await;
        Some(server.status())
    }
}
