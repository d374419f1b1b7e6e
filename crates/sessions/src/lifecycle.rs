//! Creates, finds, changes and ends sessions, and attaches their servers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use switchboard_model::{AttachedServer, HttpTransport, ServerName};
use switchboard_runtime::{AttachError, ServerStatus};
use url::Url;

use crate::change::Change;
use crate::error::SessionError;
use crate::service::SessionService;
use crate::session::{OwnServer, Session};

/// How long a session that is loaded from the store waits for its servers before their tools count as removed.
const WAIT_FOR_SERVERS: Duration = Duration::from_secs(3);

/// How long a change of a session waits by default for the servers that it attaches.
pub const ATTACH_WAIT: Duration = Duration::from_secs(15);

impl SessionService {
    /// Creates a session within the configured limits. Returns when the servers that it attaches have connected or failed,
    /// or after `wait`.
    pub async fn new_session(
        &self,
        name: Option<&str>,
        owner: &str,
        change: Change,
        wait: Duration,
    ) -> Result<Arc<Session>, SessionError> {
        let limit = self.board.plan().gateway.max_sessions_per_principal as usize;
        let servers = change.own_servers.clone();
        for (name, server) in &servers {
            // Invalid servers are refused before anything is created.
            server.as_ref().map(|server| attached(name, server)).transpose()?;
        }
        if let Some(held) = name.and_then(|name| self.sessions.in_memory(name)) {
            // If it has ended at another board, its name is free.
            let _ended = self.newest(&held).await;
        }
        let session = self.sessions.create(name, owner, limit, change).await?;
        if let Err(error) = self.attach(&session.id, &servers).await {
            if let Err(error) = self.end_session(&session).await {
                tracing::warn!(
                    session = %session.id, %error,
                    "the servers of a new session could not be attached, and removing the session failed: it stays"
                );
            }
            return Err(error);
        }
        self.wait_for_attached(&session, &servers, wait).await;
        Ok(session)
    }

    /// The session of this id if it belongs to `owner`, or to any owner for `None`.
    pub async fn session(
        &self,
        id: &str,
        owner: Option<&str>,
    ) -> Result<Arc<Session>, SessionError> {
        let sleeping = self.sessions.servers_of_sleeping(id).await?;
        if !sleeping.is_empty() {
            let servers = sleeping.into_iter().map(|(name, own)| (name, Some(own))).collect();
            if let Err(error) = self.attach(id, &servers).await {
                tracing::warn!("a server of a session could not be connected again: {error}");
            }
            self.wait_for_servers(id).await;
        }
        let session = self.sessions.of(id, owner).await?;
        self.recent(&session).await?;
        Ok(session)
    }

    /// Changes a session atomically and notifies the observers. Returns when the servers that the change attaches have
    /// connected or failed, or after `wait`; the next turn then has their tools.
    pub async fn change_session(
        &self,
        session: &Arc<Session>,
        expected: Option<u64>,
        change: Change,
        wait: Duration,
    ) -> Result<(), SessionError> {
        let servers = change.own_servers.clone();
        self.newest(session).await?;
        let before = session.now().draft.servers;
        self.attach(&session.id, &servers).await?;
        let mut attempts = 0;
        let changed = loop {
            match self.sessions.change(session, expected, change.clone()).await {
                Err(SessionError::Contended)
                    if self.may_try_again(session, &mut attempts).await? => {}
                done => break done,
            }
        };
        if let Err(error) = changed {
            self.put_back(session, &servers, &before).await;
            return Err(error);
        }
        for (name, _) in servers.iter().filter(|(_, server)| server.is_none()) {
            self.board.detach_server(&session.id, &ServerName::new(name.as_str())).await;
        }
        self.wait_for_attached(session, &servers, wait).await;
        self.session_changed(session);
        Ok(())
    }

    /// Ends a session and its clients. If that cannot be stored, the session goes on.
    pub async fn end_session(&self, session: &Arc<Session>) -> Result<(), SessionError> {
        self.end_stored(session, self.clients_of(session)).await?;
        self.release_session(session).await;
        Ok(())
    }

