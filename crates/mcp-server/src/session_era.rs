//! Sessions of the session era: the handshake, and finding the client of a session id.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_auth::Principal;
use switchboard_model::{Caller, Face};
use switchboard_protocol::{
    LEGACY_VERSIONS, Members, negotiate_legacy, read_client_info, without_tasks,
};
use switchboard_sessions::{Session, SessionError, SessionKind, now_ms, random_text};
use switchboard_store::StoredClient;
use switchboard_view::Scope;

use crate::client::{Client, Remembered};
use crate::gateway::Gateway;
use crate::instructions::instructions;
use crate::list_changed::SeenLists;
use crate::methods;
use crate::request_context::RequestContext;
use crate::stored_client::{remembered, snapshot_of};

/// Whether a client that is looked up goes on with its session or ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stay {
    On,
    /// It ends its session, for which there is always room.
    Off,
}

/// Why there is no client of a session id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoClient {
    /// The id is unknown, or belongs to another owner.
    Unknown,
    /// The client is stored, but the limit of clients in memory is reached.
    Full,
    /// The store failed.
    Store(SessionError),
}

/// Why `initialize` is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotAdmitted {
    /// The limit of clients is reached.
    Full,
    /// The session could not be stored.
    Store(SessionError),
}

/// How long the session of a client lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promise {
    /// It survives a restart: the client is stored before it learns its session id, unless the store takes no writes.
    Survives,
    /// It ends with the connection.
    EndsWithConnection,
}

impl Gateway {
    /// Responds to `initialize`.
    pub(crate) async fn initialize(
        &self,
        params: &Members<'_>,
        principal: &Principal,
        scope: Arc<Scope>,
        session: Option<Arc<Session>>,
        promise: Promise,
    ) -> Result<(Arc<Client>, String), NotAdmitted> {
        let owner = &principal.id;
        self.service.note_access(owner, &principal.access);
        if !self.make_room(owner) {
            return Err(NotAdmitted::Full);
        }
        let version = negotiate_legacy(&params.string("protocolVersion").unwrap_or_default());
        let capabilities = params.get("capabilities").filter(|text| text.starts_with('{'));
        let id: Arc<str> = random_text().into();
        let session =
            session.unwrap_or_else(|| self.sessions().for_client(&id, owner, scope.clone()));
        let granted = self.service.scope_for(&scope, Some(&session), &principal.access);
        let (snapshot, cached) = self.service.snapshot_and_view(&granted, Some(&session));
        let seen = SeenLists::new(&snapshot, &granted, cached);
        let result = json!({
            "protocolVersion": version,
            "capabilities": methods::capabilities(),
            "serverInfo": methods::server_info(),
            "instructions": instructions(&snapshot, &seen.cached.view, &granted),
        });
        // The session era cannot ask for the state of a task.
        let capabilities = without_tasks(capabilities.unwrap_or("{}")).into();
        let info = read_client_info(params.get("clientInfo"));
        let client =
            Client::new(id, principal, version, info, capabilities, scope, session, seen, None);
        match promise {
            Promise::Survives => self.admit_stored(&client).await.map_err(NotAdmitted::Store)?,
            Promise::EndsWithConnection => {
                self.sessions().admit_unstored_client(snapshot_of(&client), &client.session);
            }
        }
        self.clients().insert(client.id.clone(), client.clone());
        // Sends changes that happened before the client was registered.
        self.tell_client(&client);
        Ok((client, result.to_string()))
    }

    /// Stores a client before it learns its session id. While the store takes no writes, the client is served all the same:
    /// otherwise it would have no tools at all. Its session is then written when the store recovers. If the process ends
    /// before that, the client gets 404 and initializes again, as the protocol requires.
    async fn admit_stored(&self, client: &Arc<Client>) -> Result<(), SessionError> {
        let admitted = if self.board.store().outage().is_some() {
            Err(None)
        } else {
            let admitting = self.sessions().admit_client(snapshot_of(client), &client.session);
            admitting.await.map_err(Some)
        };
        match admitted {
            Err(Some(SessionError::Store(failure))) if !failure.is_outage => {
                Err(SessionError::Store(failure))
            }
            Err(None | Some(SessionError::Store(_))) => {
                tracing::warn!(
                    "a client is served although the store takes no writes; its session does not survive a crash yet"
                );
                self.sessions().admit_unstored_client(snapshot_of(client), &client.session);
                Ok(())
            }
            Err(Some(error)) => Err(error),
            Ok(()) => {
                client.note_stored();
                Ok(())
            }
        }
    }

    /// Makes room for one more client: the one that has been idle for longest is removed from memory, and stays stored.
    fn make_room(&self, owner: &Arc<str>) -> bool {
        let plan = self.plan();
        let few = plan.max_sessions.min(plan.max_sessions_per_principal) as usize;
        let clients: Vec<_> = {
            let clients = self.clients();
            if clients.len() < few {
                return true;
            }
            clients.values().cloned().collect()
        };
        let own = clients.iter().filter(|client| client.owner == *owner).count();
        let is_full = clients.len() >= plan.max_sessions as usize;
        if !is_full && own < plan.max_sessions_per_principal as usize {
            return true;
        }
        let candidates = clients.iter().filter(|client| is_full || client.owner == *owner);
        let idle = candidates.filter_map(|client| Some((client.idle_since()?, client)));
        let Some((_, oldest)) = idle.min_by_key(|(since, _)| *since) else { return false };
        self.sessions().writes.note_client(snapshot_of(oldest));
        self.clients().remove(&oldest.id);
        true
    }

