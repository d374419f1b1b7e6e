//! The MCP clients of each session, for the HTTP API and the command line.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use switchboard_model::ClientInfo;
use switchboard_protocol::read_client_info;
use tokio::time::Instant;

use crate::error::SessionError;
use crate::service::SessionService;
use crate::session::{Session, SessionKind};

/// The maximum number of sessions whose stateless client is kept; beyond it, the one that was seen first is dropped.
const MAX_STATELESS: usize = 4_096;

/// An MCP client of a session: of the session era, connected or stored, or of the stateless era.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionClient {
    pub info: ClientInfo,
    /// The negotiated protocol version, or the one of the last stateless request.
    pub protocol_version: String,
}

/// For each session, the stateless-era client that was seen last, as it described itself. Kept in memory only.
#[derive(Debug, Default)]
pub struct StatelessClients(Mutex<HashMap<Arc<str>, SeenClient>>);

#[derive(Debug)]
struct SeenClient {
    owner: Arc<str>,
    client: SessionClient,
    since: Instant,
}

impl StatelessClients {
    fn seen(&self) -> MutexGuard<'_, HashMap<Arc<str>, SeenClient>> {
        self.0.lock()
    }

    /// Notes the client of a stateless request in a session.
    pub fn note(&self, session: &Session, info: &ClientInfo, protocol_version: &str) {
        let mut seen = self.seen();
        let is_same = |it: &SeenClient| {
            it.client.info == *info && it.client.protocol_version == protocol_version
        };
        if seen.get(&session.id).is_some_and(is_same) {
            return;
        }
        if seen.len() >= MAX_STATELESS && !seen.contains_key(&session.id) {
            let first = seen.iter().min_by_key(|(_, it)| it.since).map(|(id, _)| id.clone());
            first.and_then(|id| seen.remove(&id));
        }
        let client =
            SessionClient { info: info.clone(), protocol_version: protocol_version.to_owned() };
        let it = SeenClient { owner: session.owner.clone(), client, since: Instant::now() };
        seen.insert(session.id.clone(), it);
    }

    /// Removes the client of an ended session.
    pub(crate) fn forget(&self, session: &Session) {
        self.seen().remove(&session.id);
    }
}

impl SessionService {
    /// The clients of each session by session id, for one owner or for all. Of stateless-era clients it has the one that was
    /// seen last.
    pub async fn session_clients(
        &self,
        owner: Option<&str>,
    ) -> Result<HashMap<String, Vec<SessionClient>>, SessionError> {
        let writes = &self.sessions.writes;
        writes.flush().await;
        let stored = writes.store.clients(owner, Some(SessionKind::Client.as_str())).await?;
        let mut clients: HashMap<String, Vec<SessionClient>> = HashMap::new();
        for client in stored {
            let Some(session) = client.session else { continue };
            let state: Value = serde_json::from_str(&client.state).unwrap_or_default();
            let info = read_client_info(state.get("clientInfo").map(Value::to_string).as_deref());
            let version = state.get("version").and_then(Value::as_str).unwrap_or_default();
            let protocol_version = version.to_owned();
            clients.entry(session).or_default().push(SessionClient { info, protocol_version });
        }
        for (session, it) in self.stateless_clients.seen().iter() {
            if owner.is_none_or(|owner| *it.owner == *owner) {
                clients.entry(session.to_string()).or_default().push(it.client.clone());
            }
        }
        Ok(clients)
    }
}
