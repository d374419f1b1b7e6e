//! One connection to one upstream server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use switchboard_model::{Era, ServerName, UpstreamToolList};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bounds::ListBounds;
use crate::connect::process_error;
use crate::connect_progress::ConnectProgress;
use crate::error::{ConnectError, ConnectErrorKind};
use crate::events::EventSender;
use crate::http_pool::HttpPool;
use crate::oauth::SignIns;
use crate::pending_requests::PendingRequests;
use crate::redaction::Redactor;
use crate::request::Features;
use crate::stdio::ChildProcess;
use crate::stdio_handshake::ProbeTimes;
use crate::subscriptions::Watch;

/// How long a connection that is closed may take to tell the server what it no longer waits for.
const LAST_WORDS: Duration = Duration::from_millis(500);

const ROOTS_CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;

/// What connecting needs besides the server's own spec.
#[derive(Debug, Clone, Default)]
pub struct ConnectOptions {
    /// The program that guards stdio children (`switchboard` itself); without it they are started directly.
    pub guard: Option<PathBuf>,
    /// The era that the server spoke last time; saves the question.
    pub known_era: Option<Era>,
    /// When a silent stdio child is asked in another way.
    pub probe_times: ProbeTimes,
    /// Told what is waited for while the connection is opened.
    pub progress: Option<Arc<ConnectProgress>>,
    /// Shared between the connections of one board.
    pub http: HttpPool,
    /// Where the tokens of servers with `auth.oauth` are; without it those cannot be reached.
    pub sign_ins: Option<SignIns>,
    /// How long its lists may be.
    pub list_bounds: ListBounds,
    /// The one client that the connection is for; without it, it is for all.
    pub session: Option<ConnectionClient>,
}

/// The client of a connection that belongs to one session.
#[derive(Debug, Clone, Default)]
pub struct ConnectionClient {
    /// What the client declares, as a JSON object. The server is told the same; without it, what any client may declare.
    pub capabilities: Option<Arc<str>>,
    /// Where requests and log messages go that the server sends while no call runs.
    pub events: Option<EventSender>,
}

/// What a server says about itself. For display only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerInfo {
    pub name: Option<String>,
    pub version: Option<String>,
    pub protocol: String,
}

/// An open connection. Dropping it closes it in the background; [`Connection::close`] waits for that.
#[derive(Debug)]
pub struct Connection {
    pub(crate) server: ServerName,
    pub(crate) era: Era,
    /// Whether the era was learned by asking, and may be remembered.
    pub(crate) era_is_certain: bool,
    pub(crate) info: ServerInfo,
    pub(crate) features: Features,
    pub(crate) desk: Arc<PendingRequests>,
    pub(crate) watch: Watch,
    /// Whether arguments are mirrored into headers.
    pub(crate) mirrors_arguments: bool,
    pub(crate) list_bounds: ListBounds,
    pub(crate) redactor: Redactor,
    pub(crate) child: Option<ChildProcess>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    pub(crate) closed: CancellationToken,
    pub(crate) unsubscribe: CancellationToken,
    pub(crate) unsubscribed: CancellationToken,
}

impl Connection {
    /// The server's whole list of tools.
    pub async fn list_tools(&self) -> Result<UpstreamToolList, ConnectError> {
        match self.read_tools().await {
            Ok(list) => Ok(list),
            Err(error) => Err(self.explain(error).await),
        }
    }

    /// The end of a child says more than what it left unanswered.
    pub(crate) async fn explain(&self, error: ConnectError) -> ConnectError {
        let child = self.lost_child(&error).await;
        child.map_or(error, |child| process_error(child, &self.redactor))
    }

    /// The server's name in the configuration.
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// The era that is spoken.
    pub fn era(&self) -> Era {
        self.era
    }

    /// The era, when it was learned from the server itself and may be remembered.
    pub fn learned_era(&self) -> Option<Era> {
        self.era_is_certain.then_some(self.era)
    }

    /// What the server says about itself.
    pub fn info(&self) -> &ServerInfo {
        &self.info
    }

    /// Returns when the list may have changed since the last return. A storm is one change.
    pub async fn changed(&self) {
        self.desk.changed().notified().await;
    }

    /// Returns when the connection has ended, whoever ended it.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Why the connection ended, as far as we know.
    pub fn end_reason(&self) -> String {
        self.child.as_ref().map_or_else(|| "the server closed it".into(), ChildProcess::reason)
    }

    /// The last of what a stdio server wrote to its error output, without secrets.
    pub fn stderr(&self) -> Option<String> {
        let text = self.child.as_ref().map(ChildProcess::stderr).filter(|text| !text.is_empty())?;
        Some(self.redactor.over_text(&text))
    }

    /// From now on, what the server sends while no call runs goes there. For a connection of one session.
    pub fn listen_for_session(&self, events: &EventSender) {
        self.desk.listen_for_session(events.clone());
    }

    /// Tells a server of the session era that the roots of its client have changed.
    pub async fn roots_changed(&self) {
        if self.era == Era::Legacy {
            self.desk.notify(ROOTS_CHANGED.to_owned()).await;
        }
    }

    /// Ends the connection and everything that belongs to it. A child gets a moment to end by itself.
    pub async fn close(&self) {
        // A server may wait for its open requests before it ends, and a subscription never ends by itself.
        self.unsubscribe.cancel();
        self.unsubscribed.cancelled().await;
        // Calls that were given up a moment ago should not go on running over there.
        self.desk.cancelling().close();
        let _unheard = tokio::time::timeout(LAST_WORDS, self.desk.cancelling().wait()).await;
        self.stop.cancel();
        if let Some(child) = &self.child {
            // A child that no longer reads keeps a message stuck in its pipe, and the service with it.
            let _stuck = tokio::time::timeout(LAST_WORDS, self.closed.cancelled()).await;
            child.end().await;
        }
        self.closed.cancelled().await;
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The child, if it is behind this failure. It may take a moment to be seen to end.
    pub(crate) async fn lost_child(&self, error: &ConnectError) -> Option<&ChildProcess> {
        let child = self.child.as_ref().filter(|_| error.kind == ConnectErrorKind::Unreachable)?;
        child.settle().await;
        child.is_gone().then_some(child)
    }

    pub(crate) fn desk(&self) -> &Arc<PendingRequests> {
        &self.desk
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    pub(crate) fn known_features(&self) -> &Features {
        &self.features
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
