//! What servers provide besides tools: prompts, resources, completion, log messages, and subscriptions to updates.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use switchboard_mcp_client::{
    Connection, EventSender, Features, Listed, ListedEntries, RawResult, RequestFailure,
    UpstreamRequest,
};
use switchboard_model::{
    AccountScope, Caller, ConnectError, ConnectErrorKind, Era, JsonText, ServerName, Sharing,
};
use tokio::sync::broadcast;

use crate::board::Board;
use crate::caller_headers::caller_headers;
use crate::connection_pool::{ClientProfile, NoConnection};
use crate::running::{Overdue, Running};
use crate::server::Server;
use crate::sign_in_prompt::SignInPrompt;

/// Time limit of a request that is not a tool call. Tools have their own limits.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// Time limit for telling a server what to report.
const TELLING_LIMIT: Duration = Duration::from_secs(10);
/// How long listing prompts and resources may delay a new connection.
const LISTING_LIMIT: Duration = Duration::from_secs(5);

/// What one server provides besides tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offers {
    pub features: Features,
    pub prompts: Vec<Listed>,
    pub resources: Vec<Listed>,
    pub templates: Vec<Listed>,
    /// Why entries of these lists are unusable and left out.
    pub left_out: Vec<String>,
}

/// A notification of a server that belongs to no request.
#[derive(Debug, Clone)]
pub enum ServerNews {
    ResourceUpdated { server: ServerName, uri: String, params: JsonText },
    Log { server: ServerName, params: JsonText },
}

/// The channel for notifications of all servers.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) news: broadcast::Sender<ServerNews>,
}

impl Outgoing {
    pub(crate) fn new() -> Self {
        // A slow receiver loses the oldest notifications; it can read the lists again.
        Self { news: broadcast::Sender::new(256) }
    }
}

/// Reads what a server provides besides tools. A list that cannot be read now keeps its previous content.
pub(crate) async fn read_offers(
    connection: &Connection,
    server: &ServerName,
    before: &Offers,
) -> Offers {
    let features = connection.features().clone();
    let none = ListedEntries::default;
    let listing = async {
        let prompts =
            async { if features.prompts { connection.list_prompts().await } else { Ok(none()) } };
        let resources = async {
            if features.resources { connection.list_resources().await } else { Ok(none()) }
        };
        let templates = async {
            if features.resources { connection.list_templates().await } else { Ok(none()) }
        };
        tokio::join!(prompts, resources, templates)
    };
    // Boxed: listing three things at once is a large future, and every connection holds one.
    let listed = tokio::time::timeout(LISTING_LIMIT, Box::pin(listing)).await;
    let Ok((prompts, resources, templates)) = listed else {
        tracing::warn!(%server, "prompts and resources could not be listed in time");
        return Offers { features, ..before.clone() };
    };
    let mut left_out = Vec::new();
    let mut or_before =
        |what: &str, listed: Result<ListedEntries, _>, before: &[Listed]| match listed {
            Ok(listed) => {
                for repair in &listed.repairs {
                    tracing::debug!(%server, "a {what} is listed in a repaired form: {repair}");
                }
                left_out.extend(listed.left_out.iter().map(|reason| format!("{what} {reason}")));
                listed.entries
            }
            Err(error) => {
                let error: ConnectError = error;
                tracing::debug!(%server, %error, "{what}s could not be listed");
                before.to_vec()
            }
        };
    let prompts = or_before("prompt", prompts, &before.prompts);
    let resources = or_before("resource", resources, &before.resources);
    let templates = or_before("resource template", templates, &before.templates);
    for reason in left_out.iter().filter(|reason| !before.left_out.contains(reason)) {
        tracing::warn!(%server, "an entry of the server's lists is left out: {reason}");
    }
    Offers { features, prompts, resources, templates, left_out }
}

/// Why a request that is not a tool call failed.
#[derive(Debug)]
pub enum PassFailure {
    /// The server does not exist or cannot be reached.
    Unavailable(String),
    Timeout(String),
    /// The caller lacks what the server wants to know of it; nothing was sent.
    Refused(String),
    /// The owner of the account must sign in first.
    SignIn(Box<SignInPrompt>),
    Server(RequestFailure),
}

impl Board {
    /// Subscribes to the notifications of all servers.
    pub fn news(&self) -> broadcast::Receiver<ServerNews> {
        self.outgoing().news.subscribe()
    }

