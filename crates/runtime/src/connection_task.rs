//! The task behind one further connection of a server: opens it, forwards its notifications and closes it.

use std::sync::Arc;
use std::time::Duration;

use switchboard_mcp_client::{ConnectOptions, Connection, ConnectionClient, UpstreamNews};
use switchboard_model::{ConnectError, EraChoice, Sharing};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::offers::ServerNews;
use crate::open_connection::{ConnectionKey, OpenConnection, OpeningState};
use crate::server::Server;
use crate::server_context::{Audience, ServerContext};

/// Idle time after which a shared connection of the other era is closed.
const IDLE: Duration = Duration::from_mins(10);

/// The task that opens one connection, forwards its notifications and closes it.
pub(crate) struct ConnectionTask {
    pub(crate) server: Arc<Server>,
    pub(crate) key: ConnectionKey,
    /// The client's capabilities, and the channel for requests to it.
    pub(crate) client: ConnectionClient,
    /// The connection that was closed to make room for this one; its channel closes once it is gone.
    pub(crate) replaces: Option<watch::Receiver<OpeningState>>,
    pub(crate) progress: watch::Sender<OpeningState>,
    pub(crate) stop: CancellationToken,
}

impl ConnectionTask {
    pub(crate) async fn run(self) {
        let Some(opened) = self.stop.run_until_cancelled(Box::pin(self.open())).await else {
            self.server.pool().remove(&self.key, &self.progress);
            return;
        };
        let connection = match opened {
            Ok(connection) => connection,
            Err(error) => {
                if self.key.is_own() {
                    // The next call tries again, unless the server does not speak this era.
                    self.server.pool().remove(&self.key, &self.progress);
                    self.server.pool().note_failure(&self.key, &error);
                }
                self.progress.send_replace(OpeningState::Failed { error, at: Instant::now() });
                return;
            }
        };
        let open = Arc::new(OpenConnection::new(
            connection.clone(),
            self.key.owner.is_some().then(|| self.stop.clone()),
        ));
        self.progress.send_replace(OpeningState::Open(open.clone()));
        self.server.tell_log_levels().await;
        self.follow(&open).await;
        self.server.pool().remove(&self.key, &self.progress);
        open.users.close();
        if !self.stop.is_cancelled() {
            self.server.let_finish(&open.users).await;
        }
        connection.close().await;
    }

    async fn open(&self) -> Result<Arc<Connection>, ConnectError> {
        if let Some(mut closing) = self.replaces.clone() {
            while closing.changed().await.is_ok() {}
        }
        let mut spec = self.server.spec().clone();
        let mut options = ConnectOptions { known_era: None, ..self.around().options.clone() };
        if let Some(era) = self.key.era {
            spec.era = EraChoice::Fixed(era);
        } else {
            options.known_era = self.server.status().era;
        }
        if let Some(owner) = &self.key.owner {
            options.owner = owner.clone();
        }
        if self.key.session.is_some() {
            options.session = Some(self.client.clone());
        }
        let (connection, _tools) = Connection::open(&spec, &options).await?;
        Ok(connection)
    }

    /// The idle time after which the connection is closed.
    fn idle(&self) -> Duration {
        match self.server.spec().sharing {
            Sharing::PerSession { idle, .. } | Sharing::PerOwner { idle, .. }
                if self.key.is_own() =>
            {
                idle
            }
            Sharing::PerSession { .. } | Sharing::PerOwner { .. } | Sharing::Shared => IDLE,
        }
    }

    fn around(&self) -> &ServerContext {
        self.server.around()
    }

    /// Forwards notifications that belong to no request, until the connection must be closed.
    async fn follow(&self, open: &OpenConnection) {
        let mut news = open.connection.take_news();
        let mut unused = std::pin::pin!(open.unused_for(self.idle()));
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = open.connection.closed() => return,
                () = &mut unused => return,
                () = open.connection.changed() => self.server.suspect(),
                Some(said) = next_news(&mut news) => self.hear(said),
            }
        }
    }

    fn hear(&self, said: UpstreamNews) {
        match said {
            // The supervised connection provides the lists.
            UpstreamNews::PromptsChanged | UpstreamNews::ResourcesChanged => {
                self.server.suspect_offers();
            }
            UpstreamNews::Log(params) => {
                // Log messages of a session's own connection go to that session only, and those of an account to nobody
                // else.
                let is_shared = !self.key.is_own();
                if is_shared && self.around().audience == Audience::Everybody {
                    let server = self.server.spec().name.clone();
                    // There may be no receiver.
                    let _unheard =
                        self.around().outgoing.news.send(ServerNews::Log { server, params });
                }
            }
            // No subscriptions are made over this connection.
            UpstreamNews::ResourceUpdated { .. } => {}
        }
    }
}

async fn next_news(news: &mut Option<mpsc::Receiver<UpstreamNews>>) -> Option<UpstreamNews> {
    match news {
        Some(news) => news.recv().await,
        None => std::future::pending().await,
    }
}
