//! Further connections of a server beside the supervised one.
//!
//! The supervised connection lists tools and serves whoever needs nothing else. A request goes over another one where
//! its client needs the other protocol era, or where each session has a connection of its own. These connections are
//! opened by the first request that needs them, end after a while without use, and are opened again by the next one.
//! Where sessions have as many as they may, the one that has been idle for longest is closed for the next one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use switchboard_mcp_client::{
    ConnectError, ConnectErrorKind as Kind, Connection, ConnectionClient, EventSender, RawResult,
    RequestFailure, UpstreamRequest,
};
use switchboard_model::{Endpoint, Era, EraChoice, Sharing};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::connection_task::ConnectionTask;
use crate::open_connection::{Held, OpenConnection};
use crate::supervisor::Server;

/// How long an era is not tried again after the server could not be reached in it.
const RETRY_PAUSE: Duration = Duration::from_mins(1);

/// The client behind a request, as far as it decides which connection the request takes.
#[derive(Debug, Clone, Default)]
pub struct ClientProfile {
    /// The session in which it asks.
    pub session: Option<Arc<str>>,
    /// What it declares, as JSON.
    pub capabilities: Option<Arc<str>>,
    /// Where requests of the server go that belong to no running call of the session.
    pub events: Option<EventSender>,
    /// The era that it speaks; `None` for a caller that is no MCP client.
    pub era: Option<Era>,
    /// Whether it answers requests of a server: elicitation, sampling or roots.
    pub answers_requests: bool,
    /// Whether the request brings what an `input_required` of the stateless era asked for.
    pub brings_input: bool,
}

/// Why a request has no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoConnection {
    /// The supervised connection is lost and is being opened again.
    #[error("{0}")]
    Reconnecting(String),
    /// The connection of the client's session cannot be opened; its next request tries again.
    #[error("{0}")]
    OfSession(String),
}

/// Which further connection is meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionKey {
    /// The session that it belongs to; `None` for one that all clients share.
    pub(crate) session: Option<Arc<str>>,
    /// The era, where it is not for the server to say.
    pub(crate) era: Option<Era>,
}

impl ConnectionKey {
    fn shared(era: Era) -> Self {
        Self { session: None, era: Some(era) }
    }

    /// The same for all clients, where it is one of a session in an era that is not for the server to say.
    fn to_shared(&self) -> Option<Self> {
        self.session.as_ref().and(self.era).map(Self::shared)
    }
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

/// How far the opening of a connection is.
#[derive(Debug, Clone)]
pub(crate) enum OpeningState {
    Opening,
    Open(Arc<OpenConnection>),
    Failed { error: ConnectError, at: Instant },
}

impl OpeningState {
    /// Whether the server is to be asked again: it may be back, where it was not there at all.
    fn is_stale(&self) -> bool {
        match self {
            Self::Opening => false,
            Self::Open(open) => open.users.is_closed() || open.connection.is_closed(),
            Self::Failed { error, at } => {
                error.kind != Kind::Protocol && at.elapsed() >= RETRY_PAUSE
            }
        }
    }
}

impl ConnectionPool {
    fn entries(&self) -> MutexGuard<'_, HashMap<ConnectionKey, Pooled>> {
        self.entries.lock()
    }

    /// Forgets which eras were refused: the server behind the address may be another one by now.
    pub(crate) fn forget_failures(&self) {
        self.entries()
            .retain(|_, pooled| !matches!(*pooled.progress.borrow(), OpeningState::Failed { .. }));
    }

    fn has(&self, key: &ConnectionKey) -> bool {
        self.entries().contains_key(key)
    }

    fn has_session(&self, session: &str) -> bool {
        self.entries().keys().any(|key| key.session.as_deref() == Some(session))
    }

    /// Whether the server could not be reached in this way a while ago.
    fn has_failed(&self, key: &ConnectionKey) -> bool {
        self.entries().get(key).is_some_and(|pooled| {
            let progress = pooled.progress.borrow();
            matches!(*progress, OpeningState::Failed { .. }) && !progress.is_stale()
        })
    }

    /// Remembers for all sessions that the server does not speak the era of a connection that one of them asked for.
    pub(crate) fn note_failure(&self, key: &ConnectionKey, error: &ConnectError) {
        if let Some(key) = key.to_shared() {
            let failed = OpeningState::Failed { error: error.clone(), at: Instant::now() };
            let (_, progress) = watch::channel(failed);
            let pooled = Pooled { progress, stop: CancellationToken::new() };
            self.entries().entry(key).or_insert(pooled);
        }
    }

    /// Takes the entry out, if it still is this one.
    pub(crate) fn remove(&self, key: &ConnectionKey, progress: &watch::Sender<OpeningState>) {
        let mut entries = self.entries();
        if entries.get(key).is_some_and(|it| it.progress.same_channel(&progress.subscribe())) {
            entries.remove(key);
        }
    }
}