    /// Forwards a request of a caller to a server of the configuration, or to one that the requesting session attached.
    /// Dropping the future cancels it.
    pub async fn pass(
        &self,
        server: &ServerName,
        caller: &Caller,
        client: &ClientProfile,
        mut ask: UpstreamRequest,
        events: Option<EventSender>,
    ) -> Result<RawResult, PassFailure> {
        let method = ask.method;
        let found = self.published.load().server_for(client.session.as_deref(), server);
        let Some(held) = found.as_ref().and_then(|server| Some((server.clone(), server.hold()?)))
        else {
            let message = format!("MCP server '{server}' is no longer configured");
            return Err(PassFailure::Unavailable(message));
        };
        ask.caller_headers = caller_headers(held.0.spec(), caller).map_err(|refused| {
            let message = format!("{method} was not sent: {refused}; {}", refused.way_out());
            PassFailure::Refused(message)
        })?;
        let client = &ClientProfile { identity: Some(caller.identity.clone()), ..client.clone() };
        let (connection, keeps_it_open) = match held.0.connection_for(client).await {
            Ok(held) => held,
            Err(reason) => {
                if let NoConnection::OfSession(error) = &reason
                    && error.kind == ConnectErrorKind::SignIn
                    && let Some(prompt) = self.accounts.prompt(&held.0, client).await
                {
                    return Err(PassFailure::SignIn(Box::new(prompt)));
                }
                let message = format!("MCP server '{server}' cannot be reached: {reason}");
                return Err(PassFailure::Unavailable(message));
            }
        };
        let event_channel = events.unwrap_or_else(EventSender::deaf);
        let asking = std::pin::pin!(held.0.ask_over(&connection, client, &ask, &event_channel));
        let running = Running { total: REQUEST_LIMIT, longest: REQUEST_LIMIT, silence: None };
        let watched = tokio::select! {
            biased;
            watched = running.watch(asking, &event_channel) => watched,
            () = keeps_it_open.revoked() => {
                let message = format!("the account at MCP server '{server}' was signed out");
                return Err(PassFailure::Unavailable(message));
            }
        };
        match watched {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(failure)) => {
                if matches!(failure, RequestFailure::SignIn(_))
                    && let Some(prompt) = self.accounts.prompt(&held.0, client).await
                {
                    return Err(PassFailure::SignIn(Box::new(prompt)));
                }
                if matches!(failure, RequestFailure::Unavailable(_)) {
                    held.0.suspect();
                }
                Err(PassFailure::Server(failure))
            }
            Err(Overdue::Total | Overdue::Longest | Overdue::Stalled | Overdue::Silent(_)) => {
                held.0.suspect();
                let limit = switchboard_model::render_duration(REQUEST_LIMIT);
                let message =
                    format!("no answer of MCP server '{server}' to {method} within {limit}");
                Err(PassFailure::Timeout(message))
            }
        }
    }

    /// Sets the resources whose updates a server has to report, also after a reconnect. [`Board::tell_wishes`] sends
    /// the change.
    pub fn wish_updates(&self, server: &ServerName, uris: BTreeSet<String>) {
        if let Some(server) = self.published.load().shared_server(server) {
            server.wish_updates(uris);
        }
    }

    /// Sends the set resources and the log level to a server, where it does not have them yet.
    pub fn tell_wishes(&self, server: &ServerName) -> BoxFuture<'static, ()> {
        let found = self.published.load().shared_server(server);
        // Boxed with a concrete type: it is rare and large, and every future that serves requests would hold it.
        async move {
            if let Some(server) = found {
                server.tell(Wish::Logs).await;
                server.tell(Wish::Updates).await;
            }
        }
        .boxed()
    }

    /// Sends only the log level, like [`Board::tell_wishes`].
    pub fn tell_logs(&self, server: &ServerName) -> BoxFuture<'static, ()> {
        let found = self.published.load().shared_server(server);
        async move {
            if let Some(server) = found {
                server.tell(Wish::Logs).await;
                server.tell_log_levels().await;
            }
        }
        .boxed()
    }

    /// Whether each session has a connection of its own to this server.
    pub fn is_per_session(&self, server: &ServerName) -> bool {
        let published = self.published.load();
        published
            .servers
            .get(server)
            .is_some_and(|it| matches!(it.spec().sharing, Sharing::PerSession { .. }))
    }

    /// Whether any server has a connection for this session, or may have an account of it.
    pub fn serves_session(&self, session: &str) -> bool {
        let serves = |server: &Arc<Server>| {
            let scope = server.spec().endpoint.account_scope();
            server.has_session(session) || scope == AccountScope::Session
        };
        self.published.load().servers.values().any(serves)
    }

    /// Closes the servers' connections of a session that has ended.
    pub fn end_session(&self, session: &str) {
        for server in self.published.load().servers.values() {
            server.end_session(session);
        }
        self.end_session_accounts(session);
    }

    /// Notifies the connections of a session that its client's roots have changed.
    pub fn roots_changed(&self, session: &Arc<str>) -> BoxFuture<'static, ()> {
        let servers: Vec<_> = self.published.load().servers.values().cloned().collect();
        let session = session.clone();
        async move {
            for server in servers {
                server.roots_changed(&session).await;
            }
        }
        .boxed()
    }

    /// Sets the level from which servers of the session era send log messages, also after a reconnect.
    pub fn wish_logs(&self, level: &Arc<str>) {
        let published = self.published.load();
        for (_, server) in published.servers.iter().filter(|(name, _)| !name.is_attached()) {
            server.wish_logs(level);
        }
    }
}

