//! Further connections to a server beside the supervised one.
//!
//! The supervised connection lists tools and serves every client that needs nothing else. A request uses a further
//! connection if its client needs the other protocol era, or if each session has a connection of its own. Such a
//! connection is opened by the first request that needs it and closed after an idle time. When the limit for session
//! connections is reached, the one that was idle for longest is closed to make room. At a server where each owner has an
//! account, every request uses a connection of its owner (`owner_connection`).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use switchboard_mcp_client::{
    Connection, ConnectionClient, EventSender, RawResult, RequestFailure, UpstreamRequest,
};
use switchboard_model::{
    ConnectError, ConnectErrorKind as Kind, Endpoint, Era, EraChoice, GrantOwner, Identity, Sharing,
};
use switchboard_protocol::needs_stateless_era;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::connection_task::ConnectionTask;
use crate::open_connection::{ConnectionKey, Held, OpenConnection, OpeningState};
use crate::server::Server;

/// The client of a request, as far as the choice of a connection depends on it.
#[derive(Debug, Clone, Default)]
pub struct ClientProfile {
    /// The session of the request.
    pub session: Option<Arc<str>>,
    /// Who makes the request. The board sets it from the caller.
    pub identity: Option<Arc<Identity>>,
    /// The program that makes the request, as it names itself.
    pub program: Option<Arc<str>>,
    /// The client's declared capabilities, as JSON.
    pub capabilities: Option<Arc<str>>,
    /// Receives requests of the server that belong to no running call of the session.
    pub events: Option<EventSender>,
    /// The client's protocol era; `None` for a caller that is not an MCP client.
    pub era: Option<Era>,
    /// Whether the client answers server requests: elicitation, sampling or roots.
    pub answers_requests: bool,
    /// Whether the request carries the input that an `input_required` result of the stateless era asked for.
    pub brings_input: bool,
}

/// Why no connection is available for a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoConnection {
    /// The supervised connection is lost and is being reopened.
    #[error("{0}")]
    Reconnecting(String),
    /// The connection of the client's session cannot be opened; its next request tries again.
    #[error("{0}")]
    OfSession(ConnectError),
}

/// The further connections of one server.
#[derive(Debug, Default)]
pub(crate) struct ConnectionPool {
    entries: Mutex<HashMap<ConnectionKey, Pooled>>,
}

#[derive(Debug, Clone)]
struct Pooled {
    progress: watch::Receiver<OpeningState>,
    stop: CancellationToken,
}

impl ConnectionPool {
    fn entries(&self) -> MutexGuard<'_, HashMap<ConnectionKey, Pooled>> {
        self.entries.lock()
    }

    /// Forgets failed eras: after a reconnect, another server may run at the address.
    pub(crate) fn forget_failures(&self) {
        self.entries()
            .retain(|_, pooled| !matches!(*pooled.progress.borrow(), OpeningState::Failed { .. }));
    }

    fn has(&self, key: &ConnectionKey) -> bool {
        self.entries().contains_key(key)
    }

    fn has_session(&self, session: &str) -> bool {
        self.entries().keys().any(|key| key.belongs_to(session))
    }

    /// Whether opening this connection failed recently.
    fn has_failed(&self, key: &ConnectionKey) -> bool {
        self.entries().get(key).is_some_and(|pooled| {
            let progress = pooled.progress.borrow();
            matches!(*progress, OpeningState::Failed { .. }) && !progress.is_stale()
        })
    }

    /// Records for all sessions that the server does not speak the era that one session's connection required.
    pub(crate) fn note_failure(&self, key: &ConnectionKey, error: &ConnectError) {
        if let Some(key) = key.to_shared().filter(|_| error.kind != Kind::SignIn) {
            let failed = OpeningState::Failed { error: error.clone(), at: Instant::now() };
            let (_, progress) = watch::channel(failed);
            let pooled = Pooled { progress, stop: CancellationToken::new() };
            self.entries().entry(key).or_insert(pooled);
        }
    }

    /// Removes the entry, if it is still this one.
    pub(crate) fn remove(&self, key: &ConnectionKey, progress: &watch::Sender<OpeningState>) {
        let mut entries = self.entries();
        if entries.get(key).is_some_and(|it| it.progress.same_channel(&progress.subscribe())) {
            entries.remove(key);
        }
    }
}

