//! What servers offer beside tools: prompts, resources, completion, log messages.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use switchboard_mcp::{Ask, AskFailure, Connection, Ear, Features, Listed, RawResult};
use switchboard_model::{JsonText, ServerName};
use tokio::sync::{broadcast, watch};

use crate::board::Board;
use crate::running::{Overdue, Running};
use crate::supervisor::Server;

/// How long a request that is no tool call may take. Tools have limits of their own.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// How long the lists of prompts and resources may hold up a connection.
const LISTING_LIMIT: Duration = Duration::from_secs(5);

/// What one server offers beside tools.
#[derive(Debug, Default)]
pub struct Offers {
    pub features: Features,
    pub prompts: Vec<Listed>,
    pub resources: Vec<Listed>,
    pub templates: Vec<Listed>,
}

/// Something that a server said to nobody in particular.
#[derive(Debug, Clone)]
pub enum ServerNews {
    ResourceUpdated { server: ServerName, uri: String, params: JsonText },
    Log { server: ServerName, params: JsonText },
}

/// Where supervisors put what they hear.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    /// Counts changes of offers.
    pub(crate) offers: watch::Sender<u64>,
    pub(crate) news: broadcast::Sender<ServerNews>,
}

impl Outgoing {
    pub(crate) fn new() -> Self {
        // Who does not keep up with the news misses the oldest; a list can always be read again.
        Self { offers: watch::Sender::new(0), news: broadcast::Sender::new(256) }
    }

    pub(crate) fn offers_changed(&self) {
        self.offers.send_modify(|count| *count += 1);
    }
}

/// Reads what a server offers. What it cannot list it does not offer.
pub(crate) async fn read_offers(connection: &Connection, server: &ServerName) -> Offers {
    let features = connection.features().clone();
    let listing = async {
        let prompts = async {
            if features.prompts { connection.list_prompts().await } else { Ok(Vec::new()) }
        };
        let resources = async {
            if features.resources { connection.list_resources().await } else { Ok(Vec::new()) }
        };
        let templates = async {
            if features.resources { connection.list_templates().await } else { Ok(Vec::new()) }
        };
        tokio::join!(prompts, resources, templates)
    };
    // Listing three things at once is a large future, and every connection has one.
    let listed = tokio::time::timeout(LISTING_LIMIT, Box::pin(listing)).await;
    let Ok((prompts, resources, templates)) = listed else {
        tracing::warn!(%server, "prompts and resources could not be listed in time");
        return Offers { features, ..Offers::default() };
    };
    let or_none = |what: &str, listed: Result<Vec<Listed>, _>| {
        listed.unwrap_or_else(|error: switchboard_mcp::ConnectError| {
            tracing::debug!(%server, %error, "{what} could not be listed");
            Vec::new()
        })
    };
    Offers {
        prompts: or_none("prompts", prompts),
        resources: or_none("resources", resources),
        templates: or_none("resource templates", templates),
        features,
    }
}

/// Why a request that is no tool call has no answer.
#[derive(Debug)]
pub enum PassFailure {
    /// No such server, or it cannot be reached.
    Unavailable(String),
    Timeout(String),
    Server(AskFailure),
}

impl Board {
    /// What each server offers, in the order of the configuration.
    pub fn offers(&self) -> Vec<(ServerName, Arc<Offers>)> {
        let published = self.published.load();
        let plan = self.plan();
        let names = plan.servers.iter().map(|server| &server.spec.name);
        names
            .filter_map(|name| Some((name.clone(), published.servers.get(name)?.offers())))
            .collect()
    }

    /// Tells when what servers offer may have changed.
    pub fn offer_changes(&self) -> watch::Receiver<u64> {
        self.outgoing().offers.subscribe()
    }

    /// What servers say to nobody in particular.
    pub fn news(&self) -> broadcast::Receiver<ServerNews> {
        self.outgoing().news.subscribe()
    }

