//! Which MCP clients belong to which session, for people who look at sessions.

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

/// Sessions whose stateless clients are kept. One more drops the one that was seen first.
const MAX_STATELESS: usize = 4_096;

/// An MCP client of a session: one with a session of the protocol, connected or expected back, or a stateless one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionClient {
    pub info: ClientInfo,
    /// The version of the protocol that was agreed on, or that a stateless client uses.
    pub protocol_version: String,
}

/// The client of the stateless era that was seen last in each session, as it described itself in its request. It is
/// known as long as this process runs.
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

    /// Notes who has sent a request in a session.
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

    /// Forgets the client of a session that has ended.
    pub(crate) fn forget(&self, session: &Session) {
        self.seen().remove(&session.id);
    }
}

impl SessionService {
    /// The clients of each session, by the id of the session; with an owner, only those of that owner. Of the clients of
    /// the stateless era it is the one that was seen last.
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
