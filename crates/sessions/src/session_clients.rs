//! Which MCP clients belong to which session, for people who look at sessions.

use std::collections::HashMap;

use serde_json::Value;

use crate::client_info::ClientInfo;
use crate::error::SessionError;
use crate::service::SessionService;
use crate::session::SessionKind;

/// An MCP client with a session of the protocol, connected or expected back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionClient {
    pub info: ClientInfo,
    /// The version of the protocol that was agreed on.
    pub protocol_version: String,
}

impl SessionService {
    /// The clients of each session, by the id of the session; with an owner, only those of that owner. Clients of the
    /// stateless era leave nothing behind and are not among them.
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
            let info = ClientInfo::read(state.get("clientInfo").map(Value::to_string).as_deref());
            let version = state.get("version").and_then(Value::as_str).unwrap_or_default();
            let protocol_version = version.to_owned();
            clients.entry(session).or_default().push(SessionClient { info, protocol_version });
        }
        Ok(clients)
    }
}