    /// Deletes a session and these clients of it, and revokes the tokens of its accounts.
    pub async fn end_stored(
        &self,
        session: &Arc<Session>,
        clients: Vec<String>,
    ) -> Result<(), SessionError> {
        let accounts = self.board.accounts_of_session(&session.id).await;
        self.sessions.end(session, clients).await?;
        self.board.revoke_accounts(accounts);
        Ok(())
    }

    /// Releases the resources of an ended session: its clients, its server processes and its attached servers.
    pub async fn release_session(&self, session: &Arc<Session>) {
        self.session_ended(session);
        self.stateless_clients.forget(session);
        self.board.end_session(&session.id);
        if session.has_servers() {
            self.board.detach_all(&session.id).await;
        }
    }

    /// The servers that a session has attached, with their connection status.
    pub fn attached(&self, session: &str) -> Vec<(AttachedServer, ServerStatus)> {
        self.board.attached(session)
    }

    /// Waits until the attached servers have connected or failed, and brings the session to the resulting catalog.
    async fn wait_for_attached(
        &self,
        session: &Arc<Session>,
        servers: &BTreeMap<String, Option<OwnServer>>,
        wait: Duration,
    ) {
        if servers.values().all(Option::is_none) {
            return;
        }
        let is_new = |name: &ServerName| servers.get(name.as_str()).is_some_and(Option::is_some);
        let settled = self.board.attached_settled(&session.id, is_new);
        if !wait.is_zero() && tokio::time::timeout(wait, settled).await.is_err() {
            tracing::debug!("a server of a session takes long to connect");
        }
        self.sessions.view_of(session);
    }

    /// Connects the servers that a session attaches.
    pub(crate) async fn attach(
        &self,
        session: &str,
        servers: &BTreeMap<String, Option<OwnServer>>,
    ) -> Result<(), SessionError> {
        for (name, server) in servers {
            let Some(server) = server else { continue };
            let attaching = self.board.attach_server(session, attached(name, server)?);
            attaching.await.map_err(|error| refused(name, &error))?;
        }
        Ok(())
    }

    /// Restores the attached servers after a refused change.
    async fn put_back(
        &self,
        session: &Session,
        tried: &BTreeMap<String, Option<OwnServer>>,
        before: &BTreeMap<String, OwnServer>,
    ) {
        for (name, _) in tried.iter().filter(|(_, server)| server.is_some()) {
            match before.get(name) {
                Some(old) => {
                    let old = BTreeMap::from([(name.clone(), Some(old.clone()))]);
                    // The same server was accepted before, so this does not fail.
                    let _refused = self.attach(&session.id, &old).await;
                }
                None => {
                    self.board.detach_server(&session.id, &ServerName::new(name.as_str())).await;
                }
            }
        }
    }

    /// Waits until the servers of a session have connected or failed, for at most `WAIT_FOR_SERVERS`.
    pub(crate) async fn wait_for_servers(&self, session: &str) {
        let settled = self.board.attached_settled(session, |_| true);
        if tokio::time::timeout(WAIT_FOR_SERVERS, settled).await.is_err() {
            tracing::debug!("servers of a session take long");
        }
    }
}

fn attached(name: &str, own: &OwnServer) -> Result<AttachedServer, SessionError> {
    let url = Url::parse(&own.url).map_err(|error| {
        SessionError::Refused(format!("the URL of server '{name}' is invalid: {error}"))
            .at("own_servers", Some(name))
    })?;
    let mut server = AttachedServer::new(name, url);
    server.headers = own.headers.clone();
    if own.is_sse {
        server.transport = HttpTransport::Sse;
    }
    Ok(server)
}

fn refused(name: &str, error: &AttachError) -> SessionError {
    let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    SessionError::Refused(format!("{error}{hint}")).at("own_servers", Some(name))
}