impl Server {
    /// The connection for a request of this client.
    pub(crate) async fn connection_for(
        self: &Arc<Self>,
        client: &ClientProfile,
    ) -> Result<Held, NoConnection> {
        if self.has_owners() {
            let opened = Box::pin(self.connection_of_owner(client)).await;
            return opened.map_err(NoConnection::OfSession);
        }
        let supervised = self.connection();
        let era = supervised.as_ref().map(|(connection, _)| connection.era());
        if let Some(key) = self.own_key(client, era) {
            // Boxed, here and below: the future is large, and most requests use the supervised connection.
            let opened = Box::pin(self.pooled(&key, client)).await;
            return opened.map_err(NoConnection::OfSession);
        }
        if let Some(key) = era.and_then(|era| self.other_era_for(client, era, None)) {
            match Box::pin(self.pooled(&key, client)).await {
                Ok(held) => return Ok(held),
                // The server does not speak the other era, or cannot be reached in it now.
                Err(error) => {
                    tracing::debug!(server = %self.spec().name, %error, "served in the other era");
                }
            }
        }
        let (connection, token) = supervised.ok_or_else(|| {
            let reason = self.status().error.map(|error| error.message);
            NoConnection::Reconnecting(reason.unwrap_or_else(|| "it is not connected".into()))
        })?;
        Ok((connection, token.into()))
    }

    /// The client's session, if this server has one connection per session.
    pub(crate) fn own_session(&self, client: &ClientProfile) -> Option<Arc<str>> {
        match self.spec().sharing {
            Sharing::Shared | Sharing::PerOwner { .. } => None,
            Sharing::PerSession { .. } => client.session.clone(),
        }
    }

    /// The key of the session's own connection, if this server has one connection per session.
    fn own_key(&self, client: &ClientProfile, supervised: Option<Era>) -> Option<ConnectionKey> {
        // Over HTTP, a server of the stateless era keeps no state for a connection.
        let is_stateless = self.is_http() && supervised == Some(Era::Modern);
        let session = self.own_session(client).filter(|_| !is_stateless)?;
        Some(ConnectionKey { owner: None, session: Some(session), era: None })
    }

    fn is_http(&self) -> bool {
        matches!(self.spec().endpoint, Endpoint::StreamableHttp { .. })
    }

    /// The key of a connection in the other era, if the client needs that era.
    pub(crate) fn other_era_for(
        &self,
        client: &ClientProfile,
        supervised: Era,
        owner: Option<&GrantOwner>,
    ) -> Option<ConnectionKey> {
        if self.spec().era != EraChoice::Auto {
            return None;
        }
        match supervised {
            // A server of both eras sends requests to a session-era client only over a session of that era. A stdio
            // child speaks one era for its whole life, and the session era was tried first.
            Era::Modern => {
                let is_needed = client.era == Some(Era::Legacy)
                    && client.answers_requests
                    && !client.brings_input;
                let (owner, session) = (owner.cloned(), self.own_session(client));
                let key = ConnectionKey { owner, session, era: Some(Era::Legacy) };
                let is_refused = || key.to_shared().is_some_and(|key| self.pool().has_failed(&key));
                (self.is_http() && is_needed && !is_refused()).then_some(key)
            }
            // The input must reach the era that asked for it.
            Era::Legacy if client.brings_input => {
                let key =
                    ConnectionKey { owner: owner.cloned(), ..ConnectionKey::shared(Era::Modern) };
                Some(key).filter(|key| self.pool().has(key))
            }
            Era::Legacy => None,
        }
    }

