//! A further connection of a server: its key, the state of opening it, and the tokens of the requests that keep it open.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_mcp_client::Connection;
use switchboard_model::{ConnectError, ConnectErrorKind, Era, GrantOwner};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// How long a failed era is not tried again.
const RETRY_PAUSE: Duration = Duration::from_mins(1);

/// Identifies a further connection of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionKey {
    /// Whose account it uses, at a server where each owner has an account; `None` for the board's.
    pub(crate) owner: Option<GrantOwner>,
    /// The session that owns it; `None` for one that all clients share.
    pub(crate) session: Option<Arc<str>>,
    /// The required era; `None` if the server chooses.
    pub(crate) era: Option<Era>,
}

impl ConnectionKey {
    pub(crate) fn shared(era: Era) -> Self {
        Self { owner: None, session: None, era: Some(era) }
    }

    /// Whether the connection serves one session or one owner alone.
    pub(crate) fn is_own(&self) -> bool {
        self.session.is_some() || self.owner.is_some()
    }

    /// The shared key of the same era, for an own key with a required era.
    pub(crate) fn to_shared(&self) -> Option<Self> {
        self.era.filter(|_| self.is_own()).map(Self::shared)
    }

    /// Whether it ends with this session.
    pub(crate) fn belongs_to(&self, session: &str) -> bool {
        let of_owner = match &self.owner {
            Some(GrantOwner::Session(owner)) => **owner == *session,
            Some(GrantOwner::Board | GrantOwner::Person(_)) | None => false,
        };
        of_owner || self.session.as_deref() == Some(session)
    }
}

/// The state of opening a connection.
#[derive(Debug, Clone)]
pub(crate) enum OpeningState {
    Opening,
    Open(Arc<OpenConnection>),
    Failed { error: ConnectError, at: Instant },
}

impl OpeningState {
    /// Whether the entry must be replaced: the connection is closed, or it failed long enough ago and not because of
    /// the protocol.
    pub(crate) fn is_stale(&self) -> bool {
        match self {
            Self::Opening => false,
            Self::Open(open) => open.users.is_closed() || open.connection.is_closed(),
            Self::Failed { error, at } => {
                error.kind != ConnectErrorKind::Protocol && at.elapsed() >= RETRY_PAUSE
            }
        }
    }
}

/// An open connection, and the token that keeps it open.
pub(crate) type Held = (Arc<Connection>, UseToken);

/// Keeps a connection open until it is dropped.
#[derive(Debug)]
pub(crate) struct UseToken {
    _users: TaskTrackerToken,
    /// Updated when the use ends.
    last_used: Option<Arc<Mutex<Instant>>>,
    /// Cancelled when the account of the connection must not be used any more.
    revoked: Option<CancellationToken>,
}

impl UseToken {
    /// Returns when the account of the connection must not be used any more; never for the board's account.
    pub(crate) async fn revoked(&self) {
        match &self.revoked {
            Some(revoked) => revoked.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

impl From<TaskTrackerToken> for UseToken {
    fn from(users: TaskTrackerToken) -> Self {
        Self { _users: users, last_used: None, revoked: None }
    }
}

impl Drop for UseToken {
    fn drop(&mut self) {
        // Updated before the token is released and the connection counts as unused.
        if let Some(last_used) = &self.last_used {
            *last_used.lock() = Instant::now();
        }
    }
}

/// A connection, the requests that run over it, and when it was last used.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    pub(crate) connection: Arc<Connection>,
    pub(crate) users: TaskTracker,
    last_used: Arc<Mutex<Instant>>,
    /// Cancelled when the account of the connection must not be used any more.
    revoked: Option<CancellationToken>,
    /// The log level that was last sent to the server.
    pub(crate) log_level: Mutex<Option<Arc<str>>>,
}

impl OpenConnection {
    pub(crate) fn new(connection: Arc<Connection>, revoked: Option<CancellationToken>) -> Self {
        Self {
            connection,
            users: TaskTracker::new(),
            last_used: Arc::new(Mutex::new(Instant::now())),
            revoked,
            log_level: Mutex::default(),
        }
    }

    /// Keeps the connection open until the token is dropped; `None` if it is being closed.
    pub(crate) fn hold(&self) -> Option<Held> {
        // In this order: a concurrent close either waits for this token, or is noticed here.
        let token = UseToken {
            _users: self.users.token(),
            last_used: Some(self.last_used.clone()),
            revoked: self.revoked.clone(),
        };
        let is_usable = !self.users.is_closed() && !self.connection.is_closed();
        is_usable.then(|| (self.connection.clone(), token))
    }

    pub(crate) fn last_used(&self) -> Instant {
        *self.last_used.lock()
    }

    /// Blocks new requests if none is running. Returns whether it did.
    pub(crate) fn close_if_unused(&self) -> bool {
        // In this order: a concurrent request is either noticed here, or finds the connection closed.
        self.users.close();
        let is_unused = self.users.is_empty();
        if !is_unused {
            self.users.reopen();
        }
        is_unused
    }

    /// Waits until the connection was unused for this long.
    pub(crate) async fn unused_for(&self, idle: Duration) {
        loop {
            let last_used = {
                let mut last_used = self.last_used.lock();
                if !self.users.is_empty() {
                    *last_used = Instant::now();
                }
                *last_used
            };
            if last_used.elapsed() >= idle {
                return;
            }
            tokio::time::sleep_until(last_used + idle).await;
        }
    }
}
