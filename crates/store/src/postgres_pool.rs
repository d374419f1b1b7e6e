//! Connections to `PostgreSQL`, with bounds on every wait.
//!
//! A connection that was given up in the middle of a statement is closed, never used again: the server may be paused, the
//! network cut. The database may restart at any time; what has not begun yet is then tried again on a new connection.
//!
//! A server may give fewer connections than are configured. Then requests take turns with those that there are, instead of
//! asking it for more until their time is over.

use std::future::Future;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, Postgres};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use crate::statement::{Answer, Statement, Wanted};

/// How long an operation waits for a free connection, or for a new one.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a statement of a request may take. The server is told the same.
pub(crate) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that rested for longer is asked whether it still works.
const RESTED: Duration = Duration::from_secs(1);
const PING_TIMEOUT: Duration = Duration::from_secs(1);
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
/// How long to wait for the reason why there is no connection.
const REASON_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a connection may take to return to the pool.
const RETURN_TIMEOUT: Duration = Duration::from_millis(200);
const RETURN_PAUSE: Duration = Duration::from_millis(2);
/// When a server that had no connection left is asked for all of them again.
const WIDENED_AFTER: Duration = Duration::from_secs(30);

/// The connections of a process to one database.
#[derive(Debug, Clone)]
pub(crate) struct PostgresPool {
    pool: PgPool,
    /// One for each connection that may be in use.
    places: Arc<Semaphore>,
    /// How many places were taken away, and when.
    narrowed: Arc<Mutex<Option<(usize, Instant)>>>,
    in_use: Arc<AtomicUsize>,
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
        let places = usize::try_from(max_connections).unwrap_or(Semaphore::MAX_PERMITS);
        let places = Arc::new(Semaphore::new(places));
        Self { pool, places, narrowed: Arc::default(), in_use: Arc::default() }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.pool.is_closed()
    }

    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }

    /// A connection that is closed when it is dropped, unless [`Leased::keep`] was called.
    pub(crate) async fn lease(&self) -> Result<Leased, sqlx::Error> {
        self.widen();
        match self.lease_in_time().await {
            Err(sqlx::Error::PoolTimedOut) => {}
            leased => return leased,
        }
        let reason = self.why_there_is_none().await;
        if is_no_connection(&reason) && self.narrow() {
            let again = timeout(CONNECTION_TIMEOUT, self.lease_in_time()).await;
            return again.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map_err(|_| reason);
        }
        Err(reason)
    }

    async fn lease_in_time(&self) -> Result<Leased, sqlx::Error> {
        let place = timeout(CONNECTION_TIMEOUT, self.places.clone().acquire_owned()).await;
        let place = place.map_err(|_| sqlx::Error::PoolTimedOut)?;
        let place = place.map_err(|_| sqlx::Error::PoolClosed)?;
        self.until_one_is_back().await;
        let connection = self.pool.acquire().await?;
        self.in_use.fetch_add(1, Ordering::Relaxed);
        let in_use = self.in_use.clone();
        Ok(Leased { connection, is_kept: false, in_use, _place: place })
    }

    /// A connection returns to the pool a moment after its place is free. Without this wait the pool would ask the server
    /// for another one, which it does not have.
    async fn until_one_is_back(&self) {
        let deadline = Instant::now() + RETURN_TIMEOUT;
        while self.narrowed.lock().is_some()
            && self.pool.num_idle() == 0
            && Instant::now() < deadline
        {
            sleep(RETURN_PAUSE).await;
        }
    }

    /// Connects once outside of the pool, which does not tell why it could not.
    async fn why_there_is_none(&self) -> sqlx::Error {
        let options = self.pool.connect_options();
        match within(REASON_TIMEOUT, options.connect()).await {
            Ok(connection) => {
                drop(timeout(PING_TIMEOUT, connection.close()).await);
                sqlx::Error::PoolTimedOut
            }
            Err(error) => error,
        }
    }

    /// Leaves as many places as there are connections. Returns whether there are any.
    fn narrow(&self) -> bool {
        // The size of the pool counts those that it asks for, too.
        let open = self.in_use.load(Ordering::Relaxed) + self.pool.num_idle();
        let mut narrowed = self.narrowed.lock();
        let most = usize::try_from(self.pool.options().get_max_connections()).unwrap_or_default();
        let taken = narrowed.map_or(0, |(taken, _)| taken);
        let too_many = most.saturating_sub(taken).saturating_sub(open.max(1));
        let taken = taken + self.places.forget_permits(too_many);
        if narrowed.replace((taken, Instant::now())).is_none() {
            tracing::warn!(
                open,
                most,
                "the database gives fewer connections than `store.max_connections`; requests take turns with those"
            );
        }
        open > 0
    }

    /// Gives back the places after some time.
    fn widen(&self) {
        let mut narrowed = self.narrowed.lock();
        if let Some((taken, _)) = narrowed.take_if(|(_, at)| at.elapsed() >= WIDENED_AFTER) {
            self.places.add_permits(taken);
        }
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
    in_use: Arc<AtomicUsize>,
    _place: OwnedSemaphorePermit,
}

impl Leased {
    /// Gives the connection back to the pool when it is dropped.
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        self.in_use.fetch_sub(1, Ordering::Relaxed);
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

/// Whether the server refuses a connection because it has too many.
fn is_no_connection(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.as_deref() == Some("53300")
}

/// The server stops, starts or ended the session (`admin_shutdown`, `crash_shutdown`, `cannot_connect_now`, idle sessions), or
/// a pooler has forgotten a prepared statement.
const LOST: [&str; 6] = ["57P01", "57P02", "57P03", "57P05", "25P03", "26000"];
