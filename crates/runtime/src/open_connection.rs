//! A further connection of a server while it is open, and the requests that keep it so.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_mcp_client::Connection;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// An open connection, and the token that keeps it open.
pub(crate) type Held = (Arc<Connection>, UseToken);

/// Keeps a connection open until it is dropped.
#[derive(Debug)]
pub(crate) struct UseToken {
    _users: TaskTrackerToken,
    /// Where the end of the use is noted.
    last_used: Option<Arc<Mutex<Instant>>>,
}

impl From<TaskTrackerToken> for UseToken {
    fn from(users: TaskTrackerToken) -> Self {
        Self { _users: users, last_used: None }
    }
}

impl Drop for UseToken {
    fn drop(&mut self) {
        // Before the connection counts as unused.
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
    /// From which level on the server was last told to log.
    pub(crate) log_level: Mutex<Option<Arc<str>>>,
}

impl OpenConnection {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        let last_used = Arc::new(Mutex::new(Instant::now()));
        Self { connection, users: TaskTracker::new(), last_used, log_level: Mutex::default() }
    }

    /// Keeps the connection open until the token is dropped; `None` when it is about to be closed.
    pub(crate) fn hold(&self) -> Option<Held> {
        // In this order: who closes it either waits for the token or is seen here.
        let token =
            UseToken { _users: self.users.token(), last_used: Some(self.last_used.clone()) };
        let is_usable = !self.users.is_closed() && !self.connection.is_closed();
        is_usable.then(|| (self.connection.clone(), token))
    }

    pub(crate) fn last_used(&self) -> Instant {
        *self.last_used.lock()
    }

    /// Lets no request begin any more, if none runs; says whether that is so.
    pub(crate) fn close_if_unused(&self) -> bool {
        // In this order: a request that begins meanwhile is either seen here or finds the connection closed.
        self.users.close();
        let is_unused = self.users.is_empty();
        if !is_unused {
            self.users.reopen();
        }
        is_unused
    }

    /// Waits until nobody has used the connection for this long.
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