impl Server {
    /// The connection that a request of this client takes.
    pub(crate) async fn connection_for(
        self: &Arc<Self>,
        client: &ClientProfile,
    ) -> Result<Held, NoConnection> {
        let supervised = self.connection();
        let era = supervised.as_ref().map(|(connection, _)| connection.era());
        if let Some(key) = self.own_key(client, era) {
            // Boxed, here and below: it is large, and most requests take the supervised connection.
            let opened = Box::pin(self.pooled(&key, client)).await;
            return opened.map_err(|error| NoConnection::OfSession(error.message));
        }
        if let Some(key) = era.and_then(|era| self.other_era_for(client, era)) {
            match Box::pin(self.pooled(&key, client)).await {
                Ok(held) => return Ok(held),
                // The server does not speak the other era, or not now.
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

    /// The client's session, where each session has a connection of its own.
    fn own_session(&self, client: &ClientProfile) -> Option<Arc<str>> {
        match self.spec().sharing {
            Sharing::Shared => None,
            Sharing::PerSession { .. } => client.session.clone(),
        }
    }

    /// The connection of the client's own session, where each session has one.
    fn own_key(&self, client: &ClientProfile, supervised: Option<Era>) -> Option<ConnectionKey> {
        // Over HTTP, a server of the stateless era keeps nothing for a connection.
        let is_stateless = self.is_http() && supervised == Some(Era::Modern);
        let session = self.own_session(client).filter(|_| !is_stateless)?;
        Some(ConnectionKey { session: Some(session), era: None })
    }

    fn is_http(&self) -> bool {
        matches!(self.spec().endpoint, Endpoint::StreamableHttp { .. })
    }

    /// Whether a client needs another era than that of the supervised connection.
    fn other_era_for(&self, client: &ClientProfile, supervised: Era) -> Option<ConnectionKey> {
        if self.spec().era != EraChoice::Auto {
            return None;
        }
        match supervised {
            // Servers that speak both eras ask a client of the session era only over a session of that era. A child
            // speaks one era for its whole life, and was asked for this one first.
            Era::Modern => {
                let is_needed = client.era == Some(Era::Legacy)
                    && client.answers_requests
                    && !client.brings_input;
                let session = self.own_session(client);
                let key = ConnectionKey { session, era: Some(Era::Legacy) };
                let is_refused = || key.to_shared().is_some_and(|key| self.pool().has_failed(&key));
                (self.is_http() && is_needed && !is_refused()).then_some(key)
            }
            // An answer goes to where the question came from.
            Era::Legacy if client.brings_input => {
                Some(ConnectionKey::shared(Era::Modern)).filter(|key| self.pool().has(key))
            }
            Era::Legacy => None,
        }
    }

    /// Asks over a connection. A tool that cannot ask in the session era is asked again in the stateless one: it said
    /// so in the place of its first question, and what comes after its questions has not been done.
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
                    && is_about_input_required(&error.message) =>
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
        let supervised =
            self.connection().filter(|(connection, _)| connection.era() == Era::Modern);
        let (connection, _keeps_it_open) = if let Some((connection, token)) = supervised {
            (connection, token.into())
        } else {
            let key = ConnectionKey { session: self.own_session(client), era: Some(Era::Modern) };
            self.pooled(&key, client).await.ok()?
        };
        Some(connection.ask_with(ask, Some(events.clone())).await)
    }

    /// The connection of this key, opened if need be.
    async fn pooled(
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
                    // It was closed this moment: its entry is stale now.
                }
                Ok(OpeningState::Failed { error, .. }) => return Err(error),
                Ok(OpeningState::Opening) | Err(_) => {
                    let message = "the connection is being closed".to_owned();
                    return Err(ConnectError { kind: Kind::Unreachable, message, hint: None });
                }
            }
        }
    }

    /// Finds the entry of a key, or makes it and starts to open its connection.
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
        if let (Sharing::PerSession { most, .. }, Some(_)) = (self.spec().sharing, &key.session)
            && entries.keys().filter(|key| key.session.is_some()).count() >= most as usize
        {
            replaces = Some(close_longest_idle(&mut entries).ok_or_else(|| no_room(most))?);
            tracing::info!(
                server = %self.spec().name,
                "another session needs a connection; the one that has been idle for longest is closed"
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

    /// How many connections belong to one session.
    pub(crate) fn session_connections(&self) -> usize {
        self.pool().entries().keys().filter(|key| key.session.is_some()).count()
    }

    /// Tells the further connections from which level on the server is to log.
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

    /// Ends what belongs to a session that has ended.
    pub(crate) fn end_session(&self, session: &str) {
        for (key, pooled) in self.pool().entries().iter() {
            if key.session.as_deref() == Some(session) {
                pooled.stop.cancel();
            }
        }
    }

    /// Tells the session's own connections that the roots of its client have changed.
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

/// Takes the connection of a session out that has ended, else the one that has been idle for longest, and closes it.
/// Gives what tells when it is closed; `None` while requests run over all of them.
fn close_longest_idle(
    entries: &mut HashMap<ConnectionKey, Pooled>,
) -> Option<watch::Receiver<OpeningState>> {
    let mut idle: Vec<_> = entries
        .iter()
        .filter(|(key, _)| key.session.is_some())
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
    ConnectError {
        kind: Kind::Overloaded,
        message: format!(
            "{most} sessions have a connection of their own to this server, as many as its `max_connections` allows, \
             and all of them are in use; try again when a call has ended, or raise `max_connections` in the \
             configuration"
        ),
        hint: None,
    }
}

/// Whether a server of the session era says that its tool asks in the way of the stateless era.
fn is_about_input_required(message: &str) -> bool {
    let message = message.to_ascii_lowercase().replace(['_', '-', ' '], "");
    message.contains("inputrequired")
}
