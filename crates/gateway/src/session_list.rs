//! Session endpoints: made, listed and ended by people.

use std::sync::Arc;

use switchboard_store::StoredSession;

use crate::gateway::{Gateway, random_text};
use crate::keeper::now_ms;
use crate::session::{Session, SessionKind};

/// Why a session cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionError {
    Unknown(String),
    Taken(String),
    BadName(String),
    TooMany,
    Store(String),
}

impl std::fmt::Display for SessionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown(id) => write!(f, "there is no session '{id}'"),
            Self::Taken(id) => write!(f, "there is a session '{id}' already"),
            Self::BadName(id) => write!(
                f,
                "'{id}' cannot name a session: 1 to 64 letters, digits, `_` and `-`, the first a letter or digit"
            ),
            Self::TooMany => f.write_str("there are too many sessions; end some first"),
            Self::Store(error) => f.write_str(error),
        }
    }
}

impl std::error::Error for SessionError {}

/// A session endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    pub id: String,
    pub owner: String,
    /// Toolsets that are switched on.
    pub enabled: Vec<String>,
    pub created_at_ms: i64,
}

impl Gateway {
    /// Makes a session endpoint, `/mcp/sessions/{id}`. Without a name it gets one that cannot be guessed.
    pub async fn new_session(
        &self,
        name: Option<&str>,
        owner: &str,
    ) -> Result<SessionInfo, SessionError> {
        let id = name.map_or_else(random_text, str::to_owned);
        if name.is_some() && !switchboard_model::ServerName::is_valid(&id) {
            return Err(SessionError::BadName(id));
        }
        let stored = self.stored(&id).await?;
        if stored.is_some() {
            return Err(SessionError::Taken(id));
        }
        let own = self.list_sessions(Some(owner)).await?.len();
        if own >= self.plan().max_sessions_per_principal as usize {
            return Err(SessionError::TooMany);
        }
        let front = self.front.load();
        let first = self.first_sets(&front, &self.open_scope);
        let session = Session::new(
            id.as_str().into(),
            SessionKind::Endpoint,
            owner.into(),
            first.iter().cloned().collect(),
            now_ms(),
        );
        self.keeper.put_session(&session);
        self.keeper.flush().await;
        let info = SessionInfo {
            id,
            owner: owner.to_owned(),
            enabled: session.enabled().iter().cloned().collect(),
            created_at_ms: session.created_at_ms,
        };
        self.sessions().insert(session.id.clone(), session);
        Ok(info)
    }

    /// All session endpoints, or those of one owner.
    pub async fn list_sessions(
        &self,
        owner: Option<&str>,
    ) -> Result<Vec<SessionInfo>, SessionError> {
        self.keeper.flush().await;
        let kind = Some(SessionKind::Endpoint.as_str());
        let stored = self.keeper.store.sessions(owner, kind).await;
        let stored = stored.map_err(|error| SessionError::Store(error.to_string()))?;
        Ok(stored.iter().map(info_of).collect())
    }

    /// Ends a session endpoint; its clients are told that it is gone.
    pub async fn end_session(&self, id: &str, owner: Option<&str>) -> Result<(), SessionError> {
        let stored = self.stored(id).await?;
        let is_own = |stored: &StoredSession| owner.is_none_or(|owner| stored.owner == owner);
        if !stored.as_ref().is_some_and(is_own) {
            return Err(SessionError::Unknown(id.to_owned()));
        }
        self.sessions().remove(id);
        self.keeper.delete(id);
        let clients: Vec<_> = self.clients().values().cloned().collect();
        for client in clients.iter().filter(|client| *client.session.id == *id) {
            self.forget(client);
        }
        self.keeper.flush().await;
        Ok(())
    }

    async fn stored(&self, id: &str) -> Result<Option<StoredSession>, SessionError> {
        self.keeper.flush().await;
        let stored = self.keeper.store.session(id).await;
        let stored = stored.map_err(|error| SessionError::Store(error.to_string()))?;
        Ok(stored.filter(|stored| stored.kind == SessionKind::Endpoint.as_str()))
    }

    /// The session of an endpoint, if it belongs to who asks.
    pub(crate) async fn endpoint_session(&self, id: &str, owner: &str) -> Option<Arc<Session>> {
        let present = self.sessions().get(id).cloned();
        if let Some(session) = present {
            return (*session.owner == *owner).then_some(session);
        }
        let stored = self.stored(id).await.ok().flatten().filter(|stored| stored.owner == owner)?;
        let session = revived(&stored, SessionKind::Endpoint);
        Some(self.sessions().entry(session.id.clone()).or_insert(session).clone())
    }

    /// The state that everybody with one credential shares, where the configuration wants that.
    pub(crate) async fn principal_session(&self, owner: &Arc<str>) -> Arc<Session> {
        let id: Arc<str> = format!("principal:{owner}").into();
        let present = self.sessions().get(&id).cloned();
        if let Some(session) = present {
            return session;
        }
        self.keeper.flush().await;
        let stored = self.keeper.store.session(&id).await.ok().flatten();
        let session = stored.map_or_else(
            || {
                let front = self.front.load();
                let first = self.first_sets(&front, &self.open_scope).iter().cloned().collect();
                Session::new(id.clone(), SessionKind::Principal, owner.clone(), first, now_ms())
            },
            |stored| revived(&stored, SessionKind::Principal),
        );
        self.sessions().entry(id).or_insert(session).clone()
    }
}

fn info_of(stored: &StoredSession) -> SessionInfo {
    SessionInfo {
        id: stored.id.clone(),
        owner: stored.owner.clone(),
        enabled: enabled_of(stored),
        created_at_ms: stored.created_at_ms,
    }
}

fn enabled_of(stored: &StoredSession) -> Vec<String> {
    let state: serde_json::Value = serde_json::from_str(&stored.state).unwrap_or_default();
    let enabled = state.get("enabled").and_then(serde_json::Value::as_array).into_iter().flatten();
    enabled.filter_map(|name| name.as_str()).map(str::to_owned).collect()
}

fn revived(stored: &StoredSession, kind: SessionKind) -> Arc<Session> {
    let enabled = enabled_of(stored).into_iter().collect();
    let (id, owner) = (stored.id.as_str().into(), stored.owner.as_str().into());
    Session::new(id, kind, owner, enabled, stored.created_at_ms)
}
