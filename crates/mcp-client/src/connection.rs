//! One connection to one upstream server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use switchboard_model::{
    ConnectError, ConnectErrorKind, Era, GrantOwner, ServerName, UpstreamToolList,
};
use switchboard_oauth::SignIns;
use switchboard_outbound::{HttpPool, Redactor};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bounds::ListBounds;
use crate::connect_progress::ConnectProgress;
use crate::events::EventSender;
use crate::exchange::RequestRoute;
use crate::pending_requests::PendingRequests;
use crate::process_error::process_error;
use crate::request::Features;
use crate::stdio::ChildProcess;
use crate::stdio_handshake::ProbeTimes;
use crate::subscriptions::Watch;

/// How long closing may wait for cancellations to reach the server.
const LAST_WORDS: Duration = Duration::from_millis(500);

const ROOTS_CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;

/// The inputs of connecting besides the server's specification.
#[derive(Debug, Clone, Default)]
pub struct ConnectOptions {
    /// The executable of the guard process for stdio children (`switchboard` itself); without it they are started
    /// directly.
    pub guard: Option<PathBuf>,
    /// The era of the last connection; saves the probe.
    pub known_era: Option<Era>,
    /// When a silent stdio child is sent the other handshake.
    pub probe_times: ProbeTimes,
    /// Receives the progress of the connection attempt.
    pub progress: Option<Arc<ConnectProgress>>,
    /// Shared between the connections of one board.
    pub http: HttpPool,
    /// The tokens of servers with `auth.oauth`; without it those cannot be reached.
    pub sign_ins: Option<SignIns>,
    /// Whose account the connection uses, at a server with `auth.oauth`. Every request of the connection carries a
    /// token of this owner and of no other.
    pub owner: GrantOwner,
    /// The limits of its lists.
    pub list_bounds: ListBounds,
    /// The client of a connection that belongs to one session; `None` for a shared connection.
    pub session: Option<ConnectionClient>,
}

/// The client of a connection that belongs to one session.
#[derive(Debug, Clone, Default)]
pub struct ConnectionClient {
    /// The client's capabilities as a JSON object, which the server is told; without it, the server is told what any
    /// client may support.
    pub capabilities: Option<Arc<str>>,
    /// Receives requests and log messages that the server sends while no call runs.
    pub events: Option<EventSender>,
}

/// The server's name, version and instructions as it reports them. For display only.
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
    /// Whether an answer of the server showed its protocol era. Only then is the era stored for later connections.
    pub(crate) era_is_certain: bool,
    pub(crate) info: ServerInfo,
    pub(crate) features: Features,
    pub(crate) pending: Arc<PendingRequests>,
    pub(crate) route: RequestRoute,
    pub(crate) watch: Watch,
    /// Whether arguments are repeated in headers.
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
    /// Reads the server's complete list of tools.
    pub async fn list_tools(&self) -> Result<UpstreamToolList, ConnectError> {
        match self.read_tools().await {
            Ok(list) => Ok(list),
            Err(error) => Err(self.explain(error).await),
        }
    }

    /// Replaces the error with that of the child, if the child has ended: its exit says more than the lost response.
    pub(crate) async fn explain(&self, error: ConnectError) -> ConnectError {
        let child = self.lost_child(&error).await;
        child.map_or(error, |child| process_error(child, &self.redactor))
    }

    /// The server's name in the configuration.
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// The protocol era of the connection.
    pub fn era(&self) -> Era {
        self.era
    }

    /// The era, if the server itself determined it and it may be remembered.
    pub fn learned_era(&self) -> Option<Era> {
        self.era_is_certain.then_some(self.era)
    }

    /// What the server reports about itself.
    pub fn info(&self) -> &ServerInfo {
        &self.info
    }

    /// Returns when the tool list may have changed since the last return. Several notifications in a row count as one.
    pub async fn changed(&self) {
        self.pending.changed().notified().await;
    }

    /// Returns when the connection has ended, whichever side ended it.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Why the connection ended, as far as it is known.
    pub fn end_reason(&self) -> String {
        self.child.as_ref().map_or_else(|| "the server closed it".into(), ChildProcess::reason)
    }

    /// The end of a stdio server's standard error, without secrets.
    pub fn stderr(&self) -> Option<String> {
        let text = self.child.as_ref().map(ChildProcess::stderr).filter(|text| !text.is_empty())?;
        Some(self.redactor.redact_text(&text))
    }

    /// Sets the receiver of messages that the server sends while no call runs. For a connection of one session.
    pub fn listen_for_session(&self, events: &EventSender) {
        self.pending.listen_for_session(events.clone());
    }

    /// Notifies a server of the session era that its client's roots have changed.
    pub async fn roots_changed(&self) {
        if self.era == Era::Legacy {
            self.pending.notify(ROOTS_CHANGED.to_owned()).await;
        }
    }

    /// Closes the connection and ends its child process, which gets a moment to exit by itself.
    pub async fn close(&self) {
        // A server may wait for its open requests before it exits, and a subscription never ends by itself.
        self.unsubscribe.cancel();
        self.unsubscribed.cancelled().await;
        // Waits for pending cancellations, so that the server stops working on calls that were dropped a moment ago.
        self.pending.cancelling().close();
        let _unheard = tokio::time::timeout(LAST_WORDS, self.pending.cancelling().wait()).await;
        self.stop.cancel();
        if let Some(child) = &self.child {
            // A child that no longer reads its input blocks the pipe, and with it the rmcp service.
            let _stuck = tokio::time::timeout(LAST_WORDS, self.closed.cancelled()).await;
            child.end().await;
        }
        self.closed.cancelled().await;
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The child, if its exit caused this failure. Waits a moment for the exit to be noticed.
    pub(crate) async fn lost_child(&self, error: &ConnectError) -> Option<&ChildProcess> {
        let child = self.child.as_ref().filter(|_| error.kind == ConnectErrorKind::Unreachable)?;
        child.settle().await;
        child.is_gone().then_some(child)
    }

    pub(crate) fn pending(&self) -> &Arc<PendingRequests> {
        &self.pending
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