    /// Sends a request over a connection. If a tool reports that it cannot ask for input in the session era, the
    /// request is sent again in the stateless era. That is safe: such a tool fails at its first question, before it has
    /// done anything that depends on an answer.
    pub(crate) async fn ask_over(
        self: &Arc<Self>,
        connection: &Connection,
        client: &ClientProfile,
        ask: &UpstreamRequest,
        events: &EventSender,
    ) -> Result<RawResult, RequestFailure> {
        let answer = connection.ask_with(ask, Some(events.clone())).await;
        match &answer {
            Err(RequestFailure::Rpc(error))
                if connection.era() == Era::Legacy
                    && self.spec().era == EraChoice::Auto
                    && needs_stateless_era(error.code, &error.message) =>
            {
                let again = Box::pin(self.ask_in_stateless_era(client, ask, events));
                again.await.unwrap_or(answer)
            }
            Ok(_) | Err(_) => answer,
        }
    }

    async fn ask_in_stateless_era(
        self: &Arc<Self>,
        client: &ClientProfile,
        ask: &UpstreamRequest,
        events: &EventSender,
    ) -> Option<Result<RawResult, RequestFailure>> {
        let owner = if self.has_owners() { Some(self.account_owner(client).ok()?) } else { None };
        // The supervised connection uses another account than this owner's.
        let supervised = self
            .connection()
            .filter(|(connection, _)| owner.is_none() && connection.era() == Era::Modern);
        let (connection, _keeps_it_open) = if let Some((connection, token)) = supervised {
            (connection, token.into())
        } else {
            let session = self.own_session(client);
            let key = ConnectionKey { owner, session, era: Some(Era::Modern) };
            self.pooled(&key, client).await.ok()?
        };
        Some(connection.ask_with(ask, Some(events.clone())).await)
    }

    /// The connection for this key; opened if necessary.
    pub(crate) async fn pooled(
        self: &Arc<Self>,
        key: &ConnectionKey,
        client: &ClientProfile,
    ) -> Result<Held, ConnectError> {
        loop {
            let mut progress = self.enter_pool(key, client)?;
            let seen = progress.wait_for(|now| !matches!(now, OpeningState::Opening)).await;
            match seen.map(|now| now.clone()) {
                Ok(OpeningState::Open(open)) => {
                    if let Some(held) = open.hold() {
                        if let Some(events) =
                            client.events.as_ref().filter(|_| key.session.is_some())
                        {
                            open.connection.listen_for_session(events);
                        }
                        return Ok(held);
                    }
                    // It was closed just now, so its entry is stale.
                }
                Ok(OpeningState::Failed { error, .. }) => return Err(error),
                Ok(OpeningState::Opening) | Err(_) => {
                    let message = "the connection is being closed";
                    return Err(ConnectError::new(Kind::Unreachable, message));
                }
            }
        }
    }

    /// Returns the entry of a key, or creates it and starts to open its connection.
    fn enter_pool(
        self: &Arc<Self>,
        key: &ConnectionKey,
        client: &ClientProfile,
    ) -> Result<watch::Receiver<OpeningState>, ConnectError> {
        let mut entries = self.pool().entries();
        if let Some(pooled) = entries.get(key) {
            if !pooled.stop.is_cancelled() && !pooled.progress.borrow().is_stale() {
                return Ok(pooled.progress.clone());
            }
            entries.remove(key);
        }
        let mut replaces = None;
        let bound = match self.spec().sharing {
            Sharing::PerSession { most, .. } | Sharing::PerOwner { most, .. } => Some(most),
            Sharing::Shared => None,
        };
        if let Some(most) = bound.filter(|_| key.is_own())
            && entries.keys().filter(|key| key.is_own()).count() >= most as usize
        {
            replaces = Some(close_longest_idle(&mut entries).ok_or_else(|| no_room(most))?);
            tracing::info!(
                server = %self.spec().name,
                "another session or user needs a connection; the one that has been idle for longest is closed"
            );
        }
        let (sender, progress) = watch::channel(OpeningState::Opening);
        let stop = self.stop_token().child_token();
        let pooled = Pooled { progress: progress.clone(), stop: stop.clone() };
        entries.insert(key.clone(), pooled);
        drop(entries);
        let client = ConnectionClient {
            capabilities: client.capabilities.clone(),
            events: client.events.clone(),
        };
        let (server, key) = (self.clone(), key.clone());
        let task = ConnectionTask { server, key, client, replaces, progress: sender, stop };
        self.around().tasks.spawn(task.run());
        Ok(progress)
    }