    /// Passes a request on to a server. Dropping the future cancels it.
    pub async fn pass(
        &self,
        server: &ServerName,
        ask: Ask,
        events: Option<Ear>,
    ) -> Result<RawResult, PassFailure> {
        let method = ask.method;
        let found = self.published.load().shared_server(server);
        let Some(held) = found.as_ref().and_then(|server| Some((server.clone(), server.hold()?)))
        else {
            let message = format!("MCP server '{server}' is no longer configured");
            return Err(PassFailure::Unavailable(message));
        };
        let Some((connection, _keeps_it_open)) = held.0.connection() else {
            let message = format!("MCP server '{server}' is not connected just now");
            return Err(PassFailure::Unavailable(message));
        };
        let ear = events.unwrap_or_else(Ear::deaf);
        let asking = std::pin::pin!(connection.ask(ask, Some(ear.clone())));
        let running = Running { total: REQUEST_LIMIT, silence: None };
        match running.watch(asking, &ear).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(failure)) => {
                if matches!(failure, AskFailure::Unavailable(_)) {
                    held.0.suspect();
                }
                Err(PassFailure::Server(failure))
            }
            Err(Overdue::Total | Overdue::Silent(_)) => {
                held.0.suspect();
                let limit = switchboard_model::render_duration(REQUEST_LIMIT);
                let message =
                    format!("no answer of MCP server '{server}' to {method} within {limit}");
                Err(PassFailure::Timeout(message))
            }
        }
    }

    /// Has a server report updates of exactly these resources, also after it is reconnected.
    pub async fn watch_resources(&self, server: &ServerName, uris: BTreeSet<String>) {
        let found = self.published.load().shared_server(server);
        if let Some(server) = found {
            server.watch_resources(uris).await;
        }
    }

    /// Has legacy servers send log messages from this level on.
    pub async fn set_log_level(&self, level: Option<Arc<str>>) {
        let published = self.published.load();
        let servers = published.servers.iter().filter(|(name, _)| !name.is_attached());
        let servers: Vec<_> = servers.map(|(_, server)| server.clone()).collect();
        drop(published);
        for server in servers {
            server.set_log_level(level.clone()).await;
        }
    }
}

impl Server {
    pub(crate) fn offers(&self) -> Arc<Offers> {
        self.offers.load_full()
    }

    async fn watch_resources(&self, uris: BTreeSet<String>) {
        {
            let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
            if *watched == uris {
                return;
            }
            watched.clone_from(&uris);
        }
        if let Some((connection, _keeps_it_open)) = self.connection() {
            self.watch_on(&connection, &uris).await;
        }
    }

    async fn set_log_level(&self, level: Option<Arc<str>>) {
        {
            let mut wanted = self.log_level.lock().unwrap_or_else(PoisonError::into_inner);
            if *wanted == level {
                return;
            }
            wanted.clone_from(&level);
        }
        if let Some((connection, _keeps_it_open)) = self.connection() {
            self.log_on(&connection, level.as_deref()).await;
        }
    }

    /// Tells a fresh connection what the last one was told.
    pub(crate) async fn resume_on(&self, connection: &Connection) {
        let uris = self.watched.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if !uris.is_empty() {
            self.watch_on(connection, &uris).await;
        }
        let level = self.log_level.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.log_on(connection, level.as_deref()).await;
    }

    async fn watch_on(&self, connection: &Connection, uris: &BTreeSet<String>) {
        if !connection.features().subscribe {
            return;
        }
        if let Err(error) = connection.watch_resources(uris).await {
            tracing::warn!(server = %self.spec().name, %error, "resources cannot be watched");
        }
    }

    async fn log_on(&self, connection: &Connection, level: Option<&str>) {
        let is_legacy = connection.era() == switchboard_model::Era::Legacy;
        let Some(level) = level.filter(|_| is_legacy && connection.features().logging) else {
            return;
        };
        if let Err(error) = connection.set_log_level(level).await {
            tracing::debug!(server = %self.spec().name, %error, "the log level cannot be set");
        }
    }
}
