//! Clients that several boards serve: what this board holds of one follows what another board has stored.

use std::sync::Arc;

use switchboard_sessions::Session;

use crate::client::Client;
use crate::gateway::Gateway;
use crate::stored_client::remembered;

impl Gateway {
    /// Brings the clients of a session to what is stored of them, in the background.
    pub(crate) fn follow_clients_of(&self, session: &Arc<Session>) {
        let Some(gateway) = self.this.upgrade() else { return };
        let clients: Vec<_> = self.clients().values().cloned().collect();
        let of_it = |client: &Arc<Client>| Arc::ptr_eq(&client.session, session);
        for client in clients.into_iter().filter(of_it) {
            let gateway = gateway.clone();
            let following = async move { gateway.follow_client(&client).await };
            self.tasks().spawn(self.stop.clone().run_until_cancelled_owned(following));
        }
    }

    /// Brings a client to what another board has stored of it: its log level, its subscriptions, its end.
    pub(crate) async fn follow_client(&self, client: &Client) {
        if !self.board.store().is_shared() {
            return;
        }
        let stored = match self.board.store().client(&client.id).await {
            Ok(stored) => stored,
            Err(error) => {
                let error = error.in_full();
                tracing::debug!(error, "a client could not be compared with the store");
                return;
            }
        };
        match stored.as_ref().and_then(remembered) {
            Some((level, subscriptions)) => {
                if client.follow(level, subscriptions) {
                    self.update_servers_soon();
                }
                if let Some(level) = level {
                    self.lower_log_level(level, None).await;
                }
            }
            // It was stored, so somebody has deleted it.
            None if stored.is_none() && client.is_stored() => self.drop_client(client),
            None => {}
        }
    }
}