    /// The client of a session id if it belongs to the owner, in memory or restored from the store.
    pub(crate) async fn client(
        &self,
        id: &str,
        principal: &Principal,
        stay: Stay,
    ) -> Result<Arc<Client>, NoClient> {
        self.service.note_access(&principal.id, &principal.access);
        let present = self.clients().get(id).cloned();
        match present {
            Some(client) if *client.owner == *principal.id => {
                client.set_access(&principal.access);
                // It may have ended at another board.
                self.service.recent(&client.session).await.map_err(|_| NoClient::Unknown)?;
                Ok(client)
            }
            Some(_) => Err(NoClient::Unknown),
            // Boxed: the future is large, and most clients are in memory.
            None => Box::pin(self.absent_client(id, principal, stay)).await,
        }
    }

    async fn absent_client(
        &self,
        id: &str,
        principal: &Principal,
        stay: Stay,
    ) -> Result<Arc<Client>, NoClient> {
        let stored = self.sessions().writes.store.client(id).await;
        let stored = stored.map_err(|error| NoClient::Store(error.into()))?;
        let is_meant = |stored: &StoredClient| {
            stored.kind == SessionKind::Client.as_str() && *stored.owner == *principal.id
        };
        let stored = stored.filter(is_meant).ok_or(NoClient::Unknown)?;
        let client = self.restore(id, &stored, principal).await?.ok_or(NoClient::Unknown)?;
        // Two requests may restore the client at the same time; the first one wins.
        let present = self.clients().get(id).cloned();
        if stay == Stay::On && present.is_none() && !self.make_room(&client.owner) {
            return Err(NoClient::Full);
        }
        let client = self.clients().entry(client.id.clone()).or_insert(client).clone();
        self.tell_client(&client);
        if !client.subscriptions().is_empty() {
            self.update_servers_soon();
        }
        Ok(client)
    }

    /// Restores a stored client; `None` if its session has ended, it has expired, or its scope is no longer valid.
    async fn restore(
        &self,
        id: &str,
        stored: &StoredClient,
        principal: &Principal,
    ) -> Result<Option<Arc<Client>>, NoClient> {
        let session = match stored.session.as_deref() {
            Some(session) => self.service.session(session, Some(&stored.owner)).await,
            None => return Ok(None),
        };
        match session {
            Ok(session) => Ok(self.revive(id, stored, principal, session)),
            Err(error @ SessionError::Store(_)) => Err(NoClient::Store(error)),
            Err(_) => Ok(None),
        }
    }

    fn revive(
        &self,
        id: &str,
        stored: &StoredClient,
        principal: &Principal,
        session: Arc<Session>,
    ) -> Option<Arc<Client>> {
        let idle = i64::try_from(self.plan().session_idle.as_millis()).unwrap_or(i64::MAX);
        if stored.last_seen_at_ms < now_ms().saturating_sub(idle) {
            return None;
        }
        let state: Value = serde_json::from_str(&stored.state).ok()?;
        let version = state.get("version")?.as_str()?;
        let version = LEGACY_VERSIONS.into_iter().find(|known| *known == version)?;
        let scope = Arc::new(Scope::deserialize(state.get("scope")?).ok()?);
        let id = Arc::<str>::from(id);
        // The configuration may have changed: a scope that is no longer valid is not restored.
        self.board.snapshot().check_scope(&scope).ok()?;
        let granted = self.service.scope_for(&scope, Some(&session), &principal.access);
        let seen = self.seen_lists(&granted, Some(&session));
        let (log_level, subscriptions) = remembered(stored)?;
        let remembered = Remembered {
            log_level,
            subscriptions,
            owed: seen
                .since_fingerprint(state.get("seen").and_then(Value::as_str).unwrap_or_default()),
        };
        let capabilities = state.get("capabilities")?.to_string().into();
        let info = read_client_info(state.get("clientInfo").map(Value::to_string).as_deref());
        let remembered = Some(remembered);
        Some(Client::new(
            id,
            principal,
            version,
            info,
            capabilities,
            scope,
            session,
            seen,
            remembered,
        ))
    }
}

/// The context of a session-era request.
pub(crate) fn context_of(
    gateway: &Gateway,
    client: &Arc<Client>,
    principal: &Principal,
    can_stream: bool,
) -> RequestContext {
    let service = &gateway.service;
    let scope = service.scope_for(&client.scope, Some(&client.session), &principal.access);
    let caller = Caller {
        client: client.info.clone(),
        agent: client.scope.agent.as_deref().map(Arc::from),
        ..principal.caller(Face::Mcp)
    };
    let caller = caller.in_session(client.session.id.clone(), client.session.owner.clone());
    RequestContext {
        caller: Arc::new(caller),
        client: Some(client.clone()),
        session: Some(client.session.clone()),
        scope,
        capabilities: client.capabilities,
        capabilities_text: Some(client.capabilities_text.clone()),
        log_level: client.log_level(),
        can_stream,
    }
}