    /// The number of connections that belong to single sessions.
    pub(crate) fn session_connections(&self) -> usize {
        self.pool().entries().keys().filter(|key| key.session.is_some()).count()
    }

    /// Sends the current log level to the further connections.
    pub(crate) async fn tell_log_levels(&self) {
        let open: Vec<_> = {
            let entries = self.pool().entries();
            let now = entries.values().map(|pooled| pooled.progress.borrow().clone());
            now.filter_map(|now| match now {
                OpeningState::Open(open) => Some(open),
                OpeningState::Opening | OpeningState::Failed { .. } => None,
            })
            .collect()
        };
        let level = self.wanted_log_level();
        for open in open {
            let told = {
                let mut told = open.log_level.lock();
                std::mem::replace(&mut *told, level.clone())
            };
            if told != level {
                self.tell_log_level(&open.connection, level.as_deref()).await;
            }
        }
    }

    /// Whether a session has a connection of its own.
    pub(crate) fn has_session(&self, session: &str) -> bool {
        self.pool().has_session(session)
    }

    /// Closes the connections of a session that has ended.
    pub(crate) fn end_session(&self, session: &str) {
        for (key, pooled) in self.pool().entries().iter() {
            if key.belongs_to(session) {
                pooled.stop.cancel();
            }
        }
    }

    /// The owners that have a connection.
    pub(crate) fn connected_owners(&self) -> Vec<GrantOwner> {
        self.pool().entries().keys().filter_map(|key| key.owner.clone()).collect()
    }

    /// Closes the connections of an owner, also those in use: the account must not be used any more.
    pub(crate) fn close_owner(&self, owner: &GrantOwner) {
        for (key, pooled) in self.pool().entries().iter() {
            if key.owner.as_ref() == Some(owner) {
                pooled.stop.cancel();
            }
        }
    }

    /// Notifies the session's own connections that its client's roots have changed.
    pub(crate) async fn roots_changed(&self, session: &Arc<str>) {
        let open: Vec<_> = {
            let entries = self.pool().entries();
            let own = entries.iter().filter(|(key, _)| key.session.as_ref() == Some(session));
            own.filter_map(|(_, pooled)| match &*pooled.progress.borrow() {
                OpeningState::Open(open) => Some(open.clone()),
                OpeningState::Opening | OpeningState::Failed { .. } => None,
            })
            .collect()
        };
        for open in open {
            if let Some((connection, _keeps_it_open)) = open.hold() {
                connection.roots_changed().await;
            }
        }
    }
}

/// Removes and closes the connection of a session that has ended, or else the one that was idle for longest. Returns a
/// receiver that closes together with the connection; `None` if requests run over all of them.
fn close_longest_idle(
    entries: &mut HashMap<ConnectionKey, Pooled>,
) -> Option<watch::Receiver<OpeningState>> {
    let mut idle: Vec<_> = entries
        .iter()
        .filter(|(key, _)| key.is_own())
        .filter_map(|(key, pooled)| match &*pooled.progress.borrow() {
            _ if pooled.stop.is_cancelled() => Some((None, key.clone())),
            OpeningState::Open(open) => Some((Some((open.last_used(), open.clone())), key.clone())),
            OpeningState::Opening | OpeningState::Failed { .. } => None,
        })
        .collect();
    idle.sort_by_key(|(open, _)| open.as_ref().map(|(last_used, _)| *last_used));
    let is_free = |open: &Option<(Instant, Arc<OpenConnection>)>| {
        open.as_ref().is_none_or(|(_, open)| open.close_if_unused())
    };
    let (_, key) = idle.into_iter().find(|(open, _)| is_free(open))?;
    let pooled = entries.remove(&key)?;
    pooled.stop.cancel();
    Some(pooled.progress)
}

fn no_room(most: u32) -> ConnectError {
    let message = format!(
        "{most} sessions or users have a connection of their own to this server, as many as its `max_connections` allows, and all \
         of them are in use"
    );
    ConnectError::new(Kind::Overloaded, message)
        .with_hint("try again when a call has ended")
        .with_operator_hint("raise `max_connections` in the configuration")
}