/// A kind of report that a server can be told to send.
#[derive(Debug, Clone, Copy)]
enum Wish {
    /// Updates of the resources that clients are subscribed to.
    Updates,
    /// Log messages, from the lowest level that a client has set.
    Logs,
}

/// The kinds of report that were requested and that the server has not confirmed yet.
#[derive(Debug, Default)]
pub(crate) struct UntoldWishes {
    updates: AtomicBool,
    logs: AtomicBool,
}

impl UntoldWishes {
    fn of(&self, wish: Wish) -> &AtomicBool {
        match wish {
            Wish::Updates => &self.updates,
            Wish::Logs => &self.logs,
        }
    }
}

impl Server {
    pub(crate) fn offers(&self) -> Arc<Offers> {
        self.offers.load_full()
    }

    fn wish_updates(&self, uris: BTreeSet<String>) {
        // The supervised connection must not ask for the resources of another account.
        if self.has_owners() {
            return;
        }
        let mut watched = self.watched.lock();
        if *watched != uris {
            *watched = uris;
            self.untold.updates.store(true, Ordering::Relaxed);
        }
    }

    fn wish_logs(&self, level: &Arc<str>) {
        let mut wanted = self.log_level.lock();
        if wanted.as_ref() != Some(level) {
            *wanted = Some(level.clone());
            self.untold.logs.store(true, Ordering::Relaxed);
        }
    }

    /// Repeats the requests for reports on a new connection.
    pub(crate) async fn resume(&self) {
        for wish in [Wish::Logs, Wish::Updates] {
            self.untold.of(wish).store(true, Ordering::Relaxed);
            self.tell(wish).await;
        }
    }

    /// Marks the subscriptions as unsent: a server that rejected them may accept them now.
    pub(crate) fn ask_again(&self) {
        self.untold.updates.store(true, Ordering::Relaxed);
    }

    /// Sends the current request for this kind of report, unless the server has it. Sends one at a time, because two
    /// concurrent messages may arrive in either order.
    async fn tell(&self, wish: Wish) {
        if !self.untold.of(wish).load(Ordering::Relaxed) {
            return;
        }
        let turn = tokio::time::timeout(TELLING_LIMIT, self.telling.acquire());
        // The current sender waits for a server that does not answer.
        let Ok(Ok(_turn)) = turn.await else { return };
        if !self.untold.of(wish).load(Ordering::Relaxed) {
            return;
        }
        let Some((connection, _keeps_it_open)) = self.connection() else { return };
        let telling = async {
            match wish {
                Wish::Updates => self.watch_on(&connection).await,
                Wish::Logs => self.log_on(&connection).await,
            }
        };
        let server = &self.spec().name;
        match tokio::time::timeout(TELLING_LIMIT, telling).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%server, %error, "the server refuses a request to subscribe or to set its log level");
            }
            Err(_elapsed) => {
                tracing::warn!(%server, "the server does not answer a request to subscribe or to set its log level");
            }
        }
    }

    /// The lowest log level that a client has set.
    pub(crate) fn wanted_log_level(&self) -> Option<Arc<str>> {
        self.log_level.lock().clone()
    }

    /// Sends the log level to a further connection.
    pub(crate) async fn tell_log_level(&self, connection: &Connection, level: Option<&str>) {
        let can_log = connection.era() == Era::Legacy && connection.features().logging;
        if let Some(level) = level.filter(|_| can_log) {
            let telling = connection.set_log_level(level);
            if !matches!(tokio::time::timeout(TELLING_LIMIT, telling).await, Ok(Ok(()))) {
                tracing::debug!(server = %self.spec().name, "the log level was not accepted");
            }
        }
    }

    /// Whether this is the supervised connection: confirmations of a replaced connection do not count.
    fn is_current(&self, connection: &Arc<Connection>) -> bool {
        self.connection().is_some_and(|(now, _)| Arc::ptr_eq(&now, connection))
    }

    async fn watch_on(&self, connection: &Arc<Connection>) -> Result<(), ConnectError> {
        let uris = self.watched.lock().clone();
        let told = if connection.features().subscribe {
            connection.watch_resources(&uris).await
        } else {
            Ok(())
        };
        let watched = self.watched.lock();
        if is_heard(&told) && *watched == uris && self.is_current(connection) {
            self.untold.updates.store(false, Ordering::Relaxed);
        }
        told
    }

    async fn log_on(&self, connection: &Arc<Connection>) -> Result<(), ConnectError> {
        let level = self.log_level.lock().clone();
        let can_log = connection.era() == Era::Legacy && connection.features().logging;
        let told = match level.as_deref().filter(|_| can_log) {
            Some(level) => connection.set_log_level(level).await,
            None => Ok(()),
        };
        let wanted = self.log_level.lock();
        if is_heard(&told) && *wanted == level && self.is_current(connection) {
            self.untold.logs.store(false, Ordering::Relaxed);
        }
        told
    }
}

/// Whether the server has answered, even with an error.
fn is_heard(told: &Result<(), ConnectError>) -> bool {
    told.as_ref().err().is_none_or(|error| error.kind == ConnectErrorKind::Protocol)
}
