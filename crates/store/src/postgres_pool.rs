//! Connections to `PostgreSQL`, with bounds on every wait.
//!
//! A connection that was given up in the middle of a statement is closed, never used again: the server may be paused, the
//! network cut. The database may restart at any time; what has not begun yet is then tried again on a new connection.

use std::future::Future;
use std::io;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use sqlx::Connection;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, Postgres};
use tokio::time::{Instant, timeout};

use crate::statement::{Answer, Statement, Wanted};

/// How long an operation waits for a free connection, or for a new one.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a statement of a request may take. The server is told the same.
pub(crate) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that rested for longer is asked whether it still works.
const RESTED: Duration = Duration::from_secs(1);
const PING_TIMEOUT: Duration = Duration::from_secs(1);
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);

/// The connections of a process to one database.
#[derive(Debug, Clone)]
pub(crate) struct PostgresPool {
    pool: PgPool,
}

impl PostgresPool {
    /// A pool that connects when it is used.
    pub(crate) fn new(options: PgConnectOptions, max_connections: u32) -> Self {
        let pool = PgPoolOptions::new()
            .max_connections(max_connections)
            .idle_timeout(IDLE_TIMEOUT)
            .acquire_timeout(CONNECTION_TIMEOUT)
            .test_before_acquire(false)
            .before_acquire(|connection, metadata| {
                Box::pin(async move {
                    if metadata.idle_for < RESTED {
                        return Ok(true);
                    }
                    Ok(matches!(timeout(PING_TIMEOUT, connection.ping()).await, Ok(Ok(()))))
                })
            })
            .connect_lazy_with(options);
        Self { pool }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.pool.is_closed()
    }

    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }

    /// A connection that is closed when it is dropped, unless [`Leased::keep`] was called.
    pub(crate) async fn lease(&self) -> Result<Leased, sqlx::Error> {
        Ok(Leased { connection: self.pool.acquire().await?, is_kept: false })
    }

    /// Reads. A connection that turns out to be broken is replaced, within the time of one statement.
    pub(crate) async fn read(
        &self,
        statement: &Statement<'_>,
        wanted: Wanted,
    ) -> Result<Answer, sqlx::Error> {
        let deadline = Instant::now() + STATEMENT_TIMEOUT;
        loop {
            let mut lease = self.lease().await?;
            let answer = within(STATEMENT_TIMEOUT, statement.on_postgres(&mut lease, wanted)).await;
            match answer {
                Err(error) if is_lost(&error) && Instant::now() < deadline => {}
                Err(error) if is_lost(&error) => return Err(error),
                answered => {
                    lease.keep();
                    return answered;
                }
            }
        }
    }
}

/// A connection in use.
#[derive(Debug)]
pub(crate) struct Leased {
    connection: PoolConnection<Postgres>,
    is_kept: bool,
}

impl Leased {
    /// Gives the connection back to the pool when it is dropped.
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        if !self.is_kept {
            self.connection.close_on_drop();
        }
    }
}

impl Deref for Leased {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Leased {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

/// Bounds a wait for the server.
pub(crate) async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    timeout(limit, answer).await.unwrap_or_else(|_| {
        Err(sqlx::Error::Io(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("the database did not answer within {} s", limit.as_secs()),
        )))
    })
}

/// Whether the connection is lost, so that a new one may do better.
pub(crate) fn is_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() != io::ErrorKind::TimedOut,
        sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(error) => {
            error.code().is_some_and(|code| LOST.contains(&&*code) || code.starts_with("08"))
        }
        _ => false,
    }
}

/// The server stops, starts or ended the session (`admin_shutdown`, `crash_shutdown`, `cannot_connect_now`, idle sessions), or
/// a pooler has forgotten a prepared statement.
const LOST: [&str; 6] = ["57P01", "57P02", "57P03", "57P05", "25P03", "26000"];
